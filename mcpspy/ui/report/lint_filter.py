"""Which messages of a recording a filter finds, before they are looked at.

Owns the reading ahead: what became of a request, and when the session ends, is
known only then. Some sixty bytes a message are kept, and none of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mcpspy.core.query.parser import Query
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.scan import LineReader, RecordingScan
from mcpspy.ui.filter_items import RowItem
from mcpspy.ui.session_model import SessionModel


class LintRowFilter:
    """The rows of a recording, as they were when it was read, and a filter."""

    def __init__(self, path: Path, query: Query, tell: Callable[[int, int], None]) -> None:
        """Read the recording; `tell` is told how many bytes of how many were read."""
        recording, lines = Recording(path), LineReader()
        is_live = recording.state is RecordingState.LIVE
        log = SessionModel(recording.header, lines.read)
        scan, part = RecordingScan(path), None
        for block in scan:
            if block.path != part:
                part = block.path
                log.begin_part(lines.begin_part(part))
            log.add_lines(block.lines, block.offset)
            tell(scan.read, scan.size)
        if not is_live:
            log.end()
        query.end = log.index.last_at
        self._query = query
        self._item = RowItem(log, exchanges=False)
        self._count = len(log)
        self._lines = lines

    def has(self, number: int) -> bool:
        """Whether the filter finds a message, by its place among the session's changes."""
        self._item.row = number
        return number < self._count and self._query.matches(self._item)

    def close(self) -> None:
        """Let go of the files."""
        self._lines.close()
