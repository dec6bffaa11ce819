"""Writes the file of a recording.

Creates the file (one per process, 0600 in a 0700 folder), appends to it, marks it as live, and splits it into
parts. If the disk refuses a write, the recording pauses and resumes later, the file stays valid, and nothing
is raised.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from errno import ENOSPC

from mcpspy.core.recording import encode
from mcpspy.io.settings import sessions_folder, slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
        self._lost = 0
        self._flushed = 0
        self._trouble = ""
        self._retry_at = self._lost_since = 0.0
        self._kept: list[tuple[float, bytes]] = []
        """The last notes and their times, while the disk refuses data."""
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
        self._is_file = stat.S_ISREG(os.fstat(self._fd).st_mode)
        self._size = self._checked = 0
        self._check_at = self.epoch + CHECK
        try:
            self._size = self._checked = self._begin(self._fd, 1)
        except OSError as error:
            self._refused(error, 0)

    def now(self) -> float:
        return time.monotonic() - self.epoch

    def note(self, at: float, kind: str, **fields: Value) -> None:
        line = encode.note(at, kind, fields)
        is_last = kind in LAST_NOTES
        if not (is_last and self._trouble):
            self.write(line)
            if not (is_last and self._trouble):
                return
            self._lost -= 1
        self._kept.append((at, line))
        self._recover()

    def write(self, lines: Lines) -> None:
        """Append complete lines in one write, or in a few if they are large.

        A failed write loses these lines, but leaves no incomplete line. A note counts the lost entries once the disk
        accepts data again.
        """
        if self._redactor is not None and self._redacted is not None:
            lines = self._redacted(lines) if isinstance(lines, bytes) else self._redactor.buffers(lines)
        now = time.monotonic()
        if self._trouble and (now < self._retry_at or not self._recover()):
            self._lost += _entries(lines)
            return
        if now >= self._check_at and not self._check(now):
            self._lost += _entries(lines)
            return
        if self._limit and self._size >= self._limit:
            self._next_part()
        start = self._size
        try:
            if isinstance(lines, bytes):
                written = os.write(self._fd, lines)
                self._size += written
                if written < len(lines):
                    self._write_one(memoryview(lines)[written:])
                return
            batch: list[bytes | bytearray] = []
            lines = iter(lines)
            self._append(lines, batch)
        except OSError as error:
            self._lost += _entries(lines)
            if not isinstance(lines, bytes):
                self._lost += self._flushed + _entries(batch)
                self._flushed = 0
            self._refused(error, start)

    def close(self) -> None:
        """Sync the file to disk and remove its live mark."""
        if self._trouble:
            self._recover()
        elif self._size > self._checked:
            self._check(time.monotonic())
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

    def _append(self, buffers: Iterable[bytes | bytearray], batch: list[bytes | bytearray]) -> None:
        """Write the buffers through `batch`, which holds the unwritten ones if this raises.

        `_flushed` counts the entries of earlier batches.
        """
        size = 0
        for buffer in buffers:
            batch.append(buffer)
            size += len(buffer)
            if size >= BATCH or len(batch) >= IOV_MAX:
                self._write_all(batch, size)
                self._flushed += _entries(batch)
                batch.clear()
                size = 0
        if size:
            self._write_all(batch, size)
        if self._flushed:
            self._flushed = 0

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
            written = os.write(self._fd, data)
            self._size += written

    def _begin(self, fd: int, part: int) -> int:
        """Mark an empty file as live and write its header. Return the number of bytes."""
        _mark_live(fd)
        header = encode.header({**self._fields, "part": part} if part > 1 else self._fields)
        written = os.write(fd, header)
        if written < len(header):
            _cut(fd, written)
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        return len(header)

    def _next_part(self) -> None:
        """Continue in a new file. It is complete before the old one points to it, because a reader may be following."""
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
            return
        self._continue_in(path, fd, size)

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
        written = os.write(self._fd, pointer)
        if written < len(pointer):
            _cut(self._fd, written)
            raise OSError(ENOSPC, os.strerror(ENOSPC))

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
            if not self._is_file or (status.st_nlink and status.st_size >= self._size):
                self._checked = self._size
                return True
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
                    if os.write(fd, data) < len(data):
                        raise OSError(ENOSPC, os.strerror(ENOSPC))
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

    def _refused(self, error: OSError, start: int) -> None:
        self._cut_back(start)
        now = time.monotonic()
        self._retry_at = now + RETRY
        if not self._trouble:
            self._lost_since = now - self.epoch
            self._say(f"cannot write {self.path}: {error.strerror}; traffic continues unrecorded")
        self._trouble = error.strerror or str(error)

    def _cut_back(self, start: int) -> None:
        """Remove lines that were written in part."""
        _cut(self._fd, self._size - start)
        self._size = start

    def _recover(self) -> bool:
        """Write the note of lost entries and the kept notes. Return False if the disk still refuses data."""
        start = self._size
        lost = self._lost
        note: dict[str, Value] = {"entries": lost, "since": round(self._lost_since, 6), "why": self._trouble}
        try:
            if self._is_gone:
                self._replace(os.fstat(self._fd))
                self._is_gone = False
                start = self._size
            elif not start:
                self._size = self._begin(self._fd, self._part)
            at = self._kept[0][0] if self._kept else self.now()
            lines = [encode.note(at, "lost", note)] if lost else []
            self._write_one(b"".join([*lines, *(line for _, line in self._kept)]))
        except OSError:
            self._cut_back(start)
            self._retry_at = time.monotonic() + RETRY
            return False
        self._lost, self._trouble = 0, ""
        self._kept.clear()
        self._say(f"recording to {self.path} again; {lost} entries were lost")
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
    if not stat.S_ISREG(os.fstat(fd).st_mode):  # Two processes may both record to /dev/null.
        return
    try:
        if sys.platform == "win32":
            os.lseek(fd, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            os.lseek(fd, 0, os.SEEK_END)
        else:
            fcntl.flock(fd, fcntl.LOCK_EX)  # A reader's check holds the lock for a microsecond.
    except OSError:  # A file system without locks: the session appears as died until its exit note.
        pass


def _cut(fd: int, size: int) -> None:
    """Remove the last `size` bytes of a file."""
    try:
        if size and os.fstat(fd).st_size >= size:
            os.ftruncate(fd, os.fstat(fd).st_size - size)
    except OSError:  # A device has no length; readers skip an incomplete line.
        pass


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


def _entries(lines: Lines) -> int:
    return lines.count(b"\n") if isinstance(lines, bytes) else sum(line.count(b"\n") for line in lines)


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
