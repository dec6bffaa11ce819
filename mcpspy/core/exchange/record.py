"""The entries of one HTTP exchange in the recording.

Lines are collected, and written in one write before anything that they describe is sent. A short exchange takes two
writes: the request, and the response with its notes.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mcpspy.core.protocol.http_headers import recorded_headers
from mcpspy.core.protocol.oauth_flows import FORM_LIMIT, OAuthRequest
from mcpspy.core.protocol.refusal import RefusalBody, oauth_error
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER, JsonText, json_object, note
from mcpspy.core.recording.encode_body import body_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpspy.core.exchange.prepared import PreparedRequest, PreparedResponse
    from mcpspy.core.exchange.scope import Scope
    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.core.recording.encode import Value

_NOTHING = JsonText(b"{}")


class ExchangeRecord:
    """The entries of one exchange. The methods that return lines also return what was added before."""

    form = b""
    """The beginning of the body of a request that is a step of OAuth."""
    half_closed: float | None = None
    """The time at which the client closed its sending side, if it did that before the response."""
    has_head = False
    facts: Mapping[str, Any] = MappingProxyType({})
    """Facts of the response, for the note of its OAuth step."""
    _answer: bytes | None = None
    """The beginning of the response to such a request, while it arrives."""
    _refusal: RefusalBody | None = None
    """The body of a response of the endpoint that is not a message, while it arrives."""
    _lines: tuple[bytes | bytearray, ...] = ()
    """Lines that are not written yet."""
    _response: PreparedResponse | None = None
    _status: int | None = None

    def __init__(self, scope: Scope, stream: str, number: int, now: float, client: object) -> None:
        """Prepare the entries. `client` is its address."""
        self._scope = scope
        self._stream, self._number = stream, number
        self.json = JsonText(b'{"stream":"%b","http":%d}' % (stream.encode(), number))
        self.started_at = now
        self._client = client

    @property
    def fields(self) -> dict[str, Value]:
        """The fields of this exchange's entries."""
        return {"stream": self._stream, "http": self._number}

    def whole(
        self, now: float, request: PreparedRequest, response: PreparedResponse, body: bytes
    ) -> bytes | None:
        """Return all entries of a response to a message that is one message; None if there may be others."""
        if not (response.is_plain and self._scope.oauth.is_between_flows) or self._lines or self.half_closed:
            return None
        own = self.json[1:-1]
        found = self._scope.client_process(self._client, self._stream)
        client = b"" if found is None else b',"client":' + json_object(found)
        return (
            b'{"t":%.6f,"note":"http",%b,%b,"status":%d,"asked_at":%.6f,"request":%b,"response":%b%b}\n'
            b'%b{"t":%.6f,"note":"http-end",%b,"hung_up":null}\n' % (
                now, own, request.noted, response.head.status, self.started_at, request.recorded,
                response.recorded, client, body_line(now, SERVER, self.json, body) if body else b"", now, own,
            )
        )  # fmt: skip

    def add_message(self, now: float, side: str, body: bytes) -> None:
        """Add a message that is a whole body. Ignores an empty one."""
        if body:
            self._lines += (body_line(now, side, self.json, body),)

    def add_head(
        self,
        now: float,
        request: PreparedRequest,
        status: int | None,
        response: PreparedResponse | None = None,
        *,
        is_mcp: bool,
        **more: Value,
    ) -> None:
        """Add the note with both heads."""
        oauth = self._scope.oauth
        noted = request.noted
        if not is_mcp:
            noted = json_object({"method": request.head.method, "path": oauth.recorded(request.target)})[1:-1]
        self._lines += (
            b'{"t":%.6f,"note":"http",%b,%b,"status":%b,"asked_at":%.6f,"request":%b,"response":%b%b}\n' % (
                now, self.json[1:-1], noted, b"null" if status is None else b"%d" % status, self.started_at,
                request.recorded, _NOTHING if response is None else response.recorded, self._found(is_mcp, more),
            ),
        )  # fmt: skip
        self.has_head = True
        self._response, self._status = response, status

    def add_injected_head(
        self, now: float, target: str, headers: Headers, status: int | None, response: JsonText, **more: Value
    ) -> None:
        """Add the note with both heads of a request that a viewer sent."""
        fields: dict[str, Value] = {
            "method": "POST",
            "path": target,
            "status": status,
            "asked_at": round(self.started_at, 6),
            "request": recorded_headers(headers),
            "response": response,
            "by": MCPSPY,
            **more,
        }
        self.add(now, "http", fields)
        self.has_head = True

    def begin_unrecorded(self, response: PreparedResponse, target: str, *, is_mcp: bool) -> None:
        """Begin the body of a response that is not recorded as messages."""
        if not is_mcp:
            if self._scope.oauth.step(target) is not None:
                self._answer = b""
        elif response.is_refusal:
            self._refusal = RefusalBody(response.encoding)

    def take_unrecorded(self, piece: bytes) -> None:
        """Take a piece of such a body: what is of interest in it is its beginning."""
        if self._refusal is not None:
            self._refusal.feed(piece)
        elif self._answer is not None:
            self._answer += piece[: FORM_LIMIT - len(self._answer)]

    def _refused(self) -> dict[str, Value]:
        return {} if self._refusal is None else self._refusal.fields()

    def add(self, now: float, kind: str, fields: dict[str, Value]) -> None:
        """Add a note of this exchange."""
        self._lines += (note(now, kind, {**self.fields, **fields}),)

    def written(self) -> bytes:
        """Return the lines that were added."""
        lines, self._lines = b"".join(self._lines), ()
        return lines

    def end(self, now: float, request: PreparedRequest, hung_up: str | None, *, is_mcp: bool) -> bytes:
        """Return the end of the exchange, and what is missing before it."""
        if not self.has_head:
            self.add_head(now, request, None, is_mcp=is_mcp)
        oauth = self._scope.oauth
        if not (is_mcp and oauth.is_between_flows and self._status != 401):
            self._add_oauth_step(now, request, is_mcp=is_mcp)
        half = b""
        if self.half_closed is not None:
            hung_up = hung_up or CLIENT
            half = b',"half_closed":%.6f' % self.half_closed
        ended = b"null" if hung_up is None else b'"%b"' % hung_up.encode()
        line = b'{"t":%.6f,"note":"http-end",%b,"hung_up":%b%b%b}\n'
        self._lines += (line % (now, self.json[1:-1], ended, half, self._found(is_mcp, self._refused())),)
        return self.written()

    def end_injected(self, now: float, hung_up: str | None) -> bytes:
        """Return the end of an exchange without a client."""
        self.add(now, "http-end", {"hung_up": hung_up, "by": MCPSPY, **self._refused()})
        return self.written()

    def _found(self, is_mcp: bool, more: dict[str, Value]) -> bytes:
        """Return more fields, with the process of the client in the first note after it was found."""
        found = self._scope.client_process(self._client, self._stream) if is_mcp else None
        if found is not None:
            more = {**more, "client": found}
        return b"," + json_object(more)[1:-1] if more else b""

    def _add_oauth_step(self, now: float, request: PreparedRequest, *, is_mcp: bool) -> None:
        oauth, response = self._scope.oauth, self._response
        asked = OAuthRequest(
            request.target,
            request.head.headers,
            self.form,
            is_mcp=is_mcp,
            peer=self._client,
            location=None if response is None else response.head.named.get("location"),
            response=self._answer or b"",
        )
        if self._answer is not None and (self._status or 0) >= 400:
            self.facts = {**self.facts, **oauth_error(self._answer)}
        fields = None if self._status is None else oauth.step_fields(asked, self._status, self.facts)
        if fields is not None:
            self.add(now, "oauth", fields)
