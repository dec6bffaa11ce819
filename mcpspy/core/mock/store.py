"""The scenes of one recording, kept small: numbers in columns, and every message left where it is.

Owns what is kept of a scene; under what it is found is `keys`'. A recording may have
a million: most are a request and its answer, which take a row of numbers; what
is more than that takes a list of steps besides. Who reads the messages again
is the owner of the file; what is in no file is kept here.

Under what the scenes of one recording are found: numbers of rows, by what their requests ask for.

Owns the tables, kept small for a recording of a million requests: a key that came once takes no list.
What a row holds is `shelf`'s.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct as Packed

from msgspec import Struct

from mcpspy.core.jsontools import Pointer
from mcpspy.core.mock.interaction import Read, Said, Scene, Step
from mcpspy.core.protocol.message import Failure, Notification, Request, Result, loads
from mcpspy.core.protocol.peers import Peer

FIRSTS = 300
"""Keys of a method that a miss is compared with."""


class Introduced(Struct, gc=False):
    """A recorded `initialize` or `server/discover`."""

    method: str
    row: int
    is_answered: bool = False
    is_taken: bool = False
    """Whether the server answered it with a result."""
    revision: str | None = None
    """What the result of `initialize` agrees on."""


class Keys:
    """The tables of one recording."""

    def __init__(self) -> None:
        self.queues: dict[bytes, int | array[int]] = {}
        """Digest of a key → its rows."""
        self.methods: dict[tuple[str, bool], array[int]] = {}
        """Method, whether a question is answered → the rows."""
        self.subjects: dict[int, int] = {}
        """Hash of method, subject and whether a question is answered → its first row; inverted if there are other keys."""
        self.firsts: dict[str, list[int]] = {}
        """Method → rows of the first keys."""
        self.redacted: list[int] = []
        """Rows of requests in which secrets were redacted."""
        self.notices: dict[str, array[int]] = {}
        """Notifications of the client, by method."""
        self.introductions: dict[str, list[Introduced]] = {}
        self.versions: set[str] = set()
        """Revisions without a handshake that the server took."""

    def file(self, row: int, digest: bytes, method: str, subject: str | None, *, answers: bool) -> None:
        """Have a row be found by what its request asks for."""
        rows = self.queues.get(digest)
        if rows is None:
            self.queues[digest] = row
            self._file_new(row, method, subject, answers)
        elif isinstance(rows, int):
            self.queues[digest] = array("I", (rows, row))
        else:
            rows.append(row)
        queue = self.methods.get((method, answers))
        if queue is None:
            queue = self.methods[method, answers] = array("I")
        queue.append(row)

    def notice(self, method: str, row: int) -> None:
        """Have a row be found by its notification."""
        if (rows := self.notices.get(method)) is None:
            rows = self.notices[method] = array("I")
        rows.append(row)

    def rows(self, digest: bytes) -> Sequence[int]:
        """Return the rows of a key."""
        rows = self.queues.get(digest)
        return () if rows is None else (rows,) if isinstance(rows, int) else rows

    def _file_new(self, row: int, method: str, subject: str | None, answers: bool) -> None:
        number = subject_number(method, subject, answers=answers)
        first = self.subjects.get(number)
        if first is None:
            self.subjects[number] = row
        elif first >= 0:
            self.subjects[number] = ~first
        firsts = self.firsts.setdefault(method, [])
        if len(firsts) < FIRSTS:
            firsts.append(row)


def subject_number(method: str, subject: str | None, *, answers: bool) -> int:
    """Return the number under which the first request of a subject is found."""
    return hash((method, subject, answers))


SUBSCRIPTION, CANCELLED, MODERN, FAILED, NOTICE = 1, 2, 4, 8, 16
"""Flags of a row."""

KINDS: tuple[type[Said], ...] = (Request, Notification, Result, Failure)
ANSWERS = (2, 3)
"""Which of the kinds are answers."""

STEP = Packed("<BQIdIii")
"""A step: its kind, where it is, how long after, which gates, what it listens for and withdraws; -1 is nothing."""

OPENING = -1
"""The row of what the server said before it had heard anything."""

NOTED = 1 << 59
"""Places from here on are of notes, whose `sent` is the message."""

OURS = 1 << 60
"""Places from here on are not in a file but with us."""

LOST = (
    b'{"jsonrpc":"2.0","id":0,"error":'
    b'{"code":-32603,"message":"mcpspy mock: the recording was changed while it was served"}}'
)


Place = tuple[int, int]
"""Where a message is, and its length."""


class Shelf:
    """The scenes of one recording, in the order of their causes."""

    def __init__(self, label: str = "", ignored: Iterable[Pointer] = (), read: Read | None = None) -> None:
        self.label = label
        """What to call the recording."""
        self.number = 0
        """Place among the recordings of a library."""
        self.ignored = tuple(ignored)
        self.is_whole = False
        """Whether nothing more will come."""
        self.keys = Keys()
        self.server: Peer | None = None
        self.name = ""
        self.upstream: str | None = None
        self.settles: Callable[[int], bool] | None = None
        """Who knows of a row whether nothing is added to it any more, as long as the recording is read."""
        self.steps: dict[int, bytearray] = {}
        """Of the scenes that are more than a request and its answer."""
        self._gates: dict[tuple[int, ...], int] = {(): 0}
        """What steps wait for, and its number."""
        self._read = read
        self._ours = bytearray()
        self._cause, self._answer = array("Q"), array("Q")
        self._cause_length, self._answer_length = array("I"), array("I")
        self._at, self._after = array("d"), array("d")
        self._number = array("I")
        self._flags = array("B")

    def __len__(self) -> int:
        return len(self._flags)

    def begin(self, where: Place, at: float, number: int, flags: int) -> int:
        """Take a cause; return its row."""
        row = len(self._flags)
        place, length = where
        self._cause.append(place)
        self._cause_length.append(length)
        self._at.append(at)
        self._answer.append(0)
        self._answer_length.append(0)
        self._after.append(0.0)
        self._number.append(number)
        self._flags.append(flags)
        return row

    def answer(self, row: int, where: Place, after: float, kind: type[Said]) -> bool:
        """Take the answer of a request, if that is all there is to its scene; say whether it is."""
        if row in self.steps or row == OPENING or self._answer_length[row]:
            return False
        self._answer[row], self._answer_length[row] = where
        self._after[row] = after
        if kind is Failure:
            self._flags[row] |= FAILED
        return True

    def add(
        self,
        row: int,
        kind: type[Said],
        where: Place,
        after: float,
        *,
        gates: tuple[int, ...] = (),
        listens: int | None = None,
        withdraws: int | None = None,
    ) -> None:
        """Take any message of the server; see `Step`."""
        steps = self.steps.get(row)
        if steps is None:
            steps = self.steps[row] = bytearray()
            if row != OPENING and self._answer_length[row]:
                place, length = self._answer[row], self._answer_length[row]
                steps += STEP.pack(KINDS.index(self._kind(row)), place, length, self._after[row], 0, -1, -1)
        steps += STEP.pack(
            KINDS.index(kind),
            *where,
            after,
            self._gates.setdefault(gates, len(self._gates)),
            -1 if listens is None else listens,
            -1 if withdraws is None else withdraws,
        )

    def amend(self, row: int, place: int, where: Place | None, later: float = 0.0) -> None:
        """Have a message of a scene be where it was not, or nowhere (with no length), or come later."""
        steps = self.steps.get(row)
        if steps is None:
            if where is not None:
                self._answer[row], self._answer_length[row] = where
            self._after[row] += later
            return
        kind, at, length, after, *rest = STEP.unpack_from(steps, place * STEP.size)
        at, length = (at, length) if where is None else where
        kind = kind if length else KINDS.index(Notification)
        STEP.pack_into(steps, place * STEP.size, kind, at, length, after + later, *rest)

    def count(self, row: int) -> int:
        """Return how many steps a scene has."""
        if row in self.steps:
            return len(self.steps[row]) // STEP.size
        return 1 if row != OPENING and self._answer_length[row] else 0

    def cancel(self, row: int) -> None:
        """The client cancelled it."""
        self._flags[row] |= CANCELLED

    def flags(self, row: int) -> int:
        """Return what is known of a row."""
        return self._flags[row]

    def number_of(self, row: int) -> int:
        """Return the number of the recorded exchange."""
        return self._number[row]

    def at(self, row: int) -> float:
        """Return when the cause came."""
        return 0.0 if row == OPENING else self._at[row]

    def is_answered(self, row: int) -> bool:
        """Whether a request was answered."""
        if row in self.steps:
            return any(kind in ANSWERS for kind in self.steps[row][:: STEP.size])
        return bool(self._answer_length[row])

    def plain_answer(self, row: int) -> Place | None:
        """Return where the answer of a request is, if that is all there is to its scene."""
        length = 0 if row in self.steps else self._answer_length[row]
        return (self._answer[row], length) if length else None

    def is_settled(self, row: int) -> bool:
        """Whether nothing is added to a scene any more."""
        return self.is_whole or (self.settles is not None and self.settles(row))

    def keep(self, data: bytes) -> Place:
        """Keep a message that is in no file as it is; return its place and length."""
        place = OURS + len(self._ours)
        self._ours += data
        return place, len(data)

    def noted(self, offset: int, length: int) -> Place:
        """Return the place and length of the message that a note of the file says was sent."""
        return NOTED + offset, length

    def read(self, place: int, length: int) -> bytes:
        """Return a message; an error in its place if it is not there any more."""
        if place >= OURS:
            return bytes(self._ours[place - OURS : place - OURS + length])
        if place >= NOTED:
            note = loads(self.read(place - NOTED, length))
            sent = note.get("sent") if isinstance(note, dict) else None
            return sent.encode("utf-8", "replace") if isinstance(sent, str) else LOST
        data = self._read(place, length) if self._read is not None else b""
        return data if len(data) == length and data[-1:] in b"}] \t\r\n" else LOST

    def scene(self, row: int) -> Scene:
        """Return the scene of a row."""
        if row == OPENING:
            return Scene(None, self._steps_of(row), told=self.label, order=self.order(row))
        flags = self._flags[row]
        place, length = self._cause[row], self._cause_length[row]
        return Scene(
            lambda: self.read(place, length),
            self._steps_of(row),
            None if flags & NOTICE else self._number[row],
            told=self.label,
            order=self.order(row),
            cancelled=bool(flags & CANCELLED),
            is_subscription=bool(flags & SUBSCRIPTION),
            is_modern=bool(flags & MODERN),
            ignored=self.ignored,
        )

    def scenes(self) -> Iterator[Scene]:
        """Yield all of them."""
        if OPENING in self.steps:
            yield self.scene(OPENING)
        yield from map(self.scene, range(len(self)))

    def order(self, row: int) -> int:
        """Return the place of a row among those of all recordings."""
        return (self.number << 32) + row

    def _kind(self, row: int) -> type[Said]:
        """Return what a plain answer is."""
        return Failure if self._flags[row] & FAILED else Result

    def _steps_of(self, row: int) -> list[Step]:
        if row in self.steps:
            gates = list(self._gates)
            return [
                Step(
                    KINDS[kind],
                    self.read,
                    place,
                    length,
                    after,
                    gates[number],
                    None if listens < 0 else listens,
                    None if withdraws < 0 else withdraws,
                )
                for kind, place, length, after, number, listens, withdraws in STEP.iter_unpack(
                    self.steps[row]
                )
            ]
        length = self._answer_length[row]
        if not length:
            return []
        return [Step(self._kind(row), self.read, self._answer[row], length, self._after[row])]
