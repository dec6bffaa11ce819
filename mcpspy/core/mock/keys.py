"""Under what the scenes of one recording are found: numbers of rows, by what their requests ask for.

Owns the tables, kept small for a recording of a million requests: a key that came once takes no list.
What a row holds is `shelf`'s.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from msgspec import Struct

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
