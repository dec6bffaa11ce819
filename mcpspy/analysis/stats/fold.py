"""The fold: lines of a recording in, numbers out, in one pass.

Owns when something counts: a notification when it comes, a request once it is
known what became of it. The tables hold what a filter finds; time, handshake,
who was under way and how many messages there are, are the session's own. What
belongs to what is `core.pairing`'s. Reads as `core.session` does; a property
test holds the two together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import DecodeError

from mcpspy.analysis.stats.call import Answer, Call, Chain, Seen, seen
from mcpspy.analysis.stats.flight import Flight
from mcpspy.analysis.stats.group import Kind
from mcpspy.analysis.stats.groups import Groups, Large
from mcpspy.analysis.stats.handshake import Handshakes
from mcpspy.analysis.stats.plain import ABSENT, COMPLETE, HEAD, LONG_WAY, PAYLOAD, SUBJECTS, VERSION, decode
from mcpspy.core.exchange import SUBSCRIBE, Event, State
from mcpspy.core.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    read_frame,
    text,
)
from mcpspy.core.pairing import Pairing, question
from mcpspy.core.parties import INTRODUCTIONS, Parties
from mcpspy.core.query import Query
from mcpspy.core.record import Entry, Frame, Header, Note, read_entry
from mcpspy.core.session import event_of
from mcpspy.core.spec import CLIENT, MODERN, SERVER

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


class Stats(Parties):
    """A session in numbers, as far as it has been read."""

    def __init__(self, header: Header | None = None, query: Query | None = None, top: int = 10) -> None:
        """Begin with nothing; a query chooses what the tables hold, `top` how many large messages are kept."""
        super().__init__()
        self.header = header
        self.query = query
        self.groups = Groups(top)
        self.flight = Flight()
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
        self.waiting: list[Call] = []
        """Once finished: the requests that wait for their answer, the oldest first."""
        self._wanted: Callable[[Seen], bool] | None = query.matches if query is not None else None
        self._keeps = query is not None and query.reads_text
        self._pairing = Pairing[Call](forgets=True)
        self._lines = 0
        self._parts: list[int] = []

    def begin_part(self) -> None:
        """What is added from here on is in the next of the session's files, after its header."""
        self._parts.append(self._lines)

    def place(self, line: int) -> tuple[int, int]:
        """Return in which part a line is, from 0, and which of that file's it is, from 1."""
        part = max(bisect_right(self._parts, line) - 1, 0)
        return part, line - (self._parts[part] if self._parts else 0) + 2

    def add_lines(self, lines: Sequence[bytes]) -> None:
        """Take lines that follow each other, without their LF."""
        begin = self._lines
        place = 0
        while (place := self._add_plain(lines, place)) < len(lines):
            self.add(read_entry(lines[place]))
            place += 1
        if self._lines // _EVERY != begin // _EVERY:
            self._pairing.forget_but(KEPT)

    def add(self, entry: Entry) -> None:
        """Take the next entry."""
        if isinstance(entry, Frame):
            self.last_at = entry.at
            again = self._pairing.comes_again(entry)
            for message in read_frame(entry):
                self._message(message, again=again)
        elif isinstance(entry, Note):
            self.last_at = entry.at
            self._note(entry)
        else:
            self.damaged += 1
        self._lines += 1

    def finish(self, *, is_over: bool) -> None:
        """Count what is still open. `is_over`: nothing more will come, so it never gets an answer."""
        if not is_over:
            self.waiting = sorted(self._pairing.pending(), key=lambda call: call.at)
        self._close(is_over=is_over)

    def _close(self, *, is_over: bool) -> None:
        self.flight.pass_to(self.last_at)
        left = self._pairing.waiting()
        if is_over:
            self._pairing.end()
        for call in left:
            self._settle(call, None)

    def _add_plain(self, lines: Sequence[bytes], place: int) -> int:  # noqa: PLR0912, PLR0915 - see below.
        """Take lines from a place on while each is a message of which nothing is odd.

        Return the place of the first that is not. A million are read while
        somebody waits: calls and attributes would cost twice the time.
        """
        begin, around, number = place, len(PAYLOAD) + 1, self._lines - place
        ask, answer_plainly, find = self._pairing.ask_plainly, self._pairing.answer_plainly, self.groups.find
        wanted, keeps, settle, count = self._wanted, self._keeps, self._settle, self._answered
        under_way = self.flight.change
        may_ask, may_answer = self.revision is not None and self.client is not None, self.server is not None
        messages, sizes, kinds = [0, 0], [0, 0], [0, 0, 0]
        at = self.last_at
        while place < len(lines):
            line = lines[place]
            split = line.find(PAYLOAD, 0, HEAD)
            if split < 0 or line[-2:] != b"}}":
                break
            try:
                read = decode(line)
                if wanted is not None and not line.isascii():
                    line.decode()
            except (DecodeError, UnicodeDecodeError, RecursionError):
                break
            message, side = read.msg, read.side
            is_client = side == CLIENT
            method, raw_id, result = message.method, bytes(message.id), message.result
            if not (is_client or side == SERVER) or message.jsonrpc != "2.0" or message.error is not ABSENT:
                break
            size = len(line) - split - around
            if method:
                if method in LONG_WAY or result is not None:
                    break
                if raw_id:
                    subject, params = "", message.params
                    if params is not None:
                        if params.request_state is not ABSENT or params.input_responses is not ABSENT:
                            break
                        if (member := SUBJECTS.get(method)) is not None:
                            subject = params.name if member == "name" else params.uri
                        if read.http is not None and VERSION in bytes(params.meta):
                            break
                    if not may_ask or not raw_id.isdigit():
                        break
                    group = find(side, Kind.REQUEST, method, subject)
                    call = Call(read.t, size, number + place, raw_id.decode(), method, group)
                    key = (read.stream, side, call.id)
                    if not ask(call, key, None):
                        break
                    if read.http is not None and is_client:
                        self._pairing.post_plainly(read.http, key)
                    call.subject, call.stream = subject, read.stream
                    if keeps:
                        call.data = line[split + len(PAYLOAD) : -1]
                    under_way(is_client, 1, read.t)
                    kinds[0] += 1
                elif wanted is not None:
                    break
                else:
                    if size > self.groups.least:
                        break
                    group = find(side, Kind.NOTIFICATION, method, "")
                    group.count += 1
                    group.sent += size
                    kinds[1] += 1
            else:
                if (
                    result is None
                    or not may_answer
                    or not raw_id.isdigit()
                    or result.result_type not in COMPLETE
                ):
                    break
                event = Event.TOOL_ERROR if result.is_error else Event.RESULT
                answered = answer_plainly(
                    (read.stream, SERVER if is_client else CLIENT, raw_id.decode()), event
                )
                if answered is None:
                    break
                if answered.method in INTRODUCTIONS:
                    self._introduced(answered, line)
                if wanted is None:
                    if not answered.is_out:
                        answered.is_out = True
                        under_way(not is_client, -1, read.t)
                    count(answered, read.t, size, number + place)
                else:
                    answer = Answer(read.t, size, number + place)
                    if keeps:
                        answer.data = line[split + len(PAYLOAD) : -1]
                    settle(answered, answer)
                kinds[2] += 1
            at = read.t
            messages[is_client] += 1
            sizes[is_client] += size
            place += 1
        if place > begin:
            self._lines += place - begin
            self.last_at = at
            for of_client, by in enumerate((SERVER, CLIENT)):
                self.messages[by] += messages[of_client]
                self.bytes[by] += sizes[of_client]
            for kind, more in zip(("request", "notification", "result"), kinds, strict=True):
                self.kinds[kind] += more
        return place

    def _introduced(self, call: Call, line: bytes) -> None:
        """Take what another server says of itself, from the line of its answer."""
        entry = read_entry(line)
        for message in read_frame(entry) if isinstance(entry, Frame) else ():
            if isinstance(message, Result):
                self._hear(call, message)

    def _hear(self, call: Call, message: Result | Failure) -> None:
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
            self._weigh(message, "repeated")
        elif isinstance(message, Request):
            self._request(message)
        elif isinstance(message, Result | Failure):
            self._answer(message)
        elif isinstance(message, Notification):
            self._notification(message)
        else:
            self._weigh(message, "malformed")

    def _request(self, message: Request) -> None:
        frame, body, subject = message.frame, message.body, message.subject or ""
        group = self.groups.find(frame.side, Kind.REQUEST, message.method, subject)
        call = Call(frame.at, len(message.data), self._lines, message.id, message.method, group)
        call.subject, call.stream = subject, frame.stream
        call.is_subscription = message.method == SUBSCRIBE
        call.is_modern = (message.revision or "") >= MODERN
        flaw = self._pairing.request(call, frame, message.id, None, modern=self.is_modern)
        call.odd = bool(flaw or message.flaws)
        if self._keeps:
            call.data = message.data
        if bytes(body.request_state) or bytes(body.input_responses):
            asked = question(
                frame.stream, message.method, message.subject, body.request_state, body.input_responses
            )
            if (earlier := self._pairing.continued(asked)) is not None:
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
        call, flaw = self._pairing.answer(frame, message.id, event)
        is_failure = isinstance(message, Failure)
        if call is None:
            self.strays += 1
            self._weigh(message, _KINDS[type(message)])
            return
        answer = Answer(frame.at, len(message.data), self._lines, is_failure)
        answer.odd = bool(flaw or message.flaws)
        if isinstance(message, Failure):
            answer.code = message.code
        if self._keeps:
            answer.data = message.data
        self._hear(call, message)
        if event is not Event.QUESTION or not isinstance(message, Result):
            self._settle(call, answer)
            return
        # The call is not at its end: the same request comes again, with what was asked for.
        chain, call.chain = call.chain or Chain(call.at), None
        self._settle(call, answer)
        call.chain, call.data = chain, b""
        chain.requests += 1
        chain.served += max(frame.at - call.at, 0.0)
        body = message.body
        asked = question(
            call.stream, call.method, call.subject or None, body.request_state, body.input_requests
        )
        self._pairing.asks(asked, call)

    def _notification(self, message: Notification) -> None:
        frame, method, subject = message.frame, message.method, message.subject or ""
        if method == "notifications/cancelled":
            call, _ = self._pairing.cancel(frame, text(message.body.request_id))
            if call is not None and call.state is State.CANCELLED:
                self._leave(call, frame.at)
        elif method == "notifications/initialized":
            self.handshakes.initialized(frame.at, frame.stream)
        size = len(message.data)
        if self._wanted is not None:
            item = Seen(
                at=frame.at,
                side=frame.side,
                kind="notification",
                method=method,
                subject=subject,
                size=size,
                stream=frame.stream or "",
                odd=bool(message.flaws),
                data=message.data,
            )
            if not self._wanted(item):
                return
        group = self.groups.find(frame.side, Kind.NOTIFICATION, method, "")
        group.count += 1
        group.sent += size
        if size > self.groups.least:
            line = self._lines
            self.groups.weigh(Large(size, -line, line, frame.at, frame.side, "notification", method, subject))

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
            self._pairing.http(fields.get("http"), fields.get("status"))
        elif note.kind == "http-end":
            call, flaw = self._pairing.http_end(fields.get("http"), fields.get("hung_up"))
            if call is None:
                return
            call.odd |= flaw is not None
            if call.state is State.REFUSED:
                self._settle(call, None)
            elif call.state is State.CANCELLED:
                self._leave(call, note.at)

    def _leave(self, call: Call, at: float) -> None:
        """Nobody waits for a call any more."""
        if not call.is_out and not call.is_subscription:
            call.is_out = True
            self.flight.change(call.group.side == CLIENT, -1, at)

    def _settle(self, call: Call, answer: Answer | None) -> None:
        """Count a request if it is wanted: what became of it is known."""
        self._leave(call, self.last_at if answer is None else answer.at)
        if self._wanted is not None and not self._wanted(seen(call, answer)):
            return
        if answer is not None:
            self._answered(call, answer.at, answer.size, answer.line, is_failure=answer.is_failure)
            return
        group = call.group
        group.count += 1
        group.states[call.state] += 1
        group.sent += call.size
        if call.size > self.groups.least:
            self._weigh_request(call)

    def _answered(self, call: Call, at: float, size: int, line: int, *, is_failure: bool = False) -> None:
        """Count a request and its answer."""
        group, state, groups = call.group, call.state, self.groups
        group.count += 1
        group.states[state] += 1
        if is_failure and state is State.LATE:
            group.late_errors += 1
        group.sent += call.size
        group.back += size
        took = at - call.at
        if not call.is_subscription:
            group.took.add(took if took > 0.0 else 0.0)  # noqa: FURB136 - a call of max() for every answer.
        if call.chain is not None:
            group.chains.whole.add(max(at - call.chain.begun, 0.0))
            group.chains.served += call.chain.served + max(took, 0.0)
            group.chains.requests += call.chain.requests + 1
        if call.size > groups.least:
            self._weigh_request(call)
        if size > groups.least:
            side = SERVER if group.side == CLIENT else CLIENT
            kind = "error" if is_failure else "result"
            groups.weigh(Large(size, -line, line, at, side, kind, call.method, call.subject, call.id))

    def _weigh_request(self, call: Call) -> None:
        side = call.group.side
        self.groups.weigh(
            Large(
                call.size, -call.line, call.line, call.at, side, "request", call.method, call.subject, call.id
            )
        )

    def _weigh(self, message: AnyMessage, kind: str) -> None:
        """Weigh a message that is neither of a call nor a notification; no filter finds such."""
        size = len(message.data)
        if self._wanted is None and size > self.groups.least:
            self.groups.weigh(Large(size, -self._lines, self._lines, message.at, message.side, kind))
