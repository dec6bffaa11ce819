"""A host of 2026-07-28 and a server with a handshake (2024-11-05 to 2025-11-25).

Theory of operation. mcpspy makes the handshake from the `_meta` of the host's first request, and answers
`server/discover` from its result. Each request of the host loses the `_meta` of 2026-07-28 and keeps its id. A request
of the server becomes a result `input_required` for the request of the host in whose course it comes; that request stays
open at the server, and the host's repeated request takes its place: the answers go to the server, and the response to
the first request has the id of the repeated one (basic/patterns/mrtr). `subscriptions/listen` is acknowledged once the
server has accepted `resources/subscribe` for each resource (basic/patterns/subscriptions).
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from mcpspy.core.era.commands import (
    RESPONSE_TIMEOUT,
    Command,
    Fail,
    SendToHost,
    SendToServer,
    TranslationNote,
)
from mcpspy.core.era.host_calls import Call, HostCalls
from mcpspy.core.era.host_subscriptions import HostSubscriptions
from mcpspy.core.era.messages import (
    CANCELLED,
    DISCOVER,
    INITIALIZE,
    INITIALIZED,
    LEGACY,
    LEVEL,
    LISTEN,
    LISTS,
    LOG,
    PROGRESS,
    SERVER_INFO,
    SET_LEVEL,
    SUBSCRIBE_TO,
    UNKNOWN_PEER,
    UNSUBSCRIBE,
    UPDATED,
    OwnIds,
    cancelled,
    capabilities,
    edited,
    error,
    for_newer_host,
    is_modern,
    meta_of,
    notification,
    object_in,
    read,
    request,
    result,
    result_of,
    without_request_meta,
)
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Notification,
    Request,
    Result,
    loads,
    meta_raw,
    text,
)
from mcpspy.core.protocol.spec import (
    CLIENT,
    INVALID_PARAMS,
    LEVELS,
    META,
    METHOD_NOT_FOUND,
    MODERN,
    RESOURCE_NOT_FOUND,
    URL_NEEDED,
)

DROPPED = frozenset({"notifications/elicitation/complete", "notifications/tasks/status"})
"""Notifications of servers that 2026-07-28 does not have (changelog, major 6 and minor 11)."""


class OlderServer:
    """The translation. One instance for one session."""

    def __init__(self, ids: OwnIds, first: Request) -> None:
        """`first` is the first request of the host."""
        self._ids = ids
        self._first = meta_of(first)
        self._offer: dict[str, Any] | None = None
        """The result of `initialize`, once the server has answered."""
        self.revision = LEGACY
        self.initialize = b""
        """The handshake, for a server that has ended the session."""
        self._initialize_id = ""
        self._waiting: list[tuple[bytes, object]] = []
        """Messages of the host that wait for the handshake or the log level, each with its carrier."""
        self._calls = HostCalls(ids)
        self._subscriptions = HostSubscriptions()
        self._own: dict[str, tuple[str, str]] = {}
        """Open requests of mcpspy: method, and URI or level."""
        self._level = ""
        self._setting = ""
        """Id of the open `logging/setLevel`: requests wait for it."""

    # The handshake.

    def begin(self) -> list[Command]:
        """Return the command that begins the session."""
        self._initialize_id = self._ids.new()
        params = {
            "protocolVersion": LEGACY,
            "capabilities": capabilities(self._first.get(f"{META}clientCapabilities")),
            "clientInfo": self._first.get(f"{META}clientInfo") or UNKNOWN_PEER,
        }
        self.initialize = request(self._initialize_id, INITIALIZE, params)
        return [SendToServer(self.initialize, timeout=RESPONSE_TIMEOUT)]

    @property
    def is_ready(self) -> bool:
        return self._offer is not None

    @property
    def waiting(self) -> list[tuple[bytes, object]]:
        """Messages of the host that the server has not got."""
        return self._waiting

    def wait(self, data: bytes, carrier: object) -> None:
        """Send a message of the host after the handshake."""
        self._waiting.append((data, carrier))

    def is_handshake(self, id: str) -> bool:  # noqa: A002
        """Return whether a request is the handshake, which has no result yet."""
        return self._offer is None and id == self._initialize_id

    def awaits(self, id: str) -> bool:  # noqa: A002
        """Return whether a request of mcpspy has no response yet."""
        return self.is_handshake(id) or id in self._own

    def offered(self, message: Result, refused: tuple[str, ...]) -> list[Command]:
        """Take the result of the handshake. The messages that wait are sent, also those that the server refused."""
        self._offer = result_of(message)
        self._calls.info = object_in(self._offer, "serverInfo") or self._calls.info
        agreed = self._offer.get("protocolVersion")
        self.revision = agreed if isinstance(agreed, str) else LEGACY
        return [
            TranslationNote("begin", MODERN, self.revision, refused),
            SendToServer(notification(INITIALIZED, {})),
            *self._flush(),
        ]

    def lost(self, why: str) -> None:
        """Take the end of the connection: the server answers nothing that it has."""
        self._calls.lose(why)
        self._own.clear()
        self._setting = ""

    def restored(self) -> list[Command]:
        """Return the commands after a new session: the subscriptions and the log level of the last one."""
        commands: list[Command] = [
            self._ask_server(SUBSCRIBE_TO, uri, {"uri": uri}) for uri in self._subscriptions.uris
        ]
        if self._level:
            commands.append(self._ask_server(SET_LEVEL, self._level, {"level": self._level}))
        return commands

    def again(self) -> list[Command]:
        return []

    @property
    def _offered(self) -> dict[str, Any]:
        return object_in(self._offer, "capabilities")

    def has(self, id: str) -> bool:  # noqa: A002
        """Return whether the server has a request of the host under this id."""
        return id in self._calls.by_server

    # The host's messages.

    def keeps(self, message: AnyMessage) -> bool:
        """Return whether a message of the host is not forwarded to the server."""
        if isinstance(message, Request):
            is_kept = message.method in (DISCOVER, LISTEN) or message.method.startswith("tasks/")
            return is_kept or bool(message.body.request_state or message.body.input_responses)
        if isinstance(message, Notification) and message.method == CANCELLED:
            id_ = text(message.body.request_id) or ""
            call = self._calls.by_host.get(id_)
            return call is None or call.server_id != id_
        return False

    def client(self, message: AnyMessage, data: bytes, carrier: object) -> list[Command]:
        """Take a message of the host, which is recorded."""
        if not self.is_ready or self._setting:
            self._waiting.append((data, carrier))
            return []
        if isinstance(message, Notification) and message.method == CANCELLED:
            return self._cancel(text(message.body.request_id) or "", data, carrier)
        if not isinstance(message, Request):
            return [SendToServer(data, carrier)]
        id, method = message.id, message.method  # noqa: A001
        if method == DISCOVER:
            return [SendToHost(result(id, self._discovered()))]
        if method == LISTEN:
            return self._listen(message)
        if method.startswith("tasks/"):
            why = "the extension for tasks of 2026-07-28 cannot be carried to a server with a handshake"
            return [SendToHost(error(id, METHOD_NOT_FOUND, why))]
        if message.body.request_state or message.body.input_responses:
            return self._calls.repeated(message)
        if not is_modern(message):
            return [SendToServer(data, carrier)]
        return self._send(message, data, carrier)

    def _send(self, message: Request, data: bytes, carrier: object) -> list[Command]:
        meta = meta_of(message)
        level = meta.get(LEVEL)
        if level in LEVELS and level != self._level and "logging" in self._offered:
            self._level = level
            command = self._ask_server(SET_LEVEL, level, {"level": level})
            self._setting = next(reversed(self._own))
            self._waiting.append((data, carrier))
            return [command]
        id, sent = message.id, without_request_meta(data)  # noqa: A001
        self._calls.add(Call(id, id, message.method, sent, meta, token=message.progress_token or ""))
        return [SendToServer(sent, carrier)]

    def _discovered(self) -> dict[str, Any]:
        instructions = (self._offer or {}).get("instructions")
        return {
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": capabilities(self._offered),
            **({"instructions": instructions} if isinstance(instructions, str) else {}),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {SERVER_INFO: self._calls.info},
        }

    def _cancel(self, id: str, data: bytes, carrier: object) -> list[Command]:  # noqa: A002
        if (uris := self._subscriptions.cancel(id)) is not None:
            return [self._ask_server(UNSUBSCRIBE, uri, {"uri": uri}) for uri in uris]
        call = self._calls.by_host.pop(id, None)
        if call is None:
            return []
        self._calls.by_server.pop(call.server_id, None)
        if call.server_id == id:
            return [SendToServer(data, carrier)]
        return [SendToServer(cancelled(call.server_id, _reason(data)))]

    def _flush(self) -> list[Command]:
        waiting, self._waiting = self._waiting, []
        commands: list[Command] = []
        for place, (data, carrier) in enumerate(waiting):
            if self._setting:
                self._waiting += waiting[place:]
                break
            for message in read(CLIENT, data):
                commands += self.client(message, data, carrier)
        return commands

    def _ask_server(self, method: str, subject: str, params: dict[str, Any]) -> SendToServer:
        id_ = self._ids.new()
        self._own[id_] = method, subject
        return SendToServer(request(id_, method, params), timeout=RESPONSE_TIMEOUT)

    # The server's messages.

    def server(self, message: AnyMessage, data: bytes, carrier: str | None) -> list[Command]:
        """Take a message of the server. It is recorded; without a `SendToHost` of it, it is not forwarded.

        `carrier` is the id of the request in whose exchange it came.
        """
        if isinstance(message, Result | Failure) and message.id is not None:
            return self._responded(message, data)
        if isinstance(message, Request):
            return self._calls.requested(message, carrier)
        if isinstance(message, Notification):
            return self._notified(message, data, carrier)
        return [SendToHost(data, is_own=False)]

    def failed(self, id: str, why: str) -> list[Command]:  # noqa: A002
        """Take the loss of a request that the server has."""
        if id in self._own:
            return self._took_own(id, why)
        call = self._calls.by_server.pop(id, None)
        if call is None:
            return [] if self._ids.has(id) else [Fail(id, why)]
        return self._calls.answer(call, None, why)

    def result(self, message: Result, data: bytes, method: str) -> bytes:
        """Return a result as the host gets it."""
        return for_newer_host(data, method, self._calls.info if self.is_ready else None)

    def _responded(self, message: Result | Failure, data: bytes) -> list[Command]:
        id = message.id or ""  # noqa: A001
        if id in self._own:
            return self._took_own(id, message.description if isinstance(message, Failure) else None)
        call = self._calls.by_server.pop(id, None)
        if call is None:  # It was cancelled, or is a response to no request.
            return []
        if (
            isinstance(message, Failure)
            and message.code == URL_NEEDED
            and (asked := self._calls.ask_url(call, message)) is not None
        ):
            return asked
        if isinstance(message, Result):
            data = for_newer_host(data, call.method, self._calls.info)
        elif message.code == RESOURCE_NOT_FOUND and call.method == "resources/read":
            data = edited(data, ("error",), {"code": str(INVALID_PARAMS).encode()})  # changelog, minor 6
        return self._calls.answer(call, data)

    # Notifications and subscriptions.

    def _notified(self, message: Notification, data: bytes, carrier: str | None) -> list[Command]:
        method = message.method
        if method in DROPPED:
            return []
        if method == PROGRESS:
            return self._calls.progressed(message, data)
        if method == LOG:
            return [SendToHost(data, is_own=False)] if self._calls.is_wanted(message, carrier) else []
        if method == CANCELLED:  # Of one of its questions.
            return self._calls.withdrawn(text(message.body.request_id) or "")
        if method in LISTS or method == UPDATED:
            tagged = self._subscriptions.tagged(message, data)
            return [SendToHost(each, is_own=len(tagged) > 1) for each in tagged]
        return [SendToHost(data, is_own=False)]

    def _listen(self, message: Request) -> list[Command]:
        uris = self._subscriptions.listen(message, self._offered)
        return [*(self._ask_server(SUBSCRIBE_TO, uri, {"uri": uri}) for uri in uris), *self._acknowledge()]

    def _acknowledge(self) -> list[Command]:
        return [SendToHost(each) for each in self._subscriptions.acknowledged()]

    def _took_own(self, id: str, why: str | None) -> list[Command]:  # noqa: A002
        """Take the response to a request of mcpspy; `why` is the error, if it failed."""
        method, subject = self._own.pop(id)
        if id == self._setting:
            self._setting = ""
            return self._flush()
        if method != SUBSCRIBE_TO:
            return []
        self._subscriptions.take(subject, is_accepted=why is None)
        return self._acknowledge()


def _reason(data: bytes) -> str:
    params = loads(meta_raw(Raw(data), "params"))
    reason = params.get("reason") if isinstance(params, dict) else None
    return reason if isinstance(reason, str) else ""
