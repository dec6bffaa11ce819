"""Which exchanges over HTTP are one conversation: the scope in which ids are paired.

Owns the names of streams, and how long each is remembered. A stream is named by
the number of the exchange that began it. A session header makes one of many
exchanges, and so does the address that HTTP+SSE hands out; an exchange with
neither is a conversation of its own.
"""

from __future__ import annotations

ENDED = 4096
"""Sessions that are remembered after their end: an exchange of one may still be under way."""

MOST = 1 << 16
"""Sessions that are remembered; then the one that was silent longest is forgotten: many clients end none of theirs."""


class Streams:
    """The conversations with one server."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._sessions = _Names()
        self._addresses = _Names()

    def is_endpoint(self, target: str) -> bool:
        """Whether messages are sent to this path."""
        return target.partition("?")[0] == self._endpoint or target in self._addresses

    def of(self, session: str | None, target: str, number: int) -> str:
        """Return the stream of an exchange."""
        if session is not None:
            return self._sessions.keep(session, str(number))
        return self._addresses.get(target, str(number))

    def is_address(self, target: str) -> bool:
        """Whether HTTP+SSE handed this address out."""
        return target in self._addresses

    def bind(self, session: str, stream: str) -> None:
        """Keep that the server opened a session in this stream."""
        self._sessions.keep(session, stream)

    def bind_address(self, target: str, stream: str) -> None:
        """Keep that the server named this address for the messages of the stream."""
        self._addresses[target] = stream

    def end(self, session: str) -> None:
        """Let go of a session, in a while."""
        self._sessions.end(session)

    def end_address(self, target: str) -> None:
        """Let go of an address, in a while."""
        self._addresses.end(target)


class _Names(dict[str, str]):
    """Names of streams, those that were named last at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._ended: dict[str, None] = {}

    def keep(self, name: str, stream: str) -> str:
        """Return the stream of a name, which is this one if there is none."""
        stream = self[name] = self.pop(name, stream)
        if len(self) > MOST:
            self._drop(next(iter(self)))
        return stream

    def end(self, name: str) -> None:
        """Mark a name, if there is one, as ended."""
        if name in self:
            self._ended[name] = None
            if len(self._ended) > ENDED:
                self._drop(next(iter(self._ended)))

    def _drop(self, name: str) -> None:
        del self[name]
        self._ended.pop(name, None)
