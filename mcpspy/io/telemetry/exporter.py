"""Follows recordings and sends their telemetry, from the place that the collector has acknowledged.

The files are the queue: while the collector does not answer, nothing more is read, so memory is bounded and nothing is
lost. The exporter in the background has a lock, and a folder in which proxies register sessions.

A cursor is how much of a recording a collector has acknowledged, in one file for each session that is not complete. It
moves after an acknowledgement, so telemetry is sent at least once, with ids that are always the same. The file is locked
while a process follows the session, so that two processes never send the same, and deleted when the collector has
everything. Without it, or if it is damaged, the session is sent again.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from random import uniform
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from mcpspy.analysis.export.otlp import SessionTelemetry
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Header, read_entry
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.tail import follow_lines
from mcpspy.io.recording.writer import try_lock
from mcpspy.io.telemetry.options import SIGNALS
from mcpspy.io.telemetry.sender import BATCH, Attributes, Item, OtlpSender, Outcome, signal_of

SUFFIX = ".cursor"


class _Content(Struct):
    recording: str
    entries: int = 0


class Cursor:
    """The acknowledged part of one recording."""

    def __init__(self, path: Path, file: BinaryIO, recording: Path) -> None:
        self._path = path
        self._file = file
        self._content = _read_cursor(file.read()) or _Content(str(recording))
        self._content.recording = str(recording)
        self.commit(self._content.entries)
        os.fsync(file.fileno())  # Without its path, the session would not be continued after a power failure.

    @property
    def entries(self) -> int:
        """Number of entries whose telemetry was acknowledged."""
        return self._content.entries

    def commit(self, entries: int) -> None:
        """Store the number of entries; nothing if the cursor is closed. Raise OSError."""
        if self._file.closed:  # Its session was truncated or deleted while a batch of it was on its way.
            return
        self._content.entries = entries
        self._file.seek(0)
        self._file.write(msgspec.json.encode(self._content) + b"\n")
        self._file.truncate()
        self._file.flush()

    def finish(self) -> None:
        """Delete the file: everything was acknowledged."""
        self._file.close()
        with suppress(OSError):
            self._path.unlink()

    def close(self) -> None:
        self._file.close()


class CursorFolder:
    """The cursors of one collector."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        """`folder` has the cursors of all collectors. Raises OSError."""
        self._folder = folder / blake2b(endpoint.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def open(self, recording: Path, header: Header) -> Cursor | None:
        """Return the cursor of a session, locked; None if another process follows it. Raise OSError."""
        name = blake2b(f"{header.id} {header.started}".encode("utf-8", "surrogatepass"), digest_size=16)
        path = self._folder / f"{name.hexdigest()}{SUFFIX}"
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        fd = os.open(path, flags, 0o600)
        if not try_lock(fd):
            os.close(fd)
            return None
        os.lseek(fd, 0, os.SEEK_SET)
        return Cursor(path, os.fdopen(fd, "r+b"), recording.absolute())

    def unfinished(self) -> Iterator[Path]:
        """Yield the recordings that were not sent completely; forget those that were deleted. Raise OSError."""
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            content = _read_cursor(path.read_bytes())
            if content is not None and Path(content.recording).exists():
                yield Path(content.recording)
            elif content is not None:
                path.unlink(missing_ok=True)


def _read_cursor(data: bytes) -> _Content | None:
    try:
        return msgspec.json.decode(data, type=_Content)
    except msgspec.DecodeError:
        return None


def lock_background(folder: Path) -> int | None:
    """Return a descriptor that locks the exporter of this user; None if one is running. Raise OSError."""
    (folder / "new").mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    if try_lock(fd):
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, b"%d\n" % os.getpid())  # For the user; only the lock counts.
        return fd
    os.close(fd)
    return None


def registered(new: Path) -> list[Path]:
    """Return the files that register sessions (`io.recording.background`)."""
    return [each for each in sorted(new.glob("*")) if each.suffix != ".tmp"]


QUEUED = 8
"""Batches that wait."""

DELAY = 1.0
"""Seconds for which items wait for others."""

POLL = 0.5
"""Seconds between two checks of a file, and of the folder of registered sessions."""

METRICS_INTERVAL = 10.0
"""Seconds between two reports of metrics."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two attempts, at most; it doubles with each one."""

LINGER = 30.0
"""Seconds for which the exporter in the background waits for the next session."""

GIVE_UP = 600.0
"""Seconds for which it tries to reach the collector after the last session; the next one continues."""


class _Batch(NamedTuple):
    items: list[tuple[Item, Attributes]]
    cursor: Cursor | None = None
    entries: int = 0
    is_last: bool = False


class TelemetryExporter:
    """Sends the telemetry of any number of sessions to one collector."""

    def __init__(self, sender: OtlpSender, cursors: CursorFolder, say: Callable[[str], None]) -> None:
        """`say` prints a line for the user."""
        self._sender = sender
        self._cursors = cursors
        self._say = say
        self._queue: asyncio.Queue[_Batch] = asyncio.Queue(QUEUED)
        self._signals = {*sender.options.signals}
        self._followed: dict[Path, SessionTelemetry | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[Cursor] = set()
        self._failing_since: float | None = None
        self._is_sending = False
        self.sent = dict.fromkeys(SIGNALS, 0)
        """Number of acknowledged items by signal."""

    async def run(self, feed: Callable[[TelemetryExporter], Awaitable[None]]) -> None:
        """Send what `feed` follows, until it returns."""
        try:
            async with asyncio.TaskGroup() as group:
                work = [group.create_task(self._send_all()), group.create_task(self._report_metrics())]
                try:
                    await feed(self)
                finally:
                    for task in (*work, *self._tasks):
                        task.cancel()
                    self._sender.close()
        finally:
            for cursor in self._open:
                cursor.close()

    def follow(self, path: Path, opened: Callable[[], None] = lambda: None) -> None:
        """Follow a session to its end. Calls `opened` when its cursor exists, or the session cannot be followed."""
        if path not in self._followed:
            self._followed[path] = None
            task = asyncio.create_task(self._follow(path, opened))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            opened()

    async def finished(self) -> None:
        """Wait until all followed sessions have ended and everything was acknowledged."""
        while self._tasks:
            await asyncio.gather(*self._tasks)
        await self._queue.join()

    @property
    def is_busy(self) -> bool:
        """Return whether a session is live, or something is left to send to a collector that may answer."""
        if self._failing_since is not None and time.monotonic() - self._failing_since > GIVE_UP:
            return any(map(_is_live, self._followed))
        return bool(self._tasks or self._is_sending or not self._queue.empty())

    async def _follow(self, path: Path, opened: Callable[[], None]) -> None:
        cursor = None
        try:
            header = Recording(path).header
            cursor = self._cursors.open(path, header)
            opened()
            if cursor is None:
                self._say(
                    sanitize(f"{path}: another process sends this session to {self._sender.options.shown}")
                )
                return
            self._open.add(cursor)
            await self._send_session(path, cursor, SessionTelemetry(header))
        except (McpspyError, OSError) as error:  # It was deleted, or the disk of the cursors is full.
            opened()
            self._say(sanitize(f"{path}: not exported: {error}"))
            if cursor is not None:
                self._open.discard(cursor)
                cursor.close()
        finally:
            del self._followed[path]

    async def _send_session(self, path: Path, cursor: Cursor, telemetry: SessionTelemetry) -> None:
        self._followed[path] = telemetry
        acknowledged, entries = cursor.entries, 0
        items: list[tuple[Item, Attributes]] = []
        async for block in follow_lines(path, poll=POLL):
            if block.damaged is not None and not block.damaged.data:
                raise OSError(block.damaged.why)
            before = entries
            for line in block.lines:
                entries += 1
                found = [*telemetry.add(read_entry(line))]
                if entries > acknowledged:
                    items += ((item, telemetry.resource(item.side)) for item in found)
                if len(items) >= BATCH:
                    await self._queue.put(_Batch(items, cursor, entries))
                    items = []
            if entries > max(before, acknowledged):
                await self._queue.put(_Batch(items, cursor, entries))
                items = []
        items = [(item, telemetry.resource(item.side)) for item in telemetry.end()]
        await self._queue.put(_Batch([*items, *_metrics(telemetry)], cursor, entries, is_last=True))

    async def _report_metrics(self) -> None:
        while True:
            await asyncio.sleep(METRICS_INTERVAL)
            for telemetry in [*self._followed.values()]:
                if telemetry is not None and telemetry.has_new_metrics:
                    await self._queue.put(_Batch(_metrics(telemetry)))

    async def _send_all(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batches = [await self._queue.get()]
            self._is_sending = True
            until = loop.time() + DELAY
            while sum(len(batch.items) for batch in batches) < BATCH:
                try:
                    async with asyncio.timeout_at(until):
                        batches.append(await self._queue.get())
                except TimeoutError:
                    break
            items = [item for batch in batches for item in batch.items]
            for signal in SIGNALS:
                await self._deliver([each for each in items if signal_of(each[0]) == signal], signal)
            for batch in batches:
                self._acknowledged(batch)
                self._queue.task_done()
            self._is_sending = False

    def _acknowledged(self, batch: _Batch) -> None:
        if batch.cursor is None:
            return
        try:
            if batch.is_last:
                self._open.discard(batch.cursor)
                batch.cursor.finish()
            else:
                batch.cursor.commit(batch.entries)
        except OSError as error:  # A full disk: after a restart, more is sent again.
            self._say(f"cannot write a cursor: {error.strerror}")

    async def _deliver(self, items: list[tuple[Item, Attributes]], signal: str) -> None:
        """Send items of one signal until the collector has acknowledged or rejected them."""
        pause = FIRST_PAUSE
        while items and signal in self._signals:
            result = await asyncio.to_thread(self._sender.send, items)
            shown = self._sender.options.shown
            if result.outcome is Outcome.FAILED:
                if self._failing_since is None:
                    self._failing_since = time.monotonic()
                    self._say(f"{shown}: {result.why}; telemetry waits until it can be sent")
                await asyncio.sleep(pause * uniform(0.5, 1))  # noqa: S311 - not a secret.
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            if self._failing_since is not None:
                self._say(f"{shown}: reached again after {time.monotonic() - self._failing_since:.0f} s")
                self._failing_since = None
            if result.outcome is Outcome.UNSUPPORTED:
                self._signals.discard(signal)
                self._say(f"{shown}: does not accept {signal} ({result.why}); they are not sent")
            elif result.outcome is Outcome.REJECTED and len(items) > 1:
                half = len(items) // 2
                await self._deliver(items[:half], signal)
                await self._deliver(items[half:], signal)
            elif result.outcome is Outcome.REJECTED:
                self._say(f"{shown}: rejected 1 item of {signal}: {result.why}")
            else:
                self.sent[signal] += len(items) - result.rejected
                if result.rejected:
                    self._say(f"{shown}: rejected {result.rejected} items of {signal}: {result.why}")
            return


def _metrics(telemetry: SessionTelemetry) -> list[tuple[Item, Attributes]]:
    of = {side: telemetry.resource(side) for side in (CLIENT, SERVER)}
    return [(each, of[each.side]) for each in telemetry.metrics()]


def _is_live(path: Path) -> bool:
    try:
        return Recording(path).state is RecordingState.LIVE
    except (McpspyError, OSError):
        return False


async def follow_sessions(exporter: TelemetryExporter, paths: list[Path]) -> None:
    """Follow these sessions until they have ended."""
    for path in paths:
        exporter.follow(path)
    await exporter.finished()


async def follow_folder(
    exporter: TelemetryExporter, cursors: CursorFolder, folder: Path, found: AsyncIterator[Path]
) -> None:
    """Follow the sessions that are found, and those of the folder that were not sent completely, without end."""
    for path in cursors.unfinished():
        if path.parent == folder:
            exporter.follow(path)
    async for path in found:
        exporter.follow(path)


async def follow_registered(exporter: TelemetryExporter, cursors: CursorFolder, new: Path) -> None:
    """Follow registered sessions, and those that were not sent completely, until some time after the last one."""
    for path in cursors.unfinished():
        exporter.follow(path)
    idle_since = time.monotonic()
    while time.monotonic() - idle_since < LINGER:
        if _follow_new(exporter, new) or exporter.is_busy:
            idle_since = time.monotonic()
        await asyncio.sleep(POLL)


def _follow_new(exporter: TelemetryExporter, new: Path) -> bool:
    found = registered(new)
    for each in found:
        recording = Path(each.read_bytes().decode("utf-8", "surrogateescape"))
        exporter.follow(recording, lambda file=each: file.unlink(missing_ok=True))  # type: ignore[misc]
    return bool(found)
