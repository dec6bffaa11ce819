"""What is known of a POST, or of a GET stream, while what it brings comes in.

Owns which requests still wait for their answer, and where a stream would be
taken up again. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result


class Call:
    """The messages of one body, or none of a GET."""

    def __init__(self, messages: Iterable[AnyMessage], session: str | None) -> None:
        self.asked = {message.id: message.method for message in messages if isinstance(message, Request)}
        """Requests by id."""
        self.waits = list(self.asked)
        """Those that have no answer yet."""
        self.session = session
        """The session it was sent in."""
        self.last_id: str | None = None
        """The event after which to come back."""
        self.retry: int | None = None
        """Milliseconds to wait before that, if the server named them."""

    @property
    def only(self) -> str | None:
        """The id of its request, if it is one and no batch."""
        return next(iter(self.asked)) if len(self.asked) == 1 else None

    @property
    def is_initialize(self) -> bool:
        """Whether it asks for a session."""
        return "initialize" in self.asked.values()

    def settle(self, answer: Result | Failure, status: int) -> None:
        """Have a request answered: by its id, or with an error status by the exchange alone."""
        if answer.id in self.waits:
            self.waits.remove(answer.id)
        elif status >= 400:
            self.waits.clear()
