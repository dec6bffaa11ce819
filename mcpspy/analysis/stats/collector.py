"""The fold: lines of a recording in, numbers out, in one pass.

Owns when something counts: a notification when it comes, a request once it is
known what became of it. The tables hold what a filter finds; time, handshake,
who was under way and how many messages there are, are the session's own. What
belongs to what is `core.session.correlation`'s. Reads as `core.session.session` does; a property
test holds the two together.

How long it took until there was somebody to talk to.

Owns the introductions of every era: `initialize` until 2025-11-25,
`server/discover` in 2026-07-28; that a client may have neither; and that many
may come through one proxy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from mcpspy.analysis.stats import collector_fast
from mcpspy.analysis.stats.calls import InputChain, StatsAnswer, StatsCall
from mcpspy.analysis.stats.concurrency import Concurrency
from mcpspy.analysis.stats.tables import StatsTables
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    read_frame,
    text,
)
from mcpspy.core.protocol.peers import INTRODUCTIONS, Peers
from mcpspy.core.protocol.spec import CLIENT, MODERN, SERVER
from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import Entry, Frame, Header, Note, read_entry
from mcpspy.core.session.correlation import Correlation, question
from mcpspy.core.session.exchange import SUBSCRIBE, Event, State
from mcpspy.core.session.session import event_of

MOST = 100
"""Clients that are told apart."""


class Handshake(NamedTuple):
    """An introduction that was answered. All times are seconds, `at` since the session's start."""

    method: str
    at: float
    took: float
    stream: str | None
    ready: float | None = None
    """When the client said that it is initialized, since the session's start; None if it never did."""


class Handshakes:
    """The introductions of a session."""

    def __init__(self) -> None:
        self.count = 0
        """Introductions that were answered."""
        self.first: Handshake | None = None
        self.first_answer: float | None = None
        """When the server first answered anything, since the session's start."""
        self.clients: Counter[str] = Counter()
        """How often each client began a session."""

    def begun(self, client: str) -> None:
        """A client asks to be let in."""
        if client in self.clients or len(self.clients) < MOST:
            self.clients[client] += 1

    def answered(self, method: str, at: float, took: float, stream: str | None) -> None:
        """It was let in."""
        self.count += 1
        if self.first is None:
            self.first = Handshake(method, at, took, stream)

    def initialized(self, at: float, stream: str | None) -> None:
        """A client says that it is ready."""
        first = self.first
        if first is not None and first.ready is None and first.stream == stream:
            self.first = first._replace(ready=at)


_KINDS = {
    Request: "request",
    Notification: "notification",
    Result: "result",
    Failure: "error",
    Malformed: "malformed",
}

KINDS = (*_KINDS.values(), "repeated")
"""What messages are counted as; `repeated` is an event that a resumed stream brought again."""

KEPT = 1 << 14
"""Requests, events and HTTP exchanges that are remembered after their end."""

_EVERY = 4096
"""Lines after which it is seen whether something can be forgotten."""


class StatsCollector(Peers):
    """A session in numbers, as far as it has been read."""

    def __init__(self, header: Header | None = None, query: Query | None = None, top: int = 10) -> None:
        """Begin with nothing; a query chooses what the tables hold, `top` how many large messages are kept."""
        super().__init__()
        self.header = header
        self.query = query
        self.tables = StatsTables(query, top)
        self.groups = self.tables.groups
        self.flight = Concurrency()
        self.handshakes = Handshakes()
        self.exit: Note | None = None
        self.last_at = 0.0
        """Seconds from the start to the last entry."""
        self.messages = {CLIENT: 0, SERVER: 0}
        """How many each side sent, whatever they are."""
        self.bytes = {CLIENT: 0, SERVER: 0}
        """Bytes of these."""
        self.kinds: Counter[str] = Counter()
        """Messages by what they are, `KINDS`; they add up to `messages`."""
        self.strays = 0
        """Answers that no open request waited for."""
        self.notes: Counter[str] = Counter()
        self.damaged = 0
        """Lines that nothing can be read from."""
        self.lost = 0
        """Entries that could not be recorded."""
        self.waiting: list[StatsCall] = []
        """Once finished: the requests that wait for their answer, the oldest first."""
        self.pairing = Correlation[StatsCall](forgets=True)
        self.lines = 0
        """How many have been taken, of all files, their headers aside."""
        self._parts: list[int] = []

    def begin_part(self) -> None:
        """What is added from here on is in the next of the session's files, after its header."""
        self._parts.append(self.lines)

    def place(self, line: int) -> tuple[int, int]:
        """Return in which part a line is, from 0, and which of that file's it is, from 1."""
        part = max(bisect_right(self._parts, line) - 1, 0)
        return part, line - (self._parts[part] if self._parts else 0) + 2

    def add_lines(self, lines: Sequence[bytes]) -> None:
        """Take lines that follow each other, without their LF."""
        begin = self.lines
        place = 0
        while (place := collector_fast.take(self, lines, place)) < len(lines):
            self.add(read_entry(lines[place]))
            place += 1
        if self.lines // _EVERY != begin // _EVERY:
            self.pairing.forget_but(KEPT)

    def add(self, entry: Entry) -> None:
        """Take the next entry."""
        if isinstance(entry, Frame):
            self.last_at = entry.at
            again = self.pairing.comes_again(entry)
            for message in read_frame(entry):
                self._message(message, again=again)
        elif isinstance(entry, Note):
            self.last_at = entry.at
            self._note(entry)
        else:
            self.damaged += 1
        self.lines += 1

    def finish(self, *, is_over: bool) -> None:
        """Count what is still open. `is_over`: nothing more will come, so it never gets an answer."""
        if not is_over:
            self.waiting = sorted(self.pairing.pending(), key=lambda call: call.at)
        self._close(is_over=is_over)

    def _close(self, *, is_over: bool) -> None:
        self.flight.pass_to(self.last_at)
        left = self.pairing.waiting()
        if is_over:
            self.pairing.end()
        for call in left:
            self.settle(call, None)

    def introduced(self, call: StatsCall, line: bytes) -> None:
        """Take what another server says of itself, from the line of its answer."""
        entry = read_entry(line)
        for message in read_frame(entry) if isinstance(entry, Frame) else ():
            if isinstance(message, Result):
                self._hear(call, message)

    def _hear(self, call: StatsCall, message: Result | Failure) -> None:
        """Take what an answer says of who sent it."""
        self.hear_answer(message, call.method)
        if call.method in INTRODUCTIONS and isinstance(message, Result):
            took = max(message.at - call.at, 0.0)
            self.handshakes.answered(call.method, message.at, took, call.stream)

    def _message(self, message: AnyMessage, *, again: bool) -> None:
        self.messages[message.side] += 1
        self.bytes[message.side] += len(message.data)
        self.kinds["repeated" if again else _KINDS[type(message)]] += 1
        if again:
            self.tables.passed(message, "repeated", self.lines)
        elif isinstance(message, Request):
            self._request(message)
        elif isinstance(message, Result | Failure):
            self._answer(message)
        elif isinstance(message, Notification):
            self._notification(message)
        else:
            self.tables.passed(message, "malformed", self.lines)

    def _request(self, message: Request) -> None:
        frame, body, subject = message.frame, message.body, message.subject or ""
        group = self.groups.requests(frame.side, message.method, subject)
        size = len(message.data)
        call = StatsCall(frame.at, size, self.lines, message.id, message.method, group, subject, frame.stream)
        call.is_subscription = message.method == SUBSCRIBE
        call.is_modern = (message.revision or "") >= MODERN
        flaw = self.pairing.request(call, frame, message.id, None, modern=self.is_modern)
        call.odd = bool(flaw or message.flaws)
        if self.tables.reads_text:
            call.data = message.data
        if bytes(body.request_state) or bytes(body.input_responses):
            asked = question(
                frame.stream, message.method, message.subject, body.request_state, body.input_responses
            )
            if (earlier := self.pairing.continued(asked)) is not None:
                call.chain = earlier.chain
        self.hear_request(message)
        if message.method == "initialize":
            self.handshakes.begun(str(self.client or ""))
        if not call.is_subscription:
            self.flight.change(frame.side == CLIENT, 1, frame.at)

    def _answer(self, message: Result | Failure) -> None:
        frame, event, handshakes = message.frame, event_of(message), self.handshakes
        if handshakes.first_answer is None and frame.side == SERVER:
            handshakes.first_answer = frame.at
        call, flaw = self.pairing.answer(frame, message.id, event)
        is_failure = isinstance(message, Failure)
        if call is None:
            self.strays += 1
            self.tables.passed(message, _KINDS[type(message)], self.lines)
            return
        answer = StatsAnswer(frame.at, len(message.data), self.lines, is_failure)
        answer.odd = bool(flaw or message.flaws)
        if isinstance(message, Failure):
            answer.code = message.code
        if self.tables.reads_text:
            answer.data = message.data
        self._hear(call, message)
        if event is not Event.QUESTION or not isinstance(message, Result):
            self.settle(call, answer)
            return
        # The call is not at its end: the same request comes again, with what was asked for.
        chain, call.chain = call.chain or InputChain(call.at), None
        self.settle(call, answer)
        call.chain, call.data = chain, b""
        chain.requests += 1
        chain.served += max(frame.at - call.at, 0.0)
        body = message.body
        asked = question(
            call.stream, call.method, call.subject or None, body.request_state, body.input_requests
        )
        self.pairing.asks(asked, call)

    def _notification(self, message: Notification) -> None:
        frame, method = message.frame, message.method
        if method == "notifications/cancelled":
            call, _ = self.pairing.cancel(frame, text(message.body.request_id))
            if call is not None and call.state is State.CANCELLED:
                self._leave(call, frame.at)
        elif method == "notifications/initialized":
            self.handshakes.initialized(frame.at, frame.stream)
        self.tables.told(message, self.lines)

    def _note(self, note: Note) -> None:
        fields = note.fields
        self.notes[note.kind] += 1
        if note.kind == "exit":
            self.exit = note
            self._close(is_over=True)
        elif note.kind == "lost":
            entries = fields.get("entries")
            self.lost += entries if isinstance(entries, int) else 1
        elif note.kind == "http":
            self.pairing.http(fields.get("http"), fields.get("status"))
        elif note.kind == "http-end":
            call, flaw = self.pairing.http_end(fields.get("http"), fields.get("hung_up"))
            if call is None:
                return
            call.odd |= flaw is not None
            if call.state is State.REFUSED:
                self.settle(call, None)
            elif call.state is State.CANCELLED:
                self._leave(call, note.at)

    def settle(self, call: StatsCall, answer: StatsAnswer | None) -> None:
        """What became of a request is known: nobody waits for it any more, and it counts."""
        self._leave(call, self.last_at if answer is None else answer.at)
        self.tables.settled(call, answer)

    def _leave(self, call: StatsCall, at: float) -> None:
        """Nobody waits for a call any more."""
        if not call.is_out and not call.is_subscription:
            call.is_out = True
            self.flight.change(call.group.side == CLIENT, -1, at)
