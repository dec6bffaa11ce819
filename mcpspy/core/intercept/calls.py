"""Requests that wait, and what is done when they wait too long.

Owns the watchdog: a client's request that hangs is answered with an error, its
server told that nobody waits any more, and the late answer recognized. Sources:
MCP basic/utilities/cancellation (`initialize` is never cancelled), 2026-07-28
basic/transports/streamable-http (closing the request cancels it).
"""

from __future__ import annotations

from mcpspy.core.exchange import SUBSCRIBE
from mcpspy.core.intercept.steps import Abort, Speak, Step, remark
from mcpspy.core.intercept.waiting import Asked, Deadlines, Waiting, answer
from mcpspy.core.message import Notification, Request, text
from mcpspy.core.rules.patch import written
from mcpspy.core.spec import CLIENT, other

TIMED_OUT = -32001
"""What the SDKs' own clients call it."""


class Calls:
    """The requests of both sides, from their asking to their answer."""

    def __init__(self, call_timeout: float | None, slow: float | None, *, keep: bool) -> None:
        """Times are in seconds; `keep` says that the text of a request is wanted until its answer has come."""
        self.timeouts = Deadlines[Asked](call_timeout)
        self.slow = Deadlines[Asked](slow)
        self._keep = keep
        self._waiting = Waiting()

    @property
    def are_watched(self) -> bool:
        """Whether time matters."""
        return self.timeouts.seconds is not None or self.slow.seconds is not None

    def ask(self, message: Request, lane: object, *, waits: bool = True) -> Asked:
        """Return a request, which waits for its answer unless it has one already."""
        asked = Asked(message, lane, keep=self._keep)
        if waits:
            if (earlier := self._waiting.ask(asked)) is not None:
                self.stop(earlier)
            self.watch(asked, message.at)
        return asked

    def answered(self, stream: str | None, side: str, id: str | None) -> Asked | None:  # noqa: A002
        """Return the request that an answer of this side is for, or None; it is answered when the answer has gone on."""
        asked = self._waiting.answered(stream, side, id)
        if asked is not None:
            asked.is_answered = True
        return asked

    def late(self, stream: str | None, side: str, id: str | None) -> Asked | None:  # noqa: A002
        """Return the request that an answer of this side is too late for."""
        return self._waiting.late(stream, side, id)

    def hear(self, message: Notification) -> None:
        """Take what a notification says of a request: that it goes on, or is not wanted any more."""
        stream, side = message.frame.stream, message.side
        if message.method == "notifications/progress":
            asked = self._waiting.reported(stream, side, text(message.body.progress_token))
            if asked is not None and self.timeouts.stop(asked):
                self.timeouts.start(asked, message.at)
        elif message.method == "notifications/cancelled":
            asked = self._waiting.find(stream, side, text(message.body.request_id))
            if asked is not None:
                self.stop(asked)

    def watch(self, asked: Asked, at: float) -> None:
        """Count a request's time from now on, unless it stays open by design. Only a client's may time out."""
        if asked.method != SUBSCRIBE and not asked.is_over:
            self.slow.start(asked, at)
            if asked.side == CLIENT:
                self.timeouts.start(asked, at)

    def stop(self, asked: Asked) -> None:
        """Count a request's time no more."""
        self.timeouts.stop(asked)
        self.slow.stop(asked)

    def give_up(self, asked: Asked) -> None:
        """Keep that a request was answered in its peer's place."""
        self.stop(asked)
        self._waiting.give_up(asked)

    def lane_left(self, lane: object) -> None:
        """An HTTP exchange is over: nobody waits there any more."""
        for asked in {*self.timeouts, *self.slow}:
            if asked.lane is lane:
                self.stop(asked)

    def due(self, at: float) -> list[Step]:
        """Return what is to be done because so much time has passed."""
        steps: list[Step] = [
            remark("slow", {**asked.names, "seconds": self.slow.seconds}, asked.lane)
            for asked in self.slow.due(at)
        ]
        for asked in self.timeouts.due(at):
            steps += self._time_out(asked)
        return steps

    def _time_out(self, asked: Asked) -> list[Step]:
        seconds = self.timeouts.seconds
        what = f"{asked.method} {asked.subject}".strip()
        message = f"Request timed out: {what} got no answer within {seconds:g} s (mcpspy --call-timeout)"
        error = {"code": TIMED_OUT, "message": message}
        is_expected = asked.has_gone and not asked.is_answered
        self.give_up(asked)
        steps: list[Step] = [
            Speak(other(asked.side), answer(asked.id, b"error", error), asked.lane, asked.stream),
            remark("timeout", {**asked.names, "seconds": seconds}, asked.lane),
        ]
        if not is_expected or asked.method == "initialize":
            return steps
        if asked.is_modern and asked.lane is not None:
            return [*steps, Abort(asked.lane)]
        cancelled = (
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b,"reason":%b}}'
        )
        reason = written(f"no answer within {seconds:g} s")
        return [*steps, Speak(asked.side, cancelled % (asked.id.encode(), reason), None, asked.stream)]
