"""Which sessions are live, and where each is reached.

Owns finding one by its id or its recording, and the list of all. Removes what
dead sessions have left behind.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.control import socket
from mcpspy.io.control.client import ControlClient
from mcpspy.io.control.socket import PORT, SOCKET
from mcpspy.io.recording.reader import read_header_of


class LiveSession(NamedTuple):
    """A live session, as it introduces itself."""

    path: str
    """Where it is reached."""
    hello: dict[str, Any]


def find(which: str | os.PathLike[str]) -> str:
    """Return where a session is reached: by its id, or by its recording. Raises UsageError or CannotStart."""
    name = os.fspath(which)
    is_file = os.sep in name or name.endswith(".jsonl")
    session = read_header_of(Path(name)).id if is_file else name
    for folder in socket.socket_folders():
        for ending in (SOCKET, PORT):
            path = os.path.join(folder, session + ending)
            if os.path.exists(path):
                return path
    raise CannotStart(
        f"{name}: nobody answers for this session", "is it live? mcpspy send --list shows those that are"
    )


def sessions() -> list[LiveSession]:
    """Return the live sessions of this user, the newest last; what dead ones have left is removed."""
    found = []
    for path in _files():
        try:
            with ControlClient(path) as client:
                found.append(LiveSession(path, client.hello))
        except (OSError, McpspyError):  # Dead, and removed; or it ended meanwhile, or is stopped.
            continue
    return found


def _files() -> list[str]:
    """Return what leads to sessions, the newest last, from folders that are ours."""
    found = []
    for folder in socket.socket_folders():
        try:
            socket.check_private(folder)
            entries = list(os.scandir(folder))
        except (OSError, CannotStart):  # There is none, or nobody should trust it.
            continue
        for entry in entries:
            if entry.name.endswith((SOCKET, PORT)):
                try:
                    found.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
                except OSError:  # It has just ended.
                    continue
    return [path for _, path in sorted(found)]
