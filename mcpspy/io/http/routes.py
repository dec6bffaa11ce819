"""Routes to both sides of an HTTP session, for injected messages.

To the server: the client's last POST. To the client: an open stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mcpspy.core.intercept.actions import StepReceiver

MAX_REMEMBERED = 1024
"""Number of sessions whose last POST is remembered."""


class Route(NamedTuple):
    """The last POST of a session's client."""

    stream: str
    target: str
    headers: Mapping[str, str]
    """The client's headers, unchanged."""
    public_origin: str
    """The origin under which the client knows the server."""
    is_session: bool
    """True if the session has more than this POST."""


class ExchangeRoute(StepReceiver, Protocol):
    """An exchange that executes the decisions on its messages."""

    @property
    def lists_tools(self) -> bool:
        """Return whether its response is a list of tools (2026-07-28)."""

    def release_all(self) -> None:
        """Forward all held messages unchanged."""


class StreamRoute(ExchangeRoute, Protocol):
    """An exchange whose response is a stream into which messages can be injected."""

    @property
    def is_get(self) -> bool:
        """Return whether the stream belongs to no request."""


class UninspectedStream(Protocol):
    """A stream that is forwarded without inspection."""

    def inspect(self) -> None:
        """Become a `StreamRoute` from the next event on."""


class RouteTable:
    """The current routes."""

    def __init__(self) -> None:
        self._posts: dict[str, Route] = {}
        self._last: Route | None = None
        self._streams: list[StreamRoute] = []
        self._uninspected: set[UninspectedStream] = set()

    @property
    def has_posts(self) -> bool:
        """Return whether a client has sent a message."""
        return self._last is not None

    def is_last(self, stream: str, headers: Mapping[str, str]) -> bool:
        """Return whether the last POST had this stream and these very headers, so that `add_post` changes nothing."""
        last = self._last
        return last is not None and last.headers is headers and last.stream == stream

    def add_post(self, route: Route) -> None:
        self._last = route
        if route.is_session:
            self._posts.pop(route.stream, None)
            self._posts[route.stream] = route
            if len(self._posts) > MAX_REMEMBERED:
                del self._posts[next(iter(self._posts))]

    def open_stream(self, stream: StreamRoute) -> None:
        self._streams.append(stream)

    def close_stream(self, stream: StreamRoute) -> None:
        if stream in self._streams:
            self._streams.remove(stream)

    def add_uninspected(self, stream: UninspectedStream) -> None:
        self._uninspected.add(stream)

    def remove_uninspected(self, stream: UninspectedStream) -> None:
        self._uninspected.discard(stream)

    def inspect(self) -> None:
        """Inspect all streams, so that messages can be injected into them."""
        while self._uninspected:
            self._uninspected.pop().inspect()

    def has_session(self, stream: str) -> bool:
        """Return whether this stream is a session, not a single POST."""
        return stream in self._posts

    def to_server(self, stream: object) -> Route | None:
        """Return the route of a session, or the last route if none is given."""
        last = self._last
        if stream is None:
            return last
        found = self._posts.get(str(stream))
        # Without sessions, the last POST can be used for any stream.
        return last if found is None and last is not None and not last.is_session else found

    def to_client(self, stream: object) -> StreamRoute | None:
        """Return a stream to the client, preferably its GET. None selects any client."""
        found = [each for each in self._streams if stream is None or each.stream == stream]
        return next((each for each in reversed(found) if each.is_get), found[-1] if found else None)
