"""A recording, read into a log while the screen goes on.

Owns the slices of time in which a long file is taken in, and what became of
the file meanwhile: torn, deleted, replaced, unreadable. Following it is
`io.store`'s; nothing here knows of the screen.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import cast

from mcpspy.core.record import Entry
from mcpspy.errors import McpspyError
from mcpspy.io.store import State, Summary, follow, read_header_of
from mcpspy.ui.tui.log import Log

SLICE = 0.01
"""Seconds of reading at a time: a key waits no longer than that."""

NAME_EVERY = 1.0
"""Seconds between two looks whether the file still has its name."""

BLOCK = 1 << 16


class Feed:
    """The reading of one recording."""

    def __init__(self, summary: Summary) -> None:
        self.path = summary.path
        self.log = Log(summary.header)
        self.trouble = ""
        """Why it cannot be read any more, if so."""
        self.is_gone = False
        """Whether the file lost its name."""
        self.torn = 0
        """Bytes of a last line that never got its end."""
        self._at_first = summary.state

    @property
    def state(self) -> State:
        """How the session stands, as far as it was read."""
        if not self.log.is_over or self.trouble:
            return self._at_first
        return State.DIED if self.log.session.exit is None else State.ENDED

    @property
    def is_live(self) -> bool:
        """Whether more may come."""
        return self.state is State.LIVE and not self.trouble

    async def read(self) -> None:
        """Feed the recording to the log, to its end."""
        try:
            await self._read()
        except (McpspyError, OSError) as error:
            self.trouble = f"{self.path}: {error.strerror}" if isinstance(error, OSError) else str(error)
            self._at_first = State.DIED if self._at_first is State.LIVE else self._at_first
        self.torn = await asyncio.to_thread(torn, self.path)
        self.log.end()

    async def watch_name(self) -> None:
        """Notice that the file was deleted."""
        while not self.log.is_over:
            self.is_gone = not await asyncio.to_thread(self.path.exists)
            await asyncio.sleep(NAME_EVERY)

    async def _read(self) -> None:
        # Closed as soon as the screen is left: an open file must not wait for the garbage collector.
        async with aclosing(cast(AsyncGenerator[Entry, None], follow(self.path))) as entries:
            began = time.perf_counter()
            async for entry in entries:
                self._add(entry)
                if time.perf_counter() - began > SLICE:
                    await asyncio.sleep(0)
                    began = time.perf_counter()

    def _add(self, entry: Entry) -> None:
        generation = self.log.generation
        self.log.add(entry)
        if self.log.generation != generation:
            self._meet_again()

    def _meet_again(self) -> None:
        """Take the header of the file that has the name now, if it has one."""
        try:
            self.log.session.header = read_header_of(self.path)
        except McpspyError:
            return


def torn(path: Path) -> int:
    """Return how many bytes of a last line without its end there are; 0 if the file is gone."""
    try:
        with path.open("rb") as file:
            size = position = file.seek(0, os.SEEK_END)
            while position:
                start = max(0, position - BLOCK)
                file.seek(start)
                line_end = file.read(position - start).rfind(b"\n")
                if line_end >= 0:
                    return size - (start + line_end + 1)
                position = start
            return size
    except OSError:
        return 0
