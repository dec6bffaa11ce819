"""Select lint findings by a filter. It needs outcomes of requests, so it reads the recording first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mcpspy.core.query.parser import Query
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.scan import LineReader, RecordingScan
from mcpspy.ui.model.filter_items import RowItem
from mcpspy.ui.model.session_model import SessionModel


class LintRowFilter:
    def __init__(self, path: Path, query: Query, show: Callable[[int, int], None]) -> None:
        """Read the recording; `show` is called with the bytes read and the total."""
        recording, lines = Recording(path), LineReader()
        is_live = recording.state is RecordingState.LIVE
        log = SessionModel(recording.header, lines.read)
        scan, part = RecordingScan(path), None
        for block in scan:
            if block.path != part:
                part = block.path
                log.begin_part(lines.begin_part(part))
            log.add_lines(block.lines, block.offset)
            show(scan.read, scan.size)
        if not is_live:
            log.end()
        query.end = log.index.last_at
        self._query = query
        self._item = RowItem(log, exchanges=False)
        self._count = len(log)
        self._lines = lines

    def has(self, number: int) -> bool:
        self._item.row = number
        return number < self._count and self._query.matches(self._item)

    def close(self) -> None:
        self._lines.close()
