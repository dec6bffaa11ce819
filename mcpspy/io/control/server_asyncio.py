"""The visitors of a session, on an event loop of asyncio.

Owns the same as `polled`, for `mcpspy http`: nothing is waited for, and a
visitor that does not read is shown out.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcpspy.errors import CannotStart
from mcpspy.io.control.server import Connection, ControlServer
from mcpspy.io.control.server_poll import UNREAD
from mcpspy.io.control.socket import ControlSocket

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcpspy.io.control.server import Live


class AsyncioServer:
    """The door of a session, and who has come in."""

    def __init__(self, door: ControlSocket, live: Live) -> None:
        self._door = door
        self.path = door.path
        self._room = ControlServer(live, door.token)
        self._visitors: set[_Visitor] = set()
        self._answering = asyncio.ensure_future(self._answer())

    @classmethod
    async def open(cls, live: Live, say: Callable[[str], None]) -> AsyncioServer | None:
        """Listen; if that cannot be, say so and return None."""
        try:
            return cls(ControlSocket.open(live.session), live)
        except CannotStart as error:
            say(f"no viewer can reach this session: {error}")
            return None

    def tell(self, viewer: str | None, event: dict[str, Any]) -> None:
        """Tell one visitor, or all, what has happened."""
        self._room.tell(viewer, event)

    async def close(self) -> None:
        """Say that it is over, and close once it is sent to who reads it."""
        self._answering.cancel()
        await asyncio.gather(self._answering, return_exceptions=True)
        self._door.close()
        self._room.end()
        for visitor in list(self._visitors):
            visitor.close()
        await asyncio.sleep(0)

    async def _answer(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._door.listening)
                if self._door.admits(connection):
                    await loop.connect_accepted_socket(
                        lambda: _Visitor(self._room, self._visitors), connection
                    )
            except OSError:  # It has left again, or there is no descriptor to spare.
                await asyncio.sleep(0.1)


class _Visitor(asyncio.Protocol):
    """One connection."""

    def __init__(self, room: ControlServer, all_of_them: set[_Visitor]) -> None:
        self._room = room
        self._all = all_of_them
        self._transport: asyncio.Transport | None = None
        self._guest: Connection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._all.add(self)
        self._guest = self._room.enter(self._write, transport.close)

    def data_received(self, data: bytes) -> None:
        assert self._guest is not None
        self._guest.feed(data)

    def connection_lost(self, _error: Exception | None) -> None:
        assert self._guest is not None
        self._all.discard(self)
        self._guest.left()

    def close(self) -> None:
        """End the connection, once what was said is sent."""
        assert self._transport is not None
        self._transport.close()

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        if self._transport.get_write_buffer_size() > UNREAD:
            self._transport.abort()
        elif not self._transport.is_closing():
            self._transport.write(data)
