"""The rows of a session as numbers in arrays, about sixty bytes each.

Owns everything that is known about a row without its message: location, sender, subject, paired row.
`core.session.index` fills the arrays.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from enum import IntEnum
from typing import NamedTuple

from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State, latency_without_hold
from mcpspy.core.session.outcome import OUTCOMES, filter_status


class RowKind(IntEnum):
    REQUEST = 0
    NOTIFICATION = 1
    RESULT = 2
    FAILURE = 3
    MALFORMED = 4
    NOTE = 5
    DAMAGED = 6


REQUEST, NOTIFICATION, RESULT, FAILURE, MALFORMED, NOTE, DAMAGED = map(int, RowKind)

_ANSWERS = (RESULT, FAILURE)

FROM_CLIENT, FROM_SERVER, NO_SENDER = 0, 8, 16
"""Sender of a row, stored in `what` beside the kind."""

_KIND, _SIDE, _FAILED, _ALONE = 7, 24, 32, 64

KIND = _KIND
"""Bits of the kind in `what`, for loops over many rows: `what[row] & KIND` is faster than `Columns.kind`."""

_IS_ANSWER = bytes(what & _KIND in _ANSWERS for what in range(256))
"""Translation table from `what` to 1 for responses and 0 for other rows, for whole ranges of rows."""

LISTABLE = 128
"""Flag in `what` of a request or result without a protocol issue: a list shows it without reading the message."""

_SIDES = {FROM_CLIENT: CLIENT, FROM_SERVER: SERVER, NO_SENDER: ""}

_KINDS = tuple(RowKind)
STATES = tuple(State)
_STATUSES = tuple(state.value for state in State)
STATE_NUMBERS = {state: number for number, state in enumerate(STATES)}

_IS_ERROR = tuple(OUTCOMES[state].failed for state in STATES)
_IS_UNANSWERED = tuple(OUTCOMES[state].unanswered for state in STATES)

_SHOWN_BY_REQUEST = frozenset(
    {State.REFUSED, State.TASK_FAILED, *(state for state, outcome in OUTCOMES.items() if outcome.unanswered)}
)
"""Wrong outcomes that no response reports."""

_BLOCK = 4096
"""Number of rows by which long arrays grow: setting an item is faster than appending it."""

_FEWEST = 64
"""Number of rows of a short session; its arrays double until they are long."""

_LINES = 50
"""Maximum lines on stderr that belong to one error."""

LONGEST_ID = 17
"""Maximum digits of an id that is stored as a number."""


class LinePosition(NamedTuple):
    part: int
    """Number of the session's file, from 0."""
    offset: int
    length: int
    """Bytes, without the LF."""
    item: int
    """Place in a batch; 0 without a batch."""


class _Outcomes:
    """Facts on requests beyond their state, and the numbers of the session."""

    def __init__(self) -> None:
        self.errors = 0
        self.unanswered = 0
        self.issues = 0
        self.injections = 0
        """As these three, a member of `SessionCounts`."""
        self.injected: set[int] = set()
        """Rows of messages that a viewer sent, and of the responses to them."""
        self.codes: dict[int, int] = {}
        self.outcomes: dict[int, State] = {}
        """Row of a response that settled no request → the outcome that it reports."""
        self.held_seconds: dict[int, float | None] = {}
        """Row of a request → seconds for which mcpspy held it; None: mcpspy sent or answered it."""
        self.why: dict[int, str] = {}
        """Row of a request → the reason for its state; of the head of an HTTP exchange, the text of a refusal."""
        self.redirects: dict[int, str] = {}
        """Row of a request → the redirect after which it was sent again."""
        self.polls: dict[int, int] = {}
        """Row of a request about a task → row of the call that created the task."""
        self.tasks: set[int] = set()
        """Rows of the calls that were answered by a task."""
        self.ended: dict[int, float] = {}
        """Row of a call → the time at which its task ended."""
        self.finals: dict[int, int] = {}
        """Row of a call → the row with the outcome of its task."""
        self.shows: dict[int, int] = {}
        """The same, the other way round."""
        self.folded: set[int] = set()
        """Rows that belong to an earlier request: polls and notifications of its task, and its repetition."""


class Columns(_Outcomes):
    """The data of each row. 0 means none, or the first of its kind."""

    def __init__(self) -> None:
        _Outcomes.__init__(self)
        self.texts: list[str] = [""]
        """Texts that `method`, `subject` and `stream` refer to by number."""
        self.at = array("d")
        self.what = array("B")
        self.size = array("I")
        self.method = array("I")
        """Method of a message (a response has that of its request), or kind of a note."""
        self.subject = array("I")
        """Tool, resource, prompt … that the message is about."""
        self.stream = array("I")
        self.streams: set[int] = set()
        self.wrong = array("I")
        """Rows that are an error or an unanswered request, report lost entries, or have a protocol issue, in order."""
        self.flaws: dict[int, str] = {}
        self.effects: dict[int, str] = {}
        """Row → actions of rules and viewers on it."""
        self.instead: dict[int, int] = {}
        """Row → the note with the message that was sent in its place."""
        self.progress: dict[int, int] = {}
        self.continues: dict[int, int] = {}
        """Row of a request → row of the request whose question it answers (`input_required`)."""
        self.continued_by: dict[int, int] = {}
        self.heads: dict[int, int] = {}
        """Number of an HTTP exchange → row of the note with its headers."""
        self.refusals: dict[int, int] = {}
        """Number of an HTTP exchange → row of the note with the text of a refusal."""
        self._count = 0
        self._room = 0
        self._pair = array("I")
        self._id = array("q")
        self._state = array("B")
        self._http = array("I")
        self._offset = array("Q")
        self._length = array("I")
        self._batch: dict[int, int] = {}
        self._part_rows = array("I")
        self._part_numbers = array("I")
        self._text_numbers: dict[str, int] = {"": 0}

    def __len__(self) -> int:
        return self._count

    def where(self, row: int) -> LinePosition:
        turn = bisect_right(self._part_rows, row) - 1
        part = self._part_numbers[turn] if turn >= 0 else 0
        return LinePosition(part, self._offset[row], self._length[row], self._batch.get(row, 0))

    def lines_from(self, row: int, end: int, most_bytes: int) -> tuple[LinePosition, int]:
        """Return the place of the lines of the rows from `row` to `end` that follow each other in one file.

        They have at most `most_bytes`, unless the first line has more. Also returns the row after them: a line with
        several messages is never cut.
        """
        turn, offsets = bisect_right(self._part_rows, row), self._offset
        end = min(end, self._part_rows[turn] if turn < len(self._part_rows) else end)
        until = max(bisect_left(offsets, offsets[row] + most_bytes, row, end), row + 1)
        while until < self._count and self._batch.get(until, 0):  # A batch is one line.
            until += 1
        first, last = self.where(row), until - 1
        return first._replace(length=offsets[last] + self._length[last] - first.offset), until

    def rows_of(self, parts: Collection[int], end: int) -> int:
        """Return the number of rows of some of the session's files before row `end`."""
        begins = [*self._part_rows[: bisect_left(self._part_rows, end)], end]
        return sum(
            following - begin
            for begin, following, part in zip(begins, begins[1:], self._part_numbers, strict=False)
            if part in parts
        )

    def is_in_batch(self, row: int) -> bool:
        return row in self._batch

    def is_counted(self, request: int) -> bool:
        """Return False for a request whose outcome does not count."""
        return request not in self.injected and request not in self.polls

    def has_failed(self, row: int) -> bool:
        """Return True if a row shows an error, an unanswered request, lost entries, or an error of mcpspy."""
        return bool(self.what[row] & _FAILED)

    def kind(self, row: int) -> RowKind:
        return _KINDS[self.what[row] & _KIND]

    def side(self, row: int) -> str:
        """Return the sender; a note has none."""
        return _SIDES[self.what[row] & _SIDE]

    def is_listable(self, row: int) -> bool:
        """Return True if a list can show this request or result without its message.

        The row of a call quotes the text of the result of its task.
        """
        return bool(self.what[row] & LISTABLE) and row not in self.shows

    def id(self, row: int) -> str | None:
        """Return the id's JSON text; a response may have none."""
        code = self._id[row]
        if code == 0:
            return None
        return str(code >> 1) if code & 1 else self.texts[code >> 1]

    def pair(self, row: int) -> int | None:
        """Return the paired row: the response to a request; for any other row, the request."""
        return self._pair[row] - 1 if self._pair[row] else None

    def request(self, row: int) -> int | None:
        """Return the row of the request that a row is or is about."""
        what = self.what[row]
        return row if what & (_KIND | _ALONE) == REQUEST else self.pair(row)

    def answer(self, row: int) -> int | None:
        """Return the row of the response to the request that a row is or is about."""
        request = self.request(row)
        return None if request is None else self.pair(request)

    def leading(self, begin: int, end: int) -> list[int]:
        """Return the rows of a range without those that belong to an earlier request: its response, the polls of its task."""
        pair, answers = self._pair, self.what[begin:end].tobytes().translate(_IS_ANSWER)
        found = [
            row
            for row, is_answer, request in zip(range(begin, end), answers, pair[begin:end], strict=True)
            if not is_answer or not request or pair[request - 1] != row + 1
        ]
        return [row for row in found if row not in self.folded] if self.folded else found

    def answered_requests(self, begin: int, end: int) -> list[int]:
        """Return the rows of the requests whose responses are in a range, in the order of the responses."""
        pair, answers = self._pair, self.what[begin:end].tobytes().translate(_IS_ANSWER)
        return [
            request - 1
            for row, is_answer, request in zip(range(begin, end), answers, pair[begin:end], strict=True)
            if is_answer and request and pair[request - 1] == row + 1
        ]

    def is_answer(self, row: int) -> bool:
        """Return True if a response is paired with its request."""
        request = self._pair[row]
        return bool(request) and self._pair[request - 1] == row + 1

    def state(self, row: int) -> State | None:
        """Return the state of the request that a row is or is about."""
        request = self.request(row)
        return None if request is None else STATES[self._state[request]]

    def status(self, row: int) -> str:
        """Return the name of that state, of any other response its own outcome; empty if there is neither."""
        if self.outcomes and (own := self.outcomes.get(row)) is not None:
            return own.value
        what = self.what[row]
        request = row if what & (_KIND | _ALONE) == REQUEST else self._pair[row] - 1
        return _STATUSES[self._state[request]] if request >= 0 else ""

    def filter_status(self, row: int, *, exchanges: bool) -> str:
        """Return the status that filters test: that of a response, and of a request that no response shows.

        With `exchanges`, a request has it, also if there is a response.
        """
        kind = self.what[row] & _KIND
        if kind == REQUEST:
            is_shown_later = self._pair[row] and (row not in self.tasks or row in self.finals)
            if self.what[row] & _ALONE or (not exchanges and is_shown_later):
                return ""
        elif kind not in _ANSWERS:
            return ""
        elif self.tasks:
            row = self.shows.get(row, row)
            if self._pair[row] - 1 in self.tasks and self.is_answer(row):
                return ""
        own = self.outcomes.get(row) if self.outcomes else None
        state = own or self.state(row)
        return filter_status(state, is_counted=self._is_row_counted(row))

    def _is_row_counted(self, row: int) -> bool:
        request = self.request(row)
        return row not in self.injected and (request is None or self.is_counted(request))

    def latency(self, row: int) -> float | None:
        """Return the seconds from request to response, for a row that is one of the two (`Exchange.latency`)."""
        other = self._pair[row]
        kind = self.what[row] & _KIND
        if not other or (kind != REQUEST and kind not in _ANSWERS) or self.what[row] & _ALONE:
            return None
        request, answer = (row, other - 1) if kind == REQUEST else (other - 1, row)
        end = self.at[answer]
        if kind == REQUEST and row in self.tasks:
            if STATES[self._state[row]] in (State.WORKING, State.UNFINISHED):
                return None
            end = self.ended.get(row, end)
        if self.held_seconds and request in self.held_seconds:
            held = self.held_seconds[request]
            return None if held is None else latency_without_hold(end - self.at[request], held)
        return end - self.at[request]

    def is_before_error(self, row: int) -> bool:
        """Return True for a line on stderr that is followed by an error, with nothing but such lines between."""
        kind = self.method[row]
        for later in range(row + 1, min(row + _LINES, self._count)):
            if self.what[later] & _KIND != NOTE or self.method[later] != kind:
                return self.what[later] & _KIND in _ANSWERS and bool(self.what[later] & _FAILED)
        return False

    def http(self, row: int) -> int | None:
        return self._http[row] or None

    def _row(self, what: int, at: float, size: int, offset: int, length: int) -> int:
        row = self._count
        if row == self._room:
            self._grow()
        self._count = row + 1
        self.what[row] = what
        self.at[row] = at
        self.size[row] = size
        self._offset[row] = offset
        self._length[row] = length
        return row

    def _grow(self) -> None:
        rows = min(max(self._room, _FEWEST), _BLOCK)
        for column in (
            self.at,
            self.what,
            self.size,
            self.method,
            self.subject,
            self.stream,
            self._pair,
            self._id,
            self._state,
            self._http,
            self._offset,
            self._length,
        ):
            column.frombytes(bytes(column.itemsize * rows))
        self._room += rows

    def text_number(self, text: str) -> int | None:
        """Return the number of a text; None if no row has it."""
        return self._text_numbers.get(text)

    def _text(self, text: str) -> int:
        number = self._text_numbers.get(text)
        if number is None:
            number = self._text_numbers[text] = len(self.texts)
            self.texts.append(text)
        return number

    def _id_code(self, id: str) -> int:  # noqa: A002
        if len(id) <= LONGEST_ID and id.isdigit() and id.isascii():  # JSON has no leading zeros.
            return int(id) << 1 | 1
        return self._text(id) << 1

    def _unpair(self, row: int) -> None:
        """Mark a row as unpaired, even if it is a request."""
        self.what[row] |= _ALONE

    def _settle(self, request: int, state: State) -> None:
        before, number = self._state[request], STATE_NUMBERS[state]
        if before == number:
            return
        self._state[request] = number
        if not self.is_counted(request):
            return
        self.errors += _IS_ERROR[number] - _IS_ERROR[before]
        self.unanswered += _IS_UNANSWERED[number] - _IS_UNANSWERED[before]
        if state in _SHOWN_BY_REQUEST:
            self._mark_failed(request)
        elif STATES[before] in _SHOWN_BY_REQUEST:
            self._unmark_failed(request)

    def _mark_failed(self, row: int) -> None:
        if not self.what[row] & _FAILED:
            self.what[row] |= _FAILED
            self._mark(row)

    def _unmark_failed(self, row: int) -> None:
        self.what[row] &= ~_FAILED
        if row not in self.flaws:
            self.wrong.remove(row)

    def _add_flaw(self, row: int, flaw: str) -> None:
        self.what[row] &= ~LISTABLE
        before = self.flaws.get(row)
        self.issues += before is None and row not in self.injected
        self.flaws[row] = flaw if before is None else f"{before}; {flaw}"
        self._mark(row)

    def _mark(self, row: int) -> None:
        wrong = self.wrong
        if not wrong or wrong[-1] < row:
            wrong.append(row)
            return
        place = bisect_left(wrong, row)
        if wrong[place] != row:
            wrong.insert(place, row)
