"""Playback to one client: timing, ids, and selection of the recorded messages that it receives.

A step is sent when its gates are open and its recorded delay, scaled by the speed, has passed; steps keep their
order. Recorded ids are translated into live ones. A client does not receive progress without a token, logs below
its level, or requests that it lacks the capability for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct, field

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.mock.answers import InputRound
from mcpspy.core.mock.interaction import CANCEL, Interaction, RecordedStep, ResponseWithoutId
from mcpspy.core.mock.matching import RequestKey
from mcpspy.core.mock.selector import Selection
from mcpspy.core.protocol.message import Malformed, Notification, Request
from mcpspy.core.protocol.spec import LEVELS, META, METHODS

SUBSCRIPTION = META + "subscriptionId"

PROGRESS_GAP = 0.005
"""Seconds between the last progress and the response of a mock that sends messages at once.

The client of the TypeScript SDK forgets the handler of a request's progress when it reads the response, and handles
notifications in a later turn of its event loop: progress that arrives together with the response is lost.
"""


class Playback(Struct, eq=False):
    """An interaction played to one client, under the id of the client's request."""

    interaction: Interaction
    started: float
    speed: float
    id: bytes | None = None
    """Id of the client's request as JSON text; None if a notification started the interaction."""
    key: RequestKey | None = None
    request: Request | None = None
    """The client's request, which may have to be forwarded."""
    selection: Selection | None = None
    """Selection of the first interaction; None if a notification started it."""
    answer_id: bytes | None = None
    """Id of the response as JSON text, as the recorded server would spell it."""
    cancelled: bool = False
    """True if only steps that waited for the cancellation may still follow."""
    _at: float = 0.0
    _gates: dict[int, float] = field(default_factory=dict)
    gap: float = 0.0
    """Minimum seconds between the last progress and the response, if the speed is 0."""
    _next: int = 0
    _progress_at: float | None = None
    """Time of the last progress; None if there was none."""

    def __post_init__(self) -> None:
        self._at = self.started

    def open(self, gate: int, now: float) -> None:
        self._gates.setdefault(gate, now)

    def live_rounds(self, place: int, answer: Any) -> dict[int, InputRound]:
        """Return the rounds until now, by position; the last one is the server request at `place` and its answer."""
        rounds, places = self.interaction.rounds, self.interaction.request_places
        live = {number: rounds[number] for number, each in enumerate(places) if each in self._gates}
        number = places.index(place)
        return live | {number: InputRound(rounds[number].question, answer)}

    def switch(self, other: Interaction, place: int) -> dict[int, int]:
        """Continue with another interaction after the server request at `place`; return its places by the old ones."""
        places = dict(zip(self.interaction.request_places, other.request_places, strict=False))
        gates = ((places.get(gate, gate if gate < 0 else None), at) for gate, at in self._gates.items())
        self._gates = {gate: at for gate, at in gates if gate is not None}
        self.interaction = other
        followers = (number for number, step in enumerate(other.steps) if places[place] in step.gates)
        self._next = next(followers, len(other.steps))
        return places

    def cancel(self, now: float) -> None:
        """Stop the playback, except steps that were recorded after a cancellation."""
        self.cancelled = True
        for step in self.interaction.steps[self._next :]:
            if CANCEL in step.gates:
                for gate in step.gates:
                    self.open(gate, now)

    def is_stopped(self, step: RecordedStep) -> bool:
        """Return True if a cancellation keeps a step from being sent."""
        return self.cancelled and not any(gate < 0 for gate in step.gates)

    def due(self, is_skipped: Callable[[RecordedStep], bool]) -> Iterator[tuple[float, int, RecordedStep]]:
        """Yield the steps whose gates are open: time, place and step.

        A skipped server request counts as answered at the time at which it would have been sent.
        """
        steps = self.interaction.steps
        while self._next < len(steps):
            place, step = self._next, steps[self._next]
            if any(gate not in self._gates for gate in step.gates):
                return
            self._next += 1
            since = max((self._gates[gate] for gate in step.gates), default=self.started)
            self._at = max(self._at, since + (step.after / self.speed if self.speed else 0.0))
            if self.gap and not self.speed:
                self._leave_gap(step)
            if self.is_stopped(step):
                continue
            if step.is_request and is_skipped(step):
                self.open(place, self._at)
                continue
            yield self._at, place, step

    def _leave_gap(self, step: RecordedStep) -> None:
        if step.kind is Notification and b'"notifications/progress"' in step.data:
            self._progress_at = self._at
        elif step.is_answer and self._progress_at is not None:
            self._at = max(self._at, self._progress_at + self.gap)


class DeliveryFilter:
    """State of one client that determines which messages it receives, and under which ids."""

    def __init__(self) -> None:
        self.level: str | None = None
        """Log level of `logging/setLevel`; None if the client set none."""
        self.capabilities: object = None
        self._waiting: dict[str, tuple[Playback, int]] = {}
        self._sent: dict[tuple[Playback, int], str] = {}
        self._subscriptions: dict[tuple[str, int], bytes] = {}

    def subscribe(self, playback: Playback) -> None:
        interaction = playback.interaction
        if interaction.number is not None and playback.id is not None:
            self._subscriptions[interaction.recording, interaction.number] = playback.id

    def unsubscribe(self, playback: Playback) -> None:
        interaction = playback.interaction
        if interaction.is_subscription and interaction.number is not None:
            self._subscriptions.pop((interaction.recording, interaction.number), None)

    def take_answered(self, id: str) -> tuple[Playback, int] | None:  # noqa: A002
        """Return the server request that a response of the client belongs to, if it has no response yet."""
        return self._waiting.pop(id.strip('"'), None)  # Some clients respond to 1 with "1".

    def waiting(self, id: str) -> tuple[Playback, int] | None:  # noqa: A002
        return self._waiting.get(id.strip('"'))

    def move(self, playback: Playback, places: dict[int, int]) -> None:
        """Move the open server requests of a playback to the places of another interaction, or forget them."""
        for id, (each, place) in list(self._waiting.items()):  # noqa: A001
            if each is playback and place in places:
                self._waiting[id] = playback, places[place]
                self._sent[playback, places[place]] = id
            elif each is playback:
                del self._waiting[id]

    def lacks_capability(self, playback: Playback, step: RecordedStep) -> bool:
        """Return True if the client lacks the capability for a server request: a real server would not send it."""
        message = step.message
        known = METHODS.get(message.method) if isinstance(message, Request) else None
        if known is None or known.needs is None:
            return False
        capabilities = self.capabilities
        if playback.key is not None and playback.key.version is not None:
            if not playback.interaction.is_modern:
                return True  # From 2026-07-28 on, servers send no requests.
            capabilities = playback.key.meta.get(META + "clientCapabilities")
        return not (isinstance(capabilities, dict) and known.needs in capabilities)

    def carrier(self, playback: Playback, step: RecordedStep) -> bytes | None:
        """Return the id of the live request whose stream carries a message: a subscription or the cause."""
        if step.listens is not None:
            return self._subscriptions.get((playback.interaction.recording, step.listens), playback.id)
        return playback.id

    def translated(self, playback: Playback, place: int, step: RecordedStep) -> bytes | None:
        """Return a recorded message with this client's ids; None if the client does not receive it."""
        if step.kind is Malformed:
            return step.data
        data = one_line(step.data)
        if step.kind is ResponseWithoutId:
            return data
        if step.is_answer:
            data = replaced(data, ("id",), playback.answer_id or playback.id or b"null")
            if step.listens is not None and playback.id is not None:
                data = replaced(data, ("result", "_meta", SUBSCRIPTION), playback.id)
            return data
        message = step.message
        if isinstance(message, Request):
            id = str(len(self._sent) + 1)  # noqa: A001
            self._waiting[id], self._sent[playback, place] = (playback, place), id
            return replaced(data, ("id",), id.encode())
        if not isinstance(message, Notification):
            return None  # The recording has changed since it was loaded.
        if message.method == "notifications/progress":
            token = playback.key.token if playback.key is not None else None
            return None if token is None else replaced(data, ("params", "progressToken"), token.encode())
        if message.method == "notifications/message":
            return data if self._is_loud_enough(playback, message) else None
        if step.cancels is not None:
            sent = self._sent.get((playback, step.cancels))
            return None if sent is None else replaced(data, ("params", "requestId"), sent.encode())
        if step.listens is not None:
            live = self._subscriptions.get((playback.interaction.recording, step.listens))
            path = ("requestId",) if message.method == "notifications/cancelled" else ("_meta", SUBSCRIPTION)
            return None if live is None else replaced(data, ("params", *path), live)
        return data

    def _is_loud_enough(self, playback: Playback, message: Notification) -> bool:
        least: object = self.level
        level = message.subject
        if playback.key is not None and playback.key.version is not None:
            least = playback.key.meta.get(META + "logLevel")
            if least is None:
                return False  # A request of 2026-07-28 without a log level receives no logs.
        if least not in LEVELS or level not in LEVELS:
            return True
        return LEVELS.index(level) >= LEVELS.index(least)
