"""Identification of the client that sent a request without a session.

From 2026-07-28 on, requests do not identify their client, yet each client must receive the recorded responses from
the first on. A client never uses an id twice, and most clients reuse a connection. So a request belongs to a client
of the same name that has not used its id yet: the last one on this connection, else the one that used the preceding
id, else the most recent one. If no client qualifies, it is new.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct, field

C = TypeVar("C")


class ClientRegistry(Generic[C]):
    """Up to `most` known clients; `C` is the state of a client."""

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._known: dict[int, _Known[C]] = {}
        """Clients by number; the most recent one is last."""
        self._numbers = 0

    def find(self, name: str, id: str, connection: object, *, is_new: bool = False) -> C | None:  # noqa: A002
        """Return the client that sent a request; None if it is unknown, or if `is_new`.

        `name` is the name of the client, `id` the id of the request as JSON text.
        """
        if is_new:
            return None
        before = _before(id)
        best: _Known[C] | None = None
        rank = (False, False)
        for known in reversed(self._known.values()):
            if known.name == name and id not in known.ids:
                known_rank = (known.connection == connection, before in known.ids)
                if best is None or known_rank > rank:
                    best, rank = known, known_rank
                if all(rank):
                    break
        if best is None:
            return None
        self._touch(best, id, connection)
        return best.client

    def add(self, client: C, name: str, id: str, connection: object) -> list[C]:  # noqa: A002
        self._numbers += 1
        self._touch(_Known(self._numbers, client, name), id, connection)
        dropped = []
        while len(self._known) > self._most:
            dropped.append(self._known.pop(next(iter(self._known))).client)
        return dropped

    def _touch(self, known: _Known[C], id: str, connection: object) -> None:  # noqa: A002
        known.ids.add(id)
        known.connection = connection
        self._known.pop(known.number, None)
        self._known[known.number] = known


class _Known(Struct, Generic[C]):
    number: int
    client: C
    name: str
    ids: set[str] = field(default_factory=set)
    connection: object = None


def _before(id: str) -> str | None:  # noqa: A002
    """Return the id that precedes a numeric one; None for other ids."""
    return str(int(id) - 1) if len(id) < 20 and id.isdecimal() else None
