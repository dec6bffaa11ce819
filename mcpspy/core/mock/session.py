"""Mock session of one client: takes its messages, and returns the server's messages with times.

A message passes four stages: decode, match, select, play; `Selector.fast_response` is a short cut. The session holds
the client's open requests, its positions in the queues, and scheduled messages. Messages are handled in order: if the
unread rest of the recordings could change the response to a message, the message and all later ones wait. Time is an
argument, in seconds of any monotonic clock. No input of the client raises an exception.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from msgspec import Struct

from mcpspy.core.mock.answers import client_answer
from mcpspy.core.mock.delivery import DeliveryFilter, Playback
from mcpspy.core.mock.interaction import EOF, RecordedStep, ResponseWithoutId
from mcpspy.core.mock.matching import RequestKey, request_key
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.selector import CANCELLED, SET_LEVEL, Selection, Selector
from mcpspy.core.mock.steering import GivenAnswer, MockOptions, RequestNote, Steering, noted
from mcpspy.core.mock.unrecorded import Miss
from mcpspy.core.protocol import responses
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    read_frame,
    text,
)
from mcpspy.core.protocol.passthrough import Passthrough
from mcpspy.core.protocol.spec import CLIENT, INVALID_REQUEST
from mcpspy.core.recording.decode import Frame

BATCHES = ("2024-11-05", "2025-03-26")
"""Revisions that allow JSON-RPC batches."""


class Outgoing(Struct, frozen=True):
    at: float
    data: bytes
    request: bytes | None
    """Id, as JSON text, of the client's request whose stream carries the message over HTTP; None if there is none.

    The request may already have its response.
    """
    is_answer: bool


class _Chosen(Struct, eq=False):
    """A request and what was chosen for it; scheduled if the user delays the response."""

    message: Request
    key: RequestKey
    selected: Selection
    answer_id: bytes
    given: GivenAnswer | None = None
    is_cancelled: bool = False


class _Received(NamedTuple):
    """One line or body of the client, with its decoded messages and the keys of its requests."""

    data: bytes
    messages: list[tuple[AnyMessage, RequestKey | None]]


class MockSession:
    """State of one client; call `resume` after reading more of the recordings."""

    def __init__(
        self, recordings: Recordings, options: MockOptions, now: float, steering: Steering | None = None
    ) -> None:
        """With `steering`, a viewer may change the options, and every request becomes a note."""
        self.recordings = recordings
        self.revision: str | None = None
        self.selector = Selector(
            recordings, options.match, repeats=options.repeats, plays_nearest=options.plays_nearest
        )
        may_forward = options.forwards or options.forwards_all or options.may_forward
        self.passthrough = Passthrough() if may_forward else None
        self._options = options
        self._steering = steering
        self._notes: list[RequestNote] = []
        self._complaints: list[str] = []
        self._held: deque[_Received] = deque()
        self._is_closed = False
        self._queue: list[tuple[float, int, Playback | None, int, Outgoing | RecordedStep | _Chosen]] = []
        self._number = 0
        self._open: dict[str, list[Playback]] = {}
        """Id → playbacks of requests that can still be cancelled."""
        self._delivery = DeliveryFilter()
        for interaction in recordings.opening:
            self._play(Playback(interaction, now, options.speed, gap=options.gap))

    def complaints(self) -> list[str]:
        """Return the messages for the user since the last call, one line each."""
        taken, self._complaints = self._complaints, []
        return taken

    def notes(self) -> list[RequestNote]:
        """Return what the requests since the last call got; empty without steering."""
        taken, self._notes = self._notes, []
        return taken

    def change(self, options: MockOptions) -> None:
        """Answer further requests by other options."""
        self._options = options
        self.selector.change(options.match, plays_nearest=options.plays_nearest)

    @property
    def next_at(self) -> float | None:
        """Time at which the next message is due; None if none is scheduled."""
        return self._queue[0][0] if self._queue else None

    @property
    def waits(self) -> bool:
        return bool(self._held) or (self.passthrough is not None and self.passthrough.is_initializing)

    @property
    def owes(self) -> bool:
        """True if responses are due that the client must receive even after it has closed its end."""
        if self._held or (self.passthrough is not None and self.passthrough.is_waiting):
            return True
        return any(
            (isinstance(item, Outgoing | _Chosen) or item.is_answer)
            and not (playback is not None and playback.cancelled)
            for _, _, playback, _, item in self._queue
        )

    def receive(self, data: bytes, now: float, messages: Sequence[AnyMessage] | None = None) -> None:
        """Handle one line or body of the client; `messages` are its decoded messages, if available."""
        if not (self._held or self._options.speed or self._steering is not None):
            fast = self.selector.fast_response(data)
            if fast is not None:
                self._respond(*fast, now)
                return
        received = self._match(
            data, messages if messages is not None else read_frame(Frame(now, CLIENT, data))
        )
        expects = any(self._expects(message) for message, _ in received.messages)
        if expects and (self._held or not self._is_settled(received)):
            self._held.append(received)
        else:
            self._handle(received, now)

    def resume(self, now: float) -> None:
        while self._held and self._is_settled(self._held[0]):
            self._handle(self._held.popleft(), now)
        if self._is_closed and not self._held:
            self._is_closed = False
            for playback in [playback for playbacks in self._open.values() for playback in playbacks]:
                playback.open(EOF, now)
                self._play(playback)

    def cancel(self, id: str, now: float) -> None:  # noqa: A002
        """Cancel a request by the JSON text of its id, after `notifications/cancelled` or a closed HTTP request."""
        for received in self._held:
            (message, _), *others = received.messages
            if isinstance(message, Request) and message.id == id and not others:
                self._held.remove(received)
                return
        for *_, item in self._queue:
            if isinstance(item, _Chosen) and item.message.id == id and not item.is_cancelled:
                item.is_cancelled = True
                return
        if playbacks := self._open.get(id):
            playback = playbacks[-1]
            playback.cancel(now)
            self._forget(playback)
            self._play(playback)
        elif self.passthrough is not None:
            self.passthrough.forward_cancellation(id)

    def receive_from_server(self, data: bytes, now: float) -> None:
        if self.passthrough is not None:
            for message in self.passthrough.received(data):
                self._push(now, None, 0, Outgoing(now, *message))
            self.revision = self.revision or self.passthrough.revision

    def close(self, now: float) -> None:
        """Close the client's side of the session after waiting messages are handled."""
        self._is_closed = True
        self.resume(now)

    def take(self, now: float) -> Iterator[Outgoing]:
        while self._queue and self._queue[0][0] <= now:
            at, _, playback, place, item = heappop(self._queue)
            if isinstance(item, Outgoing):
                yield item
            elif isinstance(item, _Chosen):
                if not item.is_cancelled:
                    self._act(item, at)
            elif playback is not None and not playback.is_stopped(item):
                request = self._delivery.carrier(playback, item)
                data = self._delivery.translated(playback, place, item)
                if item.is_answer:
                    self._forget(playback)
                if data is not None:
                    # Over HTTP, what responds to a notification is the body of the response to its POST.
                    is_body = item.kind is ResponseWithoutId and request is None
                    yield Outgoing(at, data, request, item.is_answer or is_body)

    def _match(self, data: bytes, messages: Sequence[AnyMessage]) -> _Received:
        """Match messages, the second stage."""
        ignored = self.recordings.ignored
        return _Received(
            data,
            [
                (message, request_key(message, ignored) if isinstance(message, Request) else None)
                for message in messages
            ],
        )

    def _expects(self, message: AnyMessage) -> bool:
        """Return True if what the server sends next depends on a message, which waits for the unread rest if needed."""
        if isinstance(message, Result | Failure):
            answered = self._delivery.waiting(message.id or "")
            return answered is not None and answered[0].selection is not None
        return isinstance(message, Request | Notification)

    def _is_settled(self, received: _Received) -> bool:
        if self.recordings.is_whole:
            return True
        if isinstance(received.messages[0][0], Result | Failure) and self._expects(received.messages[0][0]):
            return False  # The user may have given this answer in an interaction that follows.
        # Two requests of a batch may need the same interaction of a queue.
        return len(received.messages) == 1 and self.selector.is_settled(*received.messages[0])

    def _handle(self, received: _Received, now: float) -> None:
        """Select and play interactions, the last two stages."""
        if received.data.lstrip()[:1] == b"[" and self.revision not in BATCHES:
            why = f"batches are not part of {self.revision or 'this protocol'}"
            self._respond(responses.error(b"null", INVALID_REQUEST, why), None, now)
            return
        for message, key in received.messages:
            if isinstance(message, Request) and key is not None:
                self._answer(message, key, now)
            elif isinstance(message, Notification):
                if self._options.forwards_all and self.passthrough is not None:
                    self.passthrough.forward(message)
                elif message.method == CANCELLED:
                    self.cancel(text(message.body.request_id) or "", now)
                elif (interaction := self.selector.select_notified(message.method)) is not None:
                    self._play(Playback(interaction, now, self._options.speed, gap=self._options.gap))
            elif isinstance(message, Result | Failure):
                self._continue(message, now)
            elif isinstance(message, Malformed) and message.why != "blank line":
                self._respond(responses.rejection(message), None, now)

    def _answer(self, message: Request, key: RequestKey, now: float) -> None:
        id = message.id.encode()  # noqa: A001
        if message.flaws and (
            flaws := [flaw for flaw in message.flaws if flaw.startswith(("id is", "jsonrpc"))]
        ):
            if len(flaws) == 1 and (spelling := self.selector.spelling(message, key)) is not None:
                self._play_selected(message, key, now, spelling.encode())
                return
            known = b"null" if flaws[-1].startswith("id is") else id
            why = f"invalid request: {flaws[0]}"
            self._respond(responses.error(known, INVALID_REQUEST, why), None, now)
            return
        if self._options.forwards_all and self.passthrough is not None:
            self.passthrough.forward(message)
            return
        self._play_selected(message, key, now, id)

    def _play_selected(self, message: Request, key: RequestKey, now: float, answer_id: bytes) -> None:
        """Select and play the recorded response, with this id, to a request."""
        if message.method == SET_LEVEL:
            self._delivery.level = key.subject
        selected = self.selector.select(message, key)
        if message.method == "initialize":
            params = message.params
            self._delivery.capabilities = params.get("capabilities") if isinstance(params, dict) else None
            self.revision = selected.revision
            if self.passthrough is not None:
                self.passthrough.initialize = message.data
        chosen = _Chosen(message, key, selected, answer_id)
        if self._steering is not None:
            given = chosen.given = self._steering.take(message.method, selected.interaction)
            taken, forwards = self.selector.taken(selected.place), self._options.forwards
            self._notes.append(noted(message, key.about, selected, taken, given, forwards=forwards))
            if given is not None and given.delay:
                self._push(now + given.delay, None, 0, chosen)
                return
        self._act(chosen, now)

    def _act(self, chosen: _Chosen, now: float) -> None:
        """Play what was chosen for a request."""
        message, selected, given = chosen.message, chosen.selected, chosen.given
        id = message.id.encode()  # noqa: A001
        if given is not None and given.member:
            self._respond(responses.given(chosen.answer_id, given.member, given.value), id, now)
        elif selected.interaction is not None:
            if selected.miss is not None:
                self._complaints.append(f"{selected.miss.line}; playing the nearest")
            speed, gap = self._options.speed, self._options.gap
            playback = Playback(selected.interaction, now, speed, id, chosen.key, message, selected, gap=gap)
            playback.answer_id = chosen.answer_id
            self._start(playback)
        elif selected.miss is None:
            self._respond(selected.response(id), id, now)
        else:
            self._miss(message, selected.miss, now)

    def _miss(self, message: Request, miss: Miss, now: float) -> None:
        """Forward an unrecorded request to the server, or respond with an error."""
        if self.passthrough is not None and self._options.forwards:
            self._complaints.append(f"{miss.text}; forwarded to the server")
            self.passthrough.forward(message)
        else:
            self._complaints.append(miss.line)
            id, why = message.id.encode(), f"mcpspy mock: {miss.line}"  # noqa: A001
            self._respond(responses.error(id, self._options.miss, why, miss.data), id, now)

    def _start(self, playback: Playback) -> None:
        interaction, key = playback.interaction, playback.key
        self._open.setdefault((playback.id or b"").decode(), []).append(playback)
        if interaction.is_subscription:
            self._delivery.subscribe(playback)
        elif not interaction.is_answered and not interaction.cancelled and key is not None:
            self._complaints.append(f"{key.about}: the recording has no response, so none is sent")
        self._play(playback)

    def _continue(self, message: Result | Failure, now: float) -> None:
        if self.passthrough is not None and self.passthrough.forward_response(message):
            return
        answered = self._delivery.take_answered(message.id or "")
        if answered is None:
            return
        playback, place = answered
        if place in playback.interaction.replies:
            live = playback.live_rounds(place, client_answer(message))
            found, miss = self.selector.select_answered(playback.interaction, playback.selection, live)
            if found is None and miss is not None and playback.request is not None:
                self._forget(playback)
                playback.cancelled = True
                self._miss(playback.request, miss, now)
                return
            if miss is not None:
                self._complaints.append(f"{miss.line}; playing the nearest")
            if found is not None and found.order != playback.interaction.order:
                places = playback.switch(found, place)
                self._delivery.move(playback, places)
                place = places[place]
        playback.open(place, now)
        self._play(playback)

    def _respond(self, data: bytes, request: bytes | None, now: float) -> None:
        self._push(now, None, 0, Outgoing(now, data, request, True))

    def _play(self, playback: Playback) -> None:
        for at, place, step in playback.due(lambda step: self._delivery.lacks_capability(playback, step)):
            self._push(at, playback, place, step)

    def _push(
        self, at: float, playback: Playback | None, place: int, item: Outgoing | RecordedStep | _Chosen
    ) -> None:
        self._number += 1
        heappush(self._queue, (at, self._number, playback, place, item))

    def _forget(self, playback: Playback) -> None:
        """Forget a finished request, which can no longer be cancelled."""
        self._delivery.unsubscribe(playback)
        id = (playback.id or b"").decode()  # noqa: A001
        playbacks = self._open.get(id, [])
        if playback in playbacks:
            playbacks.remove(playback)
            if not playbacks:
                del self._open[id]
