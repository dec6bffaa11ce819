"""The collector: lines of a recording in, statistics out, in one pass.

Owns when a message is counted: a notification at once, a request once `core.session.correlation` knows its
outcome. A filter limits requests and tables only, not time, handshakes, concurrency and number of messages. A handshake
is `initialize` until 2025-11-25 or `server/discover` in 2026-07-28; a client may have neither, and many
clients may share a proxy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from mcpspy.analysis.stats.concurrency import Concurrency
from mcpspy.analysis.stats.group import MessageGroup
from mcpspy.analysis.stats.tables import InputChain, StatsAnswer, StatsCall, StatsTables, count_unanswered
from mcpspy.core.protocol.message import AnyMessage, Failure, Notification, Request, Result
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.plain_line import PlainHead
from mcpspy.core.protocol.spec import CLIENT, MODERN, SERVER
from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import Damaged, Entry, Header, Note, read_entry
from mcpspy.core.session import outcome
from mcpspy.core.session.correlation import (
    CorrelatedEntry,
    Correlation,
    RepeatedEvent,
    RequestAnswered,
    RequestCancelled,
    RequestOpened,
    RequestRepeated,
    ResponseMissing,
    UnsolicitedResponse,
)
from mcpspy.core.session.exchange import SUBSCRIBE, Event, State
from mcpspy.core.session.tasks import TaskChange

MOST = 100
"""Maximum number of clients that are counted separately."""


class Handshake(NamedTuple):
    """An answered `initialize` or `server/discover`. All times are seconds, `at` since the session's start."""

    method: str
    at: float
    took: float
    stream: str | None
    ready: float | None = None
    """Time of `notifications/initialized`, since the session's start; None if there was none."""


class Handshakes:
    def __init__(self) -> None:
        self.count = 0
        self.first: Handshake | None = None
        self.first_answer: float | None = None
        """Time of the server's first response, since the session's start."""
        self.clients: Counter[str] = Counter()

    def count_client(self, client: str) -> None:
        if client in self.clients or len(self.clients) < MOST:
            self.clients[client] += 1

    def answered(self, method: str, at: float, took: float, stream: str | None) -> None:
        self.count += 1
        if self.first is None:
            self.first = Handshake(method, at, took, stream)

    def set_ready(self, at: float, stream: str | None) -> None:
        first = self.first
        if first is not None and first.ready is None and first.stream == stream:
            self.first = first._replace(ready=at)


KINDS = ("request", "notification", "result", "error", "malformed", "repeated")
"""Kinds of counted messages; `repeated` is an event that a resumed stream repeated."""

KEPT = 1 << 14
"""Requests, events and HTTP exchanges that are remembered after their end."""

_EVERY = 4096
"""Lines between two calls of `forget_but`."""


class StatsCollector(Correlation[StatsCall]):
    follows_progress = follows_posts = False

    def __init__(self, header: Header | None = None, query: Query | None = None, top: int = 10) -> None:
        """Create an empty collector; `query` filters what the tables count, `top` limits the large messages."""
        super().__init__(header, forgets=True)
        self.query = query
        self.tables = StatsTables(query, top)
        self.groups = self.tables.groups
        self.flight = Concurrency()
        self.handshakes = Handshakes()
        self.messages = {CLIENT: 0, SERVER: 0}
        self.bytes = {CLIENT: 0, SERVER: 0}
        self.kinds: Counter[str] = Counter()
        """Messages by kind, `KINDS`; they add up to `messages`."""
        self.strays = 0
        """Responses that no open request waited for."""
        self.stray_errors = 0
        """Errors among them."""
        self.notes: Counter[str] = Counter()
        self.damaged = 0
        self.lost = 0
        self.waiting: list[StatsCall] = []
        """After `finish`: the pending requests, the oldest first."""
        self.lines = 0
        """Number of lines taken, of all files, except their headers."""
        self._delayed: dict[int, float] = {}
        """`id` of a delayed request → time at which it is forwarded."""
        self._parts: list[int] = []
        self._plain: dict[tuple[str, str], list[int]] = {
            (side, kind): [] for side in (CLIENT, SERVER) for kind in ("request", "result", "notification")
        }
        """Sizes of plain messages that are not summed yet."""
        self._client_request_sizes = self._plain[CLIENT, "request"]
        self._client_result_sizes = self._plain[CLIENT, "result"]
        self._server_request_sizes = self._plain[SERVER, "request"]
        self._server_result_sizes = self._plain[SERVER, "result"]

    def begin_part(self) -> None:
        """Begin the next of the session's files, after its header."""
        self._parts.append(self.lines)

    def place(self, line: int) -> tuple[int, int]:
        """Return the part of a line, from 0, and its number in that file, from 1."""
        part = max(bisect_right(self._parts, line) - 1, 0)
        return part, line - (self._parts[part] if self._parts else 0) + 2

    def add_lines(self, lines: Sequence[bytes]) -> None:
        """Take lines that follow each other, without their LF."""
        begin, place = self.lines, 0
        while (place := self._take_plain(lines, place)) < len(lines):
            self.add(read_entry(lines[place]))
            place += 1
        if self.lines // _EVERY != begin // _EVERY:
            self._pairing.forget_but(KEPT)

    def add(self, entry: Entry) -> None:
        for change in self.changes_of(entry):
            what = change.what
            if isinstance(what, Note):
                self._add_note(change, what)
            elif isinstance(what, Damaged):
                self.damaged += 1
            else:
                self._add_message(change, what)
        self.lines += 1

    def finish(self, *, is_over: bool) -> None:
        """Count open requests. `is_over`: the session ended, so they get no response."""
        if is_over:
            self.end()
        else:
            self.waiting = sorted(self._pairing.pending(), key=lambda call: call.at)
            self._ended(self._pairing.waiting())

    def open_groups(self) -> dict[MessageGroup, MessageGroup]:
        """Return the requests without an outcome so far, by their group, as `finish` would count them."""
        found: dict[MessageGroup, MessageGroup] = {}
        for call in self._pairing.waiting():
            of = call.group
            group = found.setdefault(of, MessageGroup(of.side, of.kind, of.method, of.subject))
            count_unanswered(group, call)
        return found

    def _ended(self, over: list[StatsCall]) -> None:
        self.flight.advance(self.last_at)
        for call in over:
            self._settle(call, None)

    def _lost(self, requests: list[StatsCall]) -> None:
        for call in requests:
            self._leave(call, self.last_at)

    def _held(self, request: StatsCall, note: Note, seconds: float) -> None:
        if request.held is None:
            return
        request.held += seconds
        if note.fields.get("action") != "release":
            self._leave(request, note.at)
            if seconds:
                self._delayed[id(request)] = note.at + seconds
        elif request.is_out:
            self._delayed.pop(id(request), None)
            self._enter(request, note.at)

    def _begin(self, message: Request) -> StatsCall:
        frame, subject = message.frame, message.subject or ""
        group = self.groups.requests(frame.side, message.method, subject)
        call = StatsCall(
            frame.at, len(message.data), self.lines, message.id, message.method, group, subject, frame.stream
        )
        call.is_subscription = message.method == SUBSCRIBE
        call.is_modern = (message.revision or "") >= MODERN
        call.is_batch = message.index is not None
        call.is_injected = self.is_injected(frame)
        call.held = None if call.is_subscription or frame.is_ours else 0.0
        if self.tables.reads_text:
            call.data = message.data
        return call

    def _poll(self, request: StatsCall, call: StatsCall) -> None:
        request.poll_of, request.held = call, None

    def _restated(self, request: StatsCall, before: State) -> None:
        self.tables.restated(request, before)

    def _method_of(self, request: StatsCall) -> str:
        return request.method

    def _time_of(self, request: StatsCall) -> float:
        return request.at

    def _subject_of(self, request: StatsCall) -> str | None:
        return request.subject or None

    def _add_message(self, change: CorrelatedEntry[StatsCall], message: AnyMessage) -> None:
        kind = "repeated" if isinstance(change, RepeatedEvent) else message.kind
        self.messages[message.side] += 1
        self.bytes[message.side] += len(message.data)
        self.kinds[kind] += 1
        call, at = change.request, message.at
        is_answer = isinstance(change, RequestAnswered | UnsolicitedResponse)
        if is_answer and message.side == SERVER and self.handshakes.first_answer is None:
            self.handshakes.first_answer = at
        if isinstance(change, RequestOpened) and call is not None:
            self._count_request(change, call, message)
        elif isinstance(change, RequestAnswered) and call is not None:
            self._count_response(change, call, message)
        elif isinstance(change, RequestRepeated):
            self.tables.add_uncounted(message, kind, self.lines)
        elif isinstance(message, Notification) and kind != "repeated":
            if change.task is not None:
                self._take_task(change.task, message)
            if isinstance(change, RequestCancelled) and call is not None and call.state is State.CANCELLED:
                self._leave(call, at)
            elif message.method == "notifications/initialized" and message.frame.by is None:
                self.handshakes.set_ready(at, message.frame.stream)
            self.tables.add_notification(message, self.lines)
        else:
            if isinstance(change, UnsolicitedResponse) and isinstance(message, Result | Failure):
                self.strays += not message.frame.is_ours
                is_counted = call is None or call.is_counted
                self.stray_errors += is_counted and outcome.is_error_response(message)
            self.tables.add_uncounted(message, kind, self.lines)

    def _count_request(self, change: RequestOpened[StatsCall], call: StatsCall, message: AnyMessage) -> None:
        call.has_issue = bool(change.flaw or message.flaws)
        if change.continues is not None:
            call.chain = change.continues.chain
        if call.method == "initialize" and not call.is_injected:
            self.handshakes.count_client(str(self.client or ""))
        if call.held is not None:
            self.flight.change(message.side == CLIENT, 1, message.at)

    def _count_response(
        self, change: RequestAnswered[StatsCall], call: StatsCall, message: AnyMessage
    ) -> None:
        is_error = change.event in (Event.FAILURE, Event.TOOL_ERROR)
        answer = StatsAnswer(
            message.at, len(message.data), self.lines, isinstance(message, Failure), is_error
        )
        answer.has_issue = bool(change.flaw or message.flaws)
        if isinstance(message, Failure):
            answer.code = message.code
        if self.tables.reads_text:
            answer.data = message.data
        took = max(message.at - call.at - (call.held or 0.0), 0.0)
        if call.method in HANDSHAKE_METHODS and isinstance(message, Result) and not call.is_injected:
            self.handshakes.answered(call.method, message.at, took, call.stream)
        if change.task is not None and change.task.call is call:
            call.answer = answer
        elif change.event is not Event.QUESTION:
            self._settle(call, answer)
        if change.task is not None:
            self._take_task(change.task, message)
        if change.event is not Event.QUESTION:
            return
        # The call continues: the client sends the same request again, with the input responses.
        chain, call.chain = call.chain or InputChain(call.at), None
        self._settle(call, answer)
        call.chain, call.data, call.answer = chain, b"", answer
        chain.requests += 1
        chain.served += took

    def _take_task(self, task: TaskChange[StatsCall], message: AnyMessage) -> None:
        """Count a call whose task has ended."""
        call = task.call
        if task.has_ended and not call.is_settled:
            answer = call.answer or StatsAnswer(message.at, 0, self.lines)
            answer.at = message.at
            self._settle(call, answer)

    def _add_note(self, change: CorrelatedEntry[StatsCall], note: Note) -> None:
        self.notes[note.kind] += 1
        if note.kind == "lost":
            entries = note.fields.get("entries")
            self.lost += entries if isinstance(entries, int) else 1
        if (call := change.request) is not None:
            if isinstance(change, ResponseMissing):
                return
            if call.state is State.REFUSED:
                self._settle(call, None)
            elif call.state in (State.CANCELLED, State.REDIRECTED) or outcome.of(call.state).is_withheld:
                self._leave(call, note.at)

    def _settle(self, call: StatsCall, answer: StatsAnswer | None) -> None:
        """Count a request whose outcome is known."""
        self._leave(call, self.last_at if answer is None else answer.at)
        self.tables.settled(call, answer)

    def _leave(self, call: StatsCall, at: float) -> None:
        """Take a request that no one waits for any more, or that is held, out of the concurrency."""
        if self._delayed and (resumes := self._delayed.pop(id(call), None)) is not None:
            self._enter(call, min(resumes, at))
        if not call.is_out and call.held is not None:
            call.is_out = True
            self.flight.change(call.group.side == CLIENT, -1, at)

    def _enter(self, call: StatsCall, at: float) -> None:
        call.is_out = False
        self.flight.change(call.group.side == CLIENT, 1, at)

    def _take_plain(self, lines: Sequence[bytes], place: int) -> int:
        """Take plain lines, and sum their sizes at once."""
        counts = self._plain
        place = self.take_plain(lines, place)
        for (side, kind), sizes in counts.items():
            if sizes:
                self.kinds[kind] += len(sizes)
                self.messages[side] += len(sizes)
                self.bytes[side] += sum(sizes)
                sizes.clear()
        return place

    def _plain_request(  # noqa: PLR0917 - by name takes longer, and a million are read.
        self, head: PlainHead, method: str, subject: str, number: int, data: bytes, is_modern: bool
    ) -> StatsCall:
        side, tables, at, size = head.side, self.tables, head.t, len(data)
        is_client = side == CLIENT
        (self._client_request_sizes if is_client else self._server_request_sizes).append(size)
        group = tables.groups.requests(side, method, subject)
        call = StatsCall(
            at, size, self.lines, str(number), method, group, subject, head.stream, False, is_modern
        )
        if tables.reads_text:
            call.data = data
        self.flight.change(is_client, 1, at)
        self.lines += 1
        return call

    def _plain_result(self, head: PlainHead, request: StatsCall, data: bytes, is_error: bool) -> None:
        at, size, line, tables = head.t, len(data), self.lines, self.tables
        is_server = head.side == SERVER
        (self._server_result_sizes if is_server else self._client_result_sizes).append(size)
        self.lines = line + 1
        if tables.matches is not None or request.held is None:
            answer = StatsAnswer(at, size, line)
            if tables.reads_text:
                answer.data = data
            self._settle(request, answer)
            return
        self.flight.change(is_server, -1, at)  # It was pending, so its sender waited for it.
        tables.answered(request, at, size, line)

    def _plain_notification(self, head: PlainHead, method: str, data: bytes) -> bool:
        tables, size = self.tables, len(data)
        if tables.matches is not None or size > tables.groups.least:
            return False
        self._plain[head.side, "notification"].append(size)
        tables.count_notification(head.side, method, size)
        self.lines += 1
        return True
