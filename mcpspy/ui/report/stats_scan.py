"""Statistics of a recording in its current state."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from mcpspy.analysis.stats import StatsCollector
from mcpspy.ui.report.stats_format import CountedSession
from mcpspy.ui.terminal import scanned


def count_session(path: Path, title: str, stats: StatsCollector, *, is_live: bool) -> CountedSession:
    """Return the statistics after reading the whole recording. `title` is sanitized."""
    parts: list[Path] = []
    with closing(scanned(path, is_live=is_live)) as blocks:
        for block in blocks:
            if block.path not in parts:
                parts.append(block.path)
                stats.begin_part()
            stats.add_lines(block.lines)
    stats.finish(is_over=not is_live)
    return CountedSession(title, stats, is_live, tuple(map(str, parts)))
