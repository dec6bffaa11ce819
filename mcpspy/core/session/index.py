"""The index of a long session: entries in, rows out.

Owns what a list of a million rows shows, counts and jumps to. Its rows are the changes of a `Session`, in
their order; `core.session.correlation` decides the outcome of requests.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, count
from operator import add
from typing import Any

from msgspec import Struct

from mcpspy.core.protocol.message import AnyMessage, Failure, Malformed, Notification, Request, Result
from mcpspy.core.protocol.plain_line import PlainHead
from mcpspy.core.protocol.spec import CLIENT, MODERN
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note, read_entry
from mcpspy.core.session.columns import (
    DAMAGED,
    FAILURE,
    FROM_CLIENT,
    FROM_SERVER,
    LISTABLE,
    LONGEST_ID,
    MALFORMED,
    NO_SENDER,
    NOTE,
    NOTIFICATION,
    REQUEST,
    RESULT,
    STATE_NUMBERS,
    STATES,
    Columns,
)
from mcpspy.core.session.correlation import (
    CorrelatedEntry,
    Correlation,
    RepeatedEvent,
    RequestAnswered,
    RequestOpened,
    RequestRepeated,
    ResponseKept,
    ResponseMissing,
    TaskProgressed,
)
from mcpspy.core.session.exchange import SUBSCRIBE, State, outcome_of
from mcpspy.core.session.http_exchanges import RecordedHttpExchange
from mcpspy.core.session.outcome import FAILED, SessionCounts
from mcpspy.core.session.request_table import Key, id_key
from mcpspy.core.session.rule_notes import ABOUT_MESSAGES, RULE, has_effect, words
from mcpspy.core.session.tasks import TaskChange
from mcpspy.core.session.translation_notes import TRANSLATE

_KINDS = {
    Request: REQUEST,
    Notification: NOTIFICATION,
    Result: RESULT,
    Failure: FAILURE,
    Malformed: MALFORMED,
}

# Reading a member of an Enum runs Python code, and these are read for every message.
_OK, _TOOL_ERROR = STATE_NUMBERS[State.OK], STATE_NUMBERS[State.TOOL_ERROR]
_CLIENT_REQUEST, _SERVER_REQUEST = REQUEST | FROM_CLIENT | LISTABLE, REQUEST | FROM_SERVER | LISTABLE
_SMALL_ID = 10**LONGEST_ID
_CLIENT_RESULT, _SERVER_RESULT = RESULT | FROM_CLIENT | LISTABLE, RESULT | FROM_SERVER | LISTABLE


LAST_LINES = 30
"""Maximum lines on stderr that belong to a crash."""

LAST_SECONDS = 2.0
"""Seconds before the end of a server in which it wrote them."""


class Slot(Struct, gc=False, eq=False):
    """A request that the correlation tracks: its row, and what decides on its state."""

    row: int
    is_subscription: bool = False
    is_modern: bool = False
    is_injected: bool = False
    state: State = State.PENDING
    poll_of: Slot | None = None

    @property
    def is_counted(self) -> bool:
        return self.poll_of is None and not self.is_injected


class Index(Columns, Correlation[Slot]):
    def __init__(self, header: Header | None = None, sessions: int = 1) -> None:
        Columns.__init__(self)
        Correlation.__init__(self, header, sessions=sessions, recall=self._recall)
        self.is_over = False
        self.messages = 0
        self._recalled = 0
        """Number of rows that `_recall` has read."""
        self._offset_now = self._length_now = 0
        self.crashes: list[int] = []
        """Rows that explain a crash: its first line on stderr, if any, and the exit; in order."""
        self.last_stderr: list[int] = []
        """Rows of the last lines on stderr before a crash."""
        self._stderr: list[int] = []
        """Rows of the latest lines on stderr."""

    @property
    def pending(self) -> int:
        return sum(request.is_counted for request in self._pairing.pending())

    @property
    def counts(self) -> SessionCounts:
        return SessionCounts(
            self.messages, self.errors, self.pending, self.issues, self.unanswered, self.injections
        )

    def begin_part(self, number: int | None = None) -> None:
        """Begin one of the session's files, counted from 0; None is the next."""
        self._part_numbers.append(len(self._part_rows) if number is None else number)
        self._part_rows.append(len(self))

    def add_lines(self, lines: Sequence[bytes], offset: int) -> int:
        """Add consecutive lines of a file, the first at `offset`; return the offset of the next."""
        begin = 0
        while True:
            row, place = self._count, self.take_plain(lines, begin)
            if place > begin:
                lengths = list(map(len, lines[begin:place]))
                # Each line ends with an LF.
                *offsets, offset = map(add, accumulate(lengths, initial=offset), count())
                self._offset[row : self._count] = array("Q", offsets)
                self._length[row : self._count] = array("I", lengths)
                self.messages += place - begin
            if place == len(lines):
                return offset
            line = lines[place]
            self.add(read_entry(line), offset, len(line))
            begin, offset = place + 1, offset + len(line) + 1

    def add(self, entry: Entry, offset: int, length: int) -> None:
        """Add the next entry, with the location of its line: bytes from the start of its file, without its LF."""
        self._offset_now, self._length_now = offset, length
        for change in self.changes_of(entry):
            what = change.what
            if isinstance(what, Note):
                self._add_note(change, what)
            elif isinstance(what, Damaged):
                row = self._row(DAMAGED | NO_SENDER, what.at, len(what.data), offset, length)
                self._add_flaw(row, what.why)
            else:
                self._add_message(change, what)

    def add_session(self) -> None:
        """Await the end of another session, which may begin after all others have ended."""
        self._running = max(self._running, 0) + 1
        self.exit, self.is_over = None, False

    def end_session(self, stream: str) -> None:
        def is_of_session(of: str | None) -> bool:
            return of is not None and (of + "/").startswith(stream + "/")

        self._lost([*self._pairing.end(is_of_session), *self._pairing.end_questions(is_of_session)])

    def _ended(self, over: list[Slot]) -> None:
        self.is_over = True
        if self.exit is None:
            self._crashed(self.last_at)
        self._lost(over)

    def _poll(self, request: Slot, call: Slot) -> None:
        request.poll_of = call
        self.polls[request.row] = call.row
        self.folded.add(request.row)

    def _restated(self, request: Slot, before: State) -> None:
        self._settle(request.row, request.state)

    def _lost(self, requests: list[Slot]) -> None:
        for request in requests:
            self._settle(request.row, request.state)

    def _held(self, request: Slot, note: Note, seconds: float) -> None:
        if (held := self.held_seconds.get(request.row, 0.0)) is not None:
            self.held_seconds[request.row] = held + seconds

    def _begin(self, message: Request) -> Slot:
        row = self._message(message)
        self.method[row] = self._text(message.method)
        self.subject[row] = self._text(message.subject or "")
        self._id[row] = self._id_code(message.id)
        if message.frame.is_ours:
            self.held_seconds[row] = None
        return Slot(
            row,
            message.method == SUBSCRIBE,
            (message.revision or "") >= MODERN,
            row in self.injected,
        )

    def _method_of(self, request: Slot) -> str:
        return self.texts[self.method[request.row]]

    def _time_of(self, request: Slot) -> float:
        return self.at[request.row]

    def _subject_of(self, request: Slot) -> str | None:
        return self.texts[self.subject[request.row]] or None

    def _add_message(self, change: CorrelatedEntry[Slot], message: AnyMessage) -> None:
        slot, flaw, frame = change.request, change.flaw, message.frame
        if isinstance(change, RequestOpened) and slot is not None:
            row = slot.row
            if change.continues is not None:
                self.continues[row] = change.continues.row
                self.continued_by[change.continues.row] = row
        else:
            row = self._add_row(change, message)
        if flaw is not None:
            self._add_flaw(row, flaw)
        is_listable = isinstance(message, Request) or (
            isinstance(message, Result) and not (message.is_task or message.is_tool_error)
        )
        if is_listable and message.index is None and not frame.is_ours and row not in self.flaws:
            self.what[row] |= LISTABLE
        if isinstance(message, Malformed):
            self._add_flaw(row, message.why)
        if message.index is not None:
            self._batch[row] = message.index
        for flaw in message.flaws:
            self._add_flaw(row, flaw)

    def _add_row(self, change: CorrelatedEntry[Slot], message: AnyMessage) -> int:
        row, slot, texts = self._message(message), change.request, self._text
        if isinstance(message, Request | Notification):
            self.method[row], self.subject[row] = texts(message.method), texts(message.subject or "")
        if isinstance(message, Request | Result | Failure) and message.id is not None:
            self._id[row] = self._id_code(message.id)
        if isinstance(change, RequestRepeated | RepeatedEvent) or isinstance(message, Malformed):
            self._unpair(row)
            if slot is not None:
                self._add_part(row, change, slot)
            return row
        if slot is not None:
            self._pair[row] = slot.row + 1
            if slot.row in self.injected:
                self.injected.add(row)
        if isinstance(message, Notification):
            if slot is not None:
                self._add_notification(row, change, slot, message.method)
        elif isinstance(message, Result | Failure):
            self._add_response(row, change, message)
        return row

    def _add_response(self, row: int, change: CorrelatedEntry[Slot], message: Result | Failure) -> None:
        slot, outcome = change.request, outcome_of(message)
        if isinstance(change, ResponseKept):
            self.injected.add(row)
        is_allowed = change.http is not None
        is_error = outcome in FAILED and row not in self.injected and (slot is None or slot.is_counted)
        is_error &= not is_allowed
        if is_error:
            self._mark_failed(row)
        if isinstance(message, Failure) and message.code is not None:
            self.codes[row] = message.code
        if slot is not None:
            self.method[row], self.subject[row] = self.method[slot.row], self.subject[slot.row]
        if isinstance(change, RequestAnswered) and slot is not None:
            self._pair[slot.row] = row + 1
            self._settle(slot.row, slot.state)
        elif slot is not None or (outcome in FAILED and not is_allowed):
            self.outcomes[row] = outcome
            self.errors += is_error
        if change.task is not None:
            if change.task.call is slot:
                self.tasks.add(slot.row)
            self._take_task(change.task, row)

    def _add_part(self, row: int, change: CorrelatedEntry[Slot], slot: Slot) -> None:
        """Add the repetition of a request, or part of its response."""
        self._pair[row] = slot.row + 1
        if isinstance(change, RequestRepeated):
            self.folded.add(row)
            redirects = self.redirects.get(slot.row), self.why.pop(slot.row, None)
            self.redirects[slot.row] = ", ".join(filter(None, redirects))
        else:
            self.why[slot.row] = change.why or ""
        self._settle(slot.row, slot.state)

    def _add_notification(self, row: int, change: CorrelatedEntry[Slot], slot: Slot, method: str) -> None:
        if isinstance(change, TaskProgressed):
            self.folded.add(row)
            if change.task is not None:
                self._take_task(change.task, row)
            return
        if change.flaw is None:  # Otherwise its state has not changed.
            self._settle(slot.row, slot.state)
            if change.why is not None:
                self.why[slot.row] = change.why
        if method == "notifications/progress":
            self.progress[slot.row] = row

    def _take_task(self, task: TaskChange[Slot], row: int) -> None:
        """Process a row about the task of a call."""
        call, state = task.call.row, task.call.state
        if task.why is not None:
            self.why[call] = task.why
        if task.has_ended:
            self.ended.setdefault(call, self.at[row])
        if task.is_final:
            self.finals[call], self.shows[row] = row, call
        self._settle(call, state)
        if state in FAILED and self.is_counted(call):
            self._mark_failed(self.finals.get(call, call))

    def _add_note(self, change: CorrelatedEntry[Slot], note: Note) -> None:  # noqa: PLR0912 - one branch for each kind.
        row = self._row(NOTE | NO_SENDER, note.at, 0, self._offset_now, self._length_now)
        self.method[row] = self._text(note.kind)
        fields, slot = note.fields, change.request
        http, stream = fields.get("http"), fields.get("stream")
        if isinstance(stream, str):
            self.stream[row] = self._text(stream)
        if isinstance(http, int) and 0 < http < 1 << 32:
            self._http[row] = http
        if note.kind in ("lost", "error"):
            self._mark_failed(row)
        elif note.kind == "stderr":
            self._stderr = [*self._stderr[1 - LAST_LINES :], row]
        elif note.kind == "exit" and (
            fields.get("signal") is not None or fields.get("code") not in (0, None)
        ):
            self._crashed(note.at, row)
        elif has_effect(note.kind, fields):
            self._note_effect(row, fields)
        elif fields.get("action") == TRANSLATE and (noted := self._noted(row - 1, fields)) is not None:
            self.instead[noted] = row
        elif note.kind == "http" and isinstance(http, int):
            self.heads[http] = row
        elif note.kind == "http-end" and change.http is not None:
            self._keep_refusal(change.http, row if "body" in fields else None)
        if slot is None:
            if change.why is not None:
                self.effects[row] = change.why
            return
        if change.why is not None:
            self.why[slot.row] = change.why
        if not isinstance(change, ResponseMissing):
            self._pair[row] = slot.row + 1
            self._settle(slot.row, slot.state)

    def _keep_refusal(self, exchange: RecordedHttpExchange, row: int | None) -> None:
        """Remember the row with the text of a refusal, and the text if no request shows it."""
        if row is not None:
            self.refusals[exchange.number] = row
        head = self.heads.get(exchange.number)
        if head is not None and exchange.words and not exchange.is_told:
            self.why[head] = exchange.words

    def is_get_stream(self, row: int) -> bool:
        """Return whether a row of a note is that of a GET stream, with all of it."""
        number = self._http[row]
        return number in self.http_exchanges.gets and self.heads.get(number) == row

    def _crashed(self, at: float, *exit_row: int) -> None:
        """Remember the end of a server that failed or was killed, and what it wrote just before."""
        rows = [row for row in self._stderr if self.at[row] >= at - LAST_SECONDS]
        self.last_stderr += rows
        self.crashes += [*rows[:1], *exit_row]

    def _note_effect(self, note: int, fields: dict[str, Any]) -> None:
        row = self._noted(note - 1, fields)
        if row is None:
            return
        if ("sent" in fields or "sent_b64" in fields) and fields.get("why") != "answered":
            self.instead[row] = note
        action, before = words(fields), self.effects.get(row)
        self.effects[row] = action if before is None else f"{before}; {action}"

    def _spot(self, row: int) -> object:
        if self.what[row] == NOTE | NO_SENDER:
            return RULE if self.texts[self.method[row]] in ABOUT_MESSAGES else None
        return self._offset[row] if self.side(row) else None

    def _id_of(self, row: int) -> str | None:
        return self.id(row)

    def _message(self, message: AnyMessage) -> int:
        self.messages += 1
        frame = message.frame
        side = FROM_CLIENT if frame.side == CLIENT else FROM_SERVER
        row = self._row(
            _KINDS[type(message)] | side, frame.at, len(message.data), self._offset_now, self._length_now
        )
        if frame.stream is not None or frame.http is not None:
            self._set_http(row, frame)
        is_notified = isinstance(message, Notification) and frame.by is not None
        if is_notified or (isinstance(message, Request) and self.is_injected(frame)):
            self.injected.add(row)
            self.injections += 1
        return row

    def _set_http(self, row: int, frame: Frame | PlainHead) -> None:
        if frame.stream is not None:
            number = self.stream[row] = self._text(frame.stream)
            self.streams.add(number)
        if frame.http is not None and 0 < frame.http < 1 << 32:
            self._http[row] = frame.http

    def _recall(self, answered: dict[Key, Slot]) -> None:
        """Add the requests that were answered since the last call."""
        texts, streams, ids, states = self.texts, self.stream, self._id, self._state
        for request in self.answered_requests(self._recalled, self._count):
            code = ids[request]
            id_text = str(code >> 1) if code & 1 else id_key(texts[code >> 1])
            key = texts[streams[request]] or None, self.side(request), id_text
            call = self.polls.get(request)
            answered[key] = Slot(
                request,
                is_injected=request in self.injected,
                state=STATES[states[request]],
                poll_of=None if call is None else Slot(call),
            )
        self._recalled = self._count

    def _plain_request(  # noqa: PLR0917 - keywords take longer, and there are a million calls.
        self, head: PlainHead, method: str, subject: str, number: int, data: bytes, is_modern: bool
    ) -> Slot:
        row = self._count
        if row == self._room:
            self._grow()
        self._count = row + 1
        self.what[row] = _CLIENT_REQUEST if head.side == CLIENT else _SERVER_REQUEST
        self.at[row], self.size[row] = head.t, len(data)
        numbers = self._text_numbers
        self.method[row] = numbers.get(method) or self._text(method)
        if subject:
            self.subject[row] = numbers.get(subject) or self._text(subject)
        self._id[row] = number << 1 | 1 if number < _SMALL_ID else self._id_code(str(number))
        if head.stream is not None or head.http is not None:
            self._set_http(row, head)
        return Slot(row, False, is_modern)

    def _plain_result(self, head: PlainHead, request: Slot, data: bytes, is_error: bool) -> None:
        request_row = request.row
        row = self._count
        if row == self._room:
            self._grow()
        self._count = row + 1
        self.what[row] = _CLIENT_RESULT if head.side == CLIENT else _SERVER_RESULT
        self.at[row], self.size[row] = head.t, len(data)
        method, subject, id_codes, pair = self.method, self.subject, self._id, self._pair
        method[row], subject[row], id_codes[row] = (
            method[request_row],
            subject[request_row],
            id_codes[request_row],
        )
        pair[request_row], pair[row] = row + 1, request_row + 1
        if head.stream is not None or head.http is not None:
            self._set_http(row, head)
        if is_error:
            self._state[request_row] = _TOOL_ERROR
            self.what[row] &= ~LISTABLE  # A list shows its text.
            if request.is_counted:
                self.errors += 1
                self._mark_failed(row)
        else:
            self._state[request_row] = _OK
