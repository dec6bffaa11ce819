"""The control socket on a poll loop, or in a thread for a session without one.

Sockets never block: unread data is buffered up to a limit, above which the viewer is disconnected. The thread
holds the session's lock whenever it touches the session.
"""

from __future__ import annotations

import select
import socket
import threading

from mcpspy.io.control.server import ControlServer
from mcpspy.io.control.socket import ControlSocket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from mcpspy.io.control.server import ControlTarget

    class Loop(Protocol):
        """The poll loop, or a thread that does the same."""

        def route(self, fd: int, handler: Callable[[int], None], events: int) -> None:
            """Call the handler when the descriptor is ready or has hung up."""

        def unroute(self, fd: int) -> None:
            """Stop watching the descriptor."""


READABLE, WRITABLE = 1, 4
"""POLLIN and POLLOUT, defined here because `select` has no poll() on some systems."""

CHUNK = 65536

MAX_UNSENT = 128 << 20
"""Maximum number of bytes buffered for a viewer that does not read: more than all held messages."""


class PollServer:
    """The control socket on a poll loop."""

    def __init__(self, loop: Loop, live: ControlTarget) -> None:
        """Listen on the socket. Raise CannotStart."""
        self._loop = loop
        self._socket = ControlSocket.open(live.session)
        self.path = self._socket.path
        self._server = ControlServer(live, self._socket.token)
        self._connections: list[_SocketConnection] = []
        loop.route(self._socket.fileno(), self._on_connect, READABLE)
        live.listening(self.path)

    def close(self) -> None:
        """Send `end` to all viewers and close."""
        self._server.end()
        self._loop.unroute(self._socket.fileno())
        self._socket.close()
        for connection in self._connections[:]:
            connection.close()
        self._server.live.closed()

    def _on_connect(self, _events: int) -> None:
        connection = self._socket.accept()
        if connection is not None:
            self._connections.append(
                _SocketConnection(self._loop, connection, self._server, self._connections)
            )


class _SocketConnection:
    def __init__(
        self,
        loop: Loop,
        connection: socket.socket,
        server: ControlServer,
        connections: list[_SocketConnection],
    ) -> None:
        self._loop = loop
        self._socket = connection
        self._connections = connections
        self._unsent = bytearray()
        self._fd = connection.fileno()
        loop.route(self._fd, self._on_ready, READABLE)
        self._protocol = server.accept(self.write, self._disconnect)

    def write(self, data: bytes) -> None:
        """Send as much as the viewer reads. Close nothing, because the caller may be iterating over all connections."""
        if len(self._unsent) > MAX_UNSENT:
            self._disconnect()
            return
        self._unsent += data
        self._send()

    def close(self) -> None:
        self._connections.remove(self)
        self._loop.unroute(self._fd)
        self._socket.close()
        self._protocol.on_disconnect()

    def _on_ready(self, events: int) -> None:
        if events & WRITABLE:
            self._send()
        if events & ~WRITABLE:
            try:
                data = self._socket.recv(CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if data:
                self._protocol.feed(data)
            else:
                self.close()

    def _send(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # The viewer has disconnected: the next read detects that.
            self._unsent.clear()
        self._loop.route(self._fd, self._on_ready, READABLE | (WRITABLE if self._unsent else 0))

    def _disconnect(self) -> None:
        """Make the next read return the end."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # The connection is already closed.
            pass


class ThreadedServer:
    """The control socket in a thread."""

    def __init__(self, live: ControlTarget, lock: threading.Lock) -> None:
        """Listen on the socket. Raise CannotStart. Call this with the lock held."""
        self._lock = lock
        self._routes: dict[int, tuple[Callable[[int], None], int]] = {}
        # Wakes the thread after another thread changed the routes.
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self.route(self._wake_reader.fileno(), self._on_alarm, READABLE)
        self._server = PollServer(self, live)
        self.path = self._server.path
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        """Send `end` to all viewers and close. Call this with the lock held."""
        self._server.close()

    def route(self, fd: int, handler: Callable[[int], None], events: int) -> None:
        if self._routes.get(fd, (None, 0))[1] != events:
            self._routes[fd] = handler, events
            self._wake()

    def unroute(self, fd: int) -> None:
        self._routes.pop(fd, None)
        self._wake()

    def _wake(self) -> None:
        try:
            self._wake_writer.send(b"!")
        except BlockingIOError:  # The thread is about to wake up anyway.
            pass

    def _on_alarm(self, _events: int) -> None:
        self._wake_reader.recv(512)

    def _run(self) -> None:
        while True:
            with self._lock:
                wanted = {fd: events for fd, (_, events) in self._routes.items()}
            readers = [fd for fd, events in wanted.items() if events & READABLE]
            writers = [fd for fd, events in wanted.items() if events & WRITABLE]
            try:
                readable, writable, _ = select.select(readers, writers, [])
            except (OSError, ValueError):  # One of the descriptors has been closed: start again.
                continue
            with self._lock:
                for fd in {*readable, *writable}:
                    handler, _events = self._routes.get(fd, (None, 0))
                    if handler is not None:
                        handler(READABLE * (fd in readable) | WRITABLE * (fd in writable))
