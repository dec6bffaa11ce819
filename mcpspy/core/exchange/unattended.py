"""Responses that no client waits for: to a request of a viewer, or after mcpspy has answered."""

from __future__ import annotations

from mcpspy.core.exchange.events import Decide, DecidedEvents, Output, RecordLines, in_turns
from mcpspy.core.exchange.request_side import RequestSide
from mcpspy.core.exchange.states import NEW, Input
from mcpspy.core.framing import is_message
from mcpspy.core.intercept import actions
from mcpspy.core.intercept.http import headers_for_injected
from mcpspy.core.protocol import mcp_headers
from mcpspy.core.protocol.http_headers import EVENTS, JSON
from mcpspy.core.protocol.mcp_headers import LIST
from mcpspy.core.recording.capped_body import CappedBody
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.core.recording.encode_body import REST


class Unattended(RequestSide):
    """An exchange that reads a response to its end though no client waits for it."""

    def injected(self, data: bytes, id: str | None) -> None:  # noqa: A002
        """Take a message of a viewer for the server, in an exchange that has no client."""
        if self._has_client or self.state is not NEW:
            return
        self._id, self.message, self.is_intercepted = id, data, True
        headers = headers_for_injected(self.prepared.headers, data, self._policy.tools)
        self._injected_headers = headers
        self.is_listing = (mcp_headers.METHOD, LIST) in headers
        self.shell.intercept()
        if CLIENT in self._policy.changed_heads:
            self._decide_head(headers, data)
        else:
            self._ask_with(headers, data)

    def _fail(self, why: str) -> None:
        if self._id is not None:
            self.shell.fail(self._id, why)

    def _end_injected(self, hung_up: str | None) -> None:
        self._leave()
        self._write_injected_end(hung_up)

    def _drain_begins(self, data: bytes, is_last: bool) -> None:
        """Take the head of a response that no client waits for.

        It is read to its end: before 2026-07-28, closing a request does not cancel it.
        """
        response = self._response
        assert response is not None
        kind = response.head.content_type
        if not self._has_client:
            self._add_injected_head(self._injected_headers, response.head.status, response.recorded)
            self._write()
        fields, limit = self.fields, self._scope.max_body
        if kind == EVENTS:
            self._events = DecidedEvents(fields, response.encoding, limit, may_name_endpoint=False)
        else:
            self._body = CappedBody(SERVER, fields, response.encoding, limit)
            if not self._has_client and kind != JSON:
                self._begin_unrecorded(response)
        self._run(self._drain(data, is_last))

    def _drain(self, data: bytes, is_last: bool) -> Output:
        """Let the messages be decided on, up to the end of the response."""
        events, body = self._events, self._body
        attack = ""
        if isinstance(events, DecidedEvents):
            yield from events.feed(self.now, data, self._redirect)
            if events.is_over:
                attack = "the events of the response are compressed as those of an attack"
            elif is_last:
                yield from events.close(self.now)
        elif body is not None:
            yield from in_turns(body.feed(data))
            yield from self._take_unrecorded(data)
            if body.is_over:
                self._record_body(REST)
                attack = "the response is larger than --max-body"
            elif is_last and is_message(message := body.data()):
                yield Decide(SERVER, message, message, None, self.fields)
        if attack:
            self._fail(attack)
            self.shell.close_server()
            if isinstance(events, DecidedEvents):
                yield from events.close(self.now)
        if is_last or attack:
            self._end_drained(None)

    def _end_drained(self, hung_up: str | None) -> None:
        """End a response that no client waits for."""
        if not self._has_client:
            assert self._response is not None
            status = self._response.head.status
            if not self._kept:
                self._leave()
            if status != 202:  # Ignored if the request was answered.
                self._fail(f"no response, only HTTP {status}")
            self._has_ended = True
            self._write_injected_end(hung_up)
            if self._kept:
                return
        self._move(Input.END)

    def _drain_breaks(self, error: str) -> None:
        if self._has_ended:
            return
        if isinstance(self._events, DecidedEvents):
            for each in self._events.close(self.now):
                if isinstance(each, RecordLines):
                    self.shell.record(*each)
        self._fail(f"the response broke off: {error}")
        self._end_drained(SERVER)

    def _decided_for_stream(self, step: actions.Forward | actions.Substitute | actions.Dropped) -> None:
        """Forward a message that came with the response to an injected request to a stream of the client."""
        was_kept = step.ticket in self._kept
        self._kept = {ticket: data for ticket, data in self._kept.items() if ticket != step.ticket}
        if was_kept and self._events is not None and not isinstance(step, actions.Dropped):
            self.shell.to_stream(step.data)
        if self._has_ended and not self._kept:
            self._move(Input.END)
            self._leave()
