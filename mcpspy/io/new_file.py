"""A file that a command was asked to write.

Owns that nothing is overwritten unasked, that only its owner may read it, and
that half of it is never left: what was there stays until the new one is whole.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError


def save(
    path: str | Path, pieces: Iterable[bytes | str], *, force: bool = False, way_out: str = "name another"
) -> int:
    """Write a file; return its bytes. Raise UsageError if there is one and no `force`, or CannotStart."""
    path = Path(path)
    try:
        if force:
            path = path.resolve()
            if path.exists() and not stat.S_ISREG(path.stat().st_mode):
                raise UsageError(f"{sanitize(str(path))}: not a regular file", "name another")
            fd, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", dir=path.parent)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            fd, name = os.open(path, flags, 0o600), str(path)
    except FileExistsError:
        raise UsageError(f"{sanitize(str(path))}: there is such a file already", way_out) from None
    except OSError as error:
        raise CannotStart(f"{sanitize(str(path))}: {error.strerror}", "name another file") from None
    size = 0
    try:
        with open(fd, "wb") as file:
            for piece in pieces:
                size += file.write(
                    piece.encode("utf-8", "backslashreplace") if isinstance(piece, str) else piece
                )
        if force:
            os.replace(name, path)
    except BaseException as error:
        with suppress(OSError):  # Half of a file is none.
            os.unlink(name)
        if isinstance(error, OSError):
            raise CannotStart(f"{sanitize(str(path))}: {error.strerror}", "nothing was written") from None
        raise
    return size
