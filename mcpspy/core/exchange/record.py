"""The entries of one HTTP exchange in the recording.

Lines are collected, and written in one write before anything that they describe is sent. A short exchange takes two
writes: the request, and the response with its notes.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from mcpspy.core.exchange.events import in_turns
from mcpspy.core.protocol.extensions import document_of
from mcpspy.core.protocol.http_headers import recorded_headers
from mcpspy.core.protocol.oauth_flows import FORM_LIMIT, OAuthRequest
from mcpspy.core.protocol.refusal import RefusalBody, oauth_error
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER, JsonText, json_object, note
from mcpspy.core.recording.encode_body import body_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpspy.core.exchange.events import Output
    from mcpspy.core.exchange.prepared import PreparedRequest, PreparedResponse
    from mcpspy.core.exchange.shell import Scope, Shell
    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.core.recording.encode import Value

_NOTHING = JsonText(b"{}")


def _one_line(body: bytes) -> bytes | None:
    """Return a JSON document in one line; None if it is not strict JSON."""
    try:
        return orjson.dumps(orjson.loads(body))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None


class RecordedExchange:
    """An exchange that knows its entries. The class above it sets what has no value here."""

    shell: Shell
    now: float
    """The time of the event that is taken."""
    prepared: PreparedRequest
    """The values made of the request's head."""
    stream: str
    """The session to which it belongs."""
    is_mcp: bool
    half_closed_at: float | None
    """The time at which the client closed its sending side, if it did that before the response."""
    _scope: Scope
    _client: object
    """The address of the client."""
    _number: int
    _own: bytes
    """The fields of this exchange's entries, as JSON without braces."""
    _asked_at: bytes
    """The time of the request's head, as it is written."""
    _lines: tuple[bytes | bytearray, ...]
    """Lines that are not written yet."""
    _has_head = False
    """True once there is the note with both heads, or it waits to be written."""
    _form = b""
    """The beginning of the body of a request that is a step of OAuth."""
    _facts: Mapping[str, Any] = MappingProxyType({})
    """Facts of the response, for the note of its OAuth step."""
    _answer: bytes | None = None
    """The beginning of the response to such a request, while it arrives."""
    _refusal: RefusalBody | None = None
    """The body of a response of the endpoint that is not a message, while it arrives."""
    _recorded: PreparedResponse | None = None
    """The response in the note with both heads."""
    _status: int | None = None

    @property
    def fields(self) -> dict[str, Value]:
        """The fields of this exchange's entries."""
        return {"stream": self.stream, "http": self._number}

    def _write(self, line: bytes = b"") -> None:
        """Record the lines that were added, and one more."""
        lines, self._lines = b"".join((*self._lines, line)), ()
        if lines:
            self.shell.record(lines, len(lines))

    def _whole(self, response: PreparedResponse, body: bytes) -> bytes | None:
        """Return all entries of a response to a message that is one message; None if there may be others."""
        scope = self._scope
        if self._lines or self.half_closed_at or scope.oauth.unused_tokens or not response.is_plain:
            return None
        now, own = b"%.6f" % self.now, self._own
        found = scope.client_process(self._client, self.stream)
        client = b"" if found is None else b',"client":' + json_object(found)
        before, after = response.noted
        return b'{"t":%b,"note":"http",%b,%b%b%b%b}\n%b{"t":%b,"note":"http-end",%b,"hung_up":null}\n' % (
            now, own, before, self._asked_at, after, client,
            body_line(now, SERVER, own, body) if body else b"", now, own,
        )  # fmt: skip

    def _add_message(self, side: str, body: bytes) -> None:
        """Add a message that is a whole body. Ignores an empty one."""
        if body:
            self._lines += (body_line(b"%.6f" % self.now, side, self._own, body),)

    def _add_head(self, status: int | None, response: PreparedResponse | None = None, **more: Value) -> None:
        """Add the note with both heads."""
        request = self.prepared
        noted = request.noted
        if not self.is_mcp:
            path = self._scope.oauth.recorded(request.target)
            noted = json_object({"method": request.head.method, "path": path})[1:-1]
        self._lines += (
            b'{"t":%.6f,"note":"http",%b,%b,"status":%b,"asked_at":%b,"request":%b,"response":%b%b}\n' % (
                self.now, self._own, noted, b"null" if status is None else b"%d" % status, self._asked_at,
                request.recorded, _NOTHING if response is None else response.recorded, self._found(more),
            ),
        )  # fmt: skip
        self._has_head = True
        self._recorded, self._status = response, status

    def _add_injected_head(
        self, headers: Headers, status: int | None, response: JsonText = _NOTHING, **more: Value
    ) -> None:
        """Add the note with both heads of a request that a viewer sent."""
        fields: dict[str, Value] = {
            "method": "POST",
            "path": self.prepared.target,
            "status": status,
            "asked_at": JsonText(self._asked_at),
            "request": recorded_headers(headers),
            "response": response,
            "by": MCPSPY,
            **more,
        }
        self._add("http", fields)

    def _begin_unrecorded(self, response: PreparedResponse) -> None:
        """Begin the body of a response that is not recorded as messages."""
        if not self.is_mcp:
            is_step = self._scope.oauth.step(self.prepared.target) is not None
            if is_step or document_of(self.prepared.target, response.head.content_type) is not None:
                self._answer = b""
        elif response.is_refusal:
            self._refusal = RefusalBody(response.encoding)

    def _take_unrecorded(self, piece: bytes) -> Output:
        """Take a piece of such a body: what is of interest in it is its beginning."""
        if self._refusal is not None:
            yield from in_turns(self._refusal.feed(piece))
        elif self._answer is not None:
            self._answer += piece[: FORM_LIMIT - len(self._answer)]

    def _refused(self) -> dict[str, Value]:
        return {} if self._refusal is None else self._refusal.fields()

    def _add(self, kind: str, fields: dict[str, Value]) -> None:
        """Add a note of this exchange."""
        self._lines += (note(self.now, kind, {**self.fields, **fields}),)

    def _write_end(self, hung_up: str | None) -> None:
        """Record the end of the exchange, and what is missing before it."""
        if not self._has_head:
            self._add_head(None)
        if not self.is_mcp or self._scope.oauth.unused_tokens or self._status == 401:
            self._add_oauth_step()
        if not self.is_mcp:
            self._add_document()
        half = b""
        if self.half_closed_at is not None:
            hung_up = hung_up or CLIENT
            half = b',"half_closed":%.6f' % self.half_closed_at
        ended = b"null" if hung_up is None else b'"%b"' % hung_up.encode()
        line = b'{"t":%.6f,"note":"http-end",%b,"hung_up":%b%b%b}\n'
        self._write(line % (self.now, self._own, ended, half, self._found(self._refused())))

    def _write_injected_end(self, hung_up: str | None) -> None:
        """Record the end of an exchange without a client."""
        self._add("http-end", {"hung_up": hung_up, "by": MCPSPY, **self._refused()})
        self._write()

    def _found(self, more: dict[str, Value]) -> bytes:
        """Return more fields, with the process of the client in the first note after it was found."""
        found = self._scope.client_process(self._client, self.stream) if self.is_mcp else None
        if found is not None:
            more = {**more, "client": found}
        return b"," + json_object(more)[1:-1] if more else b""

    def _add_document(self) -> None:
        """Add the note of a document of an extension, such as a server card."""
        response, target = self._recorded, self.prepared.target
        media = "" if response is None else response.head.content_type
        if response is None or (found := document_of(target, media)) is None:
            return
        named, body = response.head.named, self._answer or b""
        fields: dict[str, Value] = {"document": found.name, "path": self._scope.oauth.recorded(target)}
        fields |= {
            "status": self._status,
            "type": media,
            "allow_origin": named.get("access-control-allow-origin"),
        }
        if "etag" in named:
            fields["etag"] = named["etag"]
        if len(body) == FORM_LIMIT:
            fields["cut"] = True
        elif body:
            line = _one_line(body)
            fields["body"] = body.decode("utf-8", "replace") if line is None else JsonText(line)
        self._add("document", fields)

    def _add_oauth_step(self) -> None:
        oauth, response, request = self._scope.oauth, self._recorded, self.prepared
        if request.head.method == "OPTIONS":
            return  # A preflight of a browser asks nothing of the authorization server.
        location = None if response is None else response.head.named.get("location")
        asked = OAuthRequest(
            request.target,
            request.head.headers,
            self._form,
            is_mcp=self.is_mcp,
            peer=self._client,
            location=location,
            response=self._answer or b"",
        )
        if self._answer is not None and (self._status or 0) >= 300:
            self._facts = {**self._facts, **oauth_error(self._answer, location)}
        fields = None if self._status is None else oauth.step_fields(asked, self._status, self._facts)
        if fields is not None:
            self._add("oauth", fields)
