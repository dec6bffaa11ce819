"""How far a command has come with what takes long, on the last line of a terminal.

Owns that line: it comes when the wait is worth one, and is gone without a trace
before anything else is printed. Where stderr is no terminal, there is none.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator
from pathlib import Path

from mcpspy.core.sanitize import sanitize
from mcpspy.io.recording.scan import LineBlock, RecordingScan
from mcpspy.ui.cli.output import LastLine, warn_torn

PATIENCE = 0.5
"""Seconds before it shows."""

PACE = 0.1
"""Seconds between two looks of it."""

WIDTH = 30


class Progress(LastLine):
    """A line with a bar; a context in which it may be there."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._what = sanitize(what)
        self._clock = clock
        self._due = clock() + PATIENCE

    def __enter__(self) -> Progress:
        return self

    def show(self, done: int, of: int) -> None:
        """Say how much is done, if that is due."""
        if not self._has_line or (now := self._clock()) < self._due:
            return
        self._due = now + PACE
        share = min(done / of, 1.0) if of else 1.0
        filled = int(share * WIDTH)
        self.put(f"[{'#' * filled}{'.' * (WIDTH - filled)}] {share:4.0%} {self._what}")


def scanned(path: Path, *, is_live: bool) -> Generator[LineBlock]:
    """Yield the blocks of a recording, with progress; report an incomplete last line unless it is live."""
    scan = RecordingScan(path)
    gc.disable()  # What is made of a line is gone with it, or stays: there is nothing to look for.
    try:
        with Progress(path.name) as progress:
            for block in scan:
                yield block
                progress.show(scan.read, scan.size)
    finally:
        gc.enable()
    warn_torn(path, 0 if is_live else scan.torn)
