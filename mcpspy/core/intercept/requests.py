"""Pending requests: correlation, the watchdog for slow and hanging requests, and injected requests.

Correlation is by stream, side and value of the id, as in `core.session.correlation` for recordings. The watchdog answers a
hanging request of the client with an error, cancels it at the server and recognises the late response (MCP
basic/utilities/cancellation: `initialize` is never cancelled; 2026-07-28 basic/transports/streamable-http: closing
the request cancels it). An injected request of 2026-07-28 carries the client's `_meta` (basic/index).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import orjson

from mcpspy.core.intercept.actions import (
    AbortUpstream,
    CommandReply,
    Fields,
    Inject,
    Notify,
    Step,
    StepReceiver,
    rule_note,
)
from mcpspy.core.intercept.commands import SendCommand
from mcpspy.core.jsontools import json_parts, with_member
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    loads,
    read_frame,
    text,
)
from mcpspy.core.protocol.spec import CLIENT, META, MODERN, other
from mcpspy.core.recording.decode import Frame
from mcpspy.core.rules.edit import to_json
from mcpspy.core.session.exchange import SUBSCRIBE
from mcpspy.core.session.request_table import id_key

T = TypeVar("T", bound=Hashable)

Key: TypeAlias = tuple[str | None, str, str]
"""Stream, side of the requester, and id or progress token by value (`id_key`)."""

MAX_PENDING = 50_000
"""Maximum number of pending requests; beyond it, the oldest one is forgotten."""

TIMED_OUT = -32001
"""Error code that the SDKs' clients use for a timeout."""

HANDSHAKE_METHODS = ("initialize", "server/discover", "ping")
"""Requests after which a server of a revision with a handshake still waits for `notifications/initialized`."""


class AwaitedRequest:
    __slots__ = tuple(
        "at data id is_abandoned is_answered is_forwarded is_modern exchange method side stream subject token".split()
    )

    def __init__(self, request: Request, exchange: StepReceiver | None, *, keep: bool) -> None:
        self.at = request.at
        self.side = request.side
        self.stream = request.frame.stream
        self.id = request.id
        self.method = request.method
        self.subject = request.subject or ""
        self.token = request.progress_token if bytes(request.body.meta) else None
        self.is_modern = (request.revision or "") >= MODERN
        self.exchange = exchange
        self.data = request.data if keep else b""
        """Bytes of the request, kept only if a rule may read them."""
        self.is_forwarded = False
        """True if the request has been forwarded, so that the peer may respond."""
        self.is_answered = False
        """True if the response has arrived; it may not have been forwarded yet."""
        self.is_abandoned = False
        """True if mcpspy answered the request in the peer's place: the peer's response is then late."""

    @property
    def key(self) -> Key:
        return _key(self.stream, self.side, self.id)

    @property
    def note_fields(self) -> Fields:
        return {
            "stream": self.stream,
            "from": self.side,
            "id": self.id,
            "method": self.method,
            "subject": self.subject,
        }


class Deadlines(Generic[T]):
    """Items with a common time limit, in order of their start."""

    def __init__(self, seconds: float | None) -> None:
        """`seconds` is the time limit; None means unlimited."""
        self.seconds = seconds
        self._since: dict[T, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def __iter__(self) -> Iterator[T]:
        return iter(self._since)

    @property
    def next_at(self) -> float | None:
        if self.seconds is None or not self._since:
            return None
        return next(iter(self._since.values())) + self.seconds

    def start(self, item: T, at: float) -> None:
        """Start or restart the time of an item."""
        if self.seconds is not None:
            self._since.pop(item, None)
            self._since[item] = at
            _bound(self._since)

    def stop(self, item: T) -> bool:
        return self._since.pop(item, None) is not None

    def due(self, at: float) -> list[T]:
        found = []
        while (first := self.next_at) is not None and first <= at:
            item = next(iter(self._since))
            del self._since[item]
            found.append(item)
        return found


def _bound(table: dict[T, Any]) -> None:
    if len(table) > MAX_PENDING:
        del table[next(iter(table))]


def _key(stream: str | None, side: str, id: str | None) -> Key:  # noqa: A002
    return stream, side, id_key(id or "")


def about(message: AnyMessage, request: AwaitedRequest | None) -> Fields:
    """Return the fields of a note that identify a message; `request` is the request that it responds to."""
    fields: Fields = {"stream": message.frame.stream, "from": message.side}
    if isinstance(message, Request | Result | Failure):
        fields["id"] = message.id
    if isinstance(message, Request | Notification):
        return {**fields, "method": message.method, "subject": message.subject}
    if request is not None and not isinstance(message, Malformed):
        return {**fields, "method": request.method, "subject": request.subject}
    return fields


def completed(request: Request, result: Any) -> Any:
    """Return a result with the type that every result of 2026-07-28 requires (basic)."""
    is_modern = (request.revision or "") >= MODERN
    return {"resultType": "complete", **result} if is_modern and isinstance(result, dict) else result


def answer(id: str, member: bytes, value: Any) -> bytes:  # noqa: A002
    return b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (id.encode(), member, to_json(value))


class Watchdog:
    """The requests of both sides without a response, their time limits, and those that mcpspy answered for the peer."""

    def __init__(self, call_timeout: float | None, slow: float | None, *, keep: bool) -> None:
        """Time limits are in seconds; `keep` retains the bytes of requests until they are answered."""
        self.timeouts = Deadlines[AwaitedRequest](call_timeout)
        self.slow = Deadlines[AwaitedRequest](slow)
        self.is_enabled = call_timeout is not None or slow is not None
        self._keep = keep
        self._open: dict[Key, AwaitedRequest] = {}
        self._tokens: dict[Key, AwaitedRequest] = {}
        self._late: dict[Key, AwaitedRequest] = {}

    def track(self, message: Request, exchange: StepReceiver | None, *, waits: bool = True) -> AwaitedRequest:
        """Return the entry of a request; the request is pending from now on unless `waits` is false."""
        request = AwaitedRequest(message, exchange, keep=self._keep)
        if waits:
            key = request.key
            self._late.pop(key, None)  # The id is reused: a response belongs to the new request.
            if (earlier := self._open.pop(key, None)) is not None:
                self.stop(earlier)
            self._open[key] = request
            if request.token is not None:
                self._tokens[_key(request.stream, request.side, request.token)] = request
            _bound(self._open)
            _bound(self._tokens)
            self.watch(request, message.at)
        return request

    def resolve(self, stream: str | None, side: str, id: str | None) -> AwaitedRequest | None:  # noqa: A002
        """Remove the pending request that this side responds to, mark it as answered and return it."""
        request = self._remove(_key(stream, other(side), id))
        if request is not None:
            request.is_answered = True
        return request

    def late(self, stream: str | None, side: str, id: str | None) -> AwaitedRequest | None:  # noqa: A002
        """Remove and return the abandoned request that this response belongs to; None if it is not late."""
        return self._late.pop(_key(stream, other(side), id), None)

    def observe(self, message: Notification) -> None:
        """Update the time limits for progress notifications and cancellations."""
        stream, side = message.frame.stream, message.side
        if message.method == "notifications/progress":
            request = self._tokens.get(_key(stream, other(side), text(message.body.progress_token)))
            if request is not None and self.timeouts.stop(request):
                self.timeouts.start(request, message.at)
        elif message.method == "notifications/cancelled":
            request = self._open.get(_key(stream, side, text(message.body.request_id)))
            if request is not None:
                self.stop(request)

    def watch(self, request: AwaitedRequest, at: float) -> None:
        """Start the time limits of a request that needs a response. Only requests of the client time out."""
        if request.method != SUBSCRIBE and not request.is_abandoned:
            self.slow.start(request, at)
            if request.side == CLIENT:
                self.timeouts.start(request, at)

    def stop(self, request: AwaitedRequest) -> None:
        self.timeouts.stop(request)
        self.slow.stop(request)

    def abandon(self, request: AwaitedRequest) -> None:
        """Note that mcpspy answers a request in the peer's place."""
        self.stop(request)
        self._remove(request.key)
        request.is_abandoned = True
        if request.is_forwarded and not request.is_answered:
            self._late[request.key] = request
            _bound(self._late)

    def _remove(self, key: Key) -> AwaitedRequest | None:
        request = self._open.pop(key, None)
        if request is not None and request.token is not None:
            self._tokens.pop(_key(request.stream, request.side, request.token), None)
        return request

    def exchange_ended(self, exchange: StepReceiver) -> None:
        for request in {*self.timeouts, *self.slow}:
            if request.exchange is exchange:
                self.stop(request)

    def due(self, at: float) -> list[Step]:
        """Return the actions for requests that have been pending too long."""
        steps: list[Step] = [
            rule_note("slow", {**request.note_fields, "seconds": self.slow.seconds}, request.exchange)
            for request in self.slow.due(at)
        ]
        for request in self.timeouts.due(at):
            steps += self._time_out(request)
        return steps

    def _time_out(self, request: AwaitedRequest) -> list[Step]:
        seconds = self.timeouts.seconds
        target = f"{request.method} {request.subject}".strip()
        message = f"Request timed out: no response to {target} within {seconds:g} s (mcpspy --call-timeout)"
        error = {"code": TIMED_OUT, "message": message}
        is_expected = request.is_forwarded and not request.is_answered
        self.abandon(request)
        steps: list[Step] = [
            Inject(
                other(request.side), answer(request.id, b"error", error), request.exchange, request.stream
            ),
            rule_note("timeout", {**request.note_fields, "seconds": seconds}, request.exchange),
        ]
        if not is_expected or request.method == "initialize":
            return steps
        if request.is_modern and request.exchange is not None:
            return [*steps, AbortUpstream(request.exchange)]
        cancelled = (
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b,"reason":%b}}'
        )
        reason = to_json(f"no response within {seconds:g} s")
        return [*steps, Inject(request.side, cancelled % (request.id.encode(), reason), None, request.stream)]


class PendingInjection(NamedTuple):
    id: str
    side: str
    """Side that appears to send the request."""
    method: str
    viewer: str
    n: object
    at: float

    @property
    def viewer_fields(self) -> Fields:
        return {"id": self.id, "from": self.side, "method": self.method, "viewer": self.viewer}

    def answer(self, at: float, fields: Fields) -> Notify:
        """Return the event with the response (`message`) or with the reason (`error`) why there is none."""
        return self.event("answer", {**fields, "seconds": round(at - self.at, 6)})

    def event(self, name: str, fields: Fields) -> Notify:
        """Return an event about the request, for the viewer that sent it."""
        return Notify(self.viewer, {"event": name, "n": self.n, "id": self.id, **fields})


class InjectedRequests:
    """Injected requests without a response. Responses to them go to the viewer and are not forwarded."""

    def __init__(self, prefix: str) -> None:
        """`prefix` is the random prefix of all ids, so that a peer cannot guess an id."""
        self._prefix = prefix
        self._number = 0
        self._open: dict[tuple[str, str], PendingInjection] = {}
        self._client_meta: dict[str, Any] = {}
        self._raw_meta = b""
        """The `_meta` of the last request, from which `_client_meta` was read."""
        self.is_initializing = False
        """True during the handshake, when an injected request could determine the protocol era."""
        self.has_client_message = False
        """True if the client has sent a message: the first one on a pipe determines the protocol era."""
        self.has_begun = False
        """True if the client has sent a message after the handshake."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def waiting(self) -> list[PendingInjection]:
        return list(self._open.values())

    def observe(self, message: Request | Notification) -> None:
        """Read the state of the handshake and the `_meta` of requests from the client's messages."""
        if message.side != CLIENT:
            return
        self.has_client_message = True
        revision = message.revision if isinstance(message, Request) else None
        if message.method not in HANDSHAKE_METHODS or (revision or "") >= MODERN:
            self.has_begun = True
        self.is_initializing = not self.has_begun
        if revision is not None and (raw := bytes(message.body.meta)) != self._raw_meta:
            self._raw_meta, meta = raw, loads(raw)
            self._client_meta = {key: value for key, value in meta.items() if key.startswith(META)}

    def create(
        self, command: SendCommand, viewer: str, n: object, at: float
    ) -> tuple[PendingInjection, bytes]:
        self._number += 1
        id_ = self._prefix + str(self._number)
        id_text = orjson.dumps(id_).decode()
        injected = PendingInjection(id_text, command.side, command.method, viewer, n, at)
        self._open[command.side, id_text] = injected
        if command.data is not None:
            return injected, _with_id(command.data, id_text.encode())
        return injected, _message(command.method, self._params(command, id_), id_text)

    def send(self, command: SendCommand, viewer: str, n: object, at: float) -> CommandReply:
        """Return the reply to a viewer's command, with the actions that inject its message."""
        if command.is_request:
            injected, data = self.create(command, viewer, n, at)
            id_: str | None = injected.id
        else:
            id_, data = None, command.data or _message(command.method, command.params, None)
        (message,) = read_frame(Frame(at, command.side, data, command.stream))
        note = rule_note("inject", {"viewer": viewer, **about(message, None)})
        inject = Inject(command.side, data, None, command.stream, id_)
        return CommandReply({} if id_ is None else {"id": id_}, [inject, note])

    def resolve(self, side: str, id: str | None) -> PendingInjection | None:  # noqa: A002
        return self._open.pop((other(side), id or ""), None)

    def by_progress_token(self, side: str, token: str | None) -> PendingInjection | None:
        return self._open.get((other(side), token or ""))

    def remove(self, id: str) -> PendingInjection | None:  # noqa: A002
        key = next((key for key in self._open if key[1] == id), None)
        return self._open.pop(key) if key is not None else None

    def _params(self, command: SendCommand, id_: str) -> dict[str, Any] | None:
        """Return the params with the `_meta` that requests of this session carry.

        A resent request has the progress token of the host's original request, which is replaced.
        """
        client_meta = self._client_meta if command.side == CLIENT else {}
        params = dict(command.params or {})
        meta = params.get("_meta")
        own_meta = dict(meta) if isinstance(meta, dict) else {}
        if "progressToken" in own_meta:
            own_meta["progressToken"] = id_
        if own_meta or client_meta:
            params["_meta"] = {**client_meta, **own_meta}
        return params if params or command.params is not None else None


def _with_id(data: bytes, id_text: bytes) -> bytes:
    """Return a request with this id and, if it has a progress token, with the id as its token."""
    data = with_member(data, ("params", "_meta", "progressToken"), id_text)
    if any(loads(key) == "id" for key, _ in json_parts(data).parts):
        return with_member(data, ("id",), id_text)
    begin = data.index(b"{") + 1
    return data[:begin] + b'"id":' + id_text + b"," + data[begin:]


def _message(method: str, params: dict[str, Any] | None, id_text: str | None) -> bytes:
    message = b'{"jsonrpc":"2.0"'
    if id_text is not None:
        message += b',"id":' + id_text.encode()
    message += b',"method":' + to_json(method)
    return message + (b',"params":' + to_json(params) if params is not None else b"") + b"}"
