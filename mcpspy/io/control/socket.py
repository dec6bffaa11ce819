"""The control socket of a live session, for both sides, and the folder that contains it.

Only the same user can connect. With Unix-domain sockets, this is ensured by a socket with mode 0600 in a folder
with mode 0700 and by the peer's credentials; elsewhere, by a port on loopback and a token in a file of the user.
A session uses the first folder. Clients search all folders, because hosts drop the environment of their servers.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys

from mcpspy.errors import CannotStart

HAS_USERS = sys.platform != "win32"
"""True if files have an owner and a mode."""

HAS_UNIX = sys.platform != "win32"

SOCKET = ".sock"

PORT = ".port"
"""Suffix of a file with two lines: the port and the token."""

ROOT = 0
"""The root user, who can open everything here anyway."""


def socket_folders() -> list[str]:
    """Return the possible folders of sessions. The first one is for new sessions."""
    if chosen := os.environ.get("MCPSPY_RUNTIME"):
        return [os.path.abspath(os.path.expanduser(chosen))]
    if not HAS_USERS:
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
        return [os.path.join(base, "mcpspy", "live")]
    user = os.getuid()
    bases = [os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user}"]
    found = [os.path.join(base, "mcpspy") for base in bases if os.path.isabs(base) and _is_of(base, user)]
    # macOS has one TMPDIR per user, which a host may also drop.
    found += [
        os.path.join(base, f"mcpspy-{user}")
        for base in (os.environ.get("TMPDIR", ""), "/tmp")  # noqa: S108 - checked before use.
        if os.path.isabs(base)
    ]
    return list(dict.fromkeys(found))


def ensure_private(path: str) -> str:
    """Create the folder if it does not exist. Raise CannotStart if others can access it."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise CannotStart(f"{path}: {error.strerror}", "set MCPSPY_RUNTIME to another folder") from None
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
        raise CannotStart(f"{path}: not a folder, but a link or a file", "remove it")
    if found.st_uid != os.getuid():
        raise CannotStart(f"{path}: owned by another user", "set MCPSPY_RUNTIME to another folder")
    if found.st_mode & 0o077:
        raise CannotStart(f"{path}: accessible to other users", f"run chmod 700 {path}")


class ControlSocket:
    """A listening socket and the path that leads to it."""

    def __init__(self, path: str, listening: socket.socket, token: bytes) -> None:
        self.path = path
        self.token = token
        """First line that a viewer must send. Empty if the system identifies the peer."""
        self.listening = listening
        listening.setblocking(False)

    @classmethod
    def open(cls, session: str) -> ControlSocket:
        """Listen for viewers of a session. Raise CannotStart."""
        folder = ensure_private(socket_folders()[0])
        try:
            return _unix(folder, session) if HAS_UNIX else _loopback(folder, session)
        except OSError as error:
            path = os.path.join(folder, session)
            raise CannotStart(
                f"{path}: {error.strerror or error}", "set MCPSPY_RUNTIME to another folder"
            ) from None

    def fileno(self) -> int:
        return self.listening.fileno()

    def accept(self) -> socket.socket | None:
        """Accept a connection if the peer is the same user."""
        try:
            connection, _ = self.listening.accept()
        except OSError:  # The client has disconnected, or there is no free descriptor.
            return None
        return connection if self.is_authorized(connection) else None

    def is_authorized(self, connection: socket.socket) -> bool:
        """Return whether the peer is the same user; if not, close the connection."""
        try:
            if is_same_user(connection):
                connection.setblocking(False)
                return True
        except OSError:  # The peer has disconnected, and macOS no longer identifies it.
            pass
        connection.close()
        return False

    def close(self) -> None:
        self.listening.close()
        try:
            os.unlink(self.path)
        except OSError:  # The file was already removed.
            pass


def connect(path: str, seconds: float) -> socket.socket:
    """Return a socket that is connected to a session.

    Raises CannotStart, or FileNotFoundError if the session has ended; then its stale file is removed.
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
        raise CannotStart(f"{path}: cannot connect: {error}") from None
    return connection


def is_same_user(connection: socket.socket) -> bool:
    """Return whether the peer is a process of the same user, or True if the system does not report that."""
    if connection.family == socket.AF_INET:
        return True  # The token proves that.
    if hasattr(socket, "SO_PEERCRED"):
        _pid, user, _group = struct.unpack(
            "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        )
    elif hasattr(socket, "LOCAL_PEERCRED"):
        # struct xucred: version, user, groups (macOS, FreeBSD: unix(4)).
        _version, user = struct.unpack_from("2I", connection.getsockopt(0, socket.LOCAL_PEERCRED, 128))
    else:
        return True
    return user in (os.getuid(), ROOT)


def _is_of(base: str, user: int) -> bool:
    """Return whether the folder exists and belongs to this user: `sudo` may keep another user's variable."""
    try:
        found = os.stat(base)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == user


def _unix(folder: str, session: str) -> ControlSocket:
    path = os.path.join(folder, session + SOCKET)
    # Renamed only when it listens, because clients assume that a socket without a listener is a dead session's.
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
