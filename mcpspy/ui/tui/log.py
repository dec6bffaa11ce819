"""A session as the screen needs it: what to jump to, what to count.

Owns the places of requests, answers and errors among the messages. Everything
else is `core.session`'s, which is fed through here and nowhere else. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from mcpspy.core.exchange import State
from mcpspy.core.message import Failure, Malformed, Request, Result
from mcpspy.core.record import Damaged, Entry, Header, Note
from mcpspy.core.session import Change, Session
from mcpspy.io.store import BEGINS_AGAIN


class Log:
    """The messages of a session, in the order of the wire."""

    def __init__(self, header: Header) -> None:
        self.generation = 0
        """How often it began anew."""
        self.restarted = ""
        """What was said when it did."""
        self._begin(header)

    def _begin(self, header: Header) -> None:
        self.session = Session(header)
        self.messages = 0
        """All but the notes."""
        self.wrong: list[int] = []
        """Places of what is an error, or odd, in order."""
        self.failed = 0
        """Errors among them: answers that are one, requests that got none, entries that were lost."""
        self.unanswered = 0
        """Requests that the end left without an answer."""
        self.is_over = False
        """Whether nothing more will come."""
        self._requests: list[int] = []
        self._answers: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.session.changes)

    def __getitem__(self, number: int) -> Change:
        return self.session.changes[number]

    def get(self, number: int) -> Change | None:
        """Return one; None if it is not there, or not there any more."""
        return self.session.changes[number] if number < len(self) else None

    @property
    def header(self) -> Header:
        """What the session is."""
        header = self.session.header
        assert header is not None
        return header

    @property
    def odd(self) -> int:
        """How many break a rule without being an error."""
        return len(self.wrong) - self.failed

    @property
    def pending(self) -> int:
        """Requests that wait for their answer."""
        return 0 if self.is_over else len(self.session.pending)

    def add(self, entry: Entry) -> None:
        """Take the next entry."""
        if isinstance(entry, Damaged) and entry.why == BEGINS_AGAIN:
            self.generation += 1
            self.restarted = entry.why
            self._begin(self.header)
        for change in self.session.add(entry):
            self._note(change)
        if isinstance(entry, Note) and entry.kind == "exit":
            self._unanswered()

    def end(self) -> None:
        """Nothing more will come."""
        if self.session.exit is None:
            self.session.end()
            self._unanswered()
        self.is_over = True

    def other(self, number: int) -> int | None:
        """Return the place of the answer to a request, or of the request of anything else."""
        change = self.get(number)
        if change is None or change.exchange is None:
            return None
        if isinstance(change.what, Request):
            return self._answers.get(change.exchange.number)
        return self._requests[change.exchange.number]

    def next_wrong(self, number: int, step: int) -> int | None:
        """Return the place of the next error behind (step 1) or before (-1) a place."""
        index = bisect_right(self.wrong, number) if step > 0 else bisect_left(self.wrong, number) - 1
        return self.wrong[index] if 0 <= index < len(self.wrong) else None

    def _note(self, change: Change) -> None:
        what, number = change.what, change.number
        self.messages += not isinstance(what, Note | Damaged)
        if isinstance(what, Request):
            self._requests.append(number)
        elif isinstance(what, Result | Failure) and change.exchange is not None:
            self._answers.setdefault(change.exchange.number, number)
        if is_failure(change):
            self.failed += 1
            self.wrong.append(number)
        elif is_odd(change):
            self.wrong.append(number)

    def _unanswered(self) -> None:
        """Count the requests that the end left without an answer."""
        places = {
            self._requests[exchange.number]
            for exchange in self.session.exchanges
            if exchange.state is State.UNANSWERED
        }
        self.unanswered = len(places)
        self.failed += len(places - set(self.wrong))
        self.wrong = sorted(places | set(self.wrong))


def is_failure(change: Change) -> bool:
    """Whether this says that something failed."""
    what = change.what
    if isinstance(what, Note):
        return what.kind in ("lost", "error")
    return isinstance(what, Failure) or (isinstance(what, Result) and what.is_tool_error)


def is_odd(change: Change) -> bool:
    """Whether this is none, or not what the protocol has."""
    what = change.what
    if isinstance(what, Note):
        return False
    return isinstance(what, Malformed | Damaged) or bool(what.flaws) or change.flaw is not None
