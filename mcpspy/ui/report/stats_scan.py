"""Statistics of a recording in its current state."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from mcpspy.analysis.stats import StatsCollector
from mcpspy.core.sanitize import sanitize
from mcpspy.io.recording.scan import LineBlock
from mcpspy.ui.report.stats_format import CountedSession
from mcpspy.ui.terminal import scanned


def count_session(path: Path, title: str, stats: StatsCollector, *, is_live: bool) -> CountedSession:
    """Return the statistics of a whole recording, with a progress bar while it is read."""
    with closing(scanned(path, is_live=is_live)) as blocks:
        return counted_session(title, blocks, stats, is_live=is_live)


def counted_session(
    title: str, blocks: Iterable[LineBlock], stats: StatsCollector, *, is_live: bool
) -> CountedSession:
    """Return the statistics of these lines. `is_live` is the state before the first block was read."""
    parts: list[Path] = []
    for block in blocks:
        if block.path not in parts:
            parts.append(block.path)
            stats.begin_part()
        stats.add_lines(block.lines)
    stats.finish(is_over=not is_live)
    return CountedSession(sanitize(title), stats, is_live, tuple(map(str, parts)))
