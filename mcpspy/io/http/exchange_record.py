"""The entries of one HTTP exchange in the recording.

Lines are collected and written in one write, before anything that they describe is sent. A short exchange takes two
writes: the request, and the response with its notes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpspy.core.protocol.http_headers import recorded_headers
from mcpspy.core.protocol.oauth_flows import FORM_LIMIT, OAuthRequest
from mcpspy.core.protocol.refusal import RefusalBody, is_refusal, oauth_error
from mcpspy.core.recording.encode import CLIENT, JsonText, json_object
from mcpspy.core.recording.encode_body import LAST_CHUNK, REST, body_line
from mcpspy.io.http.context import ENCODING
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcpspy.core.recording.capped_body import CappedBody
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.http.body_stream import BodyStream
    from mcpspy.io.http.context import ExchangeContext, ExchangeHead
    from mcpspy.io.http.server import HttpRequest
    from mcpspy.io.http.upstream_connection import ResponseHead

SHORT = 1 << 18
"""Maximum size, in bytes, of a request that is kept until the server has responded, and of what is recorded in one go."""

_NOTHING = JsonText(b"{}")


class ExchangeRecord:
    """The entries of one exchange."""

    def __init__(self, context: ExchangeContext, head: ExchangeHead, request: HttpRequest) -> None:
        self._context = context
        self._head = head
        self._request = request
        self.started_at = self.now()
        self._fields = JsonText(b'{"stream":"%b","http":%d}' % (head.stream.encode(), head.number))
        self._lines: list[bytes | bytearray] = []
        """Lines that are not written yet."""
        self.request: bytes | None = None
        """The message of the request, if it is short and complete."""
        self.unrecorded: CappedBody | None = None
        """The message of the request while it arrives."""
        self.form = b""
        """The beginning of the body of a request that is a step of OAuth."""
        self._answer: bytes | None = None
        """The beginning of the response to such a request, while it arrives."""
        self._refusal: RefusalBody | None = None
        """The body of a response of the endpoint that is not a message, while it arrives."""
        self.facts: dict[str, Any] = {}
        """Facts of the response, for the note of its OAuth step."""
        self.half_closed: float | None = None
        """The time at which the client closed its sending side, if it did that before the response."""
        self.has_head = False
        self._response: ResponseHead | None = None
        self._status: int | None = None
        self._is_over = False
        if head.is_mcp and context.recorder.writer is not None:
            context.clients.look(request.peer, head.stream)

    def now(self) -> float:
        """Return the time of the recording, in seconds."""
        return self._context.recorder.now()

    def is_short(self, body: BodyStream, encoding: str | None) -> bool:
        """Return whether a body has arrived and can be recorded with one line: short and not compressed."""
        return encoding is None and body.is_whole and body.size <= min(SHORT, self._context.max_body)

    def add_message(self, side: str, body: bytes) -> None:
        """Add a message that is a whole body. Ignores an empty one."""
        if body:
            self._lines.append(body_line(self.now(), side, self._fields, body))

    def add_head(self, status: int | None, response: ResponseHead | None = None, **more: Value) -> None:
        """Add the note with both heads, unless a short exchange has recorded that of the response."""
        if response is not None and self.has_head:
            return
        request = self._request.head
        if request.recorded is None:
            request.recorded = json_object(recorded_headers(request.headers.items()))
        if response is not None and response.recorded is None:
            is_odd = request.method == "OPTIONS" or is_refusal(
                request.method, response.status, response.content_type
            )
            response.recorded = json_object(recorded_headers(response.headers, is_refusal=is_odd))
        head, oauth = self._head, self._context.oauth
        fields: dict[str, Value] = {
            **head.fields,
            "method": request.method,
            "path": head.target if head.is_mcp else oauth.recorded(head.target),
            "status": status,
            "asked_at": round(self.started_at, 6),
            "request": request.recorded,
            "response": _NOTHING if response is None else response.recorded,
            **more,
        }
        self._lines.append(self._context.note_line("http", {**fields, **self._client()}))
        self.has_head = True
        self._response, self._status = response, status

    def begin_unrecorded(self) -> None:
        """Begin the body of a response that is not recorded as messages."""
        response, method = self._response, self._request.head.method
        if not self._head.is_mcp:
            if self._context.oauth.step(self._head.target) is not None:
                self._answer = b""
        elif response is not None and is_refusal(method, response.status, response.content_type):
            self._refusal = RefusalBody(response.named.get(ENCODING))

    def take_unrecorded(self, piece: bytes) -> None:
        """Take a piece of such a body: what is of interest in it is its beginning."""
        if self._refusal is not None:
            self._refusal.feed(piece)
        elif self._answer is not None:
            self._answer += piece[: FORM_LIMIT - len(self._answer)]

    def add(self, kind: str, fields: Mapping[str, Value]) -> None:
        """Add a note of this exchange."""
        self._lines.append(self._context.note_line(kind, {**self._head.fields, **fields}))

    async def flush(self) -> None:
        """Write the lines."""
        if self._lines:
            lines, self._lines = self._lines, []
            await self._context.record(lines, sum(map(len, lines)))

    async def write(self, lines: Iterable[bytes | bytearray], size: int) -> None:
        """Write the lines, and those of a body of `size` bytes after them."""
        await self.flush()
        await self._context.record(lines, size)

    async def write_request(self, *, lacks: str = "") -> None:
        """Write the message of a request that has arrived. `lacks` is what is missing of its end."""
        body, self.unrecorded = self.unrecorded, None
        if body is not None:
            if self.request is None and body.size <= SHORT:
                self.request = body.data()
            await self.write(body.close(self.now(), lacks=lacks), body.size)

    async def end(self, hung_up: str | None) -> None:
        """Write the end of the exchange, once, and what is missing before it."""
        if self._is_over:
            return
        if self.unrecorded is not None:
            await self.write_request(lacks=LAST_CHUNK if self._request.head.is_chunked else REST)
        if not self.has_head:
            self.add_head(None)
        if not (self._head.is_mcp and self._context.oauth.is_between_flows and self._status != 401):
            self._add_oauth_step()
        fields: dict[str, Value] = {"hung_up": hung_up}
        if self.half_closed is not None:
            fields = {"hung_up": hung_up or CLIENT, "half_closed": round(self.half_closed, 6)}
        if self._refusal is not None:
            fields |= self._refusal.fields()
        self.add("http-end", {**fields, **self._client()})
        self._is_over = True
        await self.flush()

    def _client(self) -> dict[str, Value]:
        """Return the field with the process of the client, in the first note after it was found."""
        if not self._head.is_mcp:
            return {}
        found = self._context.clients.take(self._request.peer, self._head.stream)
        return {} if found is None else {"client": found}

    def _add_oauth_step(self) -> None:
        head, oauth = self._head, self._context.oauth
        request = OAuthRequest(
            head.target,
            self._request.headers,
            self.form,
            is_mcp=head.is_mcp,
            peer=self._request.peer,
            location=None if self._response is None else self._response.named.get("location"),
            response=self._answer or b"",
        )
        if self._answer is not None and (self._status or 0) >= 400:
            self.facts = {**self.facts, **oauth_error(self._answer)}
        fields = None if self._status is None else oauth.step_fields(request, self._status, self.facts)
        if fields is not None:
            self.add("oauth", fields)
        if oauth.hint is not None:
            say(oauth.hint)
            oauth.hint = None
