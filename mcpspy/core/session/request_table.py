"""The requests of a session, by what identifies their responses.

`RequestTable` keeps open requests by (stream, sender, id), since both sides count from 1, and never guesses: which
response, progress token, cancellation or end of an HTTP exchange belongs to which request, and what is wrong with it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit
from zlib import crc32

from msgspec import Raw

from mcpspy.core.protocol.http_headers import EVENTS
from mcpspy.core.protocol.message import loads, meta_raw, text
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.exchange import Correlatable, Event, State, transition

P = TypeVar("P", bound=Correlatable)

_LATE = (State.LATE_OK, State.LATE_TOOL_ERROR, State.LATE_ERROR)
_UNSETTLED = (State.PENDING, State.UNKNOWN)

UNSOLICITED = "unsolicited response"
UNKNOWN_PROGRESS = "progress for an unknown token"
NO_ID = "response without an id"
STREAM_ENDED = "its event stream ended without a response"

LONGEST = 20
"""Maximum digits of an id that a fast decoder reads as a number."""

Key = tuple[str | None, str, str]
"""Stream, sender of the request, id by value (`id_key`)."""

Moved = tuple[str | None, str, str, int, int]
"""Session, sender, id, size and checksum of a request."""

TaskKey = tuple[str | None, str, str]
"""Session, side that requested the task, id of the task."""

TURNED_AWAY = 64
"""Refused requests that are remembered, because mcpspy may translate them for the server."""

FOLLOWED = 30.0
"""Seconds within which a client follows a redirect."""

_REDIRECTS = range(300, 400)

Question = tuple[str, str | None, str]
"""Properties that a question and the request with its answer share."""


class RequestTable(Generic[P]):
    """The requests of a session, by id, progress token, subscription and HTTP exchange."""

    def __init__(
        self,
        *,
        forgets: bool = False,
        recall: Callable[[dict[Key, P]], None] | None = None,
        is_merged: bool = False,
    ) -> None:
        """Create an empty table. `is_merged`: streams begin with the names of their sessions.

        `forgets`: the caller will call `forget_but`, so store what it needs. `recall`: adds the requests that were
        answered since its last call; the table then stores none itself, which a long session seldom needs.
        """
        self._forgets = forgets
        self.recall = recall
        self._is_merged = is_merged
        self._open: dict[Key, list[P]] = {}
        self.unusual: dict[Key, str] = {}
        """Open requests whose response needs more than a look-up → the id as the latest of them spelled it."""
        self._doubled: set[Key] = set()
        self._has_lost = False
        self.stopping: set[str | None] = set()
        """Streams whose server is being ended, to be followed by another one."""
        self.is_translated = False
        """True if mcpspy translates between two eras: a response that it keeps answers only its own requests."""
        self._own: set[Key] = set()
        """Open requests of mcpspy in such a session."""
        self._turned_away: dict[Key, P] = {}
        """The latest requests that an HTTP status refused."""
        self._answered: dict[Key, P] = {}
        self.highest: dict[tuple[str | None, str], int] = {}
        """Stream and sender → the highest id above 0 of the requests: a higher one is new."""
        self._progress: dict[Key, P] = {}
        self._questions: dict[Question, list[tuple[P, str | None]]] = {}
        self._posted: dict[int, Key | None] = {}
        self._refused: dict[int, int] = {}
        self._redirects: dict[int, str] = {}
        """HTTP exchange with a redirect → its status and target."""
        self._accepted: dict[int, tuple[int, str]] = {}
        """HTTP exchange with a status of success → the status, and the content type of the response."""
        self.checksums: dict[int, tuple[int, int]] = {}
        """HTTP exchange → size and checksum of the request that opened it."""
        self.moved: dict[Moved, tuple[Key, float]] = {}
        """Redirected request that may be sent again → its key among the open ones, and when it was redirected."""
        self.disconnected: dict[int, str] = {}
        """HTTP exchange that a rule ended → the action of the rule, in words."""
        self._tasks: dict[TaskKey, tuple[P, str | None]] = {}
        """Task → the call that created it, and the stream of the call."""
        self._seen_events: dict[tuple[str | None, str], int] = {}
        """Stream and id of an event → checksum of its message."""
        self._over: deque[int] = deque()

    @property
    def answered(self) -> dict[Key, P]:
        """The latest answered request under each id."""
        if self.recall is not None:
            self.recall(self._answered)
        return self._answered

    def pending(self) -> Iterator[P]:
        """Yield the requests whose outcome is awaited, except subscriptions."""
        for waiting in self._open.values():
            for request in waiting:
                if request.state is State.PENDING and not request.is_subscription:
                    yield request
        for call, _ in self._tasks.values():
            if call.state is State.WORKING:
                yield call
        for asked in self._questions.values():
            yield from (request for request, _ in asked if request.state is State.INPUT_REQUIRED)

    def waiting(self, streams: Callable[[str | None], bool] = lambda _: True) -> list[P]:
        """Return all requests of these streams that may still get an outcome.

        They are pending, cancelled or closed, or their task still works.
        """
        sent = (request for key, waiting in self._open.items() if streams(key[0]) for request in waiting)
        tasks = ((call, stream) for call, stream in self._tasks.values() if call.state is State.WORKING)
        return [*sent, *(call for call, stream in tasks if streams(stream))]

    def forget_but(self, kept: int) -> None:
        """Forget all completed requests except the latest `kept`; call it from time to time.

        Open requests stay, so every response finds its request. But a reused id, a second response,
        progress or a repeated event is only recognised if the first one is still remembered.
        """
        for known in (self._answered, self._progress, self._questions, self._seen_events, self._tasks):
            _drop_oldest(known, kept)
        while len(self._over) > kept:
            number = self._over.popleft()
            self._posted.pop(number, None)
            self._refused.pop(number, None)

    def _session_of(self, stream: str | None) -> str | None:
        """Return the session of a stream; streams of one session share their tasks and redirects."""
        return stream.partition("/")[0] if self._is_merged and stream is not None else None

    def repeated(self, frame: Frame, id: str) -> P | None:  # noqa: A002
        """Return the redirected request that this message sends again, now pending; None if it is another one."""
        if frame.http is None or frame.side != CLIENT:
            return None
        number, key = frame.http, (frame.stream, frame.side, id_key(id))
        before, since = self.moved.pop(self._moved(key, frame.data), (None, 0.0))
        waiting = self._open.get(before) if before is not None else None
        if before is None or waiting is None or frame.at - since > FOLLOWED:
            return None
        request = next((each for each in waiting if each.state is State.REDIRECTED), None)
        if request is None:
            return None
        transition(request, Event.REPEAT)
        self._remove(before, waiting, request)
        self._open.setdefault(key, []).append(request)
        self.unusual.setdefault(key, id)
        self._posted[number] = key
        self.checksums[number] = len(frame.data), crc32(frame.data)
        if key[2].isdigit() and len(key[2]) <= LONGEST:
            self.highest[key[:2]] = max(self.highest.get(key[:2], 0), int(key[2]))
        return request

    def _moved(self, key: Key, data: bytes) -> Moved:
        return self._session_of(key[0]), key[1], key[2], len(data), crc32(data)

    def add_task(self, frame: Frame, id: str, call: P) -> None:  # noqa: A002
        """Remember the call that was answered by a task."""
        self._tasks[self._session_of(frame.stream), other(frame.side), id] = call, frame.stream

    def task(self, frame: Frame, requester: str, id: str) -> P | None:  # noqa: A002
        """Return the call that created a task, which one side had requested."""
        found = self._tasks.get((self._session_of(frame.stream), requester, id))
        return None if found is None else found[0]

    def tear(self, frame: Frame, named: str | None) -> P | None:
        """Return the open request whose response was never completed: of its HTTP exchange, else with the id."""
        key = self._posted.get(frame.http) if frame.http is not None and frame.side != CLIENT else None
        if key is None and named is not None:
            key = (frame.stream, other(frame.side), id_key(named))
        waiting = self._open.get(key) if key is not None else None
        if key is None or not waiting:
            return None
        self.unusual.setdefault(key, named or key[2])
        return _first(waiting)

    def request(self, request: P, frame: Frame, id: str, token: str | None, *, modern: bool) -> str | None:  # noqa: A002
        """Open a request; return the issue with its id, if there is one."""
        stream, side, http = frame.stream, frame.side, frame.http
        key = (stream, side, id_key(id))
        waiting = self._open.get(key)
        flaw = None
        if key[2] != id:
            self.unusual[key] = id
        highest = self.highest.get((stream, side), 0)
        if self.is_translated and frame.by is not None:
            self._own.add(key)
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
            self.checksums[http] = len(frame.data), crc32(frame.data)
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
        if waiting is None or (self.stopping and self._is_refusal_of_end(frame, event, waiting)):
            return None, None
        self._own.discard(key)
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
        if request.state in _LATE:
            late = "answered after it was cancelled"
            flaw = f"{flaw}; {late}" if flaw else late
        return request, flaw

    def is_withheld(self, frame: Frame, id: str | None, event: Event) -> bool:  # noqa: A002
        """Return whether mcpspy keeps a response, to give its requester another one. Nor does its exchange answer it."""
        if not self.is_translated or frame.to is None:
            return False
        key, _ = self._request_key(frame, id, event)
        if key in self._own:
            return False
        if frame.http is not None:
            self._posted[frame.http] = None
        return True

    def _is_refusal_of_end(self, frame: Frame, event: Event, waiting: list[P]) -> bool:
        """Return whether a server that is being ended refuses a request that mcpspy or the next server answers."""
        is_kept = frame.side == SERVER and frame.to is not None and frame.stream in self.stopping
        return is_kept and (event is Event.FAILURE or waiting[0].is_subscription)

    def explain_unsolicited(self, frame: Frame, id: str | None) -> tuple[P | None, str]:  # noqa: A002
        """Describe a response that no open request waits for."""
        if id is None:
            return None, NO_ID
        requester = other(frame.side)
        if (earlier := self.answered.get((frame.stream, requester, id_key(id)))) is not None:
            return earlier, f"id {id} was answered before"
        near = _near(id)
        if (frame.stream, requester, near) in self._open:
            return None, f"{UNSOLICITED}: the pending id is {near}, this is {id}"
        return None, "its request was not recorded" if self._has_lost else UNSOLICITED

    def progress(self, frame: Frame, token: str | None) -> tuple[P | None, str | None]:
        """Return the request that a progress notification reports on, and an issue."""
        key = (frame.stream, other(frame.side), id_key(token or ""))
        request = self._progress.get(key)
        if request is None:
            near = _near(token or "")
            is_near = (*key[:2], near) in self._progress
            return None, UNKNOWN_PROGRESS + (
                f": that of the request is {near}, this is {token}" if is_near else ""
            )
        if transition(request, Event.PROGRESS):
            return request, None
        return request, "progress after the answer"

    def cancel(self, frame: Frame, id: str | None) -> tuple[P | None, str | None, bool]:  # noqa: A002
        """Cancel a request; return it, an issue, and whether its state is new."""
        if id is None:
            return None, "cancels nothing: it has no requestId", False
        stream, side, id = frame.stream, frame.side, id_key(id)  # noqa: A001
        waiting = self._open.get((stream, side, id))
        # A server may end a subscription, but no other request (2026-07-28, subscriptions).
        request = _first(waiting) if waiting else self._subscription((stream, other(side), id))
        request = request or self._without_session(frame, id)
        if request is not None:
            # On stdio, a client ends a subscription this way (2026-07-28): it is closed, not cancelled.
            is_new = transition(request, Event.CLOSE if request.is_subscription else Event.CANCEL)
            return request, None, is_new
        answered = self.answered.get((stream, side, id))
        return answered, "cancelled after the response" if answered else "cancels an unknown request", False

    def _without_session(self, frame: Frame, id: str) -> P | None:  # noqa: A002
        """Return the request that a cancellation without a session id names: each such POST is a stream of itself.

        Clients share such a server, and their ids are alike: it is the right one only if no other open request has this id.
        """
        if frame.http is None or frame.stream != str(frame.http):
            return None
        sent = [key for key in self._open if key[1:] == (frame.side, id) and (key[0] or "").isdigit()]
        sent = [key for key in sent if self._posted.get(int(key[0] or 0)) == key]
        return _first(self._open[sent[0]]) if len(sent) == 1 else None

    def subscription(self, frame: Frame, id: str | None) -> P | None:  # noqa: A002
        """Return the open subscription that a notification names."""
        return None if id is None else self._subscription((frame.stream, other(frame.side), id_key(id)))

    def add_question(self, question: Question, request: P, stream: str | None = None) -> None:
        """Remember that a request was answered by a question (2026-07-28, input required)."""
        self._questions.setdefault(question, []).append((request, stream))

    def continued(self, question: Question) -> P | None:
        """Return the request whose question is answered now."""
        requests = self._questions.get(question)
        if not requests:
            return None
        if len(requests) == 1:
            del self._questions[question]
        return requests.pop(0)[0]

    def is_repeated(self, frame: Frame) -> bool:
        """Return True if a resumed stream repeats an event (2025-03-26, resumability): it counts once.

        Servers on the Java SDK use one id for all events of a stream (that of the session), so the message counts too.
        """
        event_id = frame.event_id
        if event_id is None or frame.side == CLIENT:
            return False
        event = (frame.stream, event_id)
        before, now = self._seen_events.get(event), crc32(frame.data)
        self._seen_events[event] = now
        return before == now

    def http(self, number: object, status: object, fields: dict[str, Any]) -> None:
        """Take the head of an HTTP response: what the end of the exchange means for its request."""
        if not isinstance(number, int) or not isinstance(status, int):
            return
        if status >= 400:
            self._refused[number] = status
        elif status in _REDIRECTS:
            self._redirects[number] = _target(status, fields)
        else:
            head = fields.get("response")
            kind = head.get("content-type") if isinstance(head, dict) else None
            self._accepted[number] = status, kind if isinstance(kind, str) else ""

    def is_event_stream(self, number: int | None) -> bool:
        return number in self._accepted and self._accepted[number][1].startswith(EVENTS)

    def http_end(self, number: object, hung_up: object, at: float = 0.0) -> tuple[P | None, str | None]:
        """Settle the request of an HTTP exchange if its end is the outcome; return it, and the reason, if it is new.

        An error status refuses the request. In 2026-07-28 a client that disconnects has cancelled it; in
        earlier revisions it may reconnect for the response.
        """
        if self._forgets and isinstance(number, int):
            self._over.append(number)
        if not isinstance(number, int):
            return None, None
        checksum, accepted = self.checksums.pop(number, None), self._accepted.pop(number, None)
        redirect = self._redirects.pop(number, None) if accepted is None else None
        key = self._posted.get(number)
        waiting = self._open.get(key) if key is not None else None
        if key is None or not waiting:
            return None, None
        request = _first(waiting)
        if number in self._refused:
            if transition(request, Event.REFUSE):
                self._remove(key, waiting, request)
                self._turned_away[key] = request
                _drop_oldest(self._turned_away, TURNED_AWAY)
                return request, f"HTTP {self._refused[number]}"
        elif hung_up == CLIENT and request.is_modern:
            transition(request, Event.CLOSE if request.is_subscription else Event.CANCEL)
            return request, None
        elif redirect is not None and checksum is not None:
            if transition(request, Event.REDIRECT):
                self.unusual.setdefault(key, key[2])
                self._forget_moved(at)
                self.moved[self._session_of(key[0]), key[1], key[2], checksum[0], checksum[1]] = key, at
                return request, redirect
        elif request.state is State.PENDING and not request.is_subscription:
            if hung_up is not None:
                return (None, None) if hung_up == "mcpspy" else (request, f"the {hung_up} disconnected")
            if accepted is not None:
                status, kind = accepted
                is_stream = kind.startswith(EVENTS)
                return request, STREAM_ENDED if is_stream else f"HTTP {status} without a message"
        return None, None

    def _forget_moved(self, at: float) -> None:
        """Forget redirects that no one followed in time."""
        for moved in [moved for moved, (_, since) in self.moved.items() if at - since > FOLLOWED]:
            del self.moved[moved]

    def lose(self, stream: str | None) -> list[P]:
        """Return the pending requests, now unknown: entries were lost, perhaps with their responses.

        The stream of the note names its session in a merged one, whose other sessions lost nothing.
        """
        self._has_lost, lossy = True, self._session_of(stream)
        return [
            request
            for request in self.waiting(lambda each: lossy is None or self._session_of(each) == lossy)
            if not request.is_subscription and transition(request, Event.LOSS)
        ]

    def restart_server(self, stream: str | None) -> list[P]:
        """Return the pending requests of a server that has ended, now abandoned; the next one may use their ids again."""
        self.stopping.discard(stream)
        found = []
        for key in [key for key in self._open if key[:2] == (stream, SERVER)]:
            found += [request for request in self._open.pop(key) if transition(request, Event.ABANDON)]
            self.unusual.pop(key, None)
            self._doubled.discard(key)
        self.highest[stream, SERVER] = -1
        return found

    def reopen(self, ids: list[str]) -> list[P]:
        """Return the requests of the client with these ids whose refusal does not answer them, now pending."""
        found = []
        for key in [key for key in self._turned_away if key[1] == CLIENT and key[2] in map(id_key, ids)]:
            request = self._turned_away.pop(key)
            if transition(request, Event.REPEAT):
                self._open.setdefault(key, []).append(request)
                found.append(request)
        return found

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
        calls = [call for call, stream in self._tasks.values() if streams(stream)]
        return [*waiting, *(call for call in calls if transition(call, Event.END))]

    def end_questions(self, streams: Callable[[str | None], bool] = lambda _: True) -> list[P]:
        """Return the requests of these streams whose questions no one answered, in their final state."""
        asked = [each for requests in self._questions.values() for each in requests]
        return [request for request, stream in asked if streams(stream) and transition(request, Event.END)]

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


def _near(id: str) -> str:  # noqa: A002
    """Return the id or token of the other type with the same characters, as JSON text: 1 and "1" are not the same."""
    return id[1:-1] if id.startswith('"') else f'"{id}"'


def _target(status: int, fields: dict[str, Any]) -> str:
    """Return a redirect in words: its status, and the path on this host or the URL that it names."""
    response, request = fields.get("response"), fields.get("request")
    location = response.get("location") if isinstance(response, dict) else None
    if not isinstance(location, str):
        return f"HTTP {status} without a Location"
    try:
        parts = urlsplit(location)
    except ValueError:
        return f"{status} → {location}"
    if isinstance(request, dict) and parts.netloc == request.get("host"):
        location = parts._replace(scheme="", netloc="").geturl() or "/"
    return f"{status} → {location}"


_CUT_ID = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(-?[0-9][0-9.eE+-]*|"(?:[^"\\]|\\.)*")\s*,'
)


def id_of_part(data: bytes, *, is_whole: bool) -> str | None:
    """Return the id of a response that was never completed; None if its bytes do not show it."""
    if is_whole:
        members = loads(Raw(data))
        found = text(meta_raw(Raw(data), "id")) if isinstance(members, dict) else None
        return found if found != "null" else None
    cut = _CUT_ID.match(data)
    return cut[1].decode("utf-8", "replace") if cut is not None else None


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
