"""Which answer belongs to which request.

Owns the rules: who waits under which id, what a progress token, a cancellation
or the end of an HTTP exchange is about. Pairs by (stream, who asked, the id's
JSON text), since both sides count from 1; what nobody asked for is said to be
that, never matched by guessing. Refuses to know what a request is made of:
`core.session.session` pairs whole messages, `core.session.index` pairs rows.
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
from mcpspy.core.session.exchange import TRANSITIONS, Correlatable, Event, State, transition

P = TypeVar("P", bound=Correlatable)

_PENDING = State.PENDING  # A look at an Enum's member is Python, and one at a name is not.
_FROM_PENDING = TRANSITIONS[_PENDING]

Key = tuple[str | None, str, str]
"""Stream, side that asked, id as JSON text."""

Question = tuple[str | None, str, str | None, str]
"""What a question and the request that answers it share."""


class Correlation(Generic[P]):
    """Requests, and what came about them."""

    def __init__(self, *, forgets: bool = False) -> None:
        """Begin with nothing. `forgets`: `forget_but` will be called, so keep what it has to know."""
        self._forgets = forgets
        self._asked: dict[Key, list[P]] = {}
        self._answered: dict[Key, P] = {}
        self._progress: dict[Key, P] = {}
        self._questions: dict[Question, list[P]] = {}
        self._posted: dict[int, Key | None] = {}
        self._refused: dict[int, int] = {}
        self._seen_events: dict[tuple[str | None, str], None] = {}
        self._over: deque[int] = deque()
        """HTTP exchanges that ended, the oldest first."""

    def pending(self) -> Iterator[P]:
        """Yield the requests whose answer is still to come, subscriptions aside."""
        for waiting in self._asked.values():
            for request in waiting:
                if request.state is State.PENDING and not request.is_subscription:
                    yield request

    def waiting(self) -> list[P]:
        """Return all that could still be answered: pending, cancelled or closed."""
        return [request for waiting in self._asked.values() for request in waiting]

    def forget_but(self, kept: int) -> None:
        """Let go of what is long over, of each sort but the latest so many: to be called now and then.

        What waits stays, so every answer finds its request; but an id that comes
        again, a second answer, progress, a repeated event is known for what it is
        only if the first is not longer ago.
        """
        for known in (self._answered, self._progress, self._questions, self._seen_events):
            _drop_oldest(known, kept)
        while len(self._over) > kept:
            number = self._over.popleft()
            self._posted.pop(number, None)
            self._refused.pop(number, None)

    def request(self, request: P, frame: Frame, id: str, token: str | None, *, modern: bool) -> str | None:  # noqa: A002
        """Have it wait for its answer; return what is wrong with its id."""
        stream, side, http = frame.stream, frame.side, frame.http
        key = (stream, side, id)
        waiting = self._asked.get(key)
        flaw = None
        if waiting is None:
            if not modern and key in self._answered:
                flaw = f"id {id} was used before"
            self._asked[key] = [request]
        else:
            if any(earlier.state is State.PENDING for earlier in waiting):
                flaw = f"id {id} is in use by an unanswered request"
            elif not modern:
                flaw = f"id {id} was used before"
            waiting.append(request)
        if http is not None and side == CLIENT:
            self._posted[http] = None if http in self._posted else key  # A batch is refused as a whole.
        if token is not None:
            self._progress[(stream, side, token)] = request
        return flaw

    def ask_plainly(self, request: P, key: Key, token: str | None) -> bool:
        """Have a request wait that nothing is odd about; False if its id was seen before."""
        if key in self._asked or key in self._answered:
            return False
        self._asked[key] = [request]
        if token is not None:
            self._progress[key[0], key[1], token] = request
        return True

    def post_plainly(self, http: int, key: Key) -> None:
        """Keep which HTTP exchange carried a request that was asked plainly."""
        self._posted[http] = None if http in self._posted else key

    def answer_plainly(self, key: Key, event: Event) -> P | None:
        """Give the one open request under a key its answer; None if it is not so simple."""
        waiting = self._asked.get(key)
        if waiting is None or len(waiting) > 1:
            return None
        request = waiting[0]
        if request.state is not _PENDING:
            return None
        del self._asked[key]
        self._answered[key] = request
        request.state = _FROM_PENDING[event]
        return request

    def answer(self, frame: Frame, id: str | None, event: Event) -> tuple[P | None, str | None]:  # noqa: A002
        """Give a request its answer; return it, and what is wrong with that. Without one, see `stray`."""
        key, flaw = self._asked_under(frame, id)
        waiting = self._asked.pop(key, None)
        if waiting is None:
            return None, None
        if len(waiting) == 1:
            request = waiting[0]
        else:
            request = _first(waiting)
            waiting.remove(request)
            self._asked[key] = waiting
        self._answered[key] = request
        transition(request, event)
        return request, "answered after it was cancelled" if request.state is State.LATE else flaw

    def stray(self, frame: Frame, id: str | None) -> tuple[P | None, str]:  # noqa: A002
        """Say what is known of an answer that no open request waits for."""
        if id is None:
            return None, "answers nothing: it has no id"
        asker = other(frame.side)
        if (earlier := self._answered.get((frame.stream, asker, id))) is not None:
            return earlier, f"id {id} was answered before"
        near = id[1:-1] if id.startswith('"') else f'"{id}"'
        if (frame.stream, asker, near) in self._asked:
            return None, f"nobody asked: the id that waits is {near}, this is {id}"
        return None, "nobody asked"

    def progress(self, frame: Frame, token: str | None) -> tuple[P | None, str | None]:
        """Return what a progress notification reports on, and what is wrong with it."""
        request = self._progress.get((frame.stream, other(frame.side), token)) if token is not None else None
        if request is None:
            return None, "nobody asked for progress under this token"
        if transition(request, Event.PROGRESS) or request.is_task:
            return request, None
        return request, "progress after the answer"

    def cancel(self, frame: Frame, id: str | None) -> tuple[P | None, str | None]:  # noqa: A002
        """Cancel a request; return it, and what is wrong with that."""
        if id is None:
            return None, "cancels nothing: it has no requestId"
        stream, side = frame.stream, frame.side
        waiting = self._asked.get((stream, side, id))
        # A server may take a subscription down, and a subscription only (2026-07-28, subscriptions).
        request = _first(waiting) if waiting else self._subscription((stream, other(side), id))
        if request is not None:
            # On stdio this is how a client ends a subscription (2026-07-28): it was not cut short.
            transition(request, Event.CLOSE if request.is_subscription else Event.CANCEL)
            return request, None
        answered = self._answered.get((stream, side, id))
        return answered, "the answer was there already" if answered else "cancels a request nobody made"

    def subscription(self, frame: Frame, id: str | None) -> P | None:  # noqa: A002
        """Return the open subscription that a notification says it came for."""
        return None if id is None else self._subscription((frame.stream, other(frame.side), id))

    def asks(self, question: Question, request: P) -> None:
        """Keep that a request was answered by a question (2026-07-28, input required)."""
        self._questions.setdefault(question, []).append(request)

    def continued(self, question: Question) -> P | None:
        """Return the request whose question is answered now."""
        asked = self._questions.get(question)
        if not asked:
            return None
        if len(asked) == 1:
            del self._questions[question]
        return asked.pop(0)

    def comes_again(self, frame: Frame) -> bool:
        """Whether a resumed stream repeats an event (2025-03-26, resumability): it counts once."""
        event_id = frame.event_id
        if event_id is None or frame.side == CLIENT:
            return False
        event = (frame.stream, event_id)
        if event in self._seen_events:
            return True
        self._seen_events[event] = None
        return False

    def http(self, number: object, status: object) -> None:
        """Keep with which status an HTTP exchange was answered."""
        if isinstance(number, int) and isinstance(status, int) and status >= 400:
            self._refused[number] = status

    def http_end(self, number: object, hung_up: object) -> tuple[P | None, str | None]:
        """Settle what an HTTP exchange asked for, where its end says more than no answer.

        Return it, and what is wrong with it. An error status refuses it. In
        2026-07-28 a client that hangs up has cancelled it; before, it may come
        back for the answer.
        """
        if self._forgets and isinstance(number, int):
            self._over.append(number)
        key = self._posted.get(number) if isinstance(number, int) else None
        waiting = self._asked.get(key) if key is not None else None
        if key is None or not waiting:
            return None, None
        request = _first(waiting)
        flaw = None
        if number in self._refused:
            transition(request, Event.REFUSE)
            flaw = f"HTTP {self._refused[number]}"
        elif hung_up == CLIENT and request.is_modern:
            transition(request, Event.CLOSE if request.is_subscription else Event.CANCEL)
        else:
            return None, None
        if request.state is State.REFUSED:
            waiting.remove(request)
            if not waiting:
                del self._asked[key]
        return request, flaw

    def end(self, streams: Callable[[str | None], bool] = lambda _: True) -> list[P]:
        """Nothing more will come in these streams: return the requests that stay unanswered."""
        over = [key for key in self._asked if streams(key[0])]
        waiting = [request for key in over for request in self._asked.pop(key)]
        left = [request for request in waiting if request.state is State.PENDING]
        for request in left:
            transition(request, Event.CLOSE if request.is_subscription else Event.END)
        return left

    def _asked_under(self, frame: Frame, id: str | None) -> tuple[Key, str | None]:  # noqa: A002
        """Return the key that an answer answers, and what is wrong with it.

        A server's 4xx may answer without an id: then the HTTP exchange that
        carried it says which request it is about.
        """
        stream, side, http = frame.stream, frame.side, frame.http
        if id is None and http is not None and side != CLIENT and (posted := self._posted.get(http)):
            return posted, "it has no id: paired by the HTTP exchange that carried it"
        return (stream, other(side), id or ""), None

    def _subscription(self, key: Key) -> P | None:
        listening = [request for request in self._asked.get(key, ()) if request.is_subscription]
        return _first(listening) if listening else None


def _drop_oldest(known: dict[Any, Any], kept: int) -> None:
    for key in list(islice(known, max(len(known) - kept, 0))):
        del known[key]


def question(stream: str | None, method: str, subject: str | None, state: Raw, parts: Raw) -> Question:
    """Return what a question and the request that answers it share: the state, else the names of the parts.

    A state is the server's own word for the one question, whichever HTTP
    exchange brings it back; names of parts are anybody's.
    """
    shared = text(state)
    if shared is not None:
        return None, method, subject, shared
    members = loads(parts)
    shared = ",".join(sorted(members)) if isinstance(members, dict) else ""
    return stream, method, subject, shared


def _first(waiting: list[P]) -> P:
    """Return whom the next answer is for: a cancelled request may never get one, so an open one goes first."""
    if len(waiting) == 1:
        return waiting[0]
    return next((request for request in waiting if request.state is State.PENDING), waiting[0])
