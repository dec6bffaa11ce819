"""Counts, latency, sizes, concurrency in one pass."""

from mcpspy.analysis.stats.collector import StatsCollector
from mcpspy.analysis.stats.group import ChainCounts, MessageGroup, merged
from mcpspy.analysis.stats.quantiles import Distribution, Durations, RunningUnion

__all__ = [
    "ChainCounts",
    "Distribution",
    "Durations",
    "MessageGroup",
    "RunningUnion",
    "StatsCollector",
    "merged",
]
