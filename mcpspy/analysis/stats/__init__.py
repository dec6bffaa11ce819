"""Statistics of a session: counts, latency, sizes, concurrency."""

from mcpspy.analysis.stats.collector import StatsCollector
from mcpspy.analysis.stats.group import ChainCounts, MessageGroup, merged
from mcpspy.analysis.stats.quantiles import Distribution, Durations

__all__ = ["ChainCounts", "Distribution", "Durations", "MessageGroup", "StatsCollector", "merged"]
