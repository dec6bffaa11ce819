"""Responses that no client waits for: to a request of a viewer, or after mcpspy has answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.core.exchange import commands as c
from mcpspy.core.exchange.events import DecidedEvents, Output, in_turns
from mcpspy.core.exchange.states import ExchangeState, Input
from mcpspy.core.framing import is_message
from mcpspy.core.intercept import actions
from mcpspy.core.intercept.http import headers_for_injected
from mcpspy.core.protocol import mcp_headers
from mcpspy.core.protocol.http_headers import (
    EVENTS,
    JSON,
)  # fmt: skip
from mcpspy.core.protocol.mcp_headers import LIST
from mcpspy.core.recording.capped_body import CappedBody
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.core.recording.encode_body import REST

if TYPE_CHECKING:
    pass

from mcpspy.core.exchange.base import CLOSE_SERVER, NOTHING
from mcpspy.core.exchange.request_side import RequestSide


class Unattended(RequestSide):
    """An exchange that reads a response to its end though no client waits for it."""

    def _injected(self, event: c.Injected) -> list[c.Command]:
        if self._has_client or self.state is not ExchangeState.NEW:
            return NOTHING
        self._id, self.message, self.is_intercepted = event.id, event.data, True
        policy = self._policy
        headers = headers_for_injected(self.prepared.headers, event.data, policy.tools)
        self._injected_headers = headers
        self.is_listing = (mcp_headers.METHOD, LIST) in headers
        if policy.changes_heads(CLIENT):
            self._sent = event.data
            self._move(Input.HEADS)
            return [c.Intercept(), c.DecideHead(headers, None)]
        return [c.Intercept(), *self._ask_with(headers, event.data)]

    def _fail(self, why: str) -> list[c.Command]:
        return [] if self._id is None else [c.Fail(self._id, why)]

    def _end_injected(self, hung_up: str | None) -> list[c.Command]:
        return [self._leave(), *self.record.end_injected(self._now, hung_up)]

    def _drain_begins(self, data: bytes, *, is_last: bool) -> list[c.Command]:
        """Take the head of a response that no client waits for.

        It is read to its end: before 2026-07-28, closing a request does not cancel it.
        """
        response, record = self._response, self.record
        assert response is not None
        commands: list[c.Command] = []
        if not self._has_client:
            target, status = self.prepared.target, response.head.status
            record.add_injected_head(self._now, target, self._injected_headers, status, response.recorded)
            commands += record.written()
        fields, limit = record.fields, self._scope.max_body
        if response.head.content_type == EVENTS:
            self._events = DecidedEvents(fields, response.encoding, limit, may_name_endpoint=False)
        else:
            self._body = CappedBody(SERVER, fields, response.encoding, limit)
            if not self._has_client and response.head.content_type != JSON:
                record.begin_unrecorded(response, self.prepared.target, is_mcp=True)
        return commands + self._run(self._drain(data, is_last))

    def _drain(self, data: bytes, is_last: bool) -> Output:
        """Let the messages be decided on, up to the end of the response."""
        events, body = self._events, self._body
        if isinstance(events, DecidedEvents):
            yield from events.feed(self._now, data, self._redirect)
            if events.is_over:
                yield from self._fail("the events of the response are compressed as those of an attack")
                yield CLOSE_SERVER
                is_last = True
            if is_last:
                yield from events.close(self._now)
        elif body is not None:
            yield from in_turns(body.feed(data))
            self.record.take_unrecorded(data)
            if body.is_over:
                yield from self._body_record(REST)
                yield from self._fail("the response is larger than --max-body")
                yield CLOSE_SERVER
                is_last = True
            elif is_last and is_message(message := body.data()):
                yield c.Decide(SERVER, message, message, None, self.record.fields)
        if is_last:
            yield from self._drained(None)

    def _drained(self, hung_up: str | None) -> list[c.Command]:
        """Return the end of a response that no client waits for."""
        commands: list[c.Command] = []
        if not self._has_client:
            assert self._response is not None
            status = self._response.head.status
            if status != 202:  # Ignored if the request was answered.
                commands += self._fail(f"no response, only HTTP {status}")
            self._has_ended = True
            commands += self.record.end_injected(self._now, hung_up)
            if self._kept:
                return commands
            commands.insert(0, self._leave())
        self._move(Input.END)
        return commands

    def _drain_breaks(self, event: c.ServerGone) -> list[c.Command]:
        if self._has_ended:
            return NOTHING
        commands: list[c.Command] = []
        if isinstance(self._events, DecidedEvents):
            commands += [each for each in self._events.close(self._now) if isinstance(each, c.RecordLines)]
        return [
            *commands, *self._fail(f"the response broke off: {event.error}"), *self._drained(SERVER)
        ]  # fmt: skip

    def _decided_for_stream(
        self, step: actions.Forward | actions.Substitute | actions.Dropped
    ) -> list[c.Command]:
        """Forward a message that came with the response to an injected request to a stream of the client."""
        commands: list[c.Command] = []
        was_kept = step.ticket in self._kept
        self._kept = {ticket: data for ticket, data in self._kept.items() if ticket != step.ticket}
        if was_kept and self._events is not None and not isinstance(step, actions.Dropped):
            commands.append(c.ToStream(step.data))
        if self._has_ended and not self._kept:
            self._move(Input.END)
            commands.append(self._leave())
        return commands
