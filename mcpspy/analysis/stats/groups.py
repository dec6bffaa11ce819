"""The groups of a session, and the largest messages.

Owns finding the group that something belongs to, and that there are not more
of them than anybody reads: a session that reads a million resources is counted
all the same, in one line.
"""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import NamedTuple

from mcpspy.analysis.stats.group import BY_SUBJECT, Group, Kind, merged
from mcpspy.core.protocol.spec import CLIENT, SERVER

MOST = 2000
"""Groups there may be, before what is new is counted with others of its kind."""


_Key = tuple[str, str, str | None]
"""Who sends it, the method, and what it is about."""


class Large(NamedTuple):
    """A message that is among the largest."""

    size: int
    """Bytes."""
    order: int
    """The later of two, the less."""
    line: int
    at: float
    side: str
    kind: str
    """`request`, `notification`, `result`, `error`, `malformed`."""
    method: str = ""
    subject: str = ""
    id: str = ""


class Groups:
    """What was counted, by what it is."""

    def __init__(self, top: int) -> None:
        self._requests: dict[_Key, Group] = {}
        self._notifications: dict[_Key, Group] = {}
        self._top = top
        self._largest: list[Large] = []
        self.least = 0 if top else 1 << 62
        """A message that is not larger is not among the largest."""

    def requests(self, side: str, method: str, subject: str) -> Group:
        """Return the group of a request; a subject that its method is not counted by does not matter."""
        key = side, method, subject if method in BY_SUBJECT else None
        return self._requests.get(key) or self._new(Kind.REQUEST, key)

    def notifications(self, side: str, method: str) -> Group:
        """Return the group of a notification."""
        key = side, method, None
        return self._notifications.get(key) or self._new(Kind.NOTIFICATION, key)

    def of(self, side: str, kind: Kind) -> list[Group]:
        """Return the groups of one side."""
        return [group for group in self._known(kind).values() if group.side == side]

    def total(self, side: str) -> Group:
        """Return all requests of one side."""
        return merged([Group(side, Kind.REQUEST, ""), *self.of(side, Kind.REQUEST)])

    @property
    def all(self) -> list[Group]:
        """Every group in which something was counted, the client's first."""
        return [
            group
            for side in (CLIENT, SERVER)
            for kind in Kind
            for group in self.of(side, kind)
            if group.count
        ]

    @property
    def largest(self) -> list[Large]:
        """The largest messages, the largest first."""
        return sorted(self._largest, reverse=True)

    def weigh(self, large: Large) -> None:
        """Keep it if it is among the largest."""
        if len(self._largest) < self._top:
            heappush(self._largest, large)
        else:
            heappushpop(self._largest, large)
        if len(self._largest) == self._top:
            self.least = self._largest[0].size

    def _known(self, kind: Kind) -> dict[_Key, Group]:
        return self._requests if kind is Kind.REQUEST else self._notifications

    def _new(self, kind: Kind, key: _Key) -> Group:
        """Return a new group; where there are too many, one for what has none of its own."""
        known = self._known(kind)
        side, method, about = key
        if len(self._requests) + len(self._notifications) >= MOST:
            key = side, method if (side, method, None) in known else "", None
            if about is not None and any(of[:2] == (side, method) for of in known):
                key = side, method, None
            if key in known:
                return known[key]
        side, method, about = key
        group = known[key] = Group(side, kind, method, about)
        return group
