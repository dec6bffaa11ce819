"""Streams of events, as they arrive: recorded and forwarded, or decided on one by one.

An event is recorded before its blank line is forwarded; nothing else is delayed, except the beginning of a stream that
may name an address. Methods yield bytes for the client, and what is done between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from mcpspy.core.framing import is_message
from mcpspy.core.intercept.actions import Forward, Substitute
from mcpspy.core.intercept.http import SseUnits, format_event
from mcpspy.core.recording.capped_body import CappedStream
from mcpspy.core.recording.encode import SERVER
from mcpspy.core.recording.encode_body import SseEncoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpspy.core.compression import Steps
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.intercept.actions import Dropped
    from mcpspy.core.intercept.http import SseUnit
    from mcpspy.core.recording.encode import Lines, Value

ENDPOINT_LIMIT = 1 << 16
"""Maximum size, in bytes, of the beginning of a stream that is held because its first event may name an address."""

MAX_KNOWN_CHUNK = 1 << 14
"""Maximum size, in bytes, of a chunk that is compared with the one before."""

T = TypeVar("T")


class RecordLines(NamedTuple):
    """Lines for the recording."""

    lines: Lines
    size: int


class Decide(NamedTuple):
    """A message to decide on, as it is and as it arrived."""

    side: str
    data: bytes
    raw: bytes
    event: SseEvent | None
    fields: dict[str, Value]


class TakeTurn(NamedTuple):
    """The moment for other exchanges."""

    long_step: Callable[[], None] | None = None
    """Runs in a thread first: it may take more than a few milliseconds."""


class Taken(NamedTuple):
    """A message that is being decided on."""

    ticket: int
    raw: bytes
    """The message as it arrived."""
    event: SseEvent | None


Output: TypeAlias = "Iterator[bytes | RecordLines | Decide | TakeTurn]"
"""Bytes for the client, and what is done between them."""

Redirect: TypeAlias = "Callable[[bytes, bytes], bytes]"
"""Learns the address that the data of an event names, and returns the event with the proxy's address in it."""

TURN = TakeTurn()


class _Step(Generic[T]):
    """A step that runs in a thread, and its value; None after the last one."""

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps
        self.value: T | None = None
        self.is_last = False

    def __call__(self) -> None:
        try:
            self.value = next(self._steps)
        except StopIteration:
            self.is_last = True


def values(steps: Steps[T]) -> Iterator[T | TakeTurn]:
    """Yield the values of steps, and between two of them that other exchanges have their turn."""
    if not steps.are_long:
        for number, value in enumerate(steps):
            if number:
                yield TURN
            yield value
        return
    while True:
        step = _Step(steps)
        yield TakeTurn(step)
        if step.is_last:
            return
        yield step.value  # type: ignore[misc]  # It has run.


def in_turns(steps: Steps[None]) -> Output:
    """Run steps; other exchanges run between two of them."""
    for each in values(steps):
        if each is not None:
            yield each


class ForwardedEvents:
    """A stream that is forwarded unchanged."""

    now = 0.0
    """The time, which passes while other exchanges have their turn."""

    def __init__(
        self,
        fields: dict[str, Value],
        encoding: str | None,
        limit: int,
        *,
        may_name_endpoint: bool,
        learn: Callable[[bytes], None] | None = None,
    ) -> None:
        """Prepare the stream. `learn` gets the data of each event, if it may list tools."""
        self._encoder = SseEncoder(SERVER, fields, limit)
        self._decoded = CappedStream(SERVER, fields, encoding, limit)
        self._learn = learn
        self._held = b""
        self.may_name_endpoint = may_name_endpoint
        """HTTP+SSE (2024-11-05) names the address for messages in the first event of its GET."""
        self._is_plain = learn is None and not self._decoded.is_decoding

    @property
    def is_between_events(self) -> bool:
        """Return whether nothing of the next event has arrived."""
        return not (self._held or self._encoder.is_inside_event)

    def known(self, now: float, chunk: bytes) -> bytes | None:
        """Return the line of a chunk that is one event like the one before, as nearly all are; None for any other."""
        if not self._is_plain or self.may_name_endpoint or len(chunk) > MAX_KNOWN_CHUNK:
            return None
        return self._encoder.known_line(now, chunk)

    def feed(self, now: float, chunk: bytes, redirect: Redirect) -> Output:
        self.now = now
        first: SseEvent | None = None
        for data in values(self._decoded.steps(chunk)):
            if not isinstance(data, bytes):
                yield data
                continue
            events, lines = self._encoder.feed(self.now, data)
            if lines:
                yield RecordLines(lines, sum(map(len, lines)))
            if events and first is None:
                first = events[0]
            for event in events if self._learn is not None else ():
                assert self._learn is not None
                self._learn(b"".join(event.data or ()))
        held = self._held + chunk
        self._held = b""
        if self.may_name_endpoint:
            is_short = len(held) < ENDPOINT_LIMIT
            if first is None and self._encoder.is_inside_event and is_short:
                self._held = held
                return
            self.may_name_endpoint = first is None and is_short
            if first is not None and first.event == "endpoint":
                held = redirect(held, b"".join(first.data or ()))
        yield held

    def close(self, now: float) -> tuple[RecordLines, bytes]:
        """Return the record of an event without its end, and what was held of it."""
        lines = list(self._decoded.close(now) if self._decoded.is_over else self._encoder.close(now))
        return RecordLines(lines, 0), self._held


class DecidedEvents:
    """A stream whose messages are decided on.

    A held event stops no other. Nothing is inserted into an event above the limit, which passes in parts: what is
    decided meanwhile is deferred to its end.
    """

    now = 0.0
    """The time, which passes while other exchanges have their turn."""

    def __init__(
        self, fields: dict[str, Value], encoding: str | None, limit: int, *, may_name_endpoint: bool
    ) -> None:
        self._fields = fields
        self._decoded = CappedStream(SERVER, fields, encoding, limit)
        self._events = SseUnits(limit)
        self._may_name_endpoint = may_name_endpoint
        self._held: dict[int, Taken] = {}
        """The messages that are not forwarded yet, by ticket."""
        self._is_in_event = False
        self._deferred = b""

    @property
    def is_settled(self) -> bool:
        """Return whether all that has arrived is forwarded."""
        return not (self._held or self._deferred)

    @property
    def is_between_events(self) -> bool:
        """Return whether nothing of an event above the limit has been sent without its end."""
        return not (self._is_in_event or self._deferred)

    @property
    def is_over(self) -> bool:
        """Return whether the stream is no longer decoded, because it is compressed as those of an attack."""
        return self._decoded.is_over

    @property
    def held(self) -> list[Taken]:
        return [self._held[ticket] for ticket in sorted(self._held)]

    def feed(self, now: float, chunk: bytes, redirect: Redirect) -> Output:
        self.now = now
        for data in values(self._decoded.steps(chunk)):
            if not isinstance(data, bytes):
                yield data
                continue
            for unit in self._events.feed(data):
                yield from self._take(unit, redirect)

    def _take(self, unit: SseUnit, redirect: Redirect) -> Output:
        message, event, raw = unit.message, unit.event, unit.raw
        if message is not None and is_message(message):
            assert event is not None
            named = {"event": event.event, "id": event.id, "retry": event.retry, "event_end": event.new_end}
            fields = self._fields | {key: value for key, value in named.items() if value is not None}
            if event.is_unspaced:
                fields["data_space"] = False
            self._may_name_endpoint = False
            yield Decide(SERVER, message, raw, event, fields)
            return
        if event is not None:
            yield self._recorded(self.now, event)
            if self._may_name_endpoint and event.event == "endpoint":
                raw = redirect(raw, b"".join(event.data or ()))
            self._may_name_endpoint = False
        self._is_in_event = unit.is_part
        yield raw
        if not unit.is_part and self._deferred:
            yield self._end_event()

    def _recorded(self, now: float, event: SseEvent) -> RecordLines:
        lines = list(SseEncoder(SERVER, self._fields).line(now, event))
        return RecordLines(lines, sum(map(len, lines)))

    def hold(self, taken: Taken) -> None:
        self._held[taken.ticket] = taken

    def insert(self, data: bytes) -> bytes:
        """Return what is sent now for bytes that are not of the server's stream."""
        if self._is_in_event:
            self._deferred += data
            return b""
        return data

    def decided(self, step: Forward | Substitute | Dropped) -> bytes:
        """Return what is sent now for a decision.

        After all messages were released, an earlier decision on one of them may still arrive.
        """
        taken = self._held.pop(step.ticket, None)
        if taken is None:
            return b""
        if isinstance(step, Forward):
            return self.insert(taken.raw)
        return self.insert(format_event(step.data, taken.event)) if isinstance(step, Substitute) else b""

    def close(self, now: float) -> Output:
        """Yield the record and the bytes of an event without its end, and what was deferred."""
        torn = None if self._decoded.is_over else self._events.close()
        if torn is not None and torn.event is not None:
            yield self._recorded(now, torn.event)
        if note := list(self._decoded.close(now)):
            yield RecordLines(note, 0)
        if torn is not None:
            yield torn.raw
        yield self._end_event()

    def _end_event(self) -> bytes:
        deferred, self._deferred, self._is_in_event = self._deferred, b"", False
        return deferred
