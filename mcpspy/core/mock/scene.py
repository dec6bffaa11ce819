"""What the server said because of one message of the client.

Owns the shape of a recorded cause and its effects; `script` finds them,
`conversation` plays them.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from mcpspy.core.message import Failure, Notification, Request, Result
from mcpspy.core.mock.asked import Asked

CANCEL, EOF = -1, -2
"""Gates that are no answers: the client cancels the request; the client closes its end."""

Said: TypeAlias = Request | Notification | Result | Failure


class Step(Struct, frozen=True):
    """One message of the server."""

    message: Said
    after: float
    """Seconds since the last of `gates` opened; without any, since the scene began."""
    gates: tuple[int, ...] = ()
    """What has to have happened: places of server requests that are answered, CANCEL, EOF. Never fewer than of the step before."""
    listens: int | None = None
    """Number of the recorded subscription that it came for."""
    withdraws: int | None = None
    """A cancellation by the server: the place of its own request."""

    @property
    def is_answer(self) -> bool:
        """Whether it answers the client's request."""
        return isinstance(self.message, Result | Failure)


class Scene:
    """A message of the client, and what followed it. Does not change once it is read."""

    __slots__ = ("asked", "cancelled", "cause", "number", "order", "steps", "told")

    def __init__(self, cause: Request | Notification | None, number: int | None = None) -> None:
        self.cause = cause
        """None for what the server said before it had heard anything."""
        self.number = number
        """Of the recorded exchange, if it is a request."""
        self.asked: Asked | None = None
        """What it asks for, if it is a request."""
        self.cancelled = False
        """Whether the client cancelled it."""
        self.told = ""
        """Which recording it is from."""
        self.order = 0
        """Place among all scenes, those of other recordings included."""
        self.steps: list[Step] = []

    @property
    def answer(self) -> Result | Failure | None:
        """What the request was answered."""
        for step in self.steps:
            if isinstance(step.message, Result | Failure):
                return step.message
        return None

    @property
    def is_subscription(self) -> bool:
        """Whether it stays open by design."""
        return self.asked is not None and self.asked.method == "subscriptions/listen"
