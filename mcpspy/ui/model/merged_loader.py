"""The loader that merges several recordings by time into one session model.

A merged session names its streams after the recordings, and waits for any file that may still have an earlier entry.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

from msgspec.structs import replace

from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note, read_entry
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.io.recording.runs import RUN, FollowedRun
from mcpspy.io.recording.scan import LineBlock
from mcpspy.io.recording.tail import RESTARTED, follow_lines
from mcpspy.ui.model.session_loader import PORTION, SessionLoader
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.text.time_format import began

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
        at = began(summary.header.started)
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
