"""The request of an exchange, on its way from the client through the recording to the server."""

from __future__ import annotations

from mcpspy.core.exchange.base import ExchangeBase, json_error
from mcpspy.core.exchange.events import Decide, Output, in_turns
from mcpspy.core.exchange.states import ASKING, NEW, RECEIVING, UNREACHABLE, UPLOADING, Input
from mcpspy.core.intercept.http import headers_for_changed_body
from mcpspy.core.protocol.http_headers import Headers
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.protocol.oauth_flows import FORM_LIMIT
from mcpspy.core.recording.capped_body import CappedBody
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT
from mcpspy.core.recording.encode_body import body_line

_SEND, _UPLOAD = Input.SEND, Input.UPLOAD


class RequestSide(ExchangeBase):
    """An exchange that takes the request of its client."""

    def request_data(self, data: bytes, is_last: bool) -> None:
        """Take a part of the request's body; the first one comes with the head, and may be empty."""
        state = self.state
        if self._is_received or not self._has_client:
            return
        self._is_received = is_last
        if state is NEW:
            self._begin(data, is_last)
        elif state is RECEIVING:
            self._run(self._receive(data, is_last))
        elif state in (UPLOADING, ASKING):
            self._run(self._upload(data, is_last))
        elif state is UNREACHABLE:
            self._run(self._record_rest(data, is_last))

    def _begin(self, data: bytes, is_last: bool) -> None:
        request = self.prepared
        head = request.head
        if not head.has_body:
            self._is_received = True
            self._ask(None, is_whole=True)
            return
        is_message = request.is_post and self.is_mcp
        if is_message and is_last and len(data) <= request.max_whole:
            self.message = data
            if self._policy.is_on and self._policy.decides(CLIENT, data):
                self._begin_decision()
                self.shell.decide(CLIENT, data, data, None, self.fields)
                return
            if data:
                line = body_line(self._asked_at, CLIENT, self._own, data)
                self.shell.record(line, len(line))
            self._ask(data, is_whole=True)
            return
        if head.waits and not data and not is_last:
            self.shell.accept_body()
        if is_message:
            self._move(Input.PART)
            self._asked = CappedBody(CLIENT, self.fields, request.encoding, request.scope.max_body)
            if data or is_last:
                self._run(self._receive(data, is_last))
        else:
            self._ask(None, is_whole=False)
            self._run(self._upload(data, is_last))

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
                self._begin_decision()
                yield Decide(CLIENT, message, message, None, self.fields)
            else:
                self._record_request()
                self._ask(message, is_whole=True)
            return
        self._ask(None, is_whole=False)
        last = pieces.pop() if is_last else b""
        for piece in pieces:
            self._send_part(bytes(piece), is_last=False)
        if is_last:
            self._record_request()
            self._send_part(bytes(last), is_last=True)

    def _upload(self, data: bytes, is_last: bool) -> Output:
        """Send a part on. Only the last part of a message waits for the recording."""
        if self._asked is not None:
            yield from in_turns(self._asked.feed(data))
            if is_last:
                self._record_request()
        elif not (self.is_mcp and self.prepared.is_post):
            limit = FORM_LIMIT if self._scope.oauth.step(self.prepared.target) is not None else 0
            self._form += data[: max(limit - len(self._form), 0)]
        self._send_part(data, is_last=is_last)

    def _send_part(self, data: bytes, *, is_last: bool) -> None:
        """Send a part of the request, unless it waits for the decision on the head."""
        if self.state is ASKING:
            self._parts += ((data, is_last),)
            return
        if is_last:
            self._move(_SEND)
        if data or is_last:
            self.shell.to_server(data, is_last)

    def _ask(self, body: bytes | None, *, is_whole: bool) -> None:
        """Send the request to the server, with the client's own body; None for none, or one that follows."""
        request = self.prepared
        if CLIENT in self._policy.changed_heads:
            self._decide_head(request.headers, body)
            if not is_whole:
                self.shell.pause(CLIENT, True)
            return
        self._move(_SEND if is_whole else _UPLOAD)
        self.shell.ask(request.head.method, request.forwarded(body), body or b"", is_whole)

    def _decide_head(self, headers: Headers, body: bytes | None) -> None:
        self._sent = body
        self._move(Input.HEADS)
        self.shell.decide_head(headers, None)

    def _ask_changed(self, body: bytes) -> None:
        """Send the request with a message that the interception has changed."""
        assert self.message is not None
        headers = headers_for_changed_body(self.prepared.headers, self.message, body, self._policy.tools)
        if CLIENT in self._policy.changed_heads:
            self._decide_head(headers, body)
        else:
            self._ask_with(headers, body)

    def _ask_with(self, headers: Headers, body: bytes | None) -> None:
        request, has_body = self.prepared, self.prepared.head.has_body
        method = request.head.method
        is_whole = body is not None or not has_body
        head = self._scope.upstream_head(
            method, request.target, headers, body, has_body=has_body or bool(body)
        )
        self._move(_SEND if is_whole else _UPLOAD)
        self.shell.ask(method, head, body or b"", is_whole)

    def _begin_decision(self) -> None:
        self.is_intercepted = True
        self._move(Input.DECIDE)
        self.shell.intercept()

    def _record_rest(self, data: bytes, is_last: bool) -> Output:
        """Record a message that is not sent on, up to its end."""
        assert self._asked is not None
        yield from in_turns(self._asked.feed(data))
        if is_last:
            self._record_request()
            self._respond_unreachable(self._error)

    def _respond_unreachable(self, line: str) -> None:
        self._move(Input.FAIL)
        self._add_head(502, error=line)
        messages = read_frame(Frame(0.0, CLIENT, self.message)) if self.message else []
        request_id = messages[0].id if len(messages) == 1 and isinstance(messages[0], Request) else None
        self._write_end(None)
        self.shell.respond(502, json_error(request_id, line))
        if self.is_intercepted:
            self._leave()
