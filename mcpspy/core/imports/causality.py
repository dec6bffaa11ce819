"""When the events of a stream can have come, which a saved body does not say.

Owns the estimate, from cause and effect: an answer comes after its request, a
question before its answer, and events in their order. What says nothing of
itself comes with what follows it.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcpspy.core.envelope import CLIENT, SERVER
from mcpspy.core.framing import SseEvent, SseFramer
from mcpspy.core.message import AnyMessage, Failure, Notification, Request, Result, read_frame, text
from mcpspy.core.record import Frame

LATER = 1e-6
"""Seconds, the least that a recording tells apart."""

Key = tuple[str, str]
"""A stream, and the JSON text of an id or token in it."""


class Causes:
    """What the client posted, and when."""

    def __init__(self) -> None:
        self._asked: dict[Key, float] = {}
        """When the server had a request."""
        self._tokens: dict[Key, float] = {}
        self._answered: dict[Key, float] = {}
        """When the client answered a question."""

    def post(self, stream: str, at: float, end_at: float, data: bytes) -> None:
        """Take what was posted at `at`, in an exchange that was over at `end_at`."""
        had = max(end_at, at + LATER)
        for message in read_frame(Frame(at, CLIENT, data)):
            if isinstance(message, Request):
                self._asked.setdefault((stream, message.id), had)
                if (token := message.progress_token) is not None:
                    self._tokens.setdefault((stream, token), had)
            elif isinstance(message, Result | Failure) and message.id is not None:
                self._answered.setdefault((stream, message.id), at)

    def times(self, stream: str, begun: float, end_at: float, body: bytes, *, own: bool) -> list[float]:
        """Return a time for each event of a body that came between `begun` and `end_at`.

        In the answer to a POST everything comes as late as it can; on a stream
        of the server's `own`, where it waits for nothing, as early.
        """
        framer = SseFramer()
        events = framer.feed(body)
        if (torn := framer.close()) is not None:
            events.append(torn)
        said = [_messages(event) for event in events]
        earliest, latest = [end_at] * len(events), [end_at] * len(events)
        low = high = end_at
        for number in reversed(range(len(events))):
            causes = _known(self._cause(stream, message) for message in said[number]) if own else []
            low = max(causes, default=low)
            high = min([high, *_known(self._effect(stream, message) for message in said[number])])
            earliest[number], latest[number] = low, high
        at = begun + LATER
        times = []
        for low, high in zip(earliest, latest, strict=True):
            at = max(at, min(low, high))
            times.append(at)
        return times

    def _cause(self, stream: str, message: AnyMessage) -> float | None:
        """Return when that was there without which it cannot have been sent."""
        if isinstance(message, Result | Failure):
            return self._asked.get((stream, message.id or ""))
        if isinstance(message, Notification) and message.method == "notifications/progress":
            return self._tokens.get((stream, text(message.body.progress_token) or ""))
        return None

    def _effect(self, stream: str, message: AnyMessage) -> float | None:
        """Return when that came which cannot have been sent without it."""
        return self._answered.get((stream, message.id)) if isinstance(message, Request) else None


def _known(times: Iterable[float | None]) -> list[float]:
    return [at for at in times if at is not None]


def _messages(event: SseEvent) -> list[AnyMessage]:
    return read_frame(Frame(0.0, SERVER, b"".join(event.data or ()))) if event.is_message else []
