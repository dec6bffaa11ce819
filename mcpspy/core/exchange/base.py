"""The parts that the sides of an exchange share: its attributes, its moves, and its ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import orjson

from mcpspy.core.exchange.events import DecidedEvents, ForwardedEvents, Output, RecordLines, TakeTurn
from mcpspy.core.exchange.heads import ClientHead, client_head
from mcpspy.core.exchange.prepared import SHORT
from mcpspy.core.exchange.record import RecordedExchange
from mcpspy.core.exchange.states import ANSWERING, DRAINING, NEW, OVER, TRANSITIONS, ExchangeState, Input
from mcpspy.core.framing import collect
from mcpspy.core.protocol.http_headers import Headers, rewritten_url
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.capped_body import CappedBody
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT
from mcpspy.core.recording.encode_body import LAST_CHUNK, REST
from mcpspy.core.sanitize import sanitize

if TYPE_CHECKING:
    from mcpspy.core.exchange.prepared import PreparedRequest, PreparedResponse
    from mcpspy.core.exchange.shell import Shell
    from mcpspy.core.framing import Pieces

METADATA_LIMIT = 1 << 20
"""Maximum size, in bytes, of a metadata document that is read; a larger one is forwarded unchanged."""


class ExchangeBase(RecordedExchange):
    """One exchange, without its events."""

    message: bytes | None
    """The client's message, if it is complete and not long."""
    _asked: CappedBody | None = None
    """The message of the request while it arrives."""
    _pieces: tuple[bytes, ...] | Pieces = ()
    """The parts of a body that is not forwarded as it arrives."""
    _parts: tuple[tuple[bytes, bool], ...] = ()
    """Parts of the request that wait for the decision of the scripts on its head."""
    _waiting: tuple[Callable[[], None], ...] = ()
    """Events that arrive while the scripts decide on the head of the response."""
    _begun_with: tuple[bytes, bool] = b"", False
    """The part of the body that came with this head."""
    _sent: bytes | None = None
    """The body whose head the scripts decide on; None for one that is sent in parts."""
    _client_head: ClientHead | None
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
    _is_delivered = False
    """True once the message of the response is forwarded unchanged: then nothing of this exchange waits for a decision."""

    def __init__(
        self,
        shell: Shell,
        request: PreparedRequest,
        number: int,
        now: float,
        client: object = None,
        *,
        stream: str | None = None,
    ) -> None:
        """Begin an exchange at a time. `stream` is given in one without a client."""
        # What nearly every exchange reads is set here: in Python 3.11, an attribute of the class takes as long as a call.
        self.shell, self.prepared, self.now = shell, request, now
        self.state: ExchangeState = NEW
        scope = self._scope = request.scope
        self._policy = scope.policy
        self._has_client = stream is None
        if stream is None:
            streams = scope.streams
            self.is_mcp = request.is_endpoint or streams.is_endpoint(request.target)
            stream = streams.of(request.session, request.target, number)
        else:
            self.is_mcp = True
        self.stream, self._number, self._client = stream, number, client
        self._own = b'"stream":"%b","http":%d' % (stream.encode(), number)
        self._asked_at = b"%.6f" % now
        self._lines = ()
        self.half_closed_at = self.message = self._client_head = None
        self.is_listing = request.is_listing
        """True if its response is a list of tools (2026-07-28)."""
        self.is_intercepted = False
        self._is_received = False
        """True once the whole request has arrived."""
        self._keeps_alive = request.head.keeps_alive
        self._response: PreparedResponse | None = None
        self._work: Output | None = None
        """A generator that has to wait."""

    @property
    def status(self) -> int | None:
        """The status of the server's response; None before it."""
        return None if self._response is None else self._response.head.status

    def _move(self, meaning: Input) -> None:
        state = self.state = TRANSITIONS[self.state][meaning]
        if state is OVER and self._work is not None:
            self._work = None  # It refers to this exchange: the cycle would wait for the collector.

    def _take_waiting(self) -> None:
        """Take the events that have waited for the scripts, unless a generator has to wait."""
        while self._waiting and self._work is None:
            event, *more = self._waiting
            self._waiting = tuple(more)
            event()

    def _collect_piece(self, data: bytes) -> None:
        if not isinstance(self._pieces, list):
            self._pieces = []
        collect(self._pieces, data)

    def _begin_response(self, headers: Headers) -> ClientHead:
        """Begin the response to the client with these headers. Return its head."""
        response, request = self._response, self.prepared.head
        assert response is not None
        is_usual = self._keeps_alive and headers is response.headers and response.is_ordinary
        begun = response.whole if is_usual else None
        if begun is None:
            has_length = any(name.lower() == "content-length" for name, _ in headers)
            begun = client_head(
                request, response.head.status, response.head.reason, headers,
                has_length=has_length, keeps_alive=self._keeps_alive,
            )  # fmt: skip
            if is_usual:
                response.whole = begun
        self._client_head = begun
        self._keeps_alive = begun.keeps_alive
        return begun

    def _send(self, data: bytes) -> None:
        """Send a part of the response, with what is not sent of its head."""
        assert self._client_head is not None
        unsent, self._unsent = self._unsent, b""
        if data := unsent + self._client_head.framed(data):
            self.shell.to_client(data)

    def _end(self, unsent: bytes, last: bytes) -> None:
        """End the exchange: recorded, then sent, because some clients stop reading early."""
        assert self._client_head is not None
        self._write_end(None)
        if data := unsent + self._client_head.framed(last, is_last=True):
            self.shell.to_client(data)
        self.shell.finish(self._keeps_alive)
        if self.is_intercepted:
            self._leave()

    def _end_whole(self, headers: Headers, body: bytes) -> None:
        """End the exchange with a body that is sent in one part."""
        self._end(self._begin_response(headers).data, body)

    def _leave(self) -> None:
        self._ticket = None
        self.shell.leave(self._is_delivered)

    def _record_request(self, lacks: str = "") -> None:
        """Record the request's message. `lacks` is what is missing of its end."""
        body, self._asked = self._asked, None
        if body is None or not body.sent:
            return
        if self.message is None and body.size <= SHORT:
            self.message = body.data()
        self._record_message(body, lacks)

    def _record_message(self, body: CappedBody, lacks: str) -> None:
        self._write()
        self.shell.record(body.close(self.now, lacks=lacks), body.size)

    @property
    def _lacks_of_request(self) -> str:
        return LAST_CHUNK if self.prepared.head.is_chunked else REST

    def _record_body(self, lacks: str = "") -> None:
        """Record the response's message. `lacks` is what is missing of its end."""
        body, self._body = self._body, None
        if body is not None and body.sent:
            self._record_message(body, lacks)

    def _tear(self, lacks: str) -> None:
        """Record what has arrived of the response; nothing of it is sent after that."""
        self._work = None
        events = self._events
        if isinstance(events, ForwardedEvents):
            record, _ = events.close(self.now)
            if record.lines:
                self.shell.record(*record)
        elif isinstance(events, DecidedEvents):
            for each in events.close(self.now):
                if isinstance(each, RecordLines):
                    self.shell.record(*each)
        else:
            self._record_body(lacks)

    def _close_stream(self) -> None:
        if self._address is not None:
            self._scope.streams.end_address(self._address)
        self.shell.close_stream()

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

    def _run(self, work: Output) -> None:
        self._work = work
        self.proceed()

    def proceed(self) -> None:
        """Continue after a turn or a decision: run the generator until it has to wait again."""
        work = self._work
        if work is None:
            return
        if self._events is not None:
            self._events.now = self.now
        for item in work:
            if isinstance(item, bytes):
                if item and self.state is not DRAINING:
                    self._send(item)
            elif isinstance(item, RecordLines):
                self.shell.record(*item)
            elif isinstance(item, TakeTurn):
                self.shell.take_turn(item.long_step)
                return
            elif not self.shell.decide(*item):
                return
            if self._work is not work:  # What was decided has ended it.
                return
        self._work = None
        if self._waiting and self.state is not ANSWERING:
            self._take_waiting()


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
