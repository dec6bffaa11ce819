"""The loader that reads one recording into a session model; `ui.model.merged_loader` reads several.

It reads long files in slices and detects files that are incomplete, deleted, replaced or unreadable.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress
from pathlib import Path

from mcpspy.core.recording.decode import Header
from mcpspy.core.session.index_state import dump, restore
from mcpspy.errors import McpspyError
from mcpspy.io.recording import cache
from mcpspy.io.recording.reader import RecordingState, Summary, read_header_of
from mcpspy.io.recording.scan import LineBlock, LineReader, RecordingScan
from mcpspy.io.recording.tail import RESTARTED, follow_lines
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.text.time_format import began

PORTION = 256
"""Lines read per turn of the event loop, about 2 ms. Handling a key takes several turns."""

BLINK = 1_000_000
"""Bytes that are read too fast for progress to be noticed."""

NAME_EVERY = 1.0


class SessionLoader:
    def __init__(self, summary: Summary) -> None:
        self.path = summary.path
        self.paths = [summary.path]
        self.lines = LineReader()
        self.model = SessionModel(summary.header, self.lines.read)
        self.size = summary.size
        """Size of the file in bytes when it was opened; `done` counts the bytes read."""
        self.done = 0
        self.trouble = ""
        """The error that stopped reading, if any."""
        self.is_deleted = False
        self.torn = 0
        """Bytes of an incomplete last line."""
        self.uses_cache = False
        """True if the index of a large session is read from a cache, and kept there."""
        self._cached = 0
        """Value of `done` for which the cache has the index."""
        self._parts: list[Path] = []
        self._offset = 0
        """Offset of the next line in the last part."""
        self._at_first = summary.state
        self._began = began(summary.header.started)

    @property
    def state(self) -> RecordingState:
        if not self.model.is_over or self.trouble:
            return self._at_first
        return RecordingState.DIED if self.model.index.exit is None else RecordingState.ENDED

    @property
    def now(self) -> float:
        """Seconds since the start; for a session that is over, the time of its last entry."""
        if self._began is None or not self.is_live:
            return self.model.index.last_at
        return max(time.time() - self._began.timestamp(), self.model.index.last_at)

    @property
    def is_live(self) -> bool:
        return self.state is RecordingState.LIVE and not self.trouble

    @property
    def is_behind(self) -> bool:
        """True if reading the rest of the file takes a while."""
        return not self.model.is_over and self.size - self.done > BLINK

    @property
    def names(self) -> list[str]:
        """The words that name what is open on a command line."""
        return [str(path) for path in self.paths]

    def origin(self, _: int) -> tuple[int, Header]:
        """Return the number and the header of the recording that a file belongs to."""
        return 0, self.model.header

    async def read(self) -> None:
        try:
            await self._read()
            await asyncio.to_thread(self._save)
        except (McpspyError, OSError) as error:
            self.trouble = f"{self.path}: {error.strerror}" if isinstance(error, OSError) else str(error)
            self._at_first = RecordingState.DIED if self._at_first is RecordingState.LIVE else self._at_first
        if not self.model.is_over:
            self.model.end()

    async def watch_name(self) -> None:
        """Detect that a file was deleted, also after the end of the session."""
        while True:
            self.is_deleted = not await asyncio.to_thread(lambda: all(path.exists() for path in self.paths))
            await asyncio.sleep(NAME_EVERY)

    def close(self) -> None:
        """Close the file. Its rows stay, but their messages can no longer be read."""
        if not self.model.is_over:
            self._save()
        self.lines.close()

    async def _read(self) -> None:
        scan = await self._begin()
        # Close the file when the screen closes instead of leaving it to the garbage collector.
        async with aclosing(follow_lines(self.path, scan=scan)) as blocks:
            async for block in blocks:
                if block.damaged is not None and block.damaged.why == RESTARTED:
                    self._begin_again()
                    continue
                if block.path not in self._parts[-1:]:
                    self._parts.append(block.path)
                    self.done += block.offset  # The header.
                    self.model.begin_part(self.lines.begin_part(block.path))
                await self._take(block)

    async def _begin(self) -> RecordingScan:
        """Return the position from which to read: after the lines that the cache has, if there is a valid one."""
        scan = RecordingScan(self.path)
        if not self.uses_cache or self.size < cache.WORTH:
            return scan
        cached = await asyncio.to_thread(cache.load, self.path)
        if cached is None:
            return scan
        progress = cached.progress
        paths = [self.path.with_name(file.name) for file in progress.files]
        sizes = [file.size for file in progress.files]
        try:
            for path in paths:
                self.lines.begin_part(path)
            last = self.lines.read(len(paths) - 1, progress.last, sizes[-1] - progress.last - 1)
            scan.skip(paths, sizes, last, progress.files[-1].inode)
            restore(self.model.index, cached.data, cached.begin)
        except (OSError, McpspyError, ValueError):  # Replaced in the meantime, or written by another program.
            self.lines.close()
            scan.close()
            return RecordingScan(self.path)
        self._parts, self._offset = paths, sizes[-1]
        self.done = self._cached = progress.done
        return scan

    def _save(self) -> None:
        """Keep the index in the cache if that saves time."""
        if not self.uses_cache or self.torn or self.done - self._cached < cache.WORTH:
            return
        index = self.model.index
        try:
            last = index.where(len(index) - 1).offset
            is_over = index.exit is not None
            progress = cache.progress_of(self._parts, self._offset, last, self.done, is_over=is_over)
            cache.save(self.path, progress, dump(index))
        except (
            OSError,
            McpspyError,
            ValueError,
        ):  # Deleted, or with a value that JSON cannot hold: it has no cache.
            return
        self._cached = self.done

    async def _take(self, block: LineBlock) -> None:
        offset = self._offset = block.offset
        if block.damaged is not None:
            self.torn = len(block.damaged.data)
            self.model.add(block.damaged, offset, self.torn)
        for start in range(0, len(block.lines), PORTION):
            before, offset = offset, self.model.add_lines(block.lines[start : start + PORTION], offset)
            self.done += offset - before
            self._offset = offset
            await asyncio.sleep(0)

    def _begin_again(self) -> None:
        """Start over with the header of the file that now has this name, if it can be read."""
        header = self.model.header
        with suppress(McpspyError):
            header = read_header_of(self.path)
        self.done = self._cached = 0
        self._parts = []
        self.lines.close()
        self.model.begin_again(header)
