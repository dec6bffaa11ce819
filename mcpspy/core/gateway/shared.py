"""Clients that share one connection to a server: whose message is whose.

Ids and progress tokens of different clients may be equal, so the server gets numbers in their place, and each client
its own values back (JSON-RPC 2.0, 4: the id belongs to the sender; basic/utilities/progress: tokens are unique across
active requests). The server is initialized once, by the first client: the others get that result. A server on stdio
does not name the client that a message is for. A request goes to the client of the newest open request, because a
server asks while it handles a call; a notification that names no request goes to the only client with open requests,
else to all clients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.protocol import responses
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
from mcpspy.core.protocol.passthrough import CANCELLED, CHANGES, PROGRESS
from mcpspy.core.protocol.spec import CLIENT, META, SERVER
from mcpspy.core.recording.decode import Frame

INITIALIZED = "notifications/initialized"

SUBSCRIPTION = ("_meta", META + "subscriptionId")

CLIENT_LEFT = -32000


class _Sent(NamedTuple):
    """An open request of a client."""

    client: int
    id: bytes
    token: bytes | None
    method: str


class SharedServer:
    """The clients of one server, by number."""

    def __init__(self, show_handshake: Callable[[], bytes | None] = lambda: None) -> None:
        """`show_handshake` returns the response to `initialize` of the server that runs now, None if it is the first."""
        self._show_handshake = show_handshake
        self._kinds: dict[int, frozenset[str]] = {}
        """Client → the capabilities in the response to its `initialize`."""
        self._numbers = 0
        self._clients: dict[int, None] = {}
        """The clients; the one that sent the last message is last."""
        self._open: dict[str, _Sent] = {}
        """Number that the server knows, as JSON text → the request."""
        self._asked: dict[str, int] = {}
        """Id of a request of the server, as JSON text → the client that got it."""
        self._initialized: bytes | None = None
        """The server's response to `initialize`."""
        self._waiting: list[tuple[int, bytes]] = []
        """Clients that have sent `initialize` while that of another has no response, and their ids."""
        self._was_notified = False
        self.has_succeeded = False
        """True if the server has answered a request with a result."""

    def from_client(self, client: int, data: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return the messages for the server, and for this client, that result from its message."""
        self._clients.pop(client, None)
        self._clients[client] = None
        to_server: list[bytes] = []
        to_client: list[bytes] = []
        for message in read_frame(Frame(0.0, CLIENT, data)):
            line = one_line(message.data)
            if isinstance(message, Request):
                if message.method == "initialize" and self._initialized is not None:
                    response = self._show_handshake() or self._initialized
                    self._learn_kinds(client, response)
                    to_client.append(replaced(response, ("id",), message.id.encode()))
                elif message.method == "initialize" and self._is_initializing:
                    self._waiting.append((client, message.id.encode()))
                else:
                    to_server.append(self._numbered(client, message, line))
            elif isinstance(message, Notification):
                if message.method == CANCELLED:
                    to_server += self._cancellation(client, text(message.body.request_id), line)
                elif message.method != INITIALIZED or not self._was_notified:
                    self._was_notified = self._was_notified or message.method == INITIALIZED
                    to_server.append(line)
            elif isinstance(message, Result | Failure) and self._asked.get(message.id or "") == client:
                del self._asked[message.id or ""]
                to_server.append(line)
        return to_server, to_client

    def from_server(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return the messages that result from a line of the server, each with its client."""
        found: list[tuple[int, bytes]] = []
        for message in read_frame(Frame(0.0, SERVER, data)):
            line = one_line(message.data)
            if isinstance(message, Result | Failure):
                found += self._response(message, line)
            elif isinstance(message, Request):
                owner = self._last_asking() or next(reversed(self._clients), None)
                if owner is not None:
                    self._asked[message.id] = owner
                    found.append((owner, line))
            elif isinstance(message, Notification):
                found += self._notification(message, line)
        return found

    def leave(self, client: int) -> list[bytes]:
        """Forget a client. Return the messages for the server: its requests are cancelled, its questions answered."""
        self._clients.pop(client, None)
        self._kinds.pop(client, None)
        self._waiting = [each for each in self._waiting if each[0] != client]
        to_server = []
        for number, sent in list(self._open.items()):
            if sent.client == client:
                if sent.method == "initialize":  # It must not be cancelled, and others may wait for it.
                    continue
                del self._open[number]
                to_server.append(_cancelled(number))
        for id, owner in list(self._asked.items()):  # noqa: A001
            if owner == client:
                del self._asked[id]
                to_server.append(responses.error(id.encode(), CLIENT_LEFT, "the client has left"))
        return to_server

    @property
    def _is_initializing(self) -> bool:
        return any(sent.method == "initialize" for sent in self._open.values())

    def _numbered(self, client: int, message: Request, line: bytes) -> bytes:
        self._numbers += 1
        number = str(self._numbers)
        token = message.progress_token
        self._open[number] = _Sent(
            client, message.id.encode(), None if token is None else token.encode(), message.method
        )
        line = replaced(line, ("id",), number.encode())
        return (
            line if token is None else replaced(line, ("params", "_meta", "progressToken"), number.encode())
        )

    def _cancellation(self, client: int, id: str | None, line: bytes) -> list[bytes]:  # noqa: A002
        for number, sent in reversed(self._open.items()):
            if sent.client == client and sent.id.decode() == id:
                del self._open[number]
                return [replaced(line, ("params", "requestId"), number.encode())]
        return []

    def _response(self, message: Result | Failure, line: bytes) -> list[tuple[int, bytes]]:
        sent = self._open.pop(message.id or "", None)
        if sent is None:
            return []
        self.has_succeeded = self.has_succeeded or isinstance(message, Result)
        if isinstance(message, Result) and bytes(meta_raw(message.meta, SUBSCRIPTION[1])):
            line = replaced(line, ("result", *SUBSCRIPTION), sent.id)
        found = [(sent.client, replaced(line, ("id",), sent.id))]
        if sent.method == "initialize":
            if isinstance(message, Result):
                self._initialized = line
            waiting, self._waiting = self._waiting, []
            found += [(client, replaced(line, ("id",), id)) for client, id in waiting]  # noqa: A001
            for client, _ in found:
                self._learn_kinds(client, line)
        return [each for each in found if each[0] in self._clients]

    def _notification(self, message: Notification, line: bytes) -> list[tuple[int, bytes]]:
        body = message.body
        if message.method == PROGRESS:
            sent = self._open.get(_number(text(body.progress_token)))
            if sent is None or sent.token is None:
                return []
            return [(sent.client, replaced(line, ("params", "progressToken"), sent.token))]
        if message.method == CANCELLED:
            owner = self._asked.pop(text(body.request_id) or "", None)
            return [] if owner is None else [(owner, line)]
        if (subscription := text(meta_raw(body.meta, SUBSCRIPTION[1]))) is not None:
            sent = self._open.get(_number(subscription))
            return [] if sent is None else [(sent.client, replaced(line, ("params", *SUBSCRIPTION), sent.id))]
        asking = {sent.client for sent in self._open.values()}
        if len(asking) == 1 and not message.method.endswith(CHANGES):
            return [(asking.pop(), line)]
        kind = message.method.split("/")[1] if message.method.endswith("/list_changed") else ""
        return [
            (client, line) for client in self._clients if not kind or kind in self._kinds.get(client, (kind,))
        ]

    def _learn_kinds(self, client: int, response: bytes) -> None:
        """Learn of which lists this client may be notified, as servers before and after a restart may differ."""
        (message,) = read_frame(Frame(0.0, SERVER, response))
        if isinstance(message, Result):
            capabilities = decoded(meta_raw(message.raw_result, "capabilities"))
            if isinstance(capabilities, dict):
                self._kinds[client] = frozenset(capabilities)

    def _last_asking(self) -> int | None:
        return next((sent.client for sent in reversed(self._open.values())), None)


def _number(token: str | None) -> str:
    """Return a token of the server as the number that it got; some servers send all tokens as strings."""
    return (token or "").strip('"')


def _cancelled(number: str) -> bytes:
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % number.encode()
