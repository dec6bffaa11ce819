"""The control socket of a live session, from both sides, and the folder it is in.

Only the same user gets in. With Unix-domain sockets: a socket of 0600 in a folder of 0700 and the
peer's credentials. Elsewhere: a port on loopback and a token in a file of the user's folder.
A session uses the first folder; clients search all, because hosts drop the environment of their servers.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys

from mcpspy.errors import CannotStart

HAS_USERS = sys.platform != "win32"
"""Whether files have an owner and a mode."""

HAS_UNIX = sys.platform != "win32"

SOCKET = ".sock"

PORT = ".port"
"""A file of two lines: the port, and the token."""

ROOT = 0
"""May open anything here anyway."""


def socket_folders() -> list[str]:
    """Return the possible folders of sessions, the one for a new session first."""
    if chosen := os.environ.get("MCPSPY_RUNTIME"):
        return [os.path.abspath(os.path.expanduser(chosen))]
    if not HAS_USERS:
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
        return [os.path.join(base, "mcpspy", "live")]
    user = os.getuid()
    bases = [os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user}"]
    found = [os.path.join(base, "mcpspy") for base in bases if os.path.isabs(base) and _is_of(base, user)]
    # macOS has a TMPDIR per user, which a host may drop, too.
    found += [
        os.path.join(base, f"mcpspy-{user}")
        for base in (os.environ.get("TMPDIR", ""), "/tmp")  # noqa: S108 - checked before it is used.
        if os.path.isabs(base)
    ]
    return list(dict.fromkeys(found))


def ensure_private(path: str) -> str:
    """Make the folder if it does not exist; raise CannotStart if others can access it."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise CannotStart(f"{path}: {error.strerror}", "MCPSPY_RUNTIME names another folder") from None
    check_private(path)
    return path


def check_private(path: str) -> None:
    """Raise CannotStart if another user could have written to this folder."""
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


class ControlSocket:
    """A listening socket and the path that leads to it."""

    def __init__(self, path: str, listening: socket.socket, token: bytes) -> None:
        self.path = path
        self.token = token
        """The required first line of a viewer; empty where the system identifies the peer."""
        self.listening = listening
        listening.setblocking(False)

    @classmethod
    def open(cls, session: str) -> ControlSocket:
        """Listen for viewers of a session; raise CannotStart."""
        folder = ensure_private(socket_folders()[0])
        try:
            return _unix(folder, session) if HAS_UNIX else _loopback(folder, session)
        except OSError as error:
            path = os.path.join(folder, session)
            raise CannotStart(
                f"{path}: {error.strerror or error}", "MCPSPY_RUNTIME names another folder"
            ) from None

    def fileno(self) -> int:
        return self.listening.fileno()

    def accept(self) -> socket.socket | None:
        """Accept a connection if the peer is the same user."""
        try:
            connection, _ = self.listening.accept()
        except OSError:  # The client is gone again, or there is no free descriptor.
            return None
        return connection if self.is_authorized(connection) else None

    def is_authorized(self, connection: socket.socket) -> bool:
        """Whether the peer is the same user; otherwise close the connection."""
        try:
            if is_same_user(connection):
                connection.setblocking(False)
                return True
        except OSError:  # The peer is gone again, and macOS does not identify it any more.
            pass
        connection.close()
        return False

    def close(self) -> None:
        self.listening.close()
        try:
            os.unlink(self.path)
        except OSError:  # It was removed already.
            pass


def connect(path: str, seconds: float) -> socket.socket:
    """Return a socket to a session.

    Raises CannotStart; FileNotFoundError if the session is gone, after its stale file is removed.
    """
    check_private(os.path.dirname(path))
    try:
        if path.endswith(PORT):
            with open(path, encoding="ascii") as file:
                port, token = file.read().split()
            connection = socket.create_connection(("127.0.0.1", int(port)), seconds)
            connection.sendall(token.encode() + b"\n")
        else:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(seconds)
            try:
                connection.connect(path)
            except OSError:
                connection.close()
                raise
    except ConnectionRefusedError:
        os.unlink(path)
        raise FileNotFoundError(path) from None
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise CannotStart(f"{path}: cannot be reached: {error}") from None
    return connection


def is_same_user(connection: socket.socket) -> bool:
    """Whether the peer is a process of the same user; True if the system does not report that."""
    if connection.family == socket.AF_INET:
        return True  # The token proves it.
    if hasattr(socket, "SO_PEERCRED"):
        _pid, user, _group = struct.unpack(
            "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        )
    elif hasattr(socket, "LOCAL_PEERCRED"):
        # struct xucred: its version, the user, groups (macOS, FreeBSD: unix(4)).
        _version, user = struct.unpack_from("2I", connection.getsockopt(0, socket.LOCAL_PEERCRED, 128))
    else:
        return True
    return user in (os.getuid(), ROOT)


def _is_of(base: str, user: int) -> bool:
    """Whether the folder exists and is this user's: `sudo` may keep the variable of another one."""
    try:
        found = os.stat(base)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == user


def _unix(folder: str, session: str) -> ControlSocket:
    path = os.path.join(folder, session + SOCKET)
    # Under its final name only once it listens: clients take one that does not for a dead session.
    temporary = os.path.join(folder, session)
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(temporary)
        try:
            os.chmod(temporary, 0o600)
            listening.listen(16)
            os.rename(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError:
        listening.close()
        raise
    return ControlSocket(path, listening, b"")


def _loopback(folder: str, session: str) -> ControlSocket:
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
    return ControlSocket(path, listening, token.encode())
