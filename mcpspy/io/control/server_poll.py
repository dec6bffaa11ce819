"""The visitors of a session, for a loop that calls when a descriptor is ready.

Owns sockets that are never waited for: what a visitor does not read is kept up
to a bound, and then the visitor is shown out. With nobody there it costs nothing.

The visitors of a session, in a thread of their own: for a pump that has no loop.

Owns that thread and nothing else: what is ready is `polled`'s business, and runs
under the pump's lock, as everything does that touches the session.
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
        """The pump, or a thread that does the same."""

        def route(self, fd: int, handler: Callable[[int], None], events: int) -> None:
            """Call the handler when the descriptor is ready, or has hung up."""

        def unroute(self, fd: int) -> None:
            """Wait for nothing more on it."""


READABLE, WRITABLE = 1, 4
"""POLLIN and POLLOUT, also where `select` has no poll()."""

CHUNK = 65536

MAX_UNSENT = 128 << 20
"""Bytes kept for a visitor that does not read: more than can be held at once."""


class PollServer:
    """The door of a session, and who has come in."""

    def __init__(self, loop: Loop, live: ControlTarget) -> None:
        """Listen; raise CannotStart."""
        self._loop = loop
        self._socket = ControlSocket.open(live.session)
        self.path = self._socket.path
        self._server = ControlServer(live, self._socket.token)
        self._connections: list[_SocketConnection] = []
        loop.route(self._socket.fileno(), self._on_connect, READABLE)

    def close(self) -> None:
        """Say that it is over, as far as they listen, and close."""
        self._server.end()
        self._loop.unroute(self._socket.fileno())
        self._socket.close()
        for connection in self._connections[:]:
            connection.close()

    def _on_connect(self, _events: int) -> None:
        connection = self._socket.accept()
        if connection is not None:
            self._connections.append(
                _SocketConnection(self._loop, connection, self._server, self._connections)
            )


class _SocketConnection:
    """One connection."""

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
        """Send, as far as it reads. Closes nothing: somebody may be in the middle of telling all of them."""
        if len(self._unsent) > MAX_UNSENT:
            self._disconnect()
            return
        self._unsent += data
        self._send()

    def close(self) -> None:
        """End the connection."""
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
        except OSError:  # It has gone: reading will say so.
            self._unsent.clear()
        self._loop.route(self._fd, self._on_ready, READABLE | (WRITABLE if self._unsent else 0))

    def _disconnect(self) -> None:
        """Have the next look at it find its end."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # It has gone already.
            pass


class ThreadedServer:
    """The door of a session, and who has come in."""

    def __init__(self, live: ControlTarget, lock: threading.Lock) -> None:
        """Listen; raise CannotStart. Call with the lock held."""
        self._lock = lock
        self._routes: dict[int, tuple[Callable[[int], None], int]] = {}
        # What another thread changes is looked at once this one wakes.
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self.route(self._wake_reader.fileno(), self._on_alarm, READABLE)
        self._server = PollServer(self, live)
        self.path = self._server.path
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        """Say that it is over, and close. Call with the lock held."""
        self._server.close()

    def route(self, fd: int, handler: Callable[[int], None], events: int) -> None:
        """Call the handler when the descriptor is ready."""
        if self._routes.get(fd, (None, 0))[1] != events:
            self._routes[fd] = handler, events
            self._wake()

    def unroute(self, fd: int) -> None:
        """Wait for nothing more on it."""
        self._routes.pop(fd, None)
        self._wake()

    def _wake(self) -> None:
        try:
            self._wake_writer.send(b"!")
        except BlockingIOError:  # It will wake up as it is.
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
            except (OSError, ValueError):  # One of them was closed meanwhile: look again at which there are.
                continue
            with self._lock:
                for fd in {*readable, *writable}:
                    handler, _events = self._routes.get(fd, (None, 0))
                    if handler is not None:
                        handler(READABLE * (fd in readable) | WRITABLE * (fd in writable))
