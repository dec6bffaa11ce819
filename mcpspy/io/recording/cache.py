"""Cache files in a folder of recordings, and those with the index of a large recording, beside it.

Only their owner can read them, and none is trusted that another user could write.

The cache file of an index is a JSON line with a checksum, which names the lines that were read, then the state of the
index. It is used only if the recording still begins with these lines: the same file, and the same digest of their
beginning and end. A recording that has not grown must also have its old modification time. Any other file is ignored
and replaced.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from mcpspy import __version__
from mcpspy.errors import McpspyError
from mcpspy.io.recording.scan import opened

RECENT = 2_000_000_000
"""Nanoseconds. A file that changed this recently may change again without a change of its times."""


class FileStamp(NamedTuple):
    """Identity, size and times of a file."""

    inode: int
    size: int
    modified: int
    """Nanoseconds."""
    changed: int
    """Nanoseconds. On Windows, the time of creation."""

    @classmethod
    def of(cls, path: str | Path) -> FileStamp:
        """Return the stamp of a file. Raise OSError if the file does not exist."""
        stat = os.stat(path)
        return cls(stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def read_own(path: Path) -> bytes:
    """Return the content of a cache file. Raise OSError, also if it is a link or another user may write it."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
        stat = os.fstat(file.fileno())
        is_own = not hasattr(os, "getuid") or (stat.st_uid == os.getuid() and not stat.st_mode & 0o022)
        if not S_ISREG(stat.st_mode) or not is_own:
            raise PermissionError(f"{path}: not a file that only its owner can write")
        return file.read()


def replace_own(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file that only its owner can read, completely or not at all. Raise OSError."""
    name = f"{path}.{os.urandom(8).hex()}"  # `tempfile` takes 10 ms to import.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(name, flags, 0o600), "wb") as file:
            file.writelines(pieces)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


PREFIX, SUFFIX = ".mcpspy-index-", ".bin"

WORTH = 5_000_000
"""Bytes of a recording, or of what is new in it, that are worth a cache file."""

LARGEST = 1 << 28
"""Maximum bytes of all cache files of a folder. The oldest are removed."""

SAMPLE = 1 << 16
"""Bytes at the beginning and at the end of the lines that are compared."""


class CachedFile(Struct, frozen=True):
    """A file of a recording, as far as its lines are in the index."""

    name: str
    inode: int
    size: int
    """Bytes of the lines."""
    modified: int
    """Time of modification, in nanoseconds, if the file had nothing more; otherwise 0."""
    digest: str


class Progress(Struct, frozen=True):
    """The lines that an index has read."""

    files: tuple[CachedFile, ...]
    """The files of the recording, in order; all but the last were read to their end."""
    last: int
    """Offset of the last line in its file."""
    done: int
    """Bytes read."""
    is_over: bool
    """True if the session has ended: then the index cannot take more lines."""


class _Head(Struct, frozen=True):
    mcpspy_index: str
    """The version of mcpspy that wrote the file."""
    crc32: int
    progress: Progress


class CachedIndex(NamedTuple):
    progress: Progress
    data: bytes
    """The cache file."""
    begin: int
    """Offset of the state of the index in it."""


def progress_of(paths: Sequence[Path], offset: int, last: int, done: int, *, is_over: bool) -> Progress:
    """Describe the lines of a recording up to an offset in its last file. Raise OSError or McpspyError."""
    files = []
    for path in paths:
        with opened(path) as file:
            stat = os.fstat(file.fileno())
            size = offset if path == paths[-1] else stat.st_size
            is_lasting = stat.st_size == size and stat.st_mtime_ns < time.time_ns() - RECENT
            modified = stat.st_mtime_ns if is_lasting else 0
            files.append(CachedFile(path.name, stat.st_ino, size, modified, _digest(file, size)))
    return Progress(tuple(files), last, done, is_over)


def load(path: Path) -> CachedIndex | None:
    """Return the cache of a recording; None if there is no valid one."""
    try:
        data = read_own(_cache(path))
        begin = data.find(b"\n") + 1
        known = msgspec.json.decode(data[:begin], type=_Head)
        progress = known.progress
        is_valid = (
            known.mcpspy_index == __version__
            and known.crc32 == _crc([msgspec.json.encode(progress), memoryview(data)[begin:]])
            and progress.files[0].name == path.name
            and all(_is_same(path, file, progress) for file in progress.files)
        )
    except (OSError, McpspyError, ValueError, IndexError):
        return None
    return CachedIndex(progress, data, begin) if is_valid else None


def save(path: Path, progress: Progress, state: Sequence[bytes | memoryview]) -> None:
    """Write the cache of a recording, if it is of use. A folder that cannot be written, or a full disk, has none."""
    final = progress.files if progress.is_over else progress.files[:-1]
    if not all(file.modified for file in final) or sum(memoryview(each).nbytes for each in state) > LARGEST:
        return
    crc = _crc([msgspec.json.encode(progress), *state])
    head = msgspec.json.encode(_Head(__version__, crc, progress))
    with suppress(OSError):
        replace_own(_cache(path), [head, b"\n", *state])
        sweep(path.parent)


def remove(path: Path) -> None:
    """Delete the cache of a recording."""
    with suppress(OSError):
        os.unlink(_cache(path))


def sweep(folder: Path) -> None:
    """Delete caches of recordings that no longer exist, and the oldest while all of them are too large."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                stat = entry.stat(follow_symlinks=False)
                found.append((stat.st_mtime_ns, stat.st_size, entry.name))
    size = 0
    for _, length, name in sorted(found, reverse=True):
        size += length
        recording = name.removeprefix(PREFIX).removesuffix(SUFFIX)
        if size > LARGEST or not os.path.lexists(folder / recording):
            size -= length
            with suppress(OSError):
                os.unlink(folder / name)


def _cache(path: Path) -> Path:
    return path.with_name(f"{PREFIX}{path.name}{SUFFIX}")


def _crc(pieces: Sequence[bytes | memoryview]) -> int:
    crc = 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
    return crc


def _is_same(first: Path, cached: CachedFile, progress: Progress) -> bool:
    """Return True if a file still begins with the cached lines. Raise OSError, McpspyError or ValueError."""
    may_grow = cached is progress.files[-1] and not progress.is_over
    with opened(first.with_name(cached.name)) as file:
        stat = os.fstat(file.fileno())
        is_unchanged = (stat.st_size, stat.st_mtime_ns) == (cached.size, cached.modified)
        if stat.st_ino != cached.inode or not (is_unchanged or (may_grow and stat.st_size > cached.size)):
            return False
        return _digest(file, cached.size) == cached.digest


def _digest(file: BinaryIO, size: int) -> str:
    from hashlib import blake2b

    file.seek(0)
    digest = blake2b(file.read(min(size, SAMPLE)), digest_size=16)
    file.seek(max(size - SAMPLE, 0))
    digest.update(file.read(min(size, SAMPLE)))
    return digest.hexdigest()
