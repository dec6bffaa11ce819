"""Writes the file of a recording.

Creates the file (one per process, 0600 in a 0700 folder), appends to it, marks it as live, and splits it into
parts. If the disk refuses a write, entries wait in memory until it accepts them, the file stays valid, and nothing is
raised.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from errno import EIO
from itertools import chain

from mcpspy.core.recording import encode
from mcpspy.io.settings import sessions_folder, slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mcpspy.core.recording.encode import Lines, Value
    from mcpspy.core.redact.redactor import Redactor

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

BATCH = 1 << 20
"""Bytes that are collected before a write: one write for most entries, few writes for 100 MB."""

IOV_MAX = 512
"""Number of buffers per writev. Linux and macOS allow 1024; POSIX guarantees 16."""

RETRY = 1.0
"""Seconds between two attempts after a failed write, so that a full disk does not cause one write per message."""

CHECK = 1.0
"""Seconds between two checks that no one deleted or truncated the file. Lines of this time are moved to the next part."""

MAX_WAITING = 4 << 20
"""Bytes of entries that wait in memory while the disk refuses data. Those after them are lost."""

LAST_NOTES = ("eof", "exit", "end")
"""Notes that are not lost: they are written after the disk accepts data again."""

_LOCKED_BYTE = 1 << 62
"""Offset of a byte that no file reaches. It is locked because Windows cannot read a locked range."""


class Writer:
    """An open recording. Times are seconds since `started`, on a monotonic clock.

    `say` is called with one line for each kind of failure.
    """

    _last_start = 0

    def __init__(
        self,
        folder: str | None,
        record: str | None,
        fields: Mapping[str, Value],
        redactor: Redactor | None = None,
        *,
        say: Callable[[str], None],
        max_size: int = 0,
    ) -> None:
        """Create the file and write its header.

        `folder` is the folder for a file with a generated name; `record` names the file instead, or another folder.
        `fields` is the header without `mcpspy`, `id` and `started`. If there is a `redactor`, all lines pass through
        it, and the header records that. After `max_size` bytes, the recording continues in another part.
        Raises OSError if the file cannot be created.
        """
        self._say = say
        self._redactor = redactor
        self._redacted = None if redactor is None else redactor.lines
        self._max_size = self._limit = max_size
        self._trouble = ""
        """The reason why the disk refuses data; empty while it does not."""
        self._retry_at = self._lost_since = 0.0
        self._waiting: list[bytes] = []
        """The first entries that the disk refused. The file may have the beginning of them, after `_whole` bytes."""
        self._waiting_size = self._whole = 0
        self._lost = 0
        """Number of entries after them that are lost."""
        self._last_notes: list[tuple[float, bytes]] = []
        """The last notes after these and their times."""
        self._is_gone = False
        """True if the file was deleted or truncated and the next part could not be started."""
        self._part = 1
        self.epoch = time.monotonic()
        """Monotonic time at which `t` is zero."""
        now = self._next_start()
        seconds = time.gmtime(now // 1_000_000)
        # Sorts sessions that start within one millisecond: the microseconds, then random bits.
        self.id = f"{now % 1000 << 22 | int.from_bytes(os.urandom(4)) >> 10:08x}"
        self._fields: dict[str, Value] = {
            "id": self.id,
            "started": time.strftime("%Y-%m-%dT%H:%M:%S", seconds) + f".{now // 1000 % 1000:03d}Z",
            **(fields if redactor is None else redactor.header(fields)),
            "redacted": redactor is not None,
        }
        name = (
            f"{time.strftime('%Y%m%d-%H%M%S', seconds)}-{slug(str(fields.get('name', '')))}-{self.id}.jsonl"
        )
        wanted, named = _target(folder, record, name)
        self.path, self._fd = _create(wanted)
        if named and self.path != wanted:
            say(f"{wanted} exists; recording to {self.path}")
        self._is_file = _is_regular(self._fd)
        self._size = 0
        self._check_at = self.epoch + CHECK
        if self._is_file:
            _mark_live(self._fd)
        header = encode.header(self._fields)
        try:
            self._write_one(header)
        except OSError as error:
            self._refused(error, 0)
            self._waiting.append(header)
        self._checked = self._size

    def now(self) -> float:
        return time.monotonic() - self.epoch

    def note(self, at: float, kind: str, **fields: Value) -> None:
        line = encode.note(at, kind, fields)
        if kind not in LAST_NOTES or not self._trouble:
            self.write(line)
            return
        if self._lost:
            self._last_notes.append((at, line))
        else:
            self._waiting.append(line)
        self._recover()

    def write(self, lines: Lines) -> None:
        """Append complete lines in one write, or in a few if they are large.

        If that fails, no incomplete line stays in the file, and these and later lines wait in memory, up to MAX_WAITING
        bytes. A note counts those that are lost once the disk accepts data again.
        """
        if isinstance(lines, bytes):
            if self._redacted is not None:
                lines = self._redacted(lines)
        elif self._redactor is not None:
            lines = self._redactor.buffers(lines)
        now = time.monotonic()
        if (self._trouble and (now < self._retry_at or not self._recover())) or (
            now >= self._check_at and not self._check(now)
        ):
            self._keep((lines,) if isinstance(lines, bytes) else lines)
            return
        if self._limit and self._size >= self._limit and not self._next_part():
            self._keep((lines,) if isinstance(lines, bytes) else lines)
            return
        if not isinstance(lines, bytes):
            self._append(iter(lines))
            return
        start = self._size
        try:
            written = os.write(self._fd, lines)
            self._size += written
            if written < len(lines):
                self._write_one(memoryview(lines)[written:])
        except OSError as error:
            self._refused(error, start)
            self._keep((lines,))

    def close(self) -> None:
        """Write what waits, sync the file to disk, and remove its live mark."""
        if not self._trouble and self._size > self._checked:
            self._check(time.monotonic())
        if self._trouble:
            self._recover()
        for last in (os.fsync, os.close):
            try:
                last(self._fd)
            except OSError:  # A device, or a disk that failed before: already reported.
                pass

    @staticmethod
    def _next_start() -> int:
        """Return the wall clock in microseconds, later than for the previous writer unless the clock was set back."""
        now = time.time_ns() // 1000
        if 0 <= Writer._last_start - now < 1000:
            now = Writer._last_start + 1
        Writer._last_start = now
        return now

    def _append(self, buffers: Iterator[bytes | bytearray]) -> None:
        """Write the buffers in batches. If that fails, keep those that are not whole lines of the file yet."""
        begun: list[bytes | bytearray] = []
        batch: list[bytes | bytearray] = []
        size = begun_size = 0
        whole = self._size
        try:
            for buffer in buffers:
                batch.append(buffer)
                size += len(buffer)
                if size >= BATCH or len(batch) >= IOV_MAX:
                    self._write_all(batch, size)
                    if buffer[-1:] == b"\n":
                        begun, begun_size, whole = [], 0, self._size
                    else:  # A line that is longer than a batch, or lies in two.
                        begun_size += size
                        begun = [*begun, *batch] if begun_size <= MAX_WAITING else []
                    batch.clear()
                    size = 0
            if size:
                self._write_all(batch, size)
        except OSError as error:
            self._refused(error, whole)
            self._keep(chain(begun, batch, buffers), is_whole=begun_size <= MAX_WAITING)

    def _write_all(self, batch: list[bytes | bytearray], size: int) -> None:
        if len(batch) == 1 or not hasattr(os, "writev"):
            self._write_one(batch[0] if len(batch) == 1 else b"".join(batch))
            return
        written = os.writev(self._fd, batch)
        self._size += written
        if written < size:
            self._write_one(memoryview(b"".join(batch))[written:])

    def _write_one(self, data: bytes | bytearray | memoryview) -> None:
        written = os.write(self._fd, data)
        self._size += written
        while written < len(data):  # A disk that is nearly full accepts a part of the data, then raises.
            data = memoryview(data)[written:]
            written = _write_some(self._fd, data)
            self._size += written

    def _begin(self, fd: int, part: int) -> int:
        """Mark an empty file as live and write its header. Return the number of bytes."""
        if self._is_file:  # Two processes may both record to /dev/null.
            _mark_live(fd)
        header = encode.header({**self._fields, "part": part} if part > 1 else self._fields)
        _write_whole(fd, header)
        return len(header)

    def _next_part(self) -> bool:
        """Continue in a new file. It is complete before the old one points to it, because a reader may be following.

        Return False if the old file cannot be continued either.
        """
        whole = self._size
        try:
            path, fd, size = self._new_part()
            try:
                self._point_to(path)
            except OSError:  # Readers would not find the next part.
                os.close(fd)
                os.unlink(path)
                raise
        except OSError as error:
            self._limit = self._size + self._max_size
            self._say(f"cannot start the next part of {self.path}: {error.strerror}; continuing in this file")
            if self._size > whole:  # It ends with the beginning of a pointer, which could not be removed.
                self._refused(error, whole)
                self._end_beginning()
            return not self._trouble
        self._continue_in(path, fd, size)
        return True

    def _new_part(self) -> tuple[str, int, int]:
        """Create the next part. Return its path, descriptor and size."""
        stem, ending = os.path.splitext(self.path)
        stem = stem.removesuffix(f".part{self._part}")
        path, fd = _create(f"{stem}.part{self._part + 1}{ending}")
        try:
            return path, fd, self._begin(fd, self._part + 1)
        except OSError:
            os.close(fd)
            os.unlink(path)
            raise

    def _point_to(self, path: str, **fields: Value) -> None:
        """Write the note that names the next part."""
        pointer = encode.note(self.now(), "part", {"next": os.path.basename(path), **fields})
        self._whole = self._size
        try:
            self._write_one(pointer)
        except OSError:
            self._cut_back()
            raise

    def _continue_in(self, path: str, fd: int, size: int) -> None:
        os.close(self._fd)
        self._fd, self.path = fd, path
        self._size = self._checked = size
        self._part += 1
        self._limit = self._max_size

    def _check(self, now: float) -> bool:
        """Continue in a new part if the file was deleted or truncated. Return False if that failed."""
        self._check_at = now + CHECK
        try:
            status = os.fstat(self._fd)
        except OSError:  # The next check is of the same lines.
            return True
        if not self._is_file or (status.st_nlink and status.st_size >= self._size):
            self._checked = self._size
            return True
        try:
            self._replace(status)
        except OSError as error:
            self._is_gone = True
            self._refused(error, self._size)
            return False
        return True

    def _replace(self, status: os.stat_result) -> None:
        """Continue in a new part, to which the lines that were written since the last check are moved."""
        is_cut = bool(status.st_nlink)
        path, fd, size = self._new_part()
        begin = size
        try:
            with open(self._fd, "rb", closefd=False) as old:
                start = max(0, status.st_size - (self._size - self._checked))
                old.seek(max(0, start - 1))
                before = old.readline()  # The rest of a line, the LF before `start`, or the first line.
                start = old.tell() if start or before.startswith(b'{"mcpspy":') else 0
                old.seek(start)
                while lines := old.readlines(BATCH):
                    data = b"".join(map(_without_fragment, lines) if is_cut and start else lines)
                    _write_whole(fd, data)
                    size += len(data)
            if is_cut:
                os.ftruncate(self._fd, start)
                if not start:
                    self._begin(self._fd, self._part)
        except OSError:
            os.close(fd)
            os.unlink(path)
            raise
        self._say(f"{self.path} was {'truncated' if is_cut else 'deleted'}; recording to {path}")
        # A viewer that still has the deleted file open has read these bytes.
        try:
            self._point_to(path, **({} if is_cut else {"moved": size - begin}))
        except OSError:  # What was moved is only in the new part, which names the session itself.
            pass
        self._continue_in(path, fd, size)

    def _refused(self, error: OSError, whole: int) -> None:
        """Begin to keep entries, since the disk refused data. `whole` is the size of the file without it."""
        self._whole = whole
        self._cut_back()
        self._retry_at = time.monotonic() + RETRY
        if not self._trouble:
            self._say(f"cannot write {self.path}: {error.strerror}; traffic continues unrecorded")
        self._trouble = error.strerror or str(error)

    def _keep(self, buffers: Iterable[bytes | bytearray], *, is_whole: bool = True) -> None:
        """Keep whole lines in memory, or count them as lost if they are too many.

        `is_whole`: False if the beginning of the first line is missing.
        """
        kept: list[bytes | bytearray] = []
        fits = is_whole and not self._lost
        entries, size = 0, self._waiting_size
        for buffer in buffers:
            entries += buffer.count(b"\n")
            size += len(buffer)
            fits = fits and size <= MAX_WAITING
            if fits:
                kept.append(buffer)
            else:
                kept.clear()
        if fits:
            self._waiting.append(b"".join(kept))
            self._waiting_size = size
        else:
            self._lost_since = self._lost_since if self._lost else self.now()
            self._lost += entries

    def _waiting_data(self) -> bytes:
        """Return the lines to write when the disk accepts data again."""
        lines = [*self._waiting]
        if self._lost:
            fields: dict[str, Value] = {
                "entries": self._lost,
                "since": round(self._lost_since, 6),
                "why": self._trouble,
            }
            at = self._last_notes[0][0] if self._last_notes else self.now()
            lines.append(encode.note(at, "lost", fields))
        return b"".join([*lines, *(line for _, line in self._last_notes)])

    def _end_beginning(self) -> None:
        """End the beginning of a line that is not continued, if it could not be removed. Readers show it as damaged."""
        if self._size > self._whole:
            self._waiting = [b"\n"]
            self._whole = self._size

    def _cut_back(self) -> None:
        """Remove lines that were written in part, unless that fails, too."""
        if _cut(self._fd, self._size - self._whole):
            self._size = self._whole

    def _recover(self) -> bool:
        """Write the entries that wait, and the note of those that are lost. Return False if the disk still refuses data."""
        lost, data = self._lost, b""
        try:
            if self._is_gone:
                self._replace(os.fstat(self._fd))
                self._is_gone = False
                self._whole = self._size
            self._cut_back()
            if not self._waiting:
                self._end_beginning()
            data = self._waiting_data()
            # The file may have the beginning of the lines that wait, because it could not be removed.
            self._write_one(memoryview(data)[self._size - self._whole :])
        except OSError:
            self._cut_back()
            if data and self._size > self._whole:  # The next attempt has to continue with the same bytes.
                self._waiting, self._waiting_size, self._lost = [data], len(data), 0
                self._last_notes.clear()
            self._retry_at = time.monotonic() + RETRY
            return False
        self._lost = self._waiting_size = 0
        self._trouble = ""
        self._waiting.clear()
        self._last_notes.clear()
        self._say(f"recording to {self.path} again; {_count(lost)} lost")
        return True


def is_live(fd: int) -> bool:
    """Return whether a writer in any process has this file open."""
    try:
        if sys.platform == "win32":
            here = os.lseek(fd, 0, os.SEEK_CUR)  # The position from which its reader continues.
            try:
                os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
                msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
            finally:
                os.lseek(fd, here, os.SEEK_SET)
        else:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:
        return True
    return False


def try_lock(fd: int) -> bool:
    """Lock a file until the process closes it or ends. Return False if another process has locked it."""
    for _ in range(20):
        try:
            if sys.platform == "win32":
                os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # Possibly `is_live`, which holds the lock for a microsecond.
            time.sleep(0.005)
        else:
            return True
    return False


def _mark_live(fd: int) -> None:
    """Lock the file until the process ends: the only mark that `kill -9` also removes."""
    try:
        if sys.platform == "win32":
            os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            os.lseek(fd, 0, os.SEEK_END)
        else:
            fcntl.flock(fd, fcntl.LOCK_EX)  # A reader's check holds the lock for a microsecond.
    except OSError:  # A file system without locks: the session appears as died until its exit note.
        pass


def _is_regular(fd: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:  # Then it is neither marked as live nor checked.
        return False


def _write_some(fd: int, data: memoryview) -> int:
    """Write a part of the data. Raise OSError also if nothing was written: a file system may do that for ever."""
    if not (written := os.write(fd, data)):
        raise OSError(EIO, os.strerror(EIO))
    return written


def _write_whole(fd: int, data: bytes) -> None:
    """Write data; if that fails, remove what was written of it, and raise OSError."""
    written = 0
    try:
        while written < len(data):
            written += _write_some(fd, memoryview(data)[written:])
    except OSError:
        _cut(fd, written)
        raise


def _cut(fd: int, size: int) -> bool:
    """Remove the last `size` bytes of a file. Return False if that failed."""
    try:
        if size and (length := os.fstat(fd).st_size) >= size:
            os.ftruncate(fd, length - size)
    except OSError:
        return False
    return True


def _without_fragment(line: bytes) -> bytes:
    """Return a line without the rest of another one, which was cut in two, at its start."""
    import orjson

    at = 0
    while at >= 0:
        try:
            orjson.loads(line[at:])
            return line[at:]
        except ValueError:
            at = line.find(b'{"t":', at + 1)
    return line


def _count(lost: int) -> str:
    return f"{lost} entries were" if lost else "nothing was"


def _target(folder: str | None, record: str | None, name: str) -> tuple[str, bool]:
    """Return the path to create, and whether the user chose it."""
    if record is None:
        home = sessions_folder(folder)
        _make_private(home)
        return os.path.join(home, name), False
    record = os.path.abspath(os.path.expanduser(record)) + ("/" if record.endswith(("/", os.sep)) else "")
    if record.endswith("/") or os.path.isdir(record):
        _make_private(record)
        return os.path.join(record, name), False
    _make_private(os.path.dirname(record))
    return record, True


def _make_private(folder: str) -> None:
    """Create a folder and its missing parents, accessible only to this user."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder.rstrip("/" + os.sep))
    if os.path.basename(parent) == "mcpspy":
        _make_private(parent)
    os.makedirs(folder, mode=0o700, exist_ok=True)


def _create(path: str) -> tuple[str, int]:
    """Create a file that no other process has: `x.jsonl`, `x-2.jsonl`, `x-3.jsonl` …

    A character device (`/dev/full`) is opened directly. A pipe is refused, because its reader could block the
    traffic.
    """
    flags = os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        kind = os.stat(path).st_mode
    except OSError:
        kind = 0
    if kind and stat.S_ISCHR(kind):
        return path, os.open(path, flags | os.O_WRONLY)
    if kind and not stat.S_ISREG(kind):
        raise OSError(0, "not a regular file")
    stem, ending = os.path.splitext(path)
    number = 1
    while True:
        candidate = path if number == 1 else f"{stem}-{number}{ending}"
        try:
            return candidate, os.open(candidate, flags | os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            number += 1
