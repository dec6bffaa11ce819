"""Output files and replaced recordings, written completely or not at all.

Existing files are not overwritten without `force`, and only their owner may read new ones. A replaced
recording is kept as `.bak`, and its name always refers to a complete file.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError


def save(
    path: str | Path, pieces: Iterable[bytes | str], *, force: bool = False, way_out: str = "use another name"
) -> int:
    """Write a file; return its size in bytes. Raise UsageError if it exists and `force` is not set, or CannotStart."""
    path = Path(path)
    try:
        if force:
            path = path.resolve()
            if path.exists() and not stat.S_ISREG(path.stat().st_mode):
                raise UsageError(f"{sanitize(str(path))}: not a regular file", "use another name")
            fd, name = tempfile.mkstemp(prefix=f".{path.name[:64]}.", dir=path.parent)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            fd, name = os.open(path, flags, 0o600), str(path)
    except FileExistsError:
        raise UsageError(f"{sanitize(str(path))}: file exists", way_out) from None
    except OSError as error:
        raise CannotStart(f"{sanitize(str(path))}: {error.strerror}", "use another name") from None
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
        with suppress(OSError):  # Remove an incomplete file.
            os.unlink(name)
        if isinstance(error, OSError):
            raise CannotStart(f"{sanitize(str(path))}: {error.strerror}", "nothing was written") from None
        raise
    return size


class Replacement:
    """A recording and the file that may replace it."""

    def __init__(self, old: Path) -> None:
        self.old = old
        self.new = old.with_name(f".{old.name}.{os.getpid()}.new")

    def put_in_place(self, new: str | None) -> Path:
        """Replace the old recording by the new one. Return the path of the backup. Raise CannotStart."""
        backup = self.old.with_name(self.old.name + ".bak")
        waiting = self.new.with_suffix(".bak")
        try:
            shutil.copy2(self.old, waiting)
            waiting.replace(backup)
            shutil.copymode(self.old, new or self.new)
            os.replace(new or self.new, self.old)
        except OSError as error:
            waiting.unlink(missing_ok=True)
            raise CannotStart(f"{self.old}: {error.strerror}", "the recording was not updated") from None
        return backup

    def discard(self) -> None:
        self.new.unlink(missing_ok=True)
