"""Store of the interactions of one recording: columns of numbers; the messages stay in the file.

Most interactions, of up to a million, are a request and its response: one row of numbers. Others also have a list of
steps. The index finds rows by request. Only messages that are in no file are kept in memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from struct import Struct as Packed

from msgspec import Raw, Struct

from mcpspy.core.jsontools import Pointer, canonical
from mcpspy.core.mock.http_replies import HttpReplies
from mcpspy.core.mock.interaction import (
    Interaction,
    PlayedMessage,
    ReadBytes,
    RecordedStep,
    ResponseWithoutId,
)
from mcpspy.core.protocol.message import Failure, Malformed, Notification, Request, Result, loads
from mcpspy.core.protocol.peers import Peer

SUBSCRIPTION, CANCELLED, MODERN, FAILED, NOTICE = 1, 2, 4, 8, 16

KINDS: tuple[type[PlayedMessage], ...] = (
    Request,
    Notification,
    Result,
    Failure,
    Malformed,
    ResponseWithoutId,
)
ANSWERS = (2, 3)

STEP = Packed("<BQIdIii")
"""Format of a step: kind, offset, length, `after`, number of its gates, `listens` and `cancels`; -1 means None."""

OPENING = -1
"""Row of the messages that the server sent before it had received any."""

NOTED = 1 << 59
"""First offset of messages that are in the `sent` of a note."""

KEPT = 1 << 60
"""First offset of messages that are kept in memory."""

LOST = (
    b'{"jsonrpc":"2.0","id":0,"error":'
    b'{"code":-32603,"message":"mcpspy mock: the recording was changed while it was served"}}'
)


Location = tuple[int, int]

FIRSTS = 300
"""Number of rows of a method that a miss is compared with."""


class RecordedHandshake(Struct, gc=False):
    method: str
    row: int
    is_answered: bool = False
    is_accepted: bool = False
    revision: str | None = None


class InteractionIndex:
    """Index of rows by request; a key that occurs once is stored without a list."""

    def __init__(self) -> None:
        self.queues: dict[bytes, int | array[int]] = {}
        """Digest of a key → its row or rows."""
        self.methods: dict[tuple[str, bool], array[int]] = {}
        self.subjects: dict[int, int] = {}
        """Number from `subject_number` → first row; bitwise inverted if the subject has other keys."""
        self.firsts: dict[str, list[int]] = {}
        self.redacted: list[int] = []
        self.notifications: dict[str, array[int]] = {}
        self.handshakes: dict[str, list[RecordedHandshake]] = {}
        self.versions: set[str] = set()

    def add_request(
        self, row: int, digest: bytes, method: str, subject: str | None, *, answers: bool
    ) -> None:
        rows = self.queues.get(digest)
        if rows is None:
            self.queues[digest] = row
            self._add_key(row, method, subject, answers)
        elif isinstance(rows, int):
            self.queues[digest] = array("I", (rows, row))
        else:
            rows.append(row)
        queue = self.methods.get((method, answers))
        if queue is None:
            queue = self.methods[method, answers] = array("I")
        queue.append(row)

    def add_notification(self, method: str, row: int) -> None:
        if (rows := self.notifications.get(method)) is None:
            rows = self.notifications[method] = array("I")
        rows.append(row)

    def rows(self, digest: bytes) -> Sequence[int]:
        rows = self.queues.get(digest)
        return () if rows is None else (rows,) if isinstance(rows, int) else rows

    def _add_key(self, row: int, method: str, subject: str | None, answers: bool) -> None:
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
    """Return the number under which `InteractionIndex.subjects` holds the first request of a subject."""
    return hash((method, subject, answers))


class InteractionStore:
    """Interactions of one recording, in the order of their causes."""

    def __init__(
        self,
        label: str = "",
        ignored: Iterable[Pointer] = (),
        read: ReadBytes | None = None,
        *,
        is_generated: bool = False,
    ) -> None:
        self.label = label
        self.is_generated = is_generated
        """True if the interactions were not recorded: no client has to send them."""
        self.number = 0
        """Position among the recordings that are served together."""
        self.ignored = tuple(ignored)
        self.is_whole = False
        self.index = InteractionIndex()
        self.server: Peer | None = None
        self.name = ""
        self.upstream: str | None = None
        self.http = HttpReplies()
        self.settles: Callable[[int], bool] | None = None
        """Function that returns True if a row is complete; None after the recording has been read."""
        self.steps: dict[int, bytearray] = {}
        """Row → steps of an interaction that is more than a request and its response."""
        self.replies: dict[int, dict[int, Location]] = {}
        """Row → place of a server request → response of the client."""
        self._states: dict[str, int] = {}
        """`requestState` → first row whose result has it; -1 if different requests have it."""
        self._gates: dict[tuple[int, ...], int] = {(): 0}
        """Combination of gates → its number."""
        self._read = read
        self._kept = bytearray()
        self._cause, self._answer = array("Q"), array("Q")
        self._cause_length, self._answer_length = array("I"), array("I")
        self._at, self._after = array("d"), array("d")
        self._number = array("I")
        self._flags = array("B")

    def __len__(self) -> int:
        return len(self._flags)

    def begin(self, where: Location, at: float, number: int, flags: int) -> int:
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

    def answer(self, row: int, where: Location, after: float, kind: type[PlayedMessage]) -> bool:
        """Add the response of a request; return False, without adding it, if the interaction has more steps."""
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
        kind: type[PlayedMessage],
        where: Location,
        after: float,
        *,
        gates: tuple[int, ...] = (),
        listens: int | None = None,
        cancels: int | None = None,
    ) -> None:
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
            -1 if cancels is None else cancels,
        )

    def amend(self, row: int, place: int, where: Location | None, later: float = 0.0) -> None:
        """Change the location of a message in an interaction, remove the message (length 0), or delay it."""
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
        if row in self.steps:
            return len(self.steps[row]) // STEP.size
        return 1 if row != OPENING and self._answer_length[row] else 0

    def add_state(self, state: Raw, row: int) -> None:
        """Add the `requestState` of the result in a row."""
        first = self._states.setdefault(canonical(loads(state)), row)
        if first not in (row, -1):
            one, other = self.interaction(first).key, self.interaction(row).key
            if one is None or other is None or one.digest != other.digest:
                self._states[canonical(loads(state))] = -1

    def find_asking(self, request: Request, before: int | None = None) -> Interaction | None:
        """Return the interaction whose `requestState` a request has; `before`: only from the rows before this one."""
        if not self._states or not bytes(request.body.request_state):
            return None
        row = self._states.get(canonical(loads(request.body.request_state)), -1)
        return self.interaction(row) if 0 <= row < (len(self) if before is None else before) else None

    def cancel(self, row: int) -> None:
        self._flags[row] |= CANCELLED

    def flags(self, row: int) -> int:
        return self._flags[row]

    def number_of(self, row: int) -> int:
        return self._number[row]

    def at(self, row: int) -> float:
        return 0.0 if row == OPENING else self._at[row]

    def is_answered(self, row: int) -> bool:
        if row in self.steps:
            return any(kind in ANSWERS for kind in self.steps[row][:: STEP.size])
        return bool(self._answer_length[row])

    def plain_response(self, row: int) -> Location | None:
        """Return the location of a response if its interaction has no other step."""
        length = 0 if row in self.steps else self._answer_length[row]
        return (self._answer[row], length) if length else None

    def is_settled(self, row: int) -> bool:
        return self.is_whole or (self.settles is not None and self.settles(row))

    def keep(self, data: bytes) -> Location:
        """Keep a message that is in no file, and return its location."""
        place = KEPT + len(self._kept)
        self._kept += data
        return place, len(data)

    def noted(self, offset: int, length: int) -> Location:
        """Return the location of the message in a note of the file."""
        return NOTED + offset, length

    def read(self, place: int, length: int) -> bytes:
        """Return a message, or a JSON-RPC error if the file no longer has it."""
        if place >= KEPT:
            return bytes(self._kept[place - KEPT : place - KEPT + length])
        if place >= NOTED:
            note = loads(self.read(place - NOTED, length))
            sent = note.get("sent") if isinstance(note, dict) else None
            return sent.encode("utf-8", "replace") if isinstance(sent, str) else LOST
        data = self._read(place, length) if self._read is not None else b""
        return data if len(data) == length and data[-1:] in b"}] \t\r\n" else LOST

    def interaction(self, row: int) -> Interaction:
        if row == OPENING:
            return Interaction(
                None,
                self._steps_of(row),
                recording=self.label,
                order=self.order(row),
                replies=self._replies_of(row),
            )
        flags = self._flags[row]
        place, length = self._cause[row], self._cause_length[row]
        return Interaction(
            lambda: self.read(place, length),
            self._steps_of(row),
            None if flags & NOTICE else self._number[row],
            recording=self.label,
            order=self.order(row),
            cancelled=bool(flags & CANCELLED),
            is_subscription=bool(flags & SUBSCRIPTION),
            is_modern=bool(flags & MODERN),
            ignored=self.ignored,
            replies=self._replies_of(row),
            find_asking=lambda request: self.find_asking(request, row),
        )

    def order(self, row: int) -> int:
        return (self.number << 32) + row

    def _replies_of(self, row: int) -> dict[int, bytes]:
        return {place: self.read(*where) for place, where in self.replies.get(row, {}).items()}

    def _kind(self, row: int) -> type[PlayedMessage]:
        return Failure if self._flags[row] & FAILED else Result

    def _steps_of(self, row: int) -> list[RecordedStep]:
        if row in self.steps:
            gates = list(self._gates)
            return [
                RecordedStep(
                    KINDS[kind],
                    self.read,
                    place,
                    length,
                    after,
                    gates[number],
                    None if listens < 0 else listens,
                    None if cancels < 0 else cancels,
                )
                for kind, place, length, after, number, listens, cancels in STEP.iter_unpack(self.steps[row])
            ]
        length = self._answer_length[row]
        if not length:
            return []
        return [RecordedStep(self._kind(row), self.read, self._answer[row], length, self._after[row])]
