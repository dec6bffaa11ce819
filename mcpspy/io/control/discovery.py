"""Finds live sessions by id or by recording, and lists them.

Removes the files of dead sessions.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.control import socket
from mcpspy.io.control.client import ControlClient
from mcpspy.io.control.socket import PORT, SOCKET
from mcpspy.io.recording.reader import read_header_of

MOST = 3
"""Maximum number of other folders that an error names."""


class LiveSession(NamedTuple):
    """A live session and its greeting."""

    path: str
    """Path of the control socket."""
    hello: dict[str, Any]

    @property
    def folder(self) -> str:
        """Return the folder of its recording, or, if it records nothing, the folder it would record to."""
        # An older mcpspy sends no folder.
        return str(self.hello.get("folder") or os.path.dirname(self.hello.get("file") or ""))

    def is_in(self, folder: str) -> bool:
        return bool(self.folder) and os.path.realpath(self.folder) == os.path.realpath(folder)

    def is_called(self, name: str) -> bool:
        """Return True for `last`, its name, its id, or the beginning of its id."""
        session = str(self.hello["session"])
        return name in ("last", session, self.hello["name"]) or (len(name) >= 2 and session.startswith(name))


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


def missing(folder: str, found: Sequence[LiveSession], subject: str = "no live session") -> CannotStart:
    """Return the error for a folder without the session that was asked for, given those of other folders."""
    message = f"{subject} in {folder}"
    if not found:
        return CannotStart(message, "start one with mcpspy run -- COMMAND")
    others = list(dict.fromkeys(session.folder for session in found))
    place = "another folder" if len(others) == 1 else f"{len(others)} other folders"
    several = "session" if len(found) == 1 else "sessions"
    more = " …" if len(others) > MOST else ""
    options = " or ".join(f"--dir {shlex.quote(other)}" for other in others[:MOST])
    return CannotStart(f"{message}; {len(found)} live {several} in {place}: use {options}{more}")


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
