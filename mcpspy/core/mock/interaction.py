"""A recorded message of the client, and its consequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from mcpspy.core.jsontools import Pointer
from mcpspy.core.mock.matching import RequestKey, compared_request, request_key
from mcpspy.core.protocol.message import AnyMessage, Failure, Notification, Request, Result, read_frame
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Frame

CANCEL, EOF = -1, -2
"""Gates besides the client's responses: the client cancels the request; the client closes its end."""

ValidMessage: TypeAlias = Request | Notification | Result | Failure

ReadBytes: TypeAlias = Callable[[int, int], bytes]
"""Return a number of bytes from an offset on."""


class RecordedStep(Struct, frozen=True, gc=False):
    kind: type[ValidMessage]
    read: ReadBytes
    place: int
    length: int
    after: float
    """Seconds since the last of `gates` opened; without any, since the interaction began."""
    gates: tuple[int, ...] = ()
    """Conditions: places of answered server requests, CANCEL, EOF. Includes those of the step before."""
    listens: int | None = None
    """Number of the recorded subscription that it came for."""
    cancels: int | None = None
    """Place of the server's own request that a cancellation refers to."""

    @property
    def is_answer(self) -> bool:
        return self.kind is Result or self.kind is Failure

    @property
    def is_request(self) -> bool:
        return self.kind is Request

    @property
    def data(self) -> bytes:
        return self.read(self.place, self.length)

    @property
    def message(self) -> AnyMessage:
        return read_frame(Frame(0.0, SERVER, self.data))[0]


class Interaction(Struct, eq=False):
    """A message of the client, and its consequences. Every look-up makes a new object: `order` identifies it."""

    read_cause: Callable[[], bytes] | None
    steps: list[RecordedStep]
    number: int | None = None
    recording: str = ""
    order: int = 0
    """Place among all interactions, those of other recordings included."""
    cancelled: bool = False
    is_subscription: bool = False
    is_modern: bool = False
    ignored: tuple[Pointer, ...] = ()
    _message: AnyMessage | None = None

    @property
    def cause(self) -> AnyMessage | None:
        """The client's message; None for what the server sent before it had received anything."""
        if self._message is None and self.read_cause is not None:
            self._message = read_frame(Frame(0.0, CLIENT, self.read_cause()))[0]
        return self._message

    @property
    def key(self) -> RequestKey | None:
        cause = self.cause
        return request_key(cause, self.ignored) if isinstance(cause, Request) else None

    @property
    def compared(self) -> dict[str, Any]:
        cause = self.cause
        return compared_request(cause, self.ignored) if isinstance(cause, Request) else {}

    @property
    def is_answered(self) -> bool:
        return any(step.is_answer for step in self.steps)

    @property
    def answer(self) -> AnyMessage | None:
        return next((step.message for step in self.steps if step.is_answer), None)
