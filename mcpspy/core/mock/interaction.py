"""What the server said because of one message of the client.

Owns the shape of a recorded cause and its effects; `script` finds them,
`shelf` keeps them, `conversation` plays them.

One scene while it is played for one client.

Owns when each of its steps is due: gates open, and what waited for them
follows at its recorded distance, scaled. Steps keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from mcpspy.core.jsontools import Pointer
from mcpspy.core.mock.matching import Asked, asked
from mcpspy.core.protocol.message import AnyMessage, Failure, Notification, Request, Result, read_frame
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Frame

CANCEL, EOF = -1, -2
"""Gates that are no answers: the client cancels the request; the client closes its end."""

Said: TypeAlias = Request | Notification | Result | Failure

Read: TypeAlias = Callable[[int, int], bytes]
"""So many bytes from a place on."""


class Step(Struct, frozen=True, gc=False):
    """One message of the server."""

    kind: type[Said]
    read: Read
    place: int
    length: int
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
        return self.kind is Result or self.kind is Failure

    @property
    def is_request(self) -> bool:
        """Whether the client has to answer it."""
        return self.kind is Request

    @property
    def data(self) -> bytes:
        """Its own bytes, read where they are."""
        return self.read(self.place, self.length)

    @property
    def message(self) -> AnyMessage:
        """What it says."""
        return read_frame(Frame(0.0, SERVER, self.data))[0]


class Scene:
    """A message of the client, and what followed it. Made anew by every look-up: `order` tells which it is."""

    __slots__ = (
        "_cause",
        "_ignored",
        "cancelled",
        "is_modern",
        "is_subscription",
        "number",
        "order",
        "steps",
        "told",
    )

    def __init__(
        self,
        cause: Callable[[], bytes] | None,
        steps: list[Step],
        number: int | None = None,
        *,
        told: str = "",
        order: int = 0,
        cancelled: bool = False,
        is_subscription: bool = False,
        is_modern: bool = False,
        ignored: Iterable[Pointer] = (),
    ) -> None:
        self.steps = steps
        self.number = number
        """Of the recorded exchange, if it is a request."""
        self.told = told
        """Which recording it is from."""
        self.order = order
        """Place among all scenes, those of other recordings included."""
        self.cancelled = cancelled
        """Whether the client cancelled it."""
        self.is_subscription = is_subscription
        """Whether it stays open by design."""
        self.is_modern = is_modern
        """Whether it is a request of a revision without a handshake."""
        self._cause = cause
        self._ignored = ignored

    @property
    def cause(self) -> AnyMessage | None:
        """None for what the server said before it had heard anything."""
        return None if self._cause is None else read_frame(Frame(0.0, CLIENT, self._cause()))[0]

    @property
    def asked(self) -> Asked | None:
        """What it asks for, if it is a request."""
        cause = self.cause
        return asked(cause, self._ignored) if isinstance(cause, Request) else None

    @property
    def is_answered(self) -> bool:
        """Whether the request was answered."""
        return any(step.is_answer for step in self.steps)

    @property
    def answer(self) -> AnyMessage | None:
        """What the request was answered."""
        return next((step.message for step in self.steps if step.is_answer), None)


class Run:
    """A scene being played, under the ids of the client's own request."""

    __slots__ = (
        "_at",
        "_gates",
        "_next",
        "_speed",
        "_started",
        "cancelled",
        "id",
        "request",
        "scene",
    )

    def __init__(self, scene: Scene, now: float, speed: float, request: Request | None = None) -> None:
        self.scene = scene
        self.request = request
        """The client's own; None if it began with a notification."""
        self.id = request.id.encode() if request is not None else None
        self.cancelled = False
        """Whether nothing more may come of it, but for what waited for the cancellation."""
        self._speed = speed
        self._started = self._at = now
        self._gates: dict[int, float] = {}
        self._next = 0

    def open(self, gate: int, now: float) -> None:
        """Something happened that later steps wait for."""
        self._gates.setdefault(gate, now)

    def cancel(self, now: float) -> None:
        """Stop; what was recorded after a cancellation still follows it."""
        self.cancelled = True
        for step in self.scene.steps[self._next :]:
            if CANCEL in step.gates:
                for gate in step.gates:
                    self.open(gate, now)

    def is_stopped(self, step: Step) -> bool:
        """Whether a cancellation keeps a step from being sent."""
        return self.cancelled and not any(gate < 0 for gate in step.gates)

    def due(self, is_skipped: Callable[[Step], bool]) -> Iterator[tuple[float, int, Step]]:
        """Yield the steps that can be timed now: when, their place, the step.

        A server request that is skipped counts as answered when it would have been sent.
        """
        steps = self.scene.steps
        while self._next < len(steps):
            place, step = self._next, steps[self._next]
            if any(gate not in self._gates for gate in step.gates):
                return
            self._next += 1
            since = max((self._gates[gate] for gate in step.gates), default=self._started)
            self._at = max(self._at, since + (step.after / self._speed if self._speed else 0.0))
            if self.is_stopped(step):
                continue
            if step.is_request and is_skipped(step):
                self.open(place, self._at)
                continue
            yield self._at, place, step
