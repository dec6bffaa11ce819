"""Cursors: how much of each recording a collector has acknowledged.

There is one file for each session that is not complete. It is locked while a process follows the session, so that two processes never send the same. It is deleted when the
collector has everything. Without it, or if it is damaged, the session is sent again, with the same ids.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from mcpspy.core.recording.decode import Header
from mcpspy.io.recording.writer import try_lock

SUFFIX = ".cursor"


class _Content(Struct):
    recording: str
    entries: int = 0


class Cursor:
    """The acknowledged part of one recording."""

    def __init__(self, path: Path, file: BinaryIO, recording: Path) -> None:
        self._path = path
        self._file = file
        self._content = _read(file.read()) or _Content(str(recording))
        self._content.recording = str(recording)
        self.commit(self._content.entries)
        os.fsync(file.fileno())  # Without its path, the session would not be continued after a power failure.

    @property
    def entries(self) -> int:
        """Number of entries whose telemetry was acknowledged."""
        return self._content.entries

    def commit(self, entries: int) -> None:
        """Store the number of entries. Raise OSError."""
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
            content = _read(path.read_bytes())
            if content is not None and Path(content.recording).exists():
                yield Path(content.recording)
            elif content is not None:
                path.unlink(missing_ok=True)


def _read(data: bytes) -> _Content | None:
    try:
        return msgspec.json.decode(data, type=_Content)
    except msgspec.DecodeError:
        return None
