"""The lines of a recording, in blocks, across all of its files.

All readers use this loop. It knows the order of files, the offset of each line, and incomplete lines at the
end. A scan stops at the current end and can continue later, by polling (`io.recording.catalog`) or on an event
loop (`io.recording.tail`). It stores no lines; `LineReader` reads a line again by its offset.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from io import BytesIO, FileIO
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, NamedTuple

from mcpspy.core.framing import LineFramer
from mcpspy.core.recording.decode import Damaged, Entry, Note, read_entry
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.writer import is_live

BLOCK = 1 << 18
"""Bytes per read. The results of a block of this size stay in the processor's cache."""

NEWEST = 64
"""Bytes before a position that are compared before the next ones are read."""

NEAR = 1 << 15
"""Bytes before and after a line that are read with it."""


class LineBlock(NamedTuple):
    """Consecutive lines of one file of a recording."""

    path: Path
    offset: int
    """Offset of the first line. Each next line begins one LF after the end of the previous one."""
    lines: list[bytes]
    """Lines without their LF and without the header of the file."""
    damaged: Damaged | None = None
    """An incomplete last line, or a restart of the file, instead of lines. Set only by a follower."""


class FileStatus(Enum):
    """State of the file that a scan has reached."""

    GROWN = 1
    """There is more to read."""
    UNCHANGED = 2
    """There is nothing more to read, but the writer has the file open."""
    CLOSED = 3
    """There is nothing more to read, and the writer has closed the file."""
    REPLACED = 4
    """The file was truncated, or another file has its name."""


class RecordingScan:
    """A position in a recording from which the next lines are read."""

    def __init__(self, path: Path, block: int = BLOCK) -> None:
        self.paths = [path]
        """The files reached so far."""
        self._block = block
        self._before = self._torn = 0
        self._file: BinaryIO | None = None
        self._begin_file()

    def _begin_file(self) -> None:
        self._framer = LineFramer()
        self._identity: tuple[int, int] | None = None
        self._position = self._file_size = 0
        self.offset = 0
        """Offset of the next line in the current file."""
        self._last: bytes | Entry | None = None
        self._tail = b""
        """The last bytes that were read."""

    def skip(self, paths: Sequence[Path], sizes: Sequence[int], last: bytes, inode: int) -> None:
        """Continue after the first N bytes of the last of these files, which end with the line `last`.

        Raise ValueError if its inode differs, or UsageError or CannotStart if it cannot be opened.
        """
        self.paths = [*paths]
        self.offset = self._position = sizes[-1]
        self._before, self._last = sum(sizes[:-1]), last
        if os.fstat(self.file.fileno()).st_ino != inode:
            raise ValueError("another file has this name now")

    def __iter__(self) -> Iterator[LineBlock]:
        """Yield the blocks up to the current end; some have no lines. Raises UsageError or CannotStart."""
        try:
            while (block := self.next()) is not None:
                yield block
        finally:
            self.close()

    @property
    def path(self) -> Path:
        """The current file."""
        return self.paths[-1]

    @property
    def file(self) -> BinaryIO:
        """The current file, open at the position to read. Raise UsageError or CannotStart if it cannot be opened."""
        if self._file is None:
            self._file = opened(self.path)
            stat = os.fstat(self._file.fileno())
            self._file_size = stat.st_size
            self._identity = self._identity or (stat.st_dev, stat.st_ino)
            if self._position:
                self._file.seek(self._position)
        return self._file

    @property
    def read(self) -> int:
        """Bytes read so far, of all files."""
        return self._before + self._position

    @property
    def size(self) -> int:
        """Bytes to read, as far as known: a file names the next one in its last line."""
        return self._before + max(self._file_size, self._position)

    @property
    def torn(self) -> int:
        """Bytes of incomplete last lines, which are skipped."""
        return self._torn + len(self.incomplete)

    @property
    def incomplete(self) -> bytes:
        """Bytes of the current file that are not a complete line yet."""
        return b"".join(self._framer.pieces)

    @property
    def last(self) -> Entry | None:
        """The last entry read from the current file."""
        if isinstance(self._last, bytes):
            self._last = read_entry(self._last)
        return self._last

    def next(self) -> LineBlock | None:
        """Return the lines that end in the next bytes, possibly none. Return None if there are no bytes for now."""
        while not (data := self.file.read(self._block)):
            if not self.next_file():
                return None
        return self.take(data)

    def take(self, data: bytes) -> LineBlock:
        """Return the lines that end in these bytes, which were read from `file`."""
        offset = self.offset
        ended, complete = self._framer.split(data)
        # It finds the LFs faster than `bytes.split`, which compares byte by byte.
        lines = [line[:-1] for line in BytesIO(complete).readlines()]
        if ended:
            lines.insert(0, b"".join(ended))
        if lines:
            self.offset = self._position + data.rindex(b"\n") + 1
        self._position += len(data)
        self._tail = data[-NEWEST:]
        # The header is not an entry; a truncated file has none.
        if lines and not offset and isinstance(read_entry(lines[0]), Damaged):
            offset = len(lines.pop(0)) + 1
        if lines:
            self._last = lines[-1]
        return LineBlock(self.path, offset, lines)

    def next_file(self) -> bool:
        """Continue in the file that the last entry names. Return whether there is one that was not read before."""
        following = part_after(self.path, self.last)
        if following is None or following in self.paths:
            return False
        moved = self.last.fields.get("moved") if isinstance(self.last, Note) else None
        self._torn += len(self.incomplete)
        self._before += self._position
        self.close()
        self.paths.append(following)
        self._begin_file()
        if (
            isinstance(moved, int) and moved > 0
        ):  # This file was deleted; its last lines are the first of the next one.
            self._position = self.offset = len(self.file.readline()) + moved
            self.file.seek(self._position)
        return True

    def restart_file(self) -> None:
        """Read the current file again from its start, whatever file has its name now."""
        self.close()
        self._begin_file()

    def status(self) -> FileStatus:
        """Return the state of the current file. Raise UsageError or CannotStart if it cannot be opened."""
        fd = self.file.fileno()
        live = is_live(fd)  # First: then everything that the writer wrote before it ended is visible below.
        opened_stat = os.fstat(fd)
        is_cut = opened_stat.st_size < self._position or self._is_rewritten(fd)
        if (opened_stat.st_dev, opened_stat.st_ino) != self._identity:
            return FileStatus.REPLACED
        if opened_stat.st_size > self._position and not is_cut:
            return FileStatus.GROWN
        try:
            named = os.stat(self.path)
        except OSError:  # Deleted: data that the writer still appends can be read, but truncated data cannot.
            if is_cut:
                return FileStatus.CLOSED
            named = opened_stat
        if is_cut or (named.st_dev, named.st_ino) != self._identity:
            return FileStatus.REPLACED
        return FileStatus.UNCHANGED if live else FileStatus.CLOSED

    def _is_rewritten(self, fd: int) -> bool:
        """Return whether the file was truncated and has grown again."""
        size = len(self._tail)
        return hasattr(os, "pread") and os.pread(fd, size, self._position - size) != self._tail

    def close(self) -> None:
        """Close the current file. Reading opens it again; check `status` first, because the file may be replaced."""
        if self._file is not None:
            self._file.close()
            self._file = None


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect no garbage while objects are read that are kept, or freed at once."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_collecting:
            gc.enable()


class LineReader:
    """Reads lines of a recording again by their offsets."""

    def __init__(self) -> None:
        self._files: list[FileIO] = []
        self._lock = threading.Lock()
        self._block = b""
        self._block_at = -1, 0

    def begin_part(self, path: Path) -> int:
        """Open another file and return its number. Raise OSError if it cannot be opened."""
        self._files.append(FileIO(path))
        return len(self._files) - 1

    def read(self, part: int, offset: int, length: int) -> bytes:
        """Return N bytes of a file, or fewer if they no longer exist."""
        if part >= len(self._files):
            return b""
        file = self._files[part]
        try:
            # Another thread may be reading too.
            with self._lock:
                at, begin = self._block_at
                if at != part or not begin <= offset <= begin + len(self._block) - length:
                    # Read the neighbours on both sides as well: they are usually read next.
                    begin = max(offset - NEAR, 0)
                    file.seek(begin)
                    self._block, self._block_at = file.read(offset - begin + length + NEAR), (part, begin)
                return self._block[offset - begin : offset - begin + length]
        except OSError:
            return b""

    def close(self) -> None:
        """Close and forget all files."""
        self._block_at = -1, 0
        while self._files:
            self._files.pop().close()


def opened(path: Path) -> BinaryIO:
    """Open a regular file for reading, without waiting. Raise UsageError or CannotStart with a hint."""
    try:
        file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115 - the caller closes it.
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file", "mcpspy ls lists the sessions") from None
    except OSError as error:
        if path.is_dir():
            raise UsageError(
                f"{path}: a folder, not a recording", f"mcpspy ls --dir {path} lists its sessions"
            ) from None
        raise CannotStart(f"{path}: {error.strerror}", "check the permissions") from None
    if not S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UsageError(f"{path}: not a regular file", "a recording is a file; mcpspy ls lists the sessions")
    return file


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting for the writer of a pipe. The type is checked afterwards: the file may be replaced."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def part_after(path: Path, last: Entry | None) -> Path | None:
    """Return the file next to `path` that its last entry names, or None."""
    if not (isinstance(last, Note) and last.kind == "part"):
        return None
    try:
        following = path.with_name(str(last.fields.get("next")))
    except ValueError:  # A path: a recording from elsewhere must not choose the files that mcpspy reads.
        return None
    return following if following.is_file() else None
