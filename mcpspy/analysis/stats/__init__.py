"""Counts, latency, sizes, concurrency in one pass."""

from mcpspy.analysis.stats.collector import StatsCollector
from mcpspy.analysis.stats.group import (
    ChainCounts,
    Distribution,
    Durations,
    MessageGroup,
    RunningUnion,
    merged,
)

__all__ = [
    "ChainCounts",
    "Distribution",
    "Durations",
    "MessageGroup",
    "RunningUnion",
    "StatsCollector",
    "merged",
]
