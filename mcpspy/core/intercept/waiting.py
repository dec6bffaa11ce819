"""Requests on their way that have no answer yet, and for how long.

Owns which request an answer answers, while both are passing: by stream, side
and id, as `core.pairing` does over a recording. Keeps no more than `MOST` of
them: a client that never gets an answer may ask all the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

from mcpspy.core.intercept.steps import Fields
from mcpspy.core.message import AnyMessage, Failure, Malformed, Notification, Request, Result
from mcpspy.core.rules.patch import written
from mcpspy.core.spec import MODERN, other

T = TypeVar("T", bound=Hashable)

Key: TypeAlias = tuple[str | None, str, str]
"""Stream, side that asked, id as JSON text."""

MOST = 50_000
"""Requests that may wait at one time; the oldest is forgotten."""


class Asked:
    """A request that somebody waits for."""

    __slots__ = (
        "at",
        "data",
        "has_gone",
        "id",
        "is_answered",
        "is_modern",
        "is_over",
        "lane",
        "method",
        "side",
        "stream",
        "subject",
        "token",
    )

    def __init__(self, request: Request, lane: object, *, keep: bool) -> None:
        self.at = request.at
        self.side = request.side
        self.stream = request.frame.stream
        self.id = request.id
        self.method = request.method
        self.subject = request.subject or ""
        self.token = request.progress_token if bytes(request.body.meta) else None
        self.is_modern = (request.revision or "") >= MODERN
        self.lane = lane
        self.data = request.data if keep else b""
        """Its bytes, if a rule may ask what it said."""
        self.has_gone = False
        """Whether its peer has it, and may answer."""
        self.is_answered = False
        """Whether its answer has come, though it may not have gone on."""
        self.is_over = False
        """Whether whoever asked was answered in its peer's place: what comes after that is late."""

    @property
    def key(self) -> Key:
        """What its answer is found by."""
        return self.stream, self.side, self.id

    @property
    def names(self) -> Fields:
        """The fields of a note that say which request it is."""
        return {
            "stream": self.stream,
            "from": self.side,
            "id": self.id,
            "method": self.method,
            "subject": self.subject,
        }


class Waiting:
    """The requests that wait, and those that were answered in their place."""

    def __init__(self) -> None:
        self._open: dict[Key, Asked] = {}
        self._tokens: dict[Key, Asked] = {}
        self._late: dict[Key, Asked] = {}

    def ask(self, asked: Asked) -> Asked | None:
        """Have a request wait; return the one that waited under its id, and does no more."""
        self._late.pop(asked.key, None)  # Its id is used again: an answer is for the new one.
        earlier = self._open.pop(asked.key, None)
        self._open[asked.key] = asked
        if asked.token is not None:
            self._tokens[asked.stream, asked.side, asked.token] = asked
        _bound(self._open)
        _bound(self._tokens)
        return earlier

    def find(self, stream: str | None, side: str, id: str | None) -> Asked | None:  # noqa: A002
        """Return the request of this side that waits under an id."""
        return self._open.get((stream, side, id or ""))

    def answered(self, stream: str | None, side: str, id: str | None) -> Asked | None:  # noqa: A002
        """Return the request that an answer of this side is for, which waits no more; None if there is none."""
        asked = self._open.pop((stream, other(side), id or ""), None)
        if asked is not None and asked.token is not None:
            self._tokens.pop((asked.stream, asked.side, asked.token), None)
        return asked

    def reported(self, stream: str | None, side: str, token: str | None) -> Asked | None:
        """Return the request that this side reports progress on."""
        return self._tokens.get((stream, other(side), token or ""))

    def give_up(self, asked: Asked) -> None:
        """Keep that a request was answered in its place."""
        self.answered(asked.stream, other(asked.side), asked.id)
        asked.is_over = True
        if asked.has_gone and not asked.is_answered:
            self._late[asked.key] = asked
            _bound(self._late)

    def late(self, stream: str | None, side: str, id: str | None) -> Asked | None:  # noqa: A002
        """Return the request that this answer is too late for."""
        return self._late.pop((stream, other(side), id or ""), None)


class Deadlines(Generic[T]):
    """Things that have the same time each: who came first is due first."""

    def __init__(self, seconds: float | None) -> None:
        """`seconds` is how long each has; None is for ever."""
        self.seconds = seconds
        self._since: dict[T, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def __iter__(self) -> Iterator[T]:
        return iter(self._since)

    @property
    def next_at(self) -> float | None:
        """When the first is due."""
        if self.seconds is None:
            return None
        return next((since + self.seconds for since in self._since.values()), None)

    def start(self, thing: T, at: float) -> None:
        """Give a thing its time, from now; again if it had begun."""
        if self.seconds is not None:
            self._since.pop(thing, None)
            self._since[thing] = at
            _bound(self._since)

    def stop(self, thing: T) -> bool:
        """Take a thing out; say whether it was in."""
        return self._since.pop(thing, None) is not None

    def due(self, at: float) -> list[T]:
        """Take out what is due."""
        found = []
        while (first := self.next_at) is not None and first <= at:
            thing = next(iter(self._since))
            del self._since[thing]
            found.append(thing)
        return found


def _bound(table: dict[T, Any]) -> None:
    if len(table) > MOST:
        del table[next(iter(table))]


def about(message: AnyMessage, asked: Asked | None) -> Fields:
    """Return the fields of a note that say which message it is; `asked` is the request it answers."""
    fields: Fields = {"stream": message.frame.stream, "from": message.side}
    if isinstance(message, Request | Result | Failure):
        fields["id"] = message.id
    if isinstance(message, Request | Notification):
        return {**fields, "method": message.method, "subject": message.subject}
    if asked is not None and not isinstance(message, Malformed):
        return {**fields, "method": asked.method, "subject": asked.subject}
    return fields


def answer(id: str, member: bytes, value: Any) -> bytes:  # noqa: A002
    """Return the answer to a request: `result` or `error`."""
    return b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (id.encode(), member, written(value))
