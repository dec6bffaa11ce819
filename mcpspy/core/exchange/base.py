"""The parts that the sides of an exchange share: its attributes, its moves, and its ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import orjson

from mcpspy.core.exchange import commands as c
from mcpspy.core.exchange.events import CONTINUE, DecidedEvents, ForwardedEvents, Output
from mcpspy.core.exchange.heads import ClientHead, client_head
from mcpspy.core.exchange.prepared import SHORT
from mcpspy.core.exchange.record import ExchangeRecord
from mcpspy.core.exchange.states import TRANSITIONS, ExchangeState, Input
from mcpspy.core.framing import collect
from mcpspy.core.protocol.http_headers import (
    Headers,
    rewritten_url,
)  # fmt: skip
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.capped_body import CappedBody
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT
from mcpspy.core.recording.encode_body import LAST_CHUNK, REST
from mcpspy.core.sanitize import sanitize

if TYPE_CHECKING:
    from mcpspy.core.exchange.prepared import PreparedRequest, PreparedResponse
    from mcpspy.core.exchange.scope import DecisionPolicy, Scope
    from mcpspy.core.framing import Pieces

METADATA_LIMIT = 1 << 20
"""Maximum size, in bytes, of a metadata document that is read; a larger one is forwarded unchanged."""

NOTHING: list[c.Command] = []
ACCEPT = c.AcceptBody()
CLOSE_SERVER = c.CloseServer()
WAIT = c.Wait()
FINISHES = {keeps_alive: c.Finish(keeps_alive) for keeps_alive in (True, False)}


class ExchangeBase:
    """One exchange, without its events."""

    state = ExchangeState.NEW
    message: bytes | None = None
    """The client's message, if it is complete and not long."""
    is_intercepted = False
    _is_received = False
    """True once the whole request has arrived."""
    _asked: CappedBody | None = None
    """The message of the request while it arrives."""
    _pieces: tuple[bytes, ...] | Pieces = ()
    """The parts of a body that is not forwarded as it arrives."""
    _parts: tuple[c.ToServer, ...] = ()
    """Parts of the request that wait for the decision of the scripts on its head."""
    _waiting: tuple[c.Event, ...] = ()
    """Events that arrive while the scripts decide on the head of the response, or a generator has not ended."""
    _sent: bytes | None = None
    """The body whose head the scripts decide on; None for one that is sent in parts."""
    _response: PreparedResponse | None = None
    _client_head: ClientHead | None = None
    _unsent = b""
    """The head of the response, until it is sent with what follows it."""
    _headers: Headers
    """The headers for the client, after the decision of the scripts."""
    _body: CappedBody | None = None
    """The message of the response while it arrives."""
    _events: ForwardedEvents | DecidedEvents | None = None
    _collected = b""
    """The server's message as it arrived, while it is decided on."""
    _has_ended = False
    """True once the server's response has ended, while some of it waits."""
    _error = ""
    """The reason for which the server's side ended, while the client's is open."""
    _ticket: int | None = None
    """The number of the message that waits for its decision."""
    _answers: tuple[bytes, ...] = ()
    _inserted = b""
    """Messages for a stream that passes an event."""
    _wants_decisions = False
    """True once the events of a stream are to be decided on."""
    _address: str | None = None
    """The address for messages that this HTTP+SSE stream (2024-11-05) has named."""
    _id: str | None = None
    """The id of an injected request, as JSON text."""
    _injected_headers: Headers
    _kept: Mapping[int, bytes] = MappingProxyType({})
    """Messages that came with the response to an injected request and are not forwarded yet, by ticket."""
    _work: Output | None = None

    _is_delivered = False
    """True once the message of the response is forwarded unchanged: then nothing of this exchange waits for a decision."""

    def __init__(
        self,
        scope: Scope,
        policy: DecisionPolicy,
        request: PreparedRequest,
        number: int,
        now: float,
        *,
        client: object = None,
        stream: str | None = None,
    ) -> None:
        """Begin an exchange. `stream` is given in one without a client."""
        self._scope = scope
        self._policy = policy
        self.prepared = request
        """The values made of the request's head."""
        self._now = now
        self._has_client = stream is None
        streams = scope.streams
        self.is_mcp = stream is not None or streams.is_endpoint(request.target)
        if stream is None:
            stream = streams.of(request.session, request.target, number)
        self.stream = stream
        """The session to which it belongs."""
        self.record = ExchangeRecord(scope, stream, number, now, client)
        self.is_listing = request.is_listing
        """True if its response is a list of tools (2026-07-28)."""
        self._keeps_alive = request.head.keeps_alive

    def take(self, event: c.Event, now: float) -> list[c.Command]:
        raise NotImplementedError

    def _move(self, meaning: Input) -> None:
        state = self.state = TRANSITIONS[self.state][meaning]
        if state is ExchangeState.OVER:
            self._work = None  # It refers to this exchange: the cycle would wait for the collector.

    def _take_all(self, waiting: Iterable[c.Event]) -> list[c.Command]:
        commands: list[c.Command] = []
        for event in waiting:
            commands += self.take(event, self._now)
        return commands

    def _collect_piece(self, data: bytes) -> None:
        if not isinstance(self._pieces, list):
            self._pieces = []
        collect(self._pieces, data)

    def _begun(self, headers: Headers) -> bytes:
        """Begin the response to the client with these headers. Return its head."""
        response = self._response
        assert response is not None
        is_usual = headers is response.headers and response.is_ordinary
        is_usual = is_usual and self._keeps_alive and self.prepared.head.keeps_alive
        prepared = response.whole if is_usual else None
        if prepared is None:
            has_length = any(name.lower() == "content-length" for name, _ in headers)
            head = response.head
            prepared = client_head(
                self.prepared.head, head.status, head.reason, headers,
                has_length=has_length, keeps_alive=self._keeps_alive,
            )  # fmt: skip
            if is_usual:
                response.whole = prepared
        self._client_head = prepared
        self._keeps_alive = prepared.keeps_alive
        return prepared.data

    def _send(self, data: bytes, *, is_last: bool = False) -> list[c.Command]:
        """Return a part of the response, with what is not sent of its head."""
        assert self._client_head is not None
        unsent, self._unsent = self._unsent, b""
        data = unsent + self._client_head.framed(data, is_last=is_last)
        return [c.ToClient(data)] if data else NOTHING

    def _end(self, unsent: bytes, last: bytes) -> list[c.Command]:
        """Return the end of the exchange: recorded, then sent, because some clients stop reading early."""
        assert self._client_head is not None
        commands: list[c.Command] = [*self._record_end(None)]
        data = unsent + self._client_head.framed(last, is_last=True)
        if data:
            commands.append(c.ToClient(data))
        commands.append(FINISHES[self._keeps_alive])
        if self.is_intercepted:
            commands.append(self._leave())
        return commands

    def _record_end(self, hung_up: str | None) -> list[c.RecordLines]:
        return self.record.end(self._now, self.prepared, hung_up, is_mcp=self.is_mcp)

    def _leave(self) -> c.Leave:
        self._ticket = None
        return c.Leave(self._is_delivered)

    def _request_record(self, lacks: str = "") -> list[c.Command]:
        """Return the record of the request's message. `lacks` is what is missing of its end."""
        body, self._asked = self._asked, None
        if body is None or not body.sent:
            return NOTHING
        if self.message is None and body.size <= SHORT:
            self.message = body.data()
        return [*self.record.body(body.close(self._now, lacks=lacks), body.size)]

    @property
    def _lacks_of_request(self) -> str:
        return LAST_CHUNK if self.prepared.head.is_chunked else REST

    def _body_record(self, lacks: str = "") -> list[c.Command]:
        """Return the record of the response's message. `lacks` is what is missing of its end."""
        body, self._body = self._body, None
        if body is None or not body.sent:
            return NOTHING
        return [*self.record.body(body.close(self._now, lacks=lacks), body.size)]

    def _torn(self, lacks: str) -> list[c.Command]:
        """Return the record of what has arrived of the response; nothing of it is sent after that."""
        self._work = None
        events = self._events
        if isinstance(events, ForwardedEvents):
            record, _ = events.close(self._now)
            return [record] if record.lines else NOTHING
        if isinstance(events, DecidedEvents):
            return [each for each in events.close(self._now) if isinstance(each, c.RecordLines)]
        return self._body_record(lacks)

    def _close_stream(self) -> list[c.Command]:
        if self._address is not None:
            self._scope.streams.end_address(self._address)
        return [c.CloseStream()]

    def _redirect(self, chunk: bytes, data: bytes) -> bytes:
        """Learn the address for messages, and replace the server's origin in it with the proxy's."""
        origin, request = self._scope.upstream.origin, self.prepared
        try:
            address = data.decode()
            target = urljoin(request.target, rewritten_url(address, origin, ""))
        except ValueError:  # Not an address: the client will reject it.
            return chunk
        self._address = target.partition("#")[0]
        self._scope.streams.bind_address(self._address, self.stream)
        return chunk.replace(data, rewritten_url(address, origin, request.public_origin).encode(), 1)

    @property
    def _unanswered(self) -> int:
        """The number of requests in the client's message."""
        messages = read_frame(Frame(0.0, CLIENT, self.message)) if self.message else []
        return sum(isinstance(message, Request) for message in messages)

    @property
    def _is_answered(self) -> bool:
        return bool(self._answers) and 0 < self._unanswered <= len(self._answers)

    def _run(self, work: Output) -> list[c.Command]:
        self._work = work
        return self._proceed(work)

    def _worked(self, _: c.Worked) -> list[c.Command]:
        if self._events is not None:
            self._events.now = self._now
        return NOTHING if self._work is None else self._proceed(self._work)

    def _proceed(self, work: Output) -> list[c.Command]:
        """Return what a generator yields until it has to wait."""
        commands: list[c.Command] = []
        for item in work:
            if isinstance(item, bytes):
                if item and self.state is not ExchangeState.DRAINING:
                    commands += self._send(item)
                continue
            commands.append(item)
            if type(item) is c.Continue:
                return commands
            if type(item) is c.Decide:
                commands.append(CONTINUE)
                return commands
        self._work = None
        if self._waiting and self.state is not ExchangeState.ANSWERING:
            waiting, self._waiting = self._waiting, ()
            commands += self._take_all(waiting)
        return commands


def without(headers: Headers, *names: str) -> Headers:
    """Return the headers except those with these names, in lower case."""
    return [(name, value) for name, value in headers if name.lower() not in names]


def with_length(headers: Headers, body: bytes) -> Headers:
    return [*without(headers, "content-length"), ("Content-Length", str(len(body)))]


def json_error(request_id: str | None, line: str) -> bytes:
    """Return a JSON-RPC error from mcpspy. `request_id` is JSON text."""
    body = {
        "jsonrpc": "2.0",
        "id": orjson.Fragment(request_id) if request_id is not None else None,
        "error": {"code": -32000, "message": sanitize(line)},  # A Host may not be UTF-8.
    }
    return orjson.dumps(body)
