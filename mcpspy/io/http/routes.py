"""Which ways lead to the sides of an HTTP session, for what we say ourselves.

Owns what is kept of passing exchanges for that: to the server the way of a
client's last POST, to the client a stream that is open. Says nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from mcpspy.core.intercept.actions import Step
    from mcpspy.core.recording.encode import Value

MAX_REMEMBERED = 1024
"""Conversations of which it is remembered how their client reaches the server."""


class Route(NamedTuple):
    """How the client of a conversation reaches the server: its last POST."""

    stream: str
    target: str
    headers: Mapping[str, str]
    """As they came."""
    public_origin: str
    """The origin at which the client knows the server."""
    is_session: bool
    """Whether there is a conversation beyond the one POST."""


class ExchangeRoute(Protocol):
    """An exchange, as somebody who is told what becomes of its messages."""

    @property
    def fields(self) -> dict[str, Value]:
        """What its entries in the recording say of it."""

    @property
    def is_answered_here(self) -> bool:
        """Whether its client waits here for what it asked."""

    @property
    def stream(self) -> str:
        """The conversation it belongs to."""

    @property
    def lists_tools(self) -> bool:
        """Whether its answer says what tools want in headers (2026-07-28)."""

    def deliver(self, step: Step) -> None:
        """Do this, in its turn. Never waits."""

    def release_all(self) -> None:
        """Let all that is held go on as it came."""


class StreamRoute(ExchangeRoute, Protocol):
    """An exchange whose answer is a stream, on which the client can be told something."""

    @property
    def is_get(self) -> bool:
        """Whether it is open for nothing else."""


class UninspectedStream(Protocol):
    """A stream that goes by without being looked at."""

    def inspect(self) -> None:
        """Be a `Stream` from the next event on."""


class RouteTable:
    """The ways there are at the moment."""

    def __init__(self) -> None:
        self._posts: dict[str, Route] = {}
        self._last: Route | None = None
        self._streams: list[StreamRoute] = []
        self._uninspected: set[UninspectedStream] = set()

    def add_post(self, route: Route) -> None:
        """Keep how a client reaches the server."""
        self._last = route
        if route.is_session:
            self._posts.pop(route.stream, None)
            self._posts[route.stream] = route
            if len(self._posts) > MAX_REMEMBERED:
                del self._posts[next(iter(self._posts))]

    def open_stream(self, stream: StreamRoute) -> None:
        """Keep that the client can be told something here."""
        self._streams.append(stream)

    def close_stream(self, stream: StreamRoute) -> None:
        """Keep that it cannot any more, if it could."""
        if stream in self._streams:
            self._streams.remove(stream)

    def add_uninspected(self, stream: UninspectedStream) -> None:
        """Keep that a stream goes by here, until somebody wants to look at it."""
        self._uninspected.add(stream)

    def remove_uninspected(self, stream: UninspectedStream) -> None:
        """Keep that it goes no more."""
        self._uninspected.discard(stream)

    def inspect(self) -> None:
        """Have the streams that go by looked at, and open to us."""
        while self._uninspected:
            self._uninspected.pop().inspect()

    def has_session(self, stream: str) -> bool:
        """Whether a client has said more than one thing in this conversation, or could."""
        return stream in self._posts

    def to_server(self, stream: object) -> Route | None:
        """Return the way that a conversation goes; without one, the last that was gone."""
        last = self._last
        if stream is None:
            return last
        found = self._posts.get(str(stream))
        # Of conversations that are one POST each, the last one shows the way as well as any.
        return last if found is None and last is not None and not last.is_session else found

    def to_client(self, stream: object) -> StreamRoute | None:
        """Return where the client can be told something: best where it listens for that. None is any client."""
        found = [each for each in self._streams if stream is None or each.stream == stream]
        return next((each for each in reversed(found) if each.is_get), found[-1] if found else None)
