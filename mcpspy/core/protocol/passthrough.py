"""Forwarding of a client's messages to the real server: unrecorded requests, or all messages.

Requests keep the client's ids, because no other client shares the connection; requests of the server get ids that
no recorded request has. A server on stdio does not name the request that a message belongs to, and over HTTP each
request has its own stream. So the stream is that of the request that a message names (basic/utilities/progress,
basic/utilities/cancellation; 2026-07-28: `subscriptionId`), or else of the last open request.
"""

from __future__ import annotations

from typing import NamedTuple

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.protocol.message import (
    Failure,
    Notification,
    Request,
    Result,
    decoded,
    meta_raw,
    read_frame,
    text,
)
from mcpspy.core.protocol.spec import META, SERVER
from mcpspy.core.recording.decode import Frame

CANCELLED, PROGRESS = "notifications/cancelled", "notifications/progress"

LISTEN = "subscriptions/listen"

CHANGES = ("/list_changed", "resources/updated")
"""Ends of the methods of notifications that belong to no request."""


class LiveServerMessage(NamedTuple):
    data: bytes
    request: bytes | None
    """Id of the request whose stream carries the message, as JSON text."""
    is_answer: bool


class Passthrough:
    def __init__(self) -> None:
        self.initialize: bytes | None = None
        self.revision: str | None = None
        """Revision that the server negotiated in response to a forwarded `initialize`."""
        self._outgoing: list[bytes] = []
        self._open: dict[str, Request] = {}
        self._server_ids: dict[str, tuple[bytes, bytes | None]] = {}
        """Id that the client sees → id that the server sent, and of the request whose stream it took, as JSON text."""
        self._numbers = 0

    @property
    def is_waiting(self) -> bool:
        return bool(self._open)

    def is_open(self, id: str | None) -> bool:  # noqa: A002
        """Return whether a request with this id, as JSON text, has no response."""
        return id in self._open

    @property
    def is_initializing(self) -> bool:
        return any(request.method == "initialize" for request in self._open.values())

    def take_outgoing(self) -> list[bytes]:
        """Return the messages for the server that were added since the last call."""
        taken, self._outgoing = self._outgoing, []
        return taken

    def forward(self, message: Request | Notification) -> None:
        if isinstance(message, Request):
            self._open[message.id] = message
        elif message.method == CANCELLED:
            self._open.pop(text(message.body.request_id) or "", None)
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
        asked = self._server_ids.pop(message.id or "", None)
        if asked is None:
            return False
        self._outgoing.append(replaced(one_line(message.data), ("id",), asked[0]))
        return True

    def received(self, data: bytes) -> list[LiveServerMessage]:
        """Return the messages for the client in a line or body of the server."""
        messages = []
        for message in read_frame(Frame(0.0, SERVER, data)):
            line = one_line(message.data)
            if isinstance(message, Result | Failure):
                if message.id is not None and message.id in self._open:
                    request = self._open.pop(message.id)
                    if request.method == "initialize" and isinstance(message, Result):
                        version = decoded(meta_raw(message.raw_result, "protocolVersion"))
                        self.revision = version if isinstance(version, str) else None
                    messages.append(LiveServerMessage(line, message.id.encode(), True))
            elif isinstance(message, Request):
                self._numbers += 1
                client_id, carrier = f'"relayed-{self._numbers}"', self._carrier(message)
                self._server_ids[client_id] = message.id.encode(), carrier
                messages.append(
                    LiveServerMessage(replaced(line, ("id",), client_id.encode()), carrier, False)
                )
            elif isinstance(message, Notification):
                messages.append(self._notification(message, line))
        return messages

    def _notification(self, message: Notification, line: bytes) -> LiveServerMessage:
        if message.method == CANCELLED:
            cancelled = bytes(message.body.request_id)
            for client_id, (server_id, carrier) in self._server_ids.items():
                if server_id == cancelled:
                    line = replaced(line, ("params", "requestId"), client_id.encode())
                    return LiveServerMessage(line, carrier, False)
        return LiveServerMessage(line, self._carrier(message), False)

    def _carrier(self, message: Request | Notification) -> bytes | None:
        """Return the id of the request whose stream carries a message; None if it belongs to no request."""
        body = message.body
        named = text(meta_raw(body.meta, META + "subscriptionId")) or text(body.request_id)
        if message.method == PROGRESS:
            token = text(body.progress_token)
            named = next(
                (name for name, request in self._open.items() if request.progress_token == token), None
            )
        if named is not None and named in self._open:
            return named.encode()
        if message.method.endswith(CHANGES):
            return None
        requests = (name for name, request in reversed(self._open.items()) if request.method != LISTEN)
        last = next(requests, None)
        return None if last is None else last.encode()
