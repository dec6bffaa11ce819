"""Finds live sessions by id or by recording, and lists them.

Removes the files of dead sessions.
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
    """A live session and its greeting."""

    path: str
    """Path of the control socket."""
    hello: dict[str, Any]


def find(which: str | os.PathLike[str]) -> str:
    """Return the control socket of a session, given its id or its recording. Raises UsageError or CannotStart."""
    name = os.fspath(which)
    is_file = os.sep in name or name.endswith(".jsonl")
    session = read_header_of(Path(name)).id if is_file else name
    for folder in socket.socket_folders():
        for ending in (SOCKET, PORT):
            path = os.path.join(folder, session + ending)
            if os.path.exists(path):
                return path
    raise CannotStart(f"{name}: not a live session", "mcpspy send --list shows the live sessions")


def sessions() -> list[LiveSession]:
    """Return the live sessions of this user, the newest last. Remove the files of dead ones."""
    found = []
    for path in _files():
        try:
            with ControlClient(path) as client:
                found.append(LiveSession(path, client.hello))
        except (OSError, McpspyError):  # The session is dead, has just ended, or is suspended.
            continue
    return found


def _files() -> list[str]:
    """Return the control sockets, the newest last, from folders to which only this user can write."""
    found = []
    for folder in socket.socket_folders():
        try:
            socket.check_private(folder)
            entries = list(os.scandir(folder))
        except (OSError, CannotStart):  # The folder does not exist, or is not private.
            continue
        for entry in entries:
            if entry.name.endswith((SOCKET, PORT)):
                try:
                    found.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
                except OSError:  # The session has just ended.
                    continue
    return [path for _, path in sorted(found)]
