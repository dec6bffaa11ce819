"""Forwarding of a client's unrecorded requests to the real server.

Requests keep the client's ids, because no other client shares the connection; requests of the server get ids that
no recorded request has.
"""

from __future__ import annotations

from typing import NamedTuple

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.protocol.message import Failure, Malformed, Request, Result, read_frame
from mcpspy.core.protocol.spec import SERVER
from mcpspy.core.recording.decode import Frame


class RealServerMessage(NamedTuple):
    data: bytes
    request: bytes | None
    """Id of the request whose stream carries the message, as JSON text."""
    is_answer: bool


class Passthrough:
    def __init__(self) -> None:
        self.initialize: bytes | None = None
        self._outgoing: list[bytes] = []
        self._open: dict[str, None] = {}
        self._server_ids: dict[str, bytes] = {}
        """Id that the client sees → id that the server sent, both as JSON text."""
        self._numbers = 0

    @property
    def is_waiting(self) -> bool:
        return bool(self._open)

    def take_outgoing(self) -> list[bytes]:
        """Return the messages for the server that were added since the last call."""
        taken, self._outgoing = self._outgoing, []
        return taken

    def forward(self, message: Request) -> None:
        self._open[message.id] = None
        self._outgoing.append(one_line(message.data))

    def forward_cancellation(self, id: str) -> None:  # noqa: A002
        """Send a cancellation to the server if the request was forwarded to it."""
        if id in self._open:
            del self._open[id]
            self._outgoing.append(
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}'
                % id.encode()
            )

    def forward_response(self, message: Result | Failure) -> bool:
        """Send the client's response to the server; return False if the server did not send the request."""
        server_id = self._server_ids.pop(message.id or "", None)
        if server_id is None:
            return False
        self._outgoing.append(replaced(one_line(message.data), ("id",), server_id))
        return True

    def received(self, data: bytes) -> list[RealServerMessage]:
        """Return the messages for the client in a line or body of the server."""
        # A notification does not name its request; most arrive while one request is open.
        last = next(reversed(self._open), None)
        carrier = None if last is None else last.encode()
        messages = []
        for message in read_frame(Frame(0.0, SERVER, data)):
            text = one_line(message.data)
            if isinstance(message, Result | Failure):
                if message.id is not None and message.id in self._open:
                    del self._open[message.id]
                    messages.append(RealServerMessage(text, message.id.encode(), True))
            elif isinstance(message, Request):
                self._numbers += 1
                client_id = f'"relayed-{self._numbers}"'
                self._server_ids[client_id] = message.id.encode()
                messages.append(
                    RealServerMessage(replaced(text, ("id",), client_id.encode()), carrier, False)
                )
            elif not isinstance(message, Malformed):
                messages.append(RealServerMessage(text, carrier, False))
        return messages
