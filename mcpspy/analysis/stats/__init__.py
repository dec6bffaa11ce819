"""What a session comes to in numbers: how often, how long, how much, how many at once.

`Stats` is the fold, one pass over the lines of a recording that keeps eight
bytes an answer and no messages; `Group` is a row of its tables.
"""

from mcpspy.analysis.stats.collector import StatsCollector
from mcpspy.analysis.stats.group import ChainCounts, MessageGroup, merged
from mcpspy.analysis.stats.quantiles import Distribution, Durations

__all__ = ["ChainCounts", "Distribution", "Durations", "MessageGroup", "StatsCollector", "merged"]
