"""The state machine of a session whose server is restarted: messages and events in, commands out.

Theory of operation. The client has one session; the servers behind it come and go. When one has to go, its requests
that the client has not answered become stale: the client's responses to them are dropped, and a request of a later
server with the same id gets another one. The client's own requests have until the end of the old server to be
answered, then they get an error. The new server gets the client's handshake again, with an id of mcpspy, and what the
client had set: its subscriptions and log level. Messages of the client wait until then. At last mcpspy reads the lists
of the server, and notifies the client of those that changed.

- Until 2025-11-25, a server that declares no `listChanged` must not send these notifications (basic/lifecycle,
  Operation: use only capabilities that were negotiated). mcpspy is what the client talks to, and sends them, so it
  declares the capability in the response to `initialize` (`for_host`).
- 2026-07-28 has no handshake: mcpspy requests `server/discover` itself. The notifications belong to open
  `subscriptions/listen` requests, and only those that the first server acknowledged are sent. The open requests are sent
  again with the client's ids, as these ids are in all their notifications.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.protocol import responses
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Notification,
    Request,
    Result,
    loads,
    read_frame,
    text,
)
from mcpspy.core.protocol.spec import CLIENT, INTERNAL_ERROR, MODERN, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.restart.client_state import ClientState, notification
from mcpspy.core.restart.commands import Command, Received, RestartNote, Start, Stop, ToHost, ToServer
from mcpspy.core.restart.listings import (
    KINDS,
    LISTED,
    ListReader,
    ServerHandshake,
    ServerInterface,
    changed_kinds,
)
from mcpspy.core.restart.server_requests import AskedOfClient
from mcpspy.core.rules.edit import to_json
from mcpspy.core.session.exchange import SUBSCRIBE
from mcpspy.core.session.request_table import id_key
from mcpspy.core.session.restart_notes import reason

INITIALIZE, DISCOVER = "initialize", "server/discover"
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'

MAX_WAITING = 1 << 20
"""Bytes of the client's messages that may wait for a server before the client has to wait."""


class ServerPhase(StrEnum):
    STARTING = "starting"
    HANDSHAKE = "handshake"
    SERVING = "serving"
    STOPPING = "stopping"
    DOWN = "down"
    """No server: it could not be started, or has ended."""


class _Own(NamedTuple):
    """A request of mcpspy."""

    method: str
    subject: str = ""


class RestartMachine:
    """The session. Commands must be executed in order."""

    def __init__(self, prefix: str) -> None:
        """`prefix` begins the ids of all requests of mcpspy; the client must not be able to guess it."""
        self.phase = ServerPhase.STARTING
        self.why = ""
        """The reason why no server runs, for the client."""
        self._prefix = prefix
        self._number = 0
        self._reason: dict[str, Any] | None = None
        """The reason for the restart, as fields of its note; None before the first restart."""
        self._down_after = ""
        """The reason why no server follows the one that is being ended."""
        self._waiting: list[bytes] = []
        self._moved: list[str] = []
        """Ids of requests that the last server got, and that the next one gets again."""
        self._pending: dict[str, tuple[Request, bytes]] = {}
        """Requests of the client without a response, by `id_key`, each with its line."""
        self._asked = AskedOfClient(self._new_id)
        self._own: dict[str, _Own] = {}
        self._client = ClientState()
        self._is_initialized_early = False
        """True if the client did not wait for the response to `initialize`, as a script that only writes."""
        self._declared_id = ""
        """Id of the `initialize` in whose response mcpspy declares `listChanged`."""
        self._handshake = b""
        """The response of the last server to the client's `initialize`, if that is not the one that the client got."""
        self._known: ServerInterface | None = None
        """The last interface that was read completely."""
        self._reader: ListReader | None = None
        self._is_compared = True
        """False from a restart until the lists of the new server are compared."""
        self._lost: list[str] = []
        """Requests to restore the state that the new server refused."""

    @property
    def waiting(self) -> int:
        """Return the bytes of the client's messages that wait for the server."""
        return sum(map(len, self._waiting))

    # Events of the process.

    def restart(self, why: dict[str, Any]) -> list[Command]:
        """Restart the server; `why` has the fields of the note: `files`, `viewer`."""
        if self.phase is ServerPhase.STOPPING and not self._down_after:
            self._reason = _merged(self._reason or {}, why)
            return []
        self._reason, self._down_after = why, ""
        if self.phase is ServerPhase.DOWN:
            self.phase = ServerPhase.STARTING
            return [Start()]
        if self.phase in (ServerPhase.STARTING, ServerPhase.STOPPING):
            return []  # What is being started is new; what is being ended is followed by another one.
        return self._stop()

    def started(self) -> list[Command]:
        """A process runs."""
        commands: list[Command] = []
        if self._reason is not None:
            repeated = [*self._moved, *(request.id for request, _ in self._pending.values())]
            fields = {"did": "started", **self._reason, **({"repeated": repeated} if repeated else {})}
            commands.append(RestartNote(fields))
            self._is_compared = False
        self._own.clear()
        self._lost.clear()
        self._reader = None
        self.phase = ServerPhase.HANDSHAKE
        if self._client.initialize:
            id_ = self._new_id(_Own(INITIALIZE))
            data = replaced(one_line(self._client.initialize), ("id",), id_.encode())
            return [*commands, ToServer(data, is_own=True)]
        if self._client.is_modern:
            return [*commands, ToServer(self._request(DISCOVER, {}), is_own=True)]
        return commands + self._serve()

    def ended(self, why: str, error: str = "", **outcome: Any) -> list[Command]:
        """The process has ended, or could not be started; `error` is the line of its stderr that names the error.

        `outcome` are further fields of the note: the exit code or signal.
        """
        is_restart = self.phase is ServerPhase.STOPPING and not self._down_after
        commands: list[Command] = []
        if not is_restart:
            why = self._down_after or why
            self.why = why + (f"; on stderr: {error}" if error else "")
            commands.append(RestartNote({"did": "failed", "text": self.why, **outcome}))
        commands += self._expire("the server has ended")
        pending, self._pending = self._pending, {}
        moved: list[bytes] = []
        self._moved.clear()
        for key, (request, data) in pending.items():
            if request.method == SUBSCRIBE:
                self._pending[key] = request, data
            elif request.method == INITIALIZE and is_restart:
                moved.append(data)
                self._moved.append(request.id)
                if self._is_initialized_early:  # The next server has not got it.
                    moved.append(INITIALIZED)
            else:
                error = self._restarted if is_restart else self._unreachable
                commands.append(ToHost(responses.error(request.id.encode(), INTERNAL_ERROR, error)))
        self._waiting = moved + self._waiting
        self._client.forget_repeated()
        self._down_after = ""
        self.phase = ServerPhase.STARTING if is_restart else ServerPhase.DOWN
        if is_restart:
            return [*commands, Start()]
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            commands += self._refuse(_read(CLIENT, data))
        return commands

    # Messages.

    def is_stale(self, data: bytes) -> bool:
        """Return whether a message of the client is about a request of a server that has ended."""
        return self._asked.is_stale(_read(CLIENT, data))

    def renamed(self, data: bytes) -> bytes | None:
        """Return a response of the client with the id that the server had used; None if it is the same."""
        return self._asked.renamed(_read(CLIENT, data), data)

    def client(self, data: bytes) -> list[Command]:
        """Take a message of the client, which is recorded."""
        messages = _read(CLIENT, data)
        if self._asked.is_stale(messages):  # It was held when the server ended.
            return []
        for message in messages:
            if isinstance(message, Notification) and message.method == "notifications/cancelled":
                self._forget(id_key(text(message.body.request_id) or ""))
        if self.phase is ServerPhase.DOWN:
            return self._refuse(messages)
        if self.phase is not ServerPhase.SERVING:
            self._waiting.append(data)
            return []
        return self._send(data, messages)

    def server(self, data: bytes) -> Received:
        """Take a message of the server, or any other line."""
        found = [self._take(message, data) for message in _read(SERVER, data)]
        if len(found) == 1:
            return found[0]
        return Received(
            [command for each in found for command in each.commands]
        )  # A batch is forwarded as it is.

    def for_host(self, data: bytes) -> bytes:
        """Return a message as the client gets it: the first `initialize` result declares `listChanged`."""
        if not self._declared_id:
            return data
        (message, *_) = _read(SERVER, data)
        if not isinstance(message, Result) or message.id != self._declared_id:
            return data
        self._declared_id = ""
        return _declaring(data, message)

    def show_handshake(self) -> bytes | None:
        """Return the last server's response to `initialize`, for another client that shares the session with the first.

        None if it is the response that the first client got. From then on, clients are notified of changes of the
        lists that this one declares, too.
        """
        if not self._handshake:
            return None
        (message,) = _read(SERVER, self._handshake)
        assert isinstance(message, Result)
        self._client.has_shown(ServerHandshake.of(message.result))
        return _declaring(self._handshake, message)

    # The client's messages.

    def _send(self, data: bytes, messages: Iterable[AnyMessage]) -> list[Command]:
        commands: list[Command] = [ToServer(data)]
        for message in messages:
            if isinstance(message, Request):
                self._pending[id_key(message.id)] = message, data
                self._client.sent(message)
            elif isinstance(message, Notification) and message.method == "notifications/initialized":
                if not self._client.initialize:
                    self._is_initialized_early = True
                elif not self._client.is_initialized:
                    self._client.is_initialized = True
                    commands += self._list()
            elif isinstance(message, Result | Failure) and message.id is not None:
                self._asked.answered(message.id)
        return commands

    def _refuse(self, messages: Iterable[AnyMessage]) -> list[Command]:
        """Answer the requests among messages that no server can get."""
        return [
            ToHost(responses.error(message.id.encode(), INTERNAL_ERROR, self._unreachable))
            for message in messages
            if isinstance(message, Request)
        ]

    def _forget(self, key: str) -> None:
        """Forget a request that is answered or cancelled."""
        self._pending.pop(key, None)
        self._client.ended(key)

    @property
    def _unreachable(self) -> str:
        return f"mcpspy: no server: {self.why}. It is started again when a watched file changes"

    @property
    def _restarted(self) -> str:
        return f"mcpspy: the server was restarted before it answered ({reason(self._reason or {})})"

    # The server's messages.

    def _take(self, message: AnyMessage, data: bytes) -> Received:
        if isinstance(message, Result | Failure):
            return self._answered(message)
        if isinstance(message, Request):
            return self._requested(message, data)
        return self._notified(message, data) if isinstance(message, Notification) else Received([])

    def _answered(self, message: Result | Failure) -> Received:
        if message.id is None:
            return Received([])
        if (own := self._own.pop(message.id, None)) is not None:
            return Received(self._take_own(own, message), is_forwarded=False)
        if message.id.startswith(f'"{self._prefix}'):
            return Received([], is_forwarded=False)
        key = id_key(message.id)
        entry = self._pending.get(key)
        if entry is None:
            return Received([])
        request, data = entry
        if self.phase is ServerPhase.STOPPING and (
            isinstance(message, Failure) or request.method == SUBSCRIBE
        ):
            # A server that ends refuses what is open ("Connection closed"): mcpspy's error has the reason.
            return Received([], is_forwarded=False)
        self._forget(key)
        return Received(self._observe(request, data, message) if isinstance(message, Result) else [])

    def _observe(self, request: Request, data: bytes, message: Result) -> list[Command]:
        """Remember what a later server needs. Return the commands to read its lists."""
        client, is_modern = self._client, (request.revision or "") >= MODERN
        if request.method == INITIALIZE:
            client.initialized(data)
            self._declared_id = request.id
            self._begin(ServerHandshake.of(message.result))
            if self._is_initialized_early:
                client.is_initialized, self._is_initialized_early = True, False
                return self._list()
        elif is_modern and not client.is_modern and not client.initialize:
            client.modernized(request)
            if request.method != DISCOVER:
                return [ToServer(self._request(DISCOVER, {}), is_own=True)]
            self._begin(ServerHandshake.of(message.result, request.revision))
            return self._list()
        client.accepted(request)
        return []

    def _requested(self, request: Request, data: bytes) -> Received:
        if self.phase is ServerPhase.STOPPING:
            return Received([], is_forwarded=False)  # It does not read the response any more.
        replacement = self._asked.requested(request, data)
        return Received([], is_forwarded=replacement is None, replacement=replacement)

    def _notified(self, message: Notification, data: bytes) -> Received:
        method = message.method
        if method.endswith("/list_changed") and self._reader is not None:
            return Received(self._own_requests(self._reader.read(method.split("/")[1])))
        if method == "notifications/subscriptions/acknowledged":
            return Received([], is_forwarded=not self._client.acknowledged(message))
        if method == "notifications/cancelled":
            id_ = text(message.body.request_id) or ""
            if self._client.is_modern:
                if self.phase is ServerPhase.STOPPING:
                    return Received([], is_forwarded=False)  # The next server continues the subscription.
                self._forget(id_key(id_))
            elif (replacement := self._asked.cancelled(id_, data)) is not None:
                return Received([], is_forwarded=False, replacement=replacement)
        return Received([])

    # A new server.

    def _stop(self) -> list[Command]:
        self.phase = ServerPhase.STOPPING
        stopping = RestartNote({"did": "stopping", **(self._reason or {})})
        return [*self._report(), stopping, *self._expire("the server is restarted"), Stop()]

    def _expire(self, why: str) -> list[Command]:
        """Return the cancellations of the server's open requests. From 2026-07-28 on, servers have none."""
        return [
            ToHost(notification("notifications/cancelled", {"requestId": loads(id_.encode()), "reason": why}))
            for id_ in self._asked.expire()
            if not self._client.is_modern
        ]

    def _take_own(self, own: _Own, message: Result | Failure) -> list[Command]:
        if self.phase is ServerPhase.STOPPING:
            return []
        result = message.result if isinstance(message, Result) else None
        if own.method in (INITIALIZE, DISCOVER) and self.phase is ServerPhase.HANDSHAKE:
            if result is None and own.method == INITIALIZE:
                assert isinstance(message, Failure)
                self._down_after = f"it refused initialize: {message.description}"
                return self._stop()
            if result is not None:
                self._begin(ServerHandshake.of(result, self._client.revision))
            if own.method == INITIALIZE and isinstance(message, Result):
                self._handshake = b'{"jsonrpc":"2.0","id":0,"result":%b}' % one_line(
                    bytes(message.raw_result)
                )
            return self._serve()
        if own.method == DISCOVER:  # For a client of 2026-07-28 that does not request it.
            if result is not None:
                self._begin(ServerHandshake.of(result, self._client.revision))
                return self._list()
        elif own.method in LISTED and self._reader is not None:
            commands = self._own_requests(self._reader.take(own.method, result))
            return commands + (self._report() if self._reader.is_complete else [])
        elif isinstance(message, Failure):
            self._lost.append(f"{own.method} {own.subject}".strip() + f": {message.description}")
        return []

    def _serve(self) -> list[Command]:
        """Restore what the client had set, and send what waits."""
        self.phase = ServerPhase.SERVING
        commands: list[Command] = []
        if self._client.is_initialized:
            commands.append(ToServer(INITIALIZED, is_own=True))
            commands += self._own_requests(self._raw(*setting) for setting in self._client.settings)
        commands += [ToServer(data) for key, (_, data) in self._pending.items() if self._client.repeats(key)]
        if self._client.has_begun and self._reader is not None:
            commands += self._list()
        elif not self._is_compared:  # The client has not begun, or the server has no `server/discover`.
            self._is_compared = True
            commands.append(RestartNote({"did": "listed"}))
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            commands += self._send(data, _read(CLIENT, data))
        return commands

    def _begin(self, handshake: ServerHandshake) -> None:
        self._client.first = self._client.first or handshake
        self._reader = ListReader(self._request, handshake)

    def _list(self) -> list[Command]:
        if self._reader is None:
            return []
        commands = self._own_requests(self._reader.read())
        return commands + (self._report() if self._reader.is_complete else [])

    def _report(self) -> list[Command]:
        """Compare the lists of the new server, if they are not compared yet; notify the client of changes."""
        if self._reader is None or not self._reader.is_complete:
            return []
        before, after = self._known, self._reader.interface
        self._known = after
        if self._is_compared:
            return []
        self._is_compared = True
        notified, withheld, commands = list[str](), list[str](), list[Command]()
        for kind in changed_kinds(before, after):
            sent = self._client.list_changed(kind)
            commands += map(ToHost, sent)
            (notified if sent else withheld).append(kind)
        fields = {
            "did": "listed",
            **{
                name: found
                for name, found in (
                    ("notified", notified),
                    ("withheld", withheld),
                    ("lost", list(self._lost)),
                )
                if found
            },
        }
        return [RestartNote(fields, before, after), *commands]

    # Requests of mcpspy.

    def _new_id(self, own: _Own | None = None) -> str:
        self._number += 1
        id_ = f'"{self._prefix}{self._number}"'
        if own is not None:
            self._own[id_] = own
        return id_

    def _request(self, method: str, params: dict[str, Any]) -> bytes:
        params = {**params, "_meta": self._client.meta} if self._client.is_modern else params
        return self._raw(method, to_json(params))

    def _raw(self, method: str, params: bytes, subject: str = "") -> bytes:
        id_ = self._new_id(_Own(method, subject)).encode()
        return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (id_, to_json(method), one_line(params))

    def _own_requests(self, requests: Iterable[bytes]) -> list[Command]:
        return [ToServer(data, is_own=True) for data in requests]


def _declaring(data: bytes, message: Result) -> bytes:
    """Return a response to `initialize` that declares `listChanged` for each list that it has."""
    result = message.result
    capabilities = result.get("capabilities") if isinstance(result, dict) else None
    if not isinstance(capabilities, dict):
        return data
    declared = {
        kind: {**value, "listChanged": True} if kind in KINDS and isinstance(value, dict) else value
        for kind, value in capabilities.items()
    }
    if declared == capabilities:
        return data
    return replaced(data, ("result", "capabilities"), to_json(declared))


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of two reasons for one restart."""
    files = [*dict.fromkeys([*one.get("files", ()), *other.get("files", ())])]
    return {**one, **other, **({"files": files} if files else {})}


def _read(side: str, data: bytes) -> list[AnyMessage]:
    return read_frame(Frame(0.0, side, data))
