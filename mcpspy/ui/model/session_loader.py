"""The loaders of a session model: one reads a recording, the other merges several by time.

A loader reads long files in slices and detects files that are incomplete, deleted, replaced or unreadable. A merged
session names its streams after the recordings, and waits for any file that may still have an earlier entry.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path

from msgspec.structs import replace

from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note, read_entry
from mcpspy.core.session.index_state import dump, restore
from mcpspy.errors import McpspyError
from mcpspy.io.recording import cache
from mcpspy.io.recording.reader import RecordingState, Summary, read_header_of
from mcpspy.io.recording.runs import RUN, FollowedRun
from mcpspy.io.recording.scan import LineBlock, LineReader, RecordingScan
from mcpspy.io.recording.tail import RESTARTED, follow_lines
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.text.numbers import start_time

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
        self._began = start_time(summary.header.started)

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


HTTP_NUMBERS = 1 << 20
"""Offset between files for the numbers of HTTP exchanges, which begin at 1 in every file."""

MERGED = PORTION // 2
"""Lines merged per turn: each takes twice the time."""

JOIN_EVERY = 1.0
"""Seconds between two searches for sessions that have joined a run."""


class MergedSource:
    def __init__(self, summary: Summary, number: int, name: str, later: float) -> None:
        self.summary = summary
        self.number = number
        self.name = name
        self.later = later
        """Seconds from the start of the first recording to the start of this one."""
        self.state = summary.state
        self.blocks: AsyncGenerator[LineBlock, None] | None = None
        self.lines: deque[tuple[bytes | Damaged, int]] = deque()
        """Lines to merge, each with its offset in the file."""
        self.part: Path | None = None
        self.file = 0
        self.is_over = False
        self.is_asked = False
        """True while its next lines are read."""
        self.asked = self.read = 0.0
        """Monotonic times: when its next lines were asked for; when `lines` were read."""
        self.quiet = -math.inf
        """Monotonic time before which all of its lines were written that have been read."""
        self._next: Entry | None = None

    @property
    def next(self) -> Entry:
        """The first entry of `lines`, as part of the merged session."""
        if self._next is None:
            line = self.lines[0][0]
            self._next = adopted(line if isinstance(line, Damaged) else read_entry(line), self)
        return self._next

    def take(self) -> tuple[Entry, int, int]:
        """Remove the first entry; return it with its offset and length in the file."""
        entry, (line, offset) = self.next, self.lines.popleft()
        self._next = None
        return entry, offset, len(line.data if isinstance(line, Damaged) else line)

    def may_precede(self, at: float, read: float) -> bool:
        """Return whether it may have an unread line from before `at`, the Unix time of one read at `read`."""
        if self.lines or self.is_over:
            return False
        # Of clocks that differ, as between machines, only the order in which files were read is known.
        return self.quiet < read and self.quiet - time.monotonic() + time.time() < at


class MergedLoader(SessionLoader):
    def __init__(self, summaries: Sequence[Summary], run: FollowedRun | None = None) -> None:
        ordered = sorted(summaries, key=lambda summary: summary.order)
        super().__init__(ordered[0])
        self._run = run
        names = _names(ordered)
        self._sources: list[MergedSource] = []
        self._owners: list[MergedSource] = []
        header = replace(ordered[0].header, name=" + ".join(names) if run is None else run.name)
        self.model = SessionModel(header, self.lines.read, self._adopt_again, names)
        self.size, self.paths = 0, []
        for summary, name in zip(ordered, names, strict=True):
            self._add_source(summary, name)

    @property
    def state(self) -> RecordingState:
        states = {source.state for source in self._sources}
        return next(
            state
            for state in (RecordingState.LIVE, RecordingState.DIED, RecordingState.ENDED)
            if state in states
        )

    @property
    def names(self) -> list[str]:
        if self._run is None:
            return super().names
        return [f"{RUN}{self._run.run.id}", "--dir", str(self.paths[0].parent)]

    def origin(self, file: int) -> tuple[int, Header]:
        source = self._owners[file]
        return source.number, source.summary.header

    def alone(self, row: int) -> tuple[Summary, int]:
        """Return the session of a row, and the number that the row has in it."""
        index = self.model.index
        source = self._owners[index.where(row).part]
        files = {number for number, owner in enumerate(self._owners) if owner is source}
        return source.summary, index.rows_of(files, row)

    def _add_source(self, summary: Summary, name: str) -> None:
        at = start_time(summary.header.started)
        later = (at - self._began).total_seconds() if at is not None and self._began is not None else 0.0
        self._sources.append(MergedSource(summary, len(self._sources), name, later))
        self.size += summary.size
        self.paths.append(summary.path)

    def _join(self) -> None:
        """Add the sessions that have joined the run. Their first rows follow those that were merged before."""
        known = set(self.paths)
        for summary in self._run.sessions if self._run is not None else ():
            if summary.path not in known:
                names = {source.name for source in self._sources}
                name = _name(summary)
                self._add_source(summary, f"{name}-{summary.header.id[:4]}" if name in names else name)
                self.model.sessions.append(self._sources[-1].name)
                self.model.index.add_session()

    async def _read(self) -> None:
        async with AsyncExitStack() as stack:
            waiting: dict[asyncio.Task[LineBlock], MergedSource] = {}
            joining: asyncio.Task[bool] | None = None
            try:
                while True:
                    for source in self._sources:
                        if source.blocks is None:
                            blocks = follow_lines(source.summary.path)
                            source.blocks = await stack.enter_async_context(aclosing(blocks))
                        if not (source.is_asked or source.lines or source.is_over):
                            source.is_asked, source.asked = True, time.monotonic()
                            waiting[_next(source.blocks)] = source
                    if not waiting and not self.model.is_over:
                        self.model.end()
                    if joining is None and self._run is not None and (waiting or self._run.may_grow):
                        joining = asyncio.create_task(_look(self._run))
                    if not waiting and joining is None:
                        return
                    tasks = {*waiting, *([joining] if joining is not None else [])}
                    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    if joining in done:
                        joining = None
                        self._join()
                    for task in waiting.keys() & done:
                        source = waiting.pop(task)
                        source.is_asked = False
                        try:
                            self._take_block(source, task.result())
                        except StopAsyncIteration:
                            source.is_over = True
                    await self._merge()
            finally:
                left = [*waiting, *([joining] if joining is not None else [])]
                for each in left:
                    each.cancel()
                await asyncio.gather(*left, return_exceptions=True)

    def _take_block(self, source: MergedSource, block: LineBlock) -> None:
        if block.damaged is not None and block.damaged.why == RESTARTED:
            source.part = None
            return
        if block.path != source.part:
            source.part = block.path
            self.done += block.offset  # The header.
            source.file = self.lines.begin_part(block.path)
            self._owners.append(source)
        source.read = time.monotonic()
        offset = block.offset
        if block.damaged is not None:
            source.lines.append((block.damaged, offset))
        for line in block.lines:
            source.lines.append((line, offset))
            offset += len(line) + 1
        if not source.lines:
            source.quiet = source.asked

    async def _merge(self) -> None:
        """Add all entries that no unread entry can precede."""
        count, part = 0, -1
        begin = self._began.timestamp() if self._began is not None else 0.0
        while ready := [source for source in self._sources if source.lines]:
            source = min(ready, key=lambda source: source.next.at)
            at = begin + source.next.at
            if any(other.may_precede(at, source.read) for other in self._sources):
                break
            entry, offset, length = source.take()
            if source.file != part:
                part = source.file
                self.model.begin_part(part)
            self.model.add(entry, offset, length)
            self.done += length + 1  # With its LF.
            if isinstance(entry, Note) and entry.is_end:
                source.state = RecordingState.ENDED
                self.model.index.end_session(source.name)
            count += 1
            if count % MERGED == 0:
                await asyncio.sleep(0)
        for source in self._sources:
            if source.is_over and not source.lines and source.state is RecordingState.LIVE:
                source.state = RecordingState.DIED
                self.model.index.end_session(source.name)

    def _adopt_again(self, entry: Entry, file: int) -> Entry:
        return adopted(entry, self._owners[file])


def adopted(entry: Entry, source: MergedSource) -> Entry:
    """Return an entry as part of the merged session."""
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


async def _look(run: FollowedRun) -> bool:
    await asyncio.sleep(JOIN_EVERY)
    await asyncio.to_thread(run.look)
    return True


def _next(blocks: AsyncGenerator[LineBlock, None]) -> asyncio.Task[LineBlock]:
    async def step() -> LineBlock:
        return await anext(blocks)

    return asyncio.create_task(step())


def _name(summary: Summary) -> str:
    """Return a name without slashes: after one, a stream has the number that it has in its recording."""
    return summary.header.name.replace("/", "-") or "session"


def _names(summaries: Sequence[Summary]) -> list[str]:
    """Return one name per session; sessions with equal names also get their ids."""
    names = [_name(summary) for summary in summaries]
    return [
        name if names.count(name) == 1 else f"{name}-{summary.header.id[:4]}"
        for name, summary in zip(names, summaries, strict=True)
    ]


def open_loader(summaries: Sequence[Summary], run: FollowedRun | None = None) -> SessionLoader:
    """Return the loader for one recording, or for several merged ones or a run, which have no cache."""
    if len(summaries) > 1 or run is not None:
        return MergedLoader(summaries, run)
    return SessionLoader(summaries[0])
