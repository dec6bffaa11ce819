"""Cache files in a folder of recordings.

Only their owner can read them, and none is trusted that another user could write.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

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
