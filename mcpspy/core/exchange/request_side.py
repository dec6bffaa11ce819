"""The request of an exchange, on its way from the client through the recording to the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.core.exchange import commands as c
from mcpspy.core.exchange.events import Output, in_turns
from mcpspy.core.exchange.states import ExchangeState, Input
from mcpspy.core.intercept.http import headers_for_changed_body
from mcpspy.core.protocol.http_headers import (
    Headers,
)  # fmt: skip
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.protocol.oauth_flows import FORM_LIMIT
from mcpspy.core.recording.capped_body import CappedBody
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT
from mcpspy.core.recording.encode_body import body_line

if TYPE_CHECKING:
    pass

from mcpspy.core.exchange.base import ACCEPT, NOTHING, ExchangeBase, json_error


class RequestSide(ExchangeBase):
    """An exchange that takes the request of its client."""

    def _request_data(self, event: c.RequestData) -> list[c.Command]:
        state = self.state
        if self._is_received or not self._has_client:
            return NOTHING
        self._is_received = event.is_last
        if state is ExchangeState.NEW:
            return self._begin(event)
        if state is ExchangeState.RECEIVING:
            return self._run(self._receive(*event))
        if state in (ExchangeState.UPLOADING, ExchangeState.ASKING):
            return self._run(self._upload(*event))
        if state is ExchangeState.UNREACHABLE:
            return self._run(self._record_rest(*event))
        return NOTHING

    def _begin(self, event: c.RequestData) -> list[c.Command]:
        request, (data, is_last) = self.prepared, event
        head = request.head
        if not head.has_body:
            self._is_received = True
            return self._ask(None, is_whole=True)
        if self.is_mcp and head.method == "POST":
            if is_last and request.encoding is None and len(data) <= request.short:
                self.message = data
                if self._policy.decides(CLIENT, data):
                    return self._decide_request(data)
                if not data:
                    return self._ask(data, is_whole=True)
                line = body_line(self._now, CLIENT, self.record.json, data)
                return [c.RecordLines(line, len(line)), *self._ask(data, is_whole=True)]
            self._move(Input.PART)
            self._asked = CappedBody(CLIENT, self.record.fields, request.encoding, self._scope.max_body)
            commands = self._run(self._receive(data, is_last)) if data or is_last else NOTHING
        else:
            commands = [*self._ask(None, is_whole=False), *self._run(self._upload(data, is_last))]
        return [ACCEPT, *commands] if head.waits and not data and not is_last else commands

    def _receive(self, data: bytes, is_last: bool) -> Output:
        """Take a message whole if messages are intercepted, else in parts; one above the limit is always in parts."""
        assert self._asked is not None
        yield from in_turns(self._asked.feed(data))
        self._collect_piece(data)
        if self._policy.is_on and not (self._asked.is_over or is_last):
            return
        pieces, self._pieces = [*self._pieces], ()
        if is_last and not self._asked.is_over:
            message = self.message = bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)
            if self._policy.decides(CLIENT, message):
                self._asked = None
                yield from self._decide_request(message)
            else:
                yield from self._request_record()
                yield from self._ask(message, is_whole=True)
            return
        yield from self._ask(None, is_whole=False)
        last = pieces.pop() if is_last else b""
        for piece in pieces:
            yield from self._part(bytes(piece), is_last=False)
        if is_last:
            yield from self._request_record()
            yield from self._part(bytes(last), is_last=True)

    def _upload(self, data: bytes, is_last: bool) -> Output:
        """Send a part on. Only the last part of a message waits for the recording."""
        if self._asked is not None:
            yield from in_turns(self._asked.feed(data))
            if is_last:
                yield from self._request_record()
        elif not (self.is_mcp and self.prepared.head.method == "POST"):
            record = self.record
            limit = FORM_LIMIT if self._scope.oauth.step(self.prepared.target) is not None else 0
            record.form += data[: max(limit - len(record.form), 0)]
        yield from self._part(data, is_last=is_last)

    def _part(self, data: bytes, *, is_last: bool) -> list[c.Command]:
        """Return a part of the request as it is sent, unless it waits for the decision on the head."""
        part = c.ToServer(data, is_last)
        if self.state is ExchangeState.ASKING:
            self._parts += (part,)
            return NOTHING
        if is_last:
            self._move(Input.SEND)
        return [part] if data or is_last else NOTHING

    def _ask(self, body: bytes | None, *, is_whole: bool) -> list[c.Command]:
        """Return the request to the server, with the client's own body; None for none, or one that follows."""
        if self._policy.changes_heads(CLIENT):
            self._sent = body
            self._move(Input.HEADS)
            pause = [] if is_whole else [c.Pause(CLIENT, is_paused=True)]
            return [c.DecideHead(self.prepared.headers, None), *pause]
        self._move(Input.SEND if is_whole else Input.UPLOAD)
        return [c.Ask(self.prepared.head.method, self.prepared.forwarded(body), body or b"", is_whole)]

    def _ask_changed(self, body: bytes) -> list[c.Command]:
        """Return the request with a message that the interception has changed."""
        headers = self.prepared.headers
        assert self.message is not None
        headers = headers_for_changed_body(headers, self.message, body, self._policy.tools)
        if self._policy.changes_heads(CLIENT):
            self._sent = body
            self._move(Input.HEADS)
            return [c.DecideHead(headers, None)]
        return self._ask_with(headers, body)

    def _ask_with(self, headers: Headers, body: bytes | None) -> list[c.Command]:
        request, has_body = self.prepared, self.prepared.head.has_body
        method = request.head.method
        is_whole = body is not None or not has_body
        head = self._scope.upstream_head(
            method, request.target, headers, body, has_body=has_body or bool(body)
        )
        self._move(Input.SEND if is_whole else Input.UPLOAD)
        return [c.Ask(method, head, body or b"", is_whole)]

    def _decide_request(self, message: bytes) -> list[c.Command]:
        self.is_intercepted = True
        self._move(Input.DECIDE)
        return [c.Intercept(), c.Decide(CLIENT, message, message, None, self.record.fields)]

    def _record_rest(self, data: bytes, is_last: bool) -> Output:
        """RecordLines a message that is not sent on, up to its end."""
        assert self._asked is not None
        yield from in_turns(self._asked.feed(data))
        if is_last:
            yield from self._request_record()
            yield from self._respond_unreachable(self._error)

    def _respond_unreachable(self, line: str) -> list[c.Command]:
        self._move(Input.FAIL)
        self.record.add_head(self._now, self.prepared, 502, is_mcp=self.is_mcp, error=line)
        messages = read_frame(Frame(0.0, CLIENT, self.message)) if self.message else []
        request_id = messages[0].id if len(messages) == 1 and isinstance(messages[0], Request) else None
        commands: list[c.Command] = [*self._record_end(None), c.Respond(502, json_error(request_id, line))]
        return [*commands, self._leave()] if self.is_intercepted else commands
