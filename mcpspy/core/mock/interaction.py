"""Recorded messages of the client, each with the messages of the server that it caused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from mcpspy.core.jsontools import Pointer
from mcpspy.core.mock.answers import (
    InputRound,
    client_answer,
    input_answers,
    input_questions,
    server_question,
)
from mcpspy.core.mock.matching import RequestKey, compared_request, request_key
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    read_frame,
)
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Frame

CANCEL, EOF = -1, -2
"""Gates other than responses of the client: the client cancels the request, or closes its end."""

ValidMessage: TypeAlias = Request | Notification | Result | Failure


class ResponseWithoutId:
    """Kind of a step: a response without an id, which some servers send to a notification."""


PlayedMessage: TypeAlias = ValidMessage | Malformed | ResponseWithoutId
"""Also noise: a line on stdout that is not a message."""

ReadBytes: TypeAlias = Callable[[int, int], bytes]
"""Function that takes an offset and a length, and returns the bytes."""


class RecordedStep(Struct, frozen=True, gc=False):
    kind: type[PlayedMessage]
    read: ReadBytes
    place: int
    length: int
    after: float
    """Seconds since the last of `gates` opened or, without gates, since the interaction began."""
    gates: tuple[int, ...] = ()
    """Conditions, including those of the preceding step: places of answered server requests, CANCEL, EOF."""
    listens: int | None = None
    """Number of the recorded subscription that the message belongs to."""
    cancels: int | None = None
    """Place of the server request that a cancellation refers to."""

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
    """A message of the client and its effects; `order` identifies it, because each look-up creates a new object."""

    read_cause: Callable[[], bytes] | None
    steps: list[RecordedStep]
    number: int | None = None
    recording: str = ""
    order: int = 0
    """Position among the interactions of all recordings."""
    cancelled: bool = False
    is_subscription: bool = False
    is_modern: bool = False
    ignored: tuple[Pointer, ...] = ()
    replies: dict[int, bytes] = {}
    """Place of a server request → the client's response."""
    find_asking: Callable[[Request], Interaction | None] | None = None
    """Function that returns the earlier interaction whose `requestState` a request has."""
    _message: AnyMessage | None = None

    @property
    def cause(self) -> AnyMessage | None:
        """The client's message; None for messages that the server sent before it had received any."""
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
    def request_places(self) -> list[int]:
        return [place for place, step in enumerate(self.steps) if step.is_request]

    @property
    def rounds(self) -> list[InputRound]:
        """The server requests, with the recorded responses."""
        rounds = []
        for place in self.request_places:
            asked, reply = self.steps[place].message, self.replies.get(place)
            answer = None if reply is None else read_frame(Frame(0.0, CLIENT, reply))[0]
            rounds.append(
                InputRound(
                    server_question(asked) if isinstance(asked, Request) else None,
                    client_answer(answer) if isinstance(answer, Result | Failure) else None,
                )
            )
        return rounds

    @property
    def input_rounds(self) -> list[InputRound]:
        """The rounds of 2026-07-28 until the request; empty if it answers no question."""
        return rounds_until(self.cause, self.find_asking)

    @property
    def is_answered(self) -> bool:
        return any(step.is_answer for step in self.steps)

    @property
    def answer(self) -> AnyMessage | None:
        return next((step.message for step in self.steps if step.is_answer), None)


def rounds_until(
    cause: AnyMessage | None, find_asking: Callable[[Request], Interaction | None] | None
) -> list[InputRound]:
    """Return the rounds of a request of 2026-07-28, until its own answers; empty if it answers no question."""
    rounds: list[InputRound] = []
    while isinstance(cause, Request) and (
        bytes(cause.body.request_state) or bytes(cause.body.input_responses)
    ):
        asking = find_asking(cause) if find_asking is not None else None
        rounds.append(
            InputRound(None if asking is None else input_questions(asking.answer), input_answers(cause))
        )
        if asking is None:
            break
        cause, find_asking = asking.cause, asking.find_asking
    return rounds[::-1]
