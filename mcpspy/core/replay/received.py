"""Messages that a live server sent during a replay, and the responses to its requests.

`ReceivedMessages` has their times, which later steps wait for. `ServerRequests` chooses the recorded response to a
request of the server. Time is an argument, in seconds of any monotonic clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from mcpspy.core.jsontools import replaced
from mcpspy.core.protocol.message import Failure, Request, Result
from mcpspy.core.protocol.responses import error, result
from mcpspy.core.protocol.spec import METHOD_NOT_FOUND
from mcpspy.core.replay.plan import PlanStep, ServerRequest, WaitCondition, WaitKind, comparable

MIN_WAITS = {WaitKind.RESPONSE: 1.0, WaitKind.SERVER_REQUEST: 2.0, WaitKind.NOTIFICATION: 0.5}
"""Minimum seconds to wait for the response to a cancelled request, a server request, a notification."""

WAIT_FACTOR = 3.0
"""The factor by which these may take longer than in the recording."""


class ReceivedMessages:
    """Messages from the server so far, with their times."""

    def __init__(self) -> None:
        self.settled: dict[int, float] = {}
        """Recorded exchange that is over → the time of its end."""
        self._times: defaultdict[tuple[WaitKind, object], list[float]] = defaultdict(list)

    def add(self, what: WaitKind, key: object, now: float) -> None:
        """Record that a server request or a notification of this kind has arrived."""
        self._times[what, key].append(now)

    def missing(self, step: PlanStep) -> list[WaitCondition]:
        """Return the uncertain messages that a step waits for and that have not arrived."""
        return [wait for wait in step.waits if not wait.is_certain and self._at(wait) is None]

    def since(self, step: PlanStep, ready: float) -> float:
        """Return the arrival time of the last message that a step waits for, but not before `ready`."""
        return max([ready, *(at for wait in step.waits if (at := self._at(wait)) is not None)])

    def waits_until(self, step: PlanStep, ready: float, most: float) -> float:
        """Return the time until which a step waits for uncertain messages."""
        waits = [max(MIN_WAITS[wait.what], wait.delay * WAIT_FACTOR) for wait in self.missing(step)]
        return self.since(step, ready) + min(max(waits, default=0.0), most)

    def _at(self, wait: WaitCondition) -> float | None:
        if wait.what is WaitKind.RESPONSE:
            return self.settled.get(wait.key) if isinstance(wait.key, int) else None
        if isinstance(wait.key, tuple) and (over := self.settled.get(wait.key[1])) is not None:
            return over  # Progress on an exchange that is over.
        add = self._times[wait.what, wait.key]
        return add[wait.count - 1] if len(add) >= wait.count else None


class ServerRequestReply(Struct, frozen=True):
    """The response to a server request."""

    data: bytes | None
    """None: the recorded client never responded either."""
    after: float
    """Seconds it took in the recording."""
    token: str | None = None
    """JSON text of the recorded request's progress token."""
    warning: str | None = None
    """A line for the user."""


class ServerRequests:
    """The recorded server requests, and those of them that the live server has not sent yet."""

    def __init__(self, recorded: Sequence[ServerRequest]) -> None:
        self._recorded = list(recorded)
        self._left = list(recorded)

    def reply(self, request: Request) -> ServerRequestReply:
        id = request.id.encode()  # noqa: A001
        question = self._choose(request.method, comparable(request))
        if question is None:
            if request.method == "ping":
                return ServerRequestReply(result(id, {}), 0.0)
            warning = f"{request.method} of the server is not in the recording: answered with an error"
            return ServerRequestReply(
                error(id, METHOD_NOT_FOUND, f"not in the recording: {request.method}"), 0.0, warning=warning
            )
        answer = question.exchange.answer
        if not isinstance(answer, Result | Failure):
            return ServerRequestReply(None, 0.0)
        token = question.exchange.request.progress_token
        return ServerRequestReply(replaced(answer.data, ("id",), id), question.exchange.latency or 0.0, token)

    def _choose(self, method: str, params: str | None) -> ServerRequest | None:
        for questions, same in ((self._left, True), (self._left, False), (self._recorded, True)):
            for question in questions:
                if question.exchange.request.method == method and (not same or question.params == params):
                    if question in self._left:
                        self._left.remove(question)
                    return question
        return None
