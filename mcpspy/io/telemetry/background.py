"""The exporter in the background: its lock, and the sessions that proxies register."""

from __future__ import annotations

import os
from pathlib import Path

from mcpspy.io.recording.writer import try_lock


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
