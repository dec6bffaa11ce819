"""Routes to both sides of an HTTP session, for injected messages.

To the server: the client's last POST. To the client: an open stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from mcpspy.core.intercept.actions import StepReceiver

if TYPE_CHECKING:
    from mcpspy.core.exchange.prepared import PreparedRequest

MAX_REMEMBERED = 1024
"""Number of sessions whose last POST is remembered."""


class Route(NamedTuple):
    """The last POST of a session's client."""

    stream: str
    prepared: PreparedRequest
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
        self._last: tuple[str, PreparedRequest | None, bool] = "", None, False
        """The parts of the last route, which is made only for a viewer."""
        self._streams: list[StreamRoute] = []
        self._uninspected: set[UninspectedStream] = set()

    @property
    def has_posts(self) -> bool:
        """Return whether a client has sent a message."""
        return self._last[1] is not None

    def add_post(self, stream: str, prepared: PreparedRequest) -> None:
        """Take the last message of a client."""
        last = self._last
        if last[1] is prepared and last[0] == stream:
            return
        is_session = prepared.session is not None or prepared.scope.streams.is_address(prepared.target)
        self._last = stream, prepared, is_session
        if is_session:
            self._posts.pop(stream, None)
            self._posts[stream] = Route(stream, prepared, is_session)
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
        last_stream, last, is_session = self._last
        found = self._posts.get(str(stream))
        # Without sessions, the last POST can be used for any stream.
        if last is not None and (stream is None or (found is None and not is_session)):
            return Route(last_stream, last, is_session)
        return found

    def to_client(self, stream: object) -> StreamRoute | None:
        """Return a stream to the client, preferably its GET. None selects any client."""
        found = [each for each in self._streams if stream is None or each.stream == stream]
        return next((each for each in reversed(found) if each.is_get), found[-1] if found else None)
