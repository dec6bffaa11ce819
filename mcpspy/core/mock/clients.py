"""Which client a request without a session is from.

Owns a guess: from 2026-07-28 on nothing on the wire says which of many clients
asks, yet each is to get the recorded answers from the first on. A client numbers
its requests, never the same twice, and most use a connection again. So a request
is from the client of that name who has not used its id yet: the one last heard on
this connection, else the one who used the id before it, else the one last heard.
If there is none, somebody new has come.
"""

from __future__ import annotations

from typing import Generic, TypeVar

G = TypeVar("G")


class Guests(Generic[G]):
    """The clients that are known, at most `most` of them; `G` is whatever is kept of each."""

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._known: dict[int, _Known[G]] = {}
        """The one heard last comes last."""
        self._numbers = 0

    def find(self, name: str, id: str, connection: object, *, is_new: bool = False) -> G | None:  # noqa: A002
        """Return who sends a request; None if nobody who is known does, or `is_new` says so.

        `name` is what the client calls itself, `id` the request's as JSON text.
        """
        if is_new:
            return None
        before = _before(id)
        best: _Known[G] | None = None
        rank = (False, False)
        for known in reversed(self._known.values()):
            if known.name == name and id not in known.ids:
                its = (known.connection == connection, before in known.ids)
                if best is None or its > rank:
                    best, rank = known, its
                if all(rank):
                    break
        if best is None:
            return None
        self._heard(best, id, connection)
        return best.guest

    def add(self, guest: G, name: str, id: str, connection: object) -> list[G]:  # noqa: A002
        """Keep somebody new; return who is forgotten for it."""
        self._numbers += 1
        self._heard(_Known(self._numbers, guest, name), id, connection)
        forgotten = []
        while len(self._known) > self._most:
            forgotten.append(self._known.pop(next(iter(self._known))).guest)
        return forgotten

    def _heard(self, known: _Known[G], id: str, connection: object) -> None:  # noqa: A002
        known.ids.add(id)
        known.connection = connection
        self._known.pop(known.number, None)
        self._known[known.number] = known


class _Known(Generic[G]):
    def __init__(self, number: int, guest: G, name: str) -> None:
        self.number = number
        self.guest = guest
        self.name = name
        self.ids: set[str] = set()
        self.connection: object = None


def _before(id: str) -> str | None:  # noqa: A002
    """Return the id before one that is a number."""
    return str(int(id) - 1) if len(id) < 20 and id.isdecimal() else None
