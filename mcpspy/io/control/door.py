"""The socket of a live session, from both sides: who listens, and who knocks.

Owns that nobody else comes in. Where there are Unix-domain sockets: a socket of
0600 in a folder of 0700, and the system's word on who connects. Elsewhere: a
port on loopback, and a token in a file of the user's own folder, to be said first.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

from mcpspy.errors import CannotStart
from mcpspy.io.control import place

HAS_UNIX = sys.platform != "win32"

SOCKET = ".sock"
PORT = ".port"
"""A file of two lines: the port, and the token."""

ROOT = 0
"""May open anything here anyway."""


class Door:
    """A listening socket that a file leads to."""

    def __init__(self, path: str, listening: socket.socket, token: bytes) -> None:
        self.path = path
        self.token = token
        """What a visitor has to say first; empty where the system tells who it is."""
        self._listening = listening
        listening.setblocking(False)

    @classmethod
    def open(cls, session: str) -> Door:
        """Listen for visitors of a session; raise CannotStart."""
        folder = place.made(place.folder())
        try:
            return _unix(folder, session) if HAS_UNIX else _loopback(folder, session)
        except OSError as error:
            path = os.path.join(folder, session)
            raise CannotStart(
                f"{path}: {error.strerror or error}", "MCPSPY_RUNTIME names another folder"
            ) from None

    def fileno(self) -> int:
        """Return the descriptor that is readable when somebody knocks."""
        return self._listening.fileno()

    @property
    def listening(self) -> socket.socket:
        """The socket, for an event loop."""
        return self._listening

    def answer(self) -> socket.socket | None:
        """Let in who has knocked, if that is us."""
        try:
            visitor, _ = self._listening.accept()
        except OSError:  # It has left again, or there is no descriptor to spare.
            return None
        return visitor if self.admits(visitor) else None

    def admits(self, visitor: socket.socket) -> bool:
        """Whether it is one of us; else it is sent away."""
        try:
            if is_ours(visitor):
                visitor.setblocking(False)
                return True
        except OSError:  # It has left again, and macOS does not say any more who it was.
            pass
        visitor.close()
        return False

    def close(self) -> None:
        """Let nobody in any more."""
        self._listening.close()
        try:
            os.unlink(self.path)
        except OSError:  # Somebody has cleaned up.
            pass


def knock(path: str, seconds: float) -> socket.socket:
    """Return a socket to the session that a file leads to.

    Raises CannotStart; FileNotFoundError if the session is gone, and has left a
    file, which is removed.
    """
    place.check(os.path.dirname(path))
    try:
        if path.endswith(PORT):
            with open(path, encoding="ascii") as file:
                port, token = file.read().split()
            visitor = socket.create_connection(("127.0.0.1", int(port)), seconds)
            visitor.sendall(token.encode() + b"\n")
        else:
            visitor = socket.socket(socket.AF_UNIX)
            visitor.settimeout(seconds)
            try:
                visitor.connect(path)
            except OSError:
                visitor.close()
                raise
    except ConnectionRefusedError:
        os.unlink(path)
        raise FileNotFoundError(path) from None
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise CannotStart(f"{path}: cannot be reached: {error}") from None
    return visitor


def is_ours(visitor: socket.socket) -> bool:
    """Whether it is a process of our user that has connected; True where the system does not say."""
    if visitor.family == socket.AF_INET:
        return True  # The token says it.
    if hasattr(socket, "SO_PEERCRED"):
        _pid, user, _group = struct.unpack(
            "3i", visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        )
    elif hasattr(socket, "LOCAL_PEERCRED"):
        # struct xucred: its version, the user, groups (macOS, FreeBSD: unix(4)).
        _version, user = struct.unpack_from("2I", visitor.getsockopt(0, socket.LOCAL_PEERCRED, 128))
    else:
        return True
    return user in (os.getuid(), ROOT)


def _unix(folder: str, session: str) -> Door:
    path = os.path.join(folder, session + SOCKET)
    # Under its name only once it listens: who finds a socket that does not takes it for a dead one.
    before = os.path.join(folder, session)
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(before)
        try:
            os.chmod(before, 0o600)
            listening.listen(16)
            os.rename(before, path)
        except OSError:
            os.unlink(before)
            raise
    except OSError:
        listening.close()
        raise
    return Door(path, listening, b"")


def _loopback(folder: str, session: str) -> Door:
    path = os.path.join(folder, session + PORT)
    token = os.urandom(32).hex()
    listening = socket.socket(socket.AF_INET)
    try:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(f"{listening.getsockname()[1]}\n{token}\n")
    except OSError:
        listening.close()
        raise
    return Door(path, listening, token.encode())
