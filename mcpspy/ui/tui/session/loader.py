"""A recording, read into a log while the screen goes on.

Owns the slices of time in which a long file is taken in, and what became of
the file meanwhile: torn, deleted, replaced, unreadable. Following it is
`io.recording.tail`'s; nothing here knows of the screen.

Several recordings, read as one by time.

Owns the order of their entries, and what tells them apart: each is a stream of
its own, with its session's name. Waits for a file that may still have earlier
entries, and for none that has nothing new.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path

from msgspec.structs import replace

from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note, read_entry
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
        self.model = SessionModel(summary.header, self.lines.read)
        self.size = summary.size
        """Bytes there were to read when it was opened."""
        self.done = 0
        """Bytes of them that have been read."""
        self.trouble = ""
        """Why it cannot be read any more, if so."""
        self.is_deleted = False
        """Whether the file lost its name."""
        self.torn = 0
        """Bytes of a last line that never got its end."""
        self._at_first = summary.state
        self._began = began(summary.header.started)

    @property
    def state(self) -> RecordingState:
        """How the session stands, as far as it was read."""
        if not self.model.is_over or self.trouble:
            return self._at_first
        return RecordingState.DIED if self.model.index.exit is None else RecordingState.ENDED

    @property
    def now(self) -> float:
        """Seconds since the start; of what is over, when it ended."""
        if self._began is None or not self.is_live:
            return self.model.index.last_at
        return max(time.time() - self._began.timestamp(), self.model.index.last_at)

    @property
    def is_live(self) -> bool:
        """Whether more may come."""
        return self.state is RecordingState.LIVE and not self.trouble

    @property
    def is_behind(self) -> bool:
        """Whether it takes a while until all that is in the file has been read."""
        return not self.model.is_over and self.size - self.done > BLINK

    def origin(self, _: int) -> tuple[int, Header]:
        """Return which recording a file belongs to, by its number, and the header of that."""
        return 0, self.model.header

    async def read(self) -> None:
        """Feed the recording to the log, to its end."""
        try:
            await self._read()
        except (McpspyError, OSError) as error:
            self.trouble = f"{self.path}: {error.strerror}" if isinstance(error, OSError) else str(error)
            self._at_first = RecordingState.DIED if self._at_first is RecordingState.LIVE else self._at_first
        self.model.end()

    async def watch_name(self) -> None:
        """Notice that the file was deleted."""
        while not self.model.is_over:
            self.is_deleted = not await asyncio.to_thread(self.path.exists)
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
                    self.model.begin_part(self.lines.begin_part(part))
                await self._take(block)

    async def _take(self, block: LineBlock) -> None:
        offset = block.offset
        if block.damaged is not None:
            self.torn = len(block.damaged.data)
            self.model.add(block.damaged, offset, self.torn)
        for start in range(0, len(block.lines), PORTION):
            before, offset = offset, self.model.add_lines(block.lines[start : start + PORTION], offset)
            self.done += offset - before
            await asyncio.sleep(0)

    def _begin_again(self) -> None:
        """Take the header of the file that has the name now, if it has one."""
        header = self.model.header
        with suppress(McpspyError):
            header = read_header_of(self.path)
        self.done = 0
        self.lines.close()
        self.model.begin_again(header)


HTTP_NUMBERS = 1 << 20
"""HTTP exchanges are counted from 1 in every file: here each file has so many numbers of its own."""


class MergedSource:
    """One of the recordings."""

    def __init__(self, summary: Summary, number: int, name: str, later: float) -> None:
        self.summary = summary
        self.number = number
        self.name = name
        self.later = later
        """Seconds by which it began after the first."""
        self.state = summary.state
        self.pending: deque[tuple[Entry, int, int]] = deque()
        """Entries that wait for their turn, each with its place and length in the file."""
        self.part: Path | None = None
        self.file = 0
        self.is_quiet = False
        self.is_over = False

    @property
    def is_awaited(self) -> bool:
        """Whether an entry of it may come that is earlier than all the others have."""
        return not (self.pending or self.is_quiet or self.is_over)


class MergedLoader(SessionLoader):
    """The reading of several recordings."""

    def __init__(self, summaries: Sequence[Summary]) -> None:
        ordered = sorted(summaries, key=lambda summary: summary.order)
        super().__init__(ordered[0])
        start = began(ordered[0].header.started)
        names = _names(ordered)
        self._sources = []
        for number, (summary, name) in enumerate(zip(ordered, names, strict=True)):
            at = began(summary.header.started)
            later = (at - start).total_seconds() if at is not None and start is not None else 0.0
            self._sources.append(MergedSource(summary, number, name, later))
        self._owners: list[MergedSource] = []
        header = replace(ordered[0].header, name=" + ".join(names))
        self.model = SessionModel(header, self.lines.read, self._adopt_again, len(ordered))
        self.size = sum(summary.size for summary in ordered)
        self.paths = [summary.path for summary in ordered]

    @property
    def state(self) -> RecordingState:
        """How they stand together: live while one is."""
        states = {source.state for source in self._sources}
        return next(
            state
            for state in (RecordingState.LIVE, RecordingState.DIED, RecordingState.ENDED)
            if state in states
        )

    def origin(self, file: int) -> tuple[int, Header]:
        """See `Feed`."""
        source = self._owners[file]
        return source.number, source.summary.header

    async def _read(self) -> None:
        async with AsyncExitStack() as stack:
            waiting: dict[asyncio.Task[LineBlock], tuple[MergedSource, AsyncGenerator[LineBlock, None]]] = {}
            for source in self._sources:
                blocks = await stack.enter_async_context(aclosing(follow_lines(source.summary.path)))
                waiting[_next(blocks)] = source, blocks
            try:
                while waiting:
                    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        source, blocks = waiting.pop(task)
                        try:
                            self._take_block(source, task.result())
                            waiting[_next(blocks)] = source, blocks
                        except StopAsyncIteration:
                            source.is_over = True
                    await self._merge()
            finally:
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)

    def _take_block(self, source: MergedSource, block: LineBlock) -> None:
        if block.damaged is not None and block.damaged.why == BEGINS_AGAIN:
            source.part = None
            return
        if block.path != source.part:
            source.part = block.path
            source.file = self.lines.begin_part(block.path)
            self._owners.append(source)
        source.is_quiet = not block.lines
        offset = block.offset
        if block.damaged is not None:
            source.pending.append((block.damaged, offset, len(block.damaged.data)))
        for line in block.lines:
            source.pending.append((self._adopt(read_entry(line), source), offset, len(line)))
            offset += len(line) + 1
        self.done += offset - block.offset

    async def _merge(self) -> None:
        """Give the log all entries that none can come before."""
        count, part = 0, -1
        while not any(source.is_awaited for source in self._sources):
            ready = [source for source in self._sources if source.pending]
            if not ready:
                break
            source = min(ready, key=lambda source: source.pending[0][0].at)
            entry, offset, length = source.pending.popleft()
            if source.file != part:
                part = source.file
                self.model.begin_part(part)
            self.model.add(entry, offset, length)
            if isinstance(entry, Note) and entry.kind == "exit":
                source.state = RecordingState.ENDED
                self.model.index.end_session(source.name)
            count += 1
            if count % PORTION == 0:
                await asyncio.sleep(0)
        for source in self._sources:
            if source.is_over and not source.pending and source.state is RecordingState.LIVE:
                source.state = RecordingState.DIED
                self.model.index.end_session(source.name)

    def _adopt_again(self, entry: Entry, file: int) -> Entry:
        return self._adopt(entry, self._owners[file])

    @staticmethod
    def _adopt(entry: Entry, source: MergedSource) -> Entry:
        """Return an entry of one recording as one among those of others."""
        if isinstance(entry, Damaged):
            return entry
        shift = source.number * HTTP_NUMBERS
        if isinstance(entry, Frame):
            stream = source.name if entry.stream is None else f"{source.name}/{entry.stream}"
            http = None if entry.http is None else entry.http + shift
            return replace(entry, at=entry.at + source.later, stream=stream, http=http)
        fields = dict(entry.fields)
        fields["stream"] = f"{source.name}/{fields['stream']}" if "stream" in fields else source.name
        if isinstance(http := fields.get("http"), int):
            fields["http"] = http + shift
        return replace(entry, at=entry.at + source.later, fields=fields)


def _next(blocks: AsyncGenerator[LineBlock, None]) -> asyncio.Task[LineBlock]:
    async def step() -> LineBlock:
        return await anext(blocks)

    return asyncio.create_task(step())


def _names(summaries: Sequence[Summary]) -> list[str]:
    """Return a name for each session; those of one name are told apart by their ids."""
    names = [summary.header.name or "session" for summary in summaries]
    return [
        name if names.count(name) == 1 else f"{name}-{summary.header.id[:4]}"
        for name, summary in zip(names, summaries, strict=True)
    ]


def open_loader(summaries: Sequence[Summary]) -> SessionLoader:
    """Return the reading of one recording, or of several."""
    return MergedLoader(summaries) if len(summaries) > 1 else SessionLoader(summaries[0])
