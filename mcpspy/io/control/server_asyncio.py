"""The control socket on an asyncio loop, for `mcpspy http`.

The loop never waits for a viewer. A viewer that does not read is disconnected.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from mcpspy.errors import CannotStart
from mcpspy.io.control.server import Connection, ControlServer
from mcpspy.io.control.server_poll import MAX_UNSENT
from mcpspy.io.control.socket import ControlSocket

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.io.control.server import ControlTarget


class AsyncioServer:
    def __init__(self, control_socket: ControlSocket, live: ControlTarget) -> None:
        self._socket = control_socket
        self.path = control_socket.path
        self._server = ControlServer(live, control_socket.token)
        self._connections: set[_SocketConnection] = set()
        self._accepting = asyncio.ensure_future(self._accept_forever())
        live.listening(self.path)

    @classmethod
    def open(cls, live: ControlTarget, say: Callable[[str], None]) -> AsyncioServer | None:
        """Listen on the running loop. If that fails, report it and return None."""
        try:
            return cls(ControlSocket.open(live.session), live)
        except CannotStart as error:
            say(f"viewers cannot connect to this session: {error}")
            live.listening(None)
            return None

    async def close(self) -> None:
        """Send `end` to all viewers and close."""
        self._accepting.cancel()
        await asyncio.gather(self._accepting, return_exceptions=True)
        self._socket.close()
        self._server.end()
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)
        await asyncio.to_thread(self._server.live.closed)

    async def _accept_forever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._socket.listening)
                if self._socket.is_authorized(connection):
                    await loop.connect_accepted_socket(
                        lambda: _SocketConnection(self._server, self._connections), connection
                    )
            except OSError:  # The client has disconnected, or there is no free descriptor.
                await asyncio.sleep(0.1)


class _SocketConnection(asyncio.Protocol):
    def __init__(self, server: ControlServer, connections: set[_SocketConnection]) -> None:
        self._server = server
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._protocol: Connection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # Those of uvloop are of another class.
        self._connections.add(self)
        self._protocol = self._server.accept(self._write, self._transport.close)

    def data_received(self, data: bytes) -> None:
        assert self._protocol is not None
        self._protocol.feed(data)

    def connection_lost(self, _error: Exception | None) -> None:
        assert self._protocol is not None
        self._connections.discard(self)
        self._protocol.on_disconnect()

    def close(self) -> None:
        """Close the connection once all data is sent."""
        assert self._transport is not None
        self._transport.close()

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        if self._transport.get_write_buffer_size() > MAX_UNSENT:
            self._transport.abort()
        elif not self._transport.is_closing():
            self._transport.write(data)
