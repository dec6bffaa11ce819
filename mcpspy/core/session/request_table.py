"""The requests of a session, by what identifies their responses.

`RequestTable` keeps open requests by (stream, sender, id), since both sides count from 1, and never guesses: which
response, progress token, cancellation or end of an HTTP exchange belongs to which request, and what is wrong with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

from msgspec import Raw

from mcpspy.core.protocol.message import loads, text
from mcpspy.core.protocol.spec import CLIENT, other
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.exchange import Correlatable, Event, State, transition

P = TypeVar("P", bound=Correlatable)

_UNSETTLED = (State.PENDING, State.UNKNOWN)

UNSOLICITED = "unsolicited response"
UNKNOWN_PROGRESS = "progress for an unknown token"
NO_ID = "response without an id"

LONGEST = 20
"""Maximum digits of an id that a fast decoder reads as a number."""

Key = tuple[str | None, str, str]
"""Stream, sender of the request, id by value (`id_key`)."""

Question = tuple[str, str | None, str]
"""Properties that a question and the request with its answer share."""


class RequestTable(Generic[P]):
    """The requests of a session, by id, progress token, subscription and HTTP exchange."""

    def __init__(
        self, *, forgets: bool = False, recall: Callable[[dict[Key, P]], None] | None = None
    ) -> None:
        """Create an empty table.

        `forgets`: the caller will call `forget_but`, so store what it needs. `recall`: adds the requests that were
        answered since its last call; the table then stores none itself, which a long session seldom needs.
        """
        self._forgets = forgets
        self.recall = recall
        self._open: dict[Key, list[P]] = {}
        self.unusual: dict[Key, str] = {}
        """Open requests whose response needs more than a look-up → the id as the latest of them spelled it."""
        self._doubled: set[Key] = set()
        self._has_lost = False
        self._answered: dict[Key, P] = {}
        self.highest: dict[tuple[str | None, str], int] = {}
        """Stream and sender → the highest id above 0 of the requests: a higher one is new."""
        self._progress: dict[Key, P] = {}
        self._questions: dict[Question, list[P]] = {}
        self._posted: dict[int, Key | None] = {}
        self._refused: dict[int, int] = {}
        self._seen_events: dict[tuple[str | None, str], None] = {}
        self._over: deque[int] = deque()

    @property
    def answered(self) -> dict[Key, P]:
        """The latest answered request under each id."""
        if self.recall is not None:
            self.recall(self._answered)
        return self._answered

    def pending(self) -> Iterator[P]:
        """Yield the pending requests, except subscriptions."""
        for waiting in self._open.values():
            for request in waiting:
                if request.state is State.PENDING and not request.is_subscription:
                    yield request

    def waiting(self) -> list[P]:
        """Return all requests that could still be answered: pending, cancelled or closed."""
        return [request for waiting in self._open.values() for request in waiting]

    def forget_but(self, kept: int) -> None:
        """Forget all completed requests except the latest `kept`; call it from time to time.

        Open requests stay, so every response finds its request. But a reused id, a second response,
        progress or a repeated event is only recognised if the first one is still remembered.
        """
        for known in (self._answered, self._progress, self._questions, self._seen_events):
            _drop_oldest(known, kept)
        while len(self._over) > kept:
            number = self._over.popleft()
            self._posted.pop(number, None)
            self._refused.pop(number, None)

    def request(self, request: P, frame: Frame, id: str, token: str | None, *, modern: bool) -> str | None:  # noqa: A002
        """Open a request; return the issue with its id, if there is one."""
        stream, side, http = frame.stream, frame.side, frame.http
        key = (stream, side, id_key(id))
        waiting = self._open.get(key)
        flaw = None
        if key[2] != id:
            self.unusual[key] = id
        highest = self.highest.get((stream, side), 0)
        number = int(key[2]) if key[2].isdigit() and len(key[2]) <= LONGEST else 0
        if number > highest:
            self.highest[stream, side] = number
        if waiting is None:
            if not modern and number <= highest and key in self.answered:
                flaw = f"id {id} was used before"
            self._open[key] = [request]
        else:
            if any(earlier.state is State.PENDING for earlier in waiting):
                flaw = f"id {id} is in use by an unanswered request"
                self._doubled.add(key)
                self.unusual.setdefault(key, id)
            elif not modern:
                flaw = f"id {id} was used before"
            waiting.append(request)
        if http is not None and side == CLIENT:
            self._posted[http] = None if http in self._posted else key  # A batch is refused as a whole.
        if token is not None:
            self._progress[(stream, side, id_key(token))] = request
        return flaw

    def open_request(self, stream: str | None, side: str, id: str) -> P | None:  # noqa: A002
        """Return the latest open request under an id. Its response then takes no short cut."""
        key = (stream, side, id_key(id))
        if (waiting := self._open.get(key)) is None:
            return None
        self.unusual.setdefault(key, id)
        return waiting[-1]

    def answer(self, frame: Frame, id: str | None, event: Event) -> tuple[P | None, str | None]:  # noqa: A002
        """Settle a request; return it, and an issue. For a response without a request, see `explain_unsolicited`."""
        key, flaw = self._request_key(frame, id, event)
        waiting = self._open.get(key)
        if waiting is None:
            return None, None
        request = waiting[0] if len(waiting) == 1 else _first(waiting)
        if flaw is None and (id != key[2] or key in self.unusual):
            asked = self.unusual.get(key, key[2])
            flaw = f"its id is {id}, the request's is {asked}" if id != asked else None
            if key in self._doubled:
                by_order = f"paired by order: more than one request in flight had id {asked}"
                flaw = f"{by_order}; {flaw}" if flaw else by_order
        self._remove(key, waiting, request)
        if self.recall is None:
            self._answered[key] = request
        transition(request, event)
        if request.state is State.LATE:
            late = "answered after it was cancelled"
            flaw = f"{flaw}; {late}" if flaw else late
        return request, flaw

    def explain_unsolicited(self, frame: Frame, id: str | None) -> tuple[P | None, str]:  # noqa: A002
        """Describe a response that no open request waits for."""
        if id is None:
            return None, NO_ID
        requester = other(frame.side)
        if (earlier := self.answered.get((frame.stream, requester, id_key(id)))) is not None:
            return earlier, f"id {id} was answered before"
        near = id[1:-1] if id.startswith('"') else f'"{id}"'
        if (frame.stream, requester, near) in self._open:
            return None, f"{UNSOLICITED}: the pending id is {near}, this is {id}"
        return None, "its request was not recorded" if self._has_lost else UNSOLICITED

    def progress(self, frame: Frame, token: str | None) -> tuple[P | None, str | None]:
        """Return the request that a progress notification reports on, and an issue."""
        key = (frame.stream, other(frame.side), id_key(token or ""))
        request = self._progress.get(key)
        if request is None:
            return None, UNKNOWN_PROGRESS
        if transition(request, Event.PROGRESS) or request.is_task:
            return request, None
        return request, "progress after the answer"

    def cancel(self, frame: Frame, id: str | None) -> tuple[P | None, str | None]:  # noqa: A002
        """Cancel a request; return it, and an issue."""
        if id is None:
            return None, "cancels nothing: it has no requestId"
        stream, side, id = frame.stream, frame.side, id_key(id)  # noqa: A001
        waiting = self._open.get((stream, side, id))
        # A server may end a subscription, but no other request (2026-07-28, subscriptions).
        request = _first(waiting) if waiting else self._subscription((stream, other(side), id))
        if request is not None:
            # On stdio, a client ends a subscription this way (2026-07-28): it is closed, not cancelled.
            transition(request, Event.CLOSE if request.is_subscription else Event.CANCEL)
            return request, None
        answered = self.answered.get((stream, side, id))
        return answered, "cancelled after the response" if answered else "cancels an unknown request"

    def subscription(self, frame: Frame, id: str | None) -> P | None:  # noqa: A002
        """Return the open subscription that a notification names."""
        return None if id is None else self._subscription((frame.stream, other(frame.side), id_key(id)))

    def add_question(self, question: Question, request: P) -> None:
        """Remember that a request was answered by a question (2026-07-28, input required)."""
        self._questions.setdefault(question, []).append(request)

    def continued(self, question: Question) -> P | None:
        """Return the request whose question is answered now."""
        requests = self._questions.get(question)
        if not requests:
            return None
        if len(requests) == 1:
            del self._questions[question]
        return requests.pop(0)

    def is_repeated(self, frame: Frame) -> bool:
        """Return True if a resumed stream repeats an event (2025-03-26, resumability): it counts once."""
        event_id = frame.event_id
        if event_id is None or frame.side == CLIENT:
            return False
        event = (frame.stream, event_id)
        if event in self._seen_events:
            return True
        self._seen_events[event] = None
        return False

    def http(self, number: object, status: object) -> None:
        if isinstance(number, int) and isinstance(status, int) and status >= 400:
            self._refused[number] = status

    def http_end(self, number: object, hung_up: object) -> tuple[P | None, str | None]:
        """Settle the request of an HTTP exchange if its end is the outcome; return it, and an issue.

        An error status refuses the request. In 2026-07-28 a client that disconnects has cancelled it; in
        earlier revisions it may reconnect for the response.
        """
        if self._forgets and isinstance(number, int):
            self._over.append(number)
        key = self._posted.get(number) if isinstance(number, int) else None
        waiting = self._open.get(key) if key is not None else None
        if key is None or not waiting:
            return None, None
        request = _first(waiting)
        if number in self._refused:
            if transition(request, Event.REFUSE):
                self._remove(key, waiting, request)
                return request, f"HTTP {self._refused[number]}"
        elif hung_up == CLIENT and request.is_modern:
            transition(request, Event.CLOSE if request.is_subscription else Event.CANCEL)
            return request, None
        return None, None

    def lose(self) -> list[P]:
        """Return the pending requests, now unknown: entries were lost, perhaps with their responses."""
        self._has_lost = True
        return [request for request in list(self.pending()) if transition(request, Event.LOSS)]

    def lose_message(self, side: str, stream: str | None, http: object) -> list[P]:
        """Return the pending requests to which a lost message of this side may be the response, now unknown.

        Its HTTP exchange, if it has one, names the request.
        """
        self._has_lost = True
        posted = self._posted.get(http) if isinstance(http, int) else None
        keys = [key for key in self._open if key[:2] == (stream, other(side))] if posted is None else [posted]
        found = [request for key in keys for request in self._open.get(key, ())]
        return [each for each in found if not each.is_subscription and transition(each, Event.LOSS)]

    def end(self, streams: Callable[[str | None], bool] = lambda _: True) -> list[P]:
        """End these streams; return all requests that could still have been answered, in their final state."""
        over = [key for key in self._open if streams(key[0])]
        waiting = [request for key in over for request in self._open.pop(key)]
        for key in over:
            self.unusual.pop(key, None)
        self._doubled.difference_update(over)
        for request in waiting:
            transition(request, Event.CLOSE if request.is_subscription else Event.END)
        return waiting

    def _request_key(self, frame: Frame, id: str | None, event: Event) -> tuple[Key, str | None]:  # noqa: A002
        """Return the key of the request that a response belongs to, and an issue.

        A server's error may have no id, or not the request's: then the HTTP exchange that carried it identifies the
        request.
        """
        key, http = (frame.stream, other(frame.side), id_key(id or "")), frame.http
        if key in self._open or http is None or frame.side == CLIENT:
            return key, None
        posted = self._posted.get(http)
        if posted is not None and id is None:
            return posted, "no id: paired by its HTTP exchange"
        if posted in self._open and event is Event.FAILURE and key not in self.answered:
            asked = self.unusual.get(posted, posted[2])
            return posted, f"its id is {id}, the request's is {asked}: paired by its HTTP exchange"
        return key, None

    def _remove(self, key: Key, waiting: list[P], request: P) -> None:
        if len(waiting) > 1:
            waiting.remove(request)
            return
        del self._open[key]
        if key in self.unusual:
            del self.unusual[key]
            self._doubled.discard(key)

    def _subscription(self, key: Key) -> P | None:
        listening = [request for request in self._open.get(key, ()) if request.is_subscription]
        return _first(listening) if listening else None


def id_key(id: str) -> str:  # noqa: A002
    """Return an id by value: `1.0`, `1e0` and `1` are one number, `"1"` is a string (JSON-RPC 2.0, 4).

    JavaScript, Lua and Go may send back a number in another spelling. Numbers above 10^400 keep their own.
    """
    if id.isdigit() or id[:1] not in "-0123456789":
        return id
    number, _, exponent = id.lower().partition("e")
    whole, _, fraction = number.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not (whole + fraction).isdigit() or len(exponent) > 4:  # `-Infinity`, or too large to write out.
        return id
    significant = digits.rstrip("0")
    power = int(exponent or 0) - len(fraction) + len(digits) - len(significant)
    if not significant:
        return "0"
    sign = "-" if number.startswith("-") else ""
    if 0 <= power <= 400:
        return f"{sign}{significant}{'0' * power}"
    return f"{sign}{significant}e{power}"


def _drop_oldest(known: dict[Any, Any], kept: int) -> None:
    for key in list(islice(known, max(len(known) - kept, 0))):
        del known[key]


def question(method: str, subject: str | None, state: Raw, parts: Raw) -> Question:
    """Return the key that a question and its answer share: the `requestState`, else the names of the parts.

    The server chose the state for this one question; names are not unique. The HTTP stream is not part of the key: a
    request of 2026-07-28 has no session, so it and its retry have different streams.
    """
    shared = text(state)
    if shared is not None:
        return method, subject, shared
    members = loads(parts)
    shared = ",".join(sorted(members)) if isinstance(members, dict) else ""
    return method, subject, shared


def _first(waiting: list[P]) -> P:
    """Return the request that the next response is for: a pending one before a cancelled one."""
    if len(waiting) == 1:
        return waiting[0]
    return next((request for request in waiting if request.state in _UNSETTLED), waiting[0])
