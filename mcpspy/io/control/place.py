"""Where live sessions can be reached: a folder that is its owner's alone.

Owns which folder, and the proof that nobody else can put anything in it: made
by us, 0700, no link. A session goes into the first; who looks for one looks
into all, since hosts drop the environment of what they start.
"""

from __future__ import annotations

import os
import stat
import sys

from mcpspy.errors import CannotStart

HAS_USERS = sys.platform != "win32"
"""Whether files have an owner and a mode."""


def folder() -> str:
    """Return the folder for a session that begins."""
    return folders()[0]


def folders() -> list[str]:
    """Return the folders in which sessions may be, without looking; the first is the one for a new one."""
    if chosen := os.environ.get("MCPSPY_RUNTIME"):
        return [os.path.abspath(os.path.expanduser(chosen))]
    if not HAS_USERS:
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
        return [os.path.join(base, "mcpspy", "live")]
    user = os.getuid()
    bases = [os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user}"]
    found = [os.path.join(base, "mcpspy") for base in bases if os.path.isabs(base) and _is_of(base, user)]
    # macOS has a TMPDIR for every user, which a host may drop, too.
    found += [
        os.path.join(base, f"mcpspy-{user}")
        for base in (os.environ.get("TMPDIR", ""), "/tmp")  # noqa: S108 - checked before it is used.
        if os.path.isabs(base)
    ]
    return list(dict.fromkeys(found))


def made(path: str) -> str:
    """Make the folder, if it is not there; raise CannotStart if it is not ours alone."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise CannotStart(f"{path}: {error.strerror}", "MCPSPY_RUNTIME names another folder") from None
    check(path)
    return path


def check(path: str) -> None:
    """Raise CannotStart if somebody else could have put something into this folder."""
    if not HAS_USERS:
        return
    try:
        found = os.lstat(path)
    except OSError as error:
        raise CannotStart(f"{path}: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise CannotStart(f"{path}: a link or a file, where a folder of ours should be", "remove it")
    if found.st_uid != os.getuid():
        raise CannotStart(f"{path}: belongs to somebody else", "MCPSPY_RUNTIME names another folder")
    if found.st_mode & 0o077:
        raise CannotStart(f"{path}: open to others", f"chmod 700 {path}")


def _is_of(base: str, user: int) -> bool:
    """Whether there is such a folder, and it is this user's: `sudo` may keep the variable of another one."""
    try:
        found = os.stat(base)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == user
