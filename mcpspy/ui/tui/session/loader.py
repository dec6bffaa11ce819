"""A recording, read into a log while the screen goes on.

Owns the slices of time in which a long file is taken in, and what became of
the file meanwhile: torn, deleted, replaced, unreadable. Following it is
`io.recording.tail`'s; nothing here knows of the screen.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from pathlib import Path

from mcpspy.core.recording.decode import Header
from mcpspy.errors import McpspyError
from mcpspy.io.recording.reader import RecordingState, Summary, read_header_of
from mcpspy.io.recording.scan import LineBlock, LineReader
from mcpspy.io.recording.tail import BEGINS_AGAIN, follow_lines
from mcpspy.ui.session_model import SessionModel
from mcpspy.ui.tui.session.time_format import began

PORTION = 256
"""Lines that are taken at a time, in some 2 ms. A key takes several turns of the event loop, and waits so long in each."""

BLINK = 1_000_000
"""Bytes that are read before anybody would read that they are."""

NAME_EVERY = 1.0
"""Seconds between two looks whether the file still has its name."""


class SessionLoader:
    """The reading of one recording."""

    def __init__(self, summary: Summary) -> None:
        self.path = summary.path
        self.paths = [summary.path]
        self.lines = LineReader()
        self.log = SessionModel(summary.header, self.lines.read)
        self.size = summary.size
        """Bytes there were to read when it was opened."""
        self.done = 0
        """Bytes of them that have been read."""
        self.trouble = ""
        """Why it cannot be read any more, if so."""
        self.is_gone = False
        """Whether the file lost its name."""
        self.torn = 0
        """Bytes of a last line that never got its end."""
        self._at_first = summary.state
        self._began = began(summary.header.started)

    @property
    def state(self) -> RecordingState:
        """How the session stands, as far as it was read."""
        if not self.log.is_over or self.trouble:
            return self._at_first
        return RecordingState.DIED if self.log.index.exit is None else RecordingState.ENDED

    @property
    def now(self) -> float:
        """Seconds since the start; of what is over, when it ended."""
        if self._began is None or not self.is_live:
            return self.log.index.last_at
        return max(time.time() - self._began.timestamp(), self.log.index.last_at)

    @property
    def is_live(self) -> bool:
        """Whether more may come."""
        return self.state is RecordingState.LIVE and not self.trouble

    @property
    def is_behind(self) -> bool:
        """Whether it takes a while until all that is in the file has been read."""
        return not self.log.is_over and self.size - self.done > BLINK

    def origin(self, _: int) -> tuple[int, Header]:
        """Return which recording a file belongs to, by its number, and the header of that."""
        return 0, self.log.header

    async def read(self) -> None:
        """Feed the recording to the log, to its end."""
        try:
            await self._read()
        except (McpspyError, OSError) as error:
            self.trouble = f"{self.path}: {error.strerror}" if isinstance(error, OSError) else str(error)
            self._at_first = RecordingState.DIED if self._at_first is RecordingState.LIVE else self._at_first
        self.log.end()

    async def watch_name(self) -> None:
        """Notice that the file was deleted."""
        while not self.log.is_over:
            self.is_gone = not await asyncio.to_thread(self.path.exists)
            await asyncio.sleep(NAME_EVERY)

    def close(self) -> None:
        """Let go of the file. Its rows stay, their messages are gone."""
        self.lines.close()

    async def _read(self) -> None:
        part: Path | None = None
        # Closed as soon as the screen is left: an open file must not wait for the garbage collector.
        async with aclosing(follow_lines(self.path)) as blocks:
            async for block in blocks:
                if block.damaged is not None and block.damaged.why == BEGINS_AGAIN:
                    self._begin_again()
                    part = None
                    continue
                if block.path != part:
                    part = block.path
                    self.done += block.offset  # Its header.
                    self.log.begin_part(self.lines.begin_part(part))
                await self._take(block)

    async def _take(self, block: LineBlock) -> None:
        offset = block.offset
        if block.damaged is not None:
            self.torn = len(block.damaged.data)
            self.log.add(block.damaged, offset, self.torn)
        for start in range(0, len(block.lines), PORTION):
            before, offset = offset, self.log.add_lines(block.lines[start : start + PORTION], offset)
            self.done += offset - before
            await asyncio.sleep(0)

    def _begin_again(self) -> None:
        """Take the header of the file that has the name now, if it has one."""
        header = self.log.header
        with suppress(McpspyError):
            header = read_header_of(self.path)
        self.done = 0
        self.lines.close()
        self.log.begin_again(header)
