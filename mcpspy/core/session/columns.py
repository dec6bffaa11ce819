"""The rows of a session as numbers in arrays: some sixty bytes each.

Owns what is known of a row without reading its message: where that is in the
file, who sent it, what it is about, what it is paired with. What to write into
them is `core.session.index`'s.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from enum import IntEnum
from typing import NamedTuple

from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State


class RowKind(IntEnum):
    """What a row is."""

    REQUEST = 0
    NOTIFICATION = 1
    RESULT = 2
    FAILURE = 3
    MALFORMED = 4
    NOTE = 5
    DAMAGED = 6


REQUEST, NOTIFICATION, RESULT, FAILURE, MALFORMED, NOTE, DAMAGED = map(int, RowKind)

_ANSWERS = (RESULT, FAILURE)

FROM_CLIENT, FROM_SERVER, FROM_NOBODY = 0, 8, 16
"""What stands beside the kind in `what`."""

_KIND, _SIDE, _FAILED, _ALONE = 7, 24, 32, 64

_IS_ANSWER = bytes(what & _KIND in _ANSWERS for what in range(256))
"""By `what`, for all rows of a range at once."""

TOLD = 128
"""Beside them, of a request or a result of which nothing is odd: nothing in it would be said beyond what is known here."""

_SIDES = {FROM_CLIENT: CLIENT, FROM_SERVER: SERVER, FROM_NOBODY: ""}

_KINDS = tuple(RowKind)
_STATES = tuple(State)
_STATUSES = tuple(state.value for state in State)
STATE_NUMBERS = {state: number for number, state in enumerate(_STATES)}

_BLOCK = 4096
"""Rows that arrays grow by: setting an item costs less than appending one."""

LONGEST_ID = 17
"""Digits of an id that is kept as a number."""


class LinePosition(NamedTuple):
    """Where a row's line is."""

    part: int
    """Which of the session's files, from 0."""
    offset: int
    length: int
    """Bytes, the LF left out."""
    item: int
    """Which of a batch; 0 outside of one."""


class Columns:
    """What is known of every row. A number that is 0 says nothing, or the first of its kind."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        """What `method`, `subject` and `stream` point to."""
        self.at = array("d")
        """Seconds since the start."""
        self.what = array("B")
        self.size = array("I")
        """Bytes of the message itself."""
        self.method = array("I")
        """A message's method; of an answer, that of its request; a note's kind."""
        self.subject = array("I")
        """Which tool, resource, prompt … it is about."""
        self.stream = array("I")
        self.streams: set[int] = set()
        """The streams there are."""
        self.wrong = array("I")
        """Rows that are an error, or odd, in order."""
        self.failed = 0
        """Errors among them: answers that are one, requests that got none, entries that were lost."""
        self.flaws: dict[int, str] = {}
        """Row → what is wrong with it."""
        self.effects: dict[int, str] = {}
        """Row → what rules and viewers did to it."""
        self.instead: dict[int, int] = {}
        """Row → the note that has what went on in its place."""
        self.codes: dict[int, int] = {}
        """Row of an error response → its code."""
        self.progress: dict[int, int] = {}
        """Row of a request → row of the last progress report on it."""
        self.continues: dict[int, int] = {}
        """Row of a request → row of the request whose question it answers."""
        self.continued_by: dict[int, int] = {}
        self.heads: dict[int, int] = {}
        """Number of an HTTP exchange → row of the note with its heads."""
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

    @property
    def odd(self) -> int:
        """How many rows break a rule without being an error."""
        return len(self.wrong) - self.failed

    def where(self, row: int) -> LinePosition:
        """Return where the row's line is."""
        turn = bisect_right(self._part_rows, row) - 1
        part = self._part_numbers[turn] if turn >= 0 else 0
        return LinePosition(part, self._offset[row], self._length[row], self._batch.get(row, 0))

    def kind(self, row: int) -> RowKind:
        """Return what the row is."""
        return _KINDS[self.what[row] & _KIND]

    def side(self, row: int) -> str:
        """Return who sent it; nobody sent a note."""
        return _SIDES[self.what[row] & _SIDE]

    def is_told(self, row: int) -> bool:
        """Whether all that is said of a request or a result in a list is known without its message."""
        return bool(self.what[row] & TOLD)

    def id(self, row: int) -> str | None:
        """Return the id's JSON text; an answer without one has none."""
        code = self._id[row]
        if code == 0:
            return None
        return str(code >> 1) if code & 1 else self.texts[code >> 1]

    def pair(self, row: int) -> int | None:
        """Return the row a row belongs to: a request's answer, the request of anything else."""
        return self._pair[row] - 1 if self._pair[row] else None

    def request(self, row: int) -> int | None:
        """Return the row of the request that a row is, or is about."""
        what = self.what[row]
        if what & _KIND == REQUEST:
            return None if what & _ALONE else row
        return self.pair(row)

    def answer(self, row: int) -> int | None:
        """Return the row of the answer to the request that a row is, or is about."""
        request = self.request(row)
        return None if request is None else self.pair(request)

    def leading(self, begin: int, end: int) -> list[int]:
        """Return the rows of a range without the answers that requests got."""
        pair, answers = self._pair, self.what[begin:end].tobytes().translate(_IS_ANSWER)
        return [
            row
            for row, is_answer, request in zip(range(begin, end), answers, pair[begin:end], strict=True)
            if not is_answer or not request or pair[request - 1] != row + 1
        ]

    def is_answer(self, row: int) -> bool:
        """Whether an answer is the one that its request got."""
        request = self._pair[row]
        return bool(request) and self._pair[request - 1] == row + 1

    def state(self, row: int) -> State | None:
        """Return what became of the request that a row is, or is about."""
        request = self.request(row)
        return None if request is None else _STATES[self._state[request]]

    def status(self, row: int) -> str:
        """Return the name of that state; empty if it is about no request."""
        what = self.what[row]
        request = row if what & (_KIND | _ALONE) == REQUEST else self._pair[row] - 1
        return _STATUSES[self._state[request]] if request >= 0 else ""

    def latency(self, row: int) -> float | None:
        """Return the seconds from request to answer, of a row that is one of the two."""
        other = self._pair[row]
        if not other:
            return None
        kind = self.what[row] & _KIND
        if kind == REQUEST:
            return self.at[other - 1] - self.at[row]
        return self.at[row] - self.at[other - 1] if kind in _ANSWERS else None

    def http(self, row: int) -> int | None:
        """Return the number of the HTTP exchange that carried it."""
        return self._http[row] or None

    def next_wrong(self, row: int, step: int) -> int | None:
        """Return the next row that is an error, or odd; the one before if `step` is -1."""
        place = bisect_right(self.wrong, row) if step > 0 else bisect_left(self.wrong, row) - 1
        return self.wrong[place] if 0 <= place < len(self.wrong) else None

    def _row(self, what: int, at: float, size: int, offset: int, length: int) -> int:
        """Add a row of which nothing else is known yet."""
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

    def _locate(self, row: int, offsets: list[int], lengths: list[int]) -> None:
        """Say where the lines of rows from one on are."""
        end = row + len(offsets)
        self._offset[row:end] = array("Q", offsets)
        self._length[row:end] = array("I", lengths)

    def _grow(self) -> None:
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
            column.frombytes(bytes(column.itemsize * _BLOCK))
        self._room += _BLOCK

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

    def _is_alone(self, row: int) -> None:
        """Have a row that is paired with nothing, though it may look like a request."""
        self.what[row] |= _ALONE

    def _settle(self, request: int, state: State) -> None:
        self._state[request] = STATE_NUMBERS[state]

    def _fails(self, row: int) -> None:
        if not self.what[row] & _FAILED:
            self.what[row] |= _FAILED
            self.failed += 1
            self._mark(row)

    def _is_odd(self, row: int, flaw: str) -> None:
        self.what[row] &= ~TOLD
        before = self.flaws.get(row)
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
