"""One exchange over HTTP, from the head of its request to the end of its response.

Theory of operation
-------------------
`ExchangeMachine.take` gets what has happened (an event, and the time) and returns what is to be done about it (commands,
in order). It reads no clock and waits for nothing. What an event means depends on the state; `states.TRANSITIONS` has
the moves. Every exchange takes the same way: the first call of a connection and all others, messages and streams,
with a client and (if a viewer sent the request) without one.

What must hold, and how it does:

- *Nothing of a message's end is forwarded before the message is recorded.* The part of a body that completes it is
  returned behind the `RecordLines`, and the shell executes commands in order. Parts before it are forwarded as they arrive:
  a client that uploads slowly, or a server that streams, is not delayed.
- *Nothing is forwarded twice.* Each part is forwarded by the command of one event. What waits (for the scripts' head,
  for a decision, for the address in a stream's first event) is kept in one attribute, and given up with the move.
- *Every exchange ends,* with the note `http-end`, in the last `RecordLines` before the last bytes for the client. After
  `ExchangeState.OVER` no event has an effect.
- *The loss of a side is the loss of the other at once.* A client that hangs up ends the server's side, which would work
  for no one (an event stream would stay open for hours). After a server's body that breaks off, the client's connection
  is closed without the last chunk; else the client would take the body for whole (RFC 9112, 8).
- *A response may begin before the request has ended* (RFC 9112, 9.3): the rest of the request is not sent on, and is
  recorded as incomplete. The connection of the client is used again only if the server reads the rest too.

A body is handled by a generator, which runs until it has to wait: for other exchanges while a compressed body is
decoded (a kilobyte may decode to a gigabyte), or for the steps of a decision. `Continue` says so. A whole short message
and an event like the one before it, which are nearly all of the traffic, take no generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from mcpspy.core.exchange import commands as c
from mcpspy.core.exchange.base import CLOSE_SERVER, NOTHING, with_length, without
from mcpspy.core.exchange.events import DecidedEvents, ForwardedEvents
from mcpspy.core.exchange.heads import ENCODING
from mcpspy.core.exchange.response_side import ResponseSide
from mcpspy.core.exchange.states import ExchangeState, Input
from mcpspy.core.intercept import actions
from mcpspy.core.intercept.http import format_event
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER, JsonText
from mcpspy.core.redact.display import redacted_url


class ExchangeMachine(ResponseSide):
    """One request, from its head to the end of its response."""

    _handlers: ClassVar[dict[type, Callable[[ExchangeMachine, Any], list[c.Command]]]]

    def take(self, event: c.Event, now: float) -> list[c.Command]:
        """Return what is to be done about an event."""
        if self.state is ExchangeState.OVER:
            return NOTHING
        self._now = now
        if self._work is not None and isinstance(event, _IN_ORDER):
            self._waiting += (event,)
            return NOTHING
        return self._handlers[type(event)](self, event)

    @property
    def may_half_close(self) -> bool:
        """Return whether the end of the client's sending side is not that of the exchange.

        A message that is decided on, and a stream of events, end with it, as in most servers.
        """
        return not self.is_intercepted and self.state not in (ExchangeState.STREAMING, ExchangeState.SIFTING)

    @property
    def is_answered_here(self) -> bool:
        """Return whether the client waits here for its response; in HTTP+SSE (2024-11-05) it waits on another stream."""
        return (
            self._has_client
            and self.is_intercepted
            and self.state not in (ExchangeState.DRAINING, ExchangeState.OVER)
            and self.prepared.head.method != "GET"
            and not self._scope.streams.is_address(self.prepared.target)
        )

    def held(self) -> list[tuple[int, bytes]]:
        """Return the messages that wait for a decision, by ticket, as they arrived."""
        if self._has_client and isinstance(self._events, DecidedEvents):
            return [(taken.ticket, taken.raw) for taken in self._events.held]
        if self._ticket is not None:
            return [(self._ticket, self._collected or self.message or b"")]
        return sorted(self._kept.items())

    def _head_decided(self, event: actions.HeadDecided) -> list[c.Command]:
        if self.state is ExchangeState.ASKING:
            self._injected_headers = event.headers
            commands = self._ask_with(event.headers, self._sent)
            if self._sent is None and self.prepared.head.has_body:
                parts, self._parts = self._parts, ()
                for data, is_last in parts:
                    commands += self._part(data, is_last=is_last)
                commands.append(c.Pause(CLIENT, is_paused=False))
            return commands
        if self.state is not ExchangeState.ANSWERING:
            return NOTHING
        (first, *more), self._waiting = self._waiting, ()
        assert isinstance(first, c.ResponseData)
        commands = self._forward(event.headers, *first)
        return [*commands, *self._take_all(more), c.Pause(SERVER, is_paused=False)]

    def _taken(self, event: c.Taken) -> list[c.Command]:
        if self.state in (ExchangeState.DECIDING, ExchangeState.JUDGING):
            self._ticket = event.ticket
        elif self.state is ExchangeState.SIFTING:
            assert isinstance(self._events, DecidedEvents)
            self._events.hold(event)
        elif not self._has_client:
            self._kept = {**self._kept, event.ticket: event.raw}
        return NOTHING

    def _decided(self, step: actions.Forward | actions.Substitute | actions.Dropped) -> list[c.Command]:
        if self.state is ExchangeState.SIFTING:
            assert isinstance(self._events, DecidedEvents)
            return [*self._send(self._events.decided(step)), *self._end_if_settled()]
        if not self._has_client:
            return self._decided_for_stream(step)
        if (
            step.ticket != self._ticket
        ):  # After all messages were released, an earlier decision may still arrive.
            return NOTHING
        self._ticket = None
        if isinstance(step, actions.Dropped):
            self._move(Input.DROP)
            is_unanswerable = not self._unanswered or self._scope.streams.is_address(self.prepared.target)
            # A dropped message has no response: its client waits until a side hangs up.
            return self._respond() if step.side == CLIENT and is_unanswerable else NOTHING
        if self.state is ExchangeState.DECIDING:
            if isinstance(step, actions.Forward):
                return self._ask(self.message, is_whole=True)
            return self._ask_changed(step.data)
        received, self._collected = self._collected, b""
        self._is_delivered = isinstance(step, actions.Forward)
        self._move(Input.END)
        if isinstance(step, actions.Forward):
            return self._end(self._begun(self._headers), received)
        headers = without(self._headers, ENCODING)
        return self._end(self._begun(with_length(headers, step.data)), step.data)

    def _answer(self, event: c.Answer) -> list[c.Command]:
        if self.state is ExchangeState.SIFTING:
            assert isinstance(self._events, DecidedEvents)
            self._answers += (event.data,)
            return [
                *self._send(self._events.insert(format_event(event.data))), *self._end_if_settled()
            ]  # fmt: skip
        if self.state in _STARTED or not (self.is_intercepted and self._has_client):
            return NOTHING
        self._answers += (event.data,)
        return self._respond() if len(self._answers) >= self._unanswered else NOTHING

    def _insert(self, event: c.Insert) -> list[c.Command]:
        if self.state is ExchangeState.SIFTING:
            assert isinstance(self._events, DecidedEvents)
            return self._send(self._events.insert(format_event(event.data)))
        if self.state is ExchangeState.STREAMING:
            self._inserted += format_event(event.data)
        return NOTHING

    def _inspect(self, _: c.Inspect) -> list[c.Command]:
        if self.state is not ExchangeState.STREAMING or self._wants_decisions:
            return NOTHING
        assert isinstance(self._events, ForwardedEvents)
        self._wants_decisions = self.is_intercepted = True
        commands: list[c.Command] = [c.Intercept(), c.OpenStream(is_inspected=True)]
        return commands + (self._run(self._sift_from_here()) if self._events.is_between_events else NOTHING)

    def _respond(self) -> list[c.Command]:
        """Return a response in place of the server. The messages are already recorded."""
        status, body = 202, b""
        if self._answers:
            status, body = 200, self._answers[0]
            if len(self._answers) > 1:
                body = b"[" + b",".join(self._answers) + b"]"
        if not self.record.has_head:
            self.record.add_head(self._now, self.prepared, status, is_mcp=self.is_mcp, by=MCPSPY)
        state = self.state
        self._move(Input.DRAIN if state in _WAITS_FOR_SERVER else Input.ANSWER)
        commands: list[c.Command] = [*self._record_end(None), c.Respond(status, body), self._leave()]
        if state in (ExchangeState.HEADED, ExchangeState.ANSWERING):
            commands += self._drain_begins(b"", is_last=False)
            waiting, self._waiting = self._waiting, ()
            commands += self._take_all(waiting)
        return commands

    def _disconnect(self, _: actions.Disconnect) -> list[c.Command]:
        if self._has_client:
            return self._lose(MCPSPY, "", c.HangUp(at_once=True))
        self._kept = {}  # No client is connected here, and no message that waits is forwarded.
        if not self._has_ended:
            return NOTHING
        self._move(Input.END)
        return [self._leave()]

    def _half_closed(self, _: c.HalfClosed) -> list[c.Command]:
        self.record.half_closed = self._now
        self._keeps_alive = False
        return [c.HalfCloseServer()]

    def _client_gone(self, event: c.ClientGone) -> list[c.Command]:
        if not self._has_client:
            self._move(Input.LEAVE)
            return [self._leave()] if self._has_ended else [CLOSE_SERVER, *self._end_injected(event.by)]
        if self.state is ExchangeState.DRAINING:
            if event.by == CLIENT:  # It has its response.
                return NOTHING
            self._move(Input.LEAVE)
            return [CLOSE_SERVER]
        return self._lose(event.by, event.lacks)

    def _lose(self, by: str, lacks: str, *more: c.Command) -> list[c.Command]:
        """Return the end of an exchange whose client is lost."""
        if self.state is ExchangeState.DRAINING:
            return NOTHING
        commands: list[c.Command] = [CLOSE_SERVER]
        if self._asked is not None:
            commands += self._request_record(self._lacks_of_request)
        commands += self._torn(lacks)
        is_stream = self._events is not None
        self._move(Input.LEAVE)
        commands += [*self._record_end(by), *more]
        if self.is_intercepted:
            commands.append(self._leave())
        return commands + self._close_stream() if is_stream else commands

    def _server_gone(self, event: c.ServerGone) -> list[c.Command]:
        state = self.state
        if state in (ExchangeState.ASKED, ExchangeState.UPLOADING):
            return self._unreachable(event)
        if state is ExchangeState.HEADED:
            return [*self._open(b"", is_last=False), *self.take(event, self._now)]
        if state is ExchangeState.ANSWERING:
            self._waiting += (event,)
        if state is ExchangeState.DRAINING:
            return self._drain_breaks(event)
        if state is ExchangeState.SIFTING:
            return self._run(self._sift_breaks(event.error))
        if state not in (ExchangeState.FORWARDING, ExchangeState.COLLECTING, ExchangeState.STREAMING):
            return NOTHING
        commands = self._torn(event.lacks)
        self._move(Input.FAIL)
        # After a normal end, the client would treat this as the whole body.
        commands = [*commands, *self._record_end(SERVER), c.HangUp(at_once=False)]
        if self.is_intercepted:
            commands.append(self._leave())
        return commands if state is not ExchangeState.STREAMING else commands + self._close_stream()

    def _unreachable(self, event: c.ServerGone) -> list[c.Command]:
        """Return a JSON-RPC error, because the server cannot be reached or does not respond."""
        if not self._has_client:
            self._move(Input.FAIL)
            error, target = event.error, self.prepared.target
            self.record.add_injected_head(
                self._now, target, self._injected_headers, None, JsonText(b"{}"), error=error
            )
            return [*self._fail(f"the server cannot be reached: {error}"), *self._end_injected(None)]
        if self.record.half_closed is not None and event.is_connected:
            # The server took the half-close for the end, so the client's side ends too.
            self._move(Input.FAIL)
            return [*self._record_end(CLIENT), c.HangUp(at_once=True)]
        upstream = self._scope.upstream
        line = f"mcpspy: cannot reach {redacted_url(upstream.origin + upstream.path)}: {event.error}"
        if self._asked is not None and not self._is_received:
            self._error = line
            self._move(Input.LOSE)
            return NOTHING
        return [*self._request_record(), *self._respond_unreachable(line)]

    def _abort(self, _: actions.AbortUpstream) -> list[c.Command]:
        if self.state is not ExchangeState.DRAINING or not self._has_client:
            return NOTHING
        self._move(Input.END)
        return [CLOSE_SERVER]


_IN_ORDER = (c.RequestData, c.ResponseBegins, c.ResponseData, c.ServerGone, c.Waited)
"""Events that wait until a generator has ended."""

_STARTED = frozenset((ExchangeState.FORWARDING, ExchangeState.STREAMING, ExchangeState.DRAINING))
"""States in which the client has a part of a response, or all of it."""

_WAITS_FOR_SERVER = frozenset(
    (ExchangeState.ASKED, ExchangeState.HEADED, ExchangeState.ANSWERING, ExchangeState.COLLECTING)
)

ExchangeMachine._handlers = {
    c.RequestData: ExchangeMachine._request_data,
    c.Injected: ExchangeMachine._injected,
    c.ResponseBegins: ExchangeMachine._response_begins,
    c.ResponseData: ExchangeMachine._response_data,
    c.Waited: ExchangeMachine._waited,
    c.Worked: ExchangeMachine._worked,
    c.Taken: ExchangeMachine._taken,
    c.Answer: ExchangeMachine._answer,
    c.Insert: ExchangeMachine._insert,
    c.Inspect: ExchangeMachine._inspect,
    c.HalfClosed: ExchangeMachine._half_closed,
    c.ClientGone: ExchangeMachine._client_gone,
    c.ServerGone: ExchangeMachine._server_gone,
    actions.Forward: ExchangeMachine._decided,
    actions.Substitute: ExchangeMachine._decided,
    actions.Dropped: ExchangeMachine._decided,
    actions.Disconnect: ExchangeMachine._disconnect,
    actions.AbortUpstream: ExchangeMachine._abort,
    actions.HeadDecided: ExchangeMachine._head_decided,
}
