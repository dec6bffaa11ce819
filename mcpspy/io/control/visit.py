"""Reaching into a live session, from the viewer's side.

Owns which answer belongs to which order; events are kept until they are asked
for. On an event loop it is `async_visit`'s.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from mcpspy.core.framing import LineFramer
from mcpspy.errors import CannotStart
from mcpspy.io.control import spoken
from mcpspy.io.control.spoken import accepted, connected, ended, greeted, order_line, read, unanswered


class Visit:
    """A connection to a session. Use it with `with`."""

    def __init__(self, path: str, viewer: str | None = None) -> None:
        """Connect, and be greeted; raise CannotStart. `viewer` is what notes in the recording call us."""
        self._numbers = 0
        self._framer = LineFramer()
        self._lines: deque[bytes] = deque()
        self._events: deque[dict[str, Any]] = deque()
        self._connection = connected(path)
        try:
            self.hello = greeted(self._line(time.monotonic() + spoken.GREETING), path)
            if viewer is not None:
                self.order("hello", viewer=viewer)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave: what we held goes on."""
        self._connection.close()

    def order(self, order: str, **fields: Any) -> dict[str, Any]:
        """Have something done; return the answer. Raises Refused, or CannotStart if nobody answers."""
        self._numbers += 1
        try:
            self._connection.settimeout(spoken.ANSWER)
            self._connection.sendall(order_line(self._numbers, order, fields))
        except OSError as error:
            raise ended(error) from None
        deadline = time.monotonic() + spoken.ANSWER
        while True:
            line = self._line(deadline)
            if line is None:
                raise unanswered()
            said = read(line)
            if "event" in said:
                self._events.append(said)
            elif said.get("n") == self._numbers:
                return accepted(said)

    def events(self, seconds: float | None = None) -> Iterator[dict[str, Any]]:
        """Yield what happens, for so long, or until the session ends: the last event is `end` then."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            while self._events:
                event = self._events.popleft()
                yield event
                if event["event"] == "end":
                    return
            try:
                line = self._line(deadline)
            except CannotStart:
                self._events.append({"event": "end"})
                continue
            if line is None:
                return
            said = read(line)
            if "event" in said:
                self._events.append(said)

    def _line(self, deadline: float | None) -> bytes | None:
        """Return the next line; None if none came by then. Raises CannotStart at the end."""
        while not self._lines:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return None
            self._connection.settimeout(left)
            try:
                data = self._connection.recv(1 << 16)
            except TimeoutError:
                return None
            except OSError as error:
                raise ended(error) from None
            if not data:
                raise ended(None)
            self._lines += self._framer.feed(data)
        return self._lines.popleft()
