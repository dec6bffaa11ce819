"""One exchange over HTTP, from the head of its request to the end of its response.

Theory of operation
-------------------
The public methods of `ExchangeMachine` are the events of an exchange. Each calls the shell for what is to be done about it, in
order, and waits for nothing; `now` is its time. What an event means depends on the state; `states.TRANSITIONS` has the
moves. Every exchange takes the same way: the first call of a connection and all others, messages and streams,
with a client and (if a viewer sent the request) without one.

What must hold, and how it does:

- *Nothing of a message's end is forwarded before the message is recorded.* The part of a body that completes it is
  passed to the shell behind the `record`, and the shell acts in order. Parts before it are forwarded as they arrive:
  a client that uploads slowly, or a server that streams, is not delayed.
- *Nothing is forwarded twice.* Each part is forwarded by one event. What waits (for the scripts' head,
  for a decision, for the address in a stream's first event) is kept in one attribute, and given up with the move.
- *Every exchange ends,* with the note `http-end`, in the last `record` before the last bytes for the client. After
  `OVER` no event has an effect.
- *The loss of a side is the loss of the other at once.* A client that hangs up ends the server's side, which would work
  for no one (an event stream would stay open for hours). After a server's body that breaks off, the client's connection
  is closed without the last chunk; else the client would take the body for whole (RFC 9112, 8).
- *A response may begin before the request has ended* (RFC 9112, 9.3): the rest of the request is not sent on, and is
  recorded as incomplete. The connection of the client is used again only if the server reads the rest too.

A body is handled by a generator, which runs until it has to wait: for other exchanges while a compressed body is
decoded (a kilobyte may decode to a gigabyte), or for the steps of a decision. Then the
shell calls `proceed`, and no event of the two connections before that, except a loss of the client. A whole short message
and an event like the one before it, which are nearly all of the traffic, take no generator.
"""

from __future__ import annotations

from functools import partial

from mcpspy.core.exchange.base import with_length, without
from mcpspy.core.exchange.events import DecidedEvents, ForwardedEvents, Taken
from mcpspy.core.exchange.heads import ENCODING
from mcpspy.core.exchange.response_side import ResponseSide
from mcpspy.core.exchange.states import (
    ANSWERING,
    ASKED,
    ASKING,
    COLLECTING,
    DECIDING,
    DRAINING,
    FORWARDING,
    HEADED,
    JUDGING,
    OVER,
    SIFTING,
    STREAMING,
    UPLOADING,
    Input,
)  # fmt: skip
from mcpspy.core.intercept import actions
from mcpspy.core.intercept.http import format_event
from mcpspy.core.protocol.http_headers import Headers
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER
from mcpspy.core.redact.display import redacted_url


class ExchangeMachine(ResponseSide):
    """One request, from its head to the end of its response."""

    @property
    def may_half_close(self) -> bool:
        """Return whether the end of the client's sending side is not that of the exchange.

        A message that is decided on, and a stream of events, end with it, as in most servers.
        """
        return not self.is_intercepted and self.state not in (STREAMING, SIFTING)

    @property
    def is_answered_here(self) -> bool:
        """Return whether the client waits here for its response; in HTTP+SSE (2024-11-05) it waits on another stream."""
        return (
            self._has_client
            and self.is_intercepted
            and self.state not in (DRAINING, OVER)
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

    def head_decided(self, headers: Headers) -> None:
        """Continue with the headers on which the scripts have decided."""
        if self.state is ASKING:
            self._injected_headers = headers
            self._ask_with(headers, self._sent)
            if self._sent is None and self.prepared.head.has_body:
                parts, self._parts = self._parts, ()
                for data, is_last in parts:
                    self._send_part(data, is_last=is_last)
                self.shell.pause(CLIENT, False)
        elif self.state is ANSWERING:
            self._forward(headers, *self._begun_with)
            self._take_waiting()
            self.shell.pause(SERVER, False)

    def taken(self, taken: Taken) -> None:
        """Take the number under which the interception decides on a message, before its steps."""
        if self.state in (DECIDING, JUDGING):
            self._ticket = taken.ticket
        elif self.state is SIFTING:
            assert isinstance(self._events, DecidedEvents)
            self._events.hold(taken)
        elif not self._has_client and self.state is not OVER:
            self._kept = {**self._kept, taken.ticket: taken.raw}

    def decided(self, step: actions.Forward | actions.Substitute | actions.Dropped) -> None:
        """Carry out the decision on a message."""
        if self.state is OVER:
            return
        if self.state is SIFTING:
            assert isinstance(self._events, DecidedEvents)
            self._send(self._events.decided(step))
            self._end_if_settled()
            return
        if not self._has_client:
            self._decided_for_stream(step)
            return
        if step.ticket != self._ticket:  # After all messages were released, an earlier decision may arrive.
            return
        self._ticket = None
        if isinstance(step, actions.Dropped):
            self._move(Input.DROP)
            is_unanswerable = not self._unanswered or self._scope.streams.is_address(self.prepared.target)
            # A dropped message has no response: its client waits until a side hangs up.
            if step.side == CLIENT and is_unanswerable:
                self._respond()
        elif self.state is DECIDING:
            if isinstance(step, actions.Forward):
                self._ask(self.message, is_whole=True)
            else:
                self._ask_changed(step.data)
        else:
            received, self._collected = self._collected, b""
            self._is_delivered = isinstance(step, actions.Forward)
            self._move(Input.END)
            if isinstance(step, actions.Forward):
                self._end_whole(self._headers, received)
            else:
                self._end_whole(with_length(without(self._headers, ENCODING), step.data), step.data)

    def answer(self, data: bytes) -> None:
        """Take a response of mcpspy to a message of this exchange, recorded."""
        if self.state is SIFTING:
            assert isinstance(self._events, DecidedEvents)
            self._answers += (data,)
            self._send(self._events.insert(format_event(data)))
            self._end_if_settled()
        elif self.state not in _STARTED and self.is_intercepted and self._has_client:
            self._answers += (data,)
            if len(self._answers) >= self._unanswered:
                self._respond()

    def insert(self, data: bytes) -> None:
        """Take a message of mcpspy for the stream of this exchange, recorded."""
        if self.state is SIFTING:
            assert isinstance(self._events, DecidedEvents)
            self._send(self._events.insert(format_event(data)))
        elif self.state is STREAMING:
            self._inserted += format_event(data)

    def inspect(self) -> None:
        """From the next event on, let each one be decided on."""
        if self.state is not STREAMING or self._wants_decisions:
            return
        assert isinstance(self._events, ForwardedEvents)
        self._wants_decisions = self.is_intercepted = True
        self.shell.intercept()
        self.shell.open_stream(True)
        if self._events.is_between_events:
            self._run(self._sift_from_here())

    def _respond(self) -> None:
        """Respond in place of the server. The messages are already recorded."""
        status, body = 202, b""
        if self._answers:
            status, body = 200, self._answers[0]
            if len(self._answers) > 1:
                body = b"[" + b",".join(self._answers) + b"]"
        if not self._has_head:
            self._add_head(status, by=MCPSPY)
        state = self.state
        self._move(Input.DRAIN if state in _WAITS_FOR_SERVER else Input.ANSWER)
        self._write_end(None)
        self.shell.respond(status, body)
        self._leave()
        if state is HEADED:
            self._drain_begins(b"", False)
        elif state is ANSWERING:
            self._drain_begins(*self._begun_with)
            self._take_waiting()

    def disconnect(self) -> None:
        """Hang up in place of a decision."""
        if self._has_client:
            self._lose(MCPSPY, "", hangs_up=True)
            return
        self._kept = {}  # No client is connected here, and no message that waits is forwarded.
        if self._has_ended and self.state is not OVER:
            self._move(Input.END)
            self._leave()

    def half_closed(self) -> None:
        """Take the end of the client's sending side (RFC 9293, 3.6). It may still wait for the response."""
        if self.state is not OVER:
            self.half_closed_at = self.now
            self._keeps_alive = False
            self.shell.half_close_server()

    def client_gone(self, by: str, lacks: str = "") -> None:
        """Take the loss of the client, or the end by mcpspy. `lacks` is the missing end of the response's body."""
        if self._has_client:
            if self.state is DRAINING and by != CLIENT:  # A client that has left has its response.
                self._move(Input.LEAVE)
                self.shell.close_server()
            self._lose(by, lacks)
        elif self.state is not OVER:
            self._move(Input.LEAVE)
            if self._has_ended:
                self._leave()
            else:
                self.shell.close_server()
                self._end_injected(by)

    def _lose(self, by: str, lacks: str, *, hangs_up: bool = False) -> None:
        """End an exchange whose client is lost."""
        if self.state in (DRAINING, OVER):
            return
        self.shell.close_server()
        if self._asked is not None:
            self._record_request(self._lacks_of_request)
        self._tear(lacks)
        self._move(Input.LEAVE)
        self._write_end(by)
        if hangs_up:
            self.shell.hang_up(True)
        if self.is_intercepted:
            self._leave()
        if self._events is not None:
            self._close_stream()

    def server_gone(self, error: str, is_connected: bool = True, lacks: str = "") -> None:
        """Take that nothing more of the response comes. `is_connected` is False if the server was not reached."""
        state = self.state
        if state in (ASKED, UPLOADING):
            self._unreachable(error, is_connected=is_connected)
        elif state is HEADED:
            self._open(b"", False)
            self.server_gone(error, is_connected, lacks)
        elif state is ANSWERING:
            self._waiting += (partial(self.server_gone, error, is_connected, lacks),)
        elif state is DRAINING:
            self._drain_breaks(error)
        elif state is SIFTING:
            self._run(self._sift_breaks(error))
        elif state in (FORWARDING, COLLECTING, STREAMING):
            self._tear(lacks)
            self._move(Input.FAIL)
            self._write_end(SERVER)
            self.shell.hang_up(False)  # After a normal end, the client would treat this as the whole body.
            if self.is_intercepted:
                self._leave()
            if state is STREAMING:
                self._close_stream()

    def _unreachable(self, error: str, *, is_connected: bool) -> None:
        """Respond with a JSON-RPC error, because the server cannot be reached or does not respond."""
        upstream = self._scope.upstream
        line = f"mcpspy: cannot reach {redacted_url(upstream.origin + upstream.path)}: {error}"
        if not self._has_client:
            self._move(Input.FAIL)
            self._add_injected_head(self._injected_headers, None, error=error)
            self._fail(f"the server cannot be reached: {error}")
            self._end_injected(None)
        elif self.half_closed_at is not None and is_connected:
            # The server took the half-close for the end, so the client's side ends too.
            self._move(Input.FAIL)
            self._write_end(CLIENT)
            self.shell.hang_up(True)
        elif self._asked is not None and not self._is_received:
            self._error = line
            self._move(Input.LOSE)
        else:
            self._record_request()
            self._respond_unreachable(line)

    def abort(self) -> None:
        """End the request to the server, whose client has its response."""
        if self.state is DRAINING and self._has_client:
            self._move(Input.END)
            self.shell.close_server()


_STARTED = frozenset((FORWARDING, STREAMING, DRAINING, OVER))
"""States in which the client has a part of a response, or all of it."""

_WAITS_FOR_SERVER = frozenset((ASKED, HEADED, ANSWERING, COLLECTING))
