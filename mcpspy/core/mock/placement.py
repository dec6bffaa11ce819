"""After which message of the client a message of the server has to come that does not say so itself.

Owns the guess. Order is all there is: a server request, a log message or a `list_changed` follows
the client's last message if that still waits for its answer, or is itself an answer; else the
youngest request that waits; else the last message. Over HTTP the exchange that carried it says so.
"""

from __future__ import annotations

from mcpspy.core.mock.shelf import MODERN, OPENING, SUBSCRIPTION, Shelf
from mcpspy.core.record import Frame

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Placement:
    """What the client said last, and what of it still waits, in each stream."""

    def __init__(self, shelf: Shelf) -> None:
        self.posted: dict[int, int] = {}
        """Rows of the requests that HTTP exchanges carried, as long as these last."""
        self._shelf = shelf
        self._open: dict[str | None, dict[int, None]] = {}
        """Rows of the requests that wait, by stream, the oldest first."""
        self._last: dict[str | None, tuple[int, bool]] = {}
        """The row of the client's last message in a stream, and whether that was an answer."""
        self._last_stream: str | None = None

    def wait(self, row: int, stream: str | None) -> None:
        """A request waits for its answer."""
        if (waiting := self._open.get(stream)) is None:
            self._open[stream] = {row: None}
        else:
            waiting[row] = None

    def over(self, row: int, stream: str | None) -> None:
        """A request waits no more."""
        waiting = self._open.get(stream)
        if waiting is not None and row in waiting:
            del waiting[row]
            if not waiting:
                del self._open[stream]

    def moves_on(self, stream: str | None, row: int, *, is_answer: bool = False) -> None:
        """The client said something."""
        self._last[stream], self._last_stream = (row, is_answer), stream

    def may_follow(self, row: int) -> bool:
        """Whether something may still come after a message of the client, because it is what the client said last."""
        last = self._last.get(self._last_stream)
        if last is not None and last[0] == row:
            return True
        # A modern request has a stream of its own over HTTP, in which nothing follows it.
        return not self._shelf.flags(row) & MODERN and any(row == said for said, _ in self._last.values())

    def place(self, frame: Frame, method: str) -> int:
        """Return the row of the scene in which a message of the server has to come."""
        stream = frame.stream
        if frame.http is not None and (posted := self.posted.get(frame.http)) is not None:
            if not self._shelf.flags(posted) & SUBSCRIPTION or method == ACKNOWLEDGED:
                return posted
            stream = self._last_stream  # What it listens for was brought about in another stream.
        waiting = self._open.get(stream)
        if stream in self._last:
            row, is_answer = self._last[stream]
            is_subscription = row != OPENING and self._shelf.flags(row) & SUBSCRIPTION
            if not waiting or is_answer or is_subscription or row in waiting:
                return row
        return next(reversed(waiting)) if waiting else OPENING
