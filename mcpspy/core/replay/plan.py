"""Replay plan: the messages that each recorded client sent, and those that it had received before.

Owns causality: a message waits for what the client had received before it. Responses are certain. Of the
server's other messages only those after the last response are waited for, because earlier ones were part of
how that response came about; a subscription has its own stream. Also owns which streams of an HTTP recording
belong to one client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum, auto

from msgspec import Struct, structs

from mcpspy.core.jsontools import canonical
from mcpspy.core.protocol.message import Failure, Malformed, Notification, Request, Result
from mcpspy.core.protocol.spec import CLIENT, MODERN
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.session import outcome
from mcpspy.core.session.correlation import REPEATED_EVENT
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change, Session, change_lines, is_injected

PROGRESS = "notifications/progress"
UPDATED = "notifications/resources/updated"


class WaitKind(Enum):
    RESPONSE = auto()
    SERVER_REQUEST = auto()
    NOTIFICATION = auto()


class WaitCondition(Struct, frozen=True):
    """A message that the client had received."""

    what: WaitKind
    key: object
    """For a response, the number of the recorded exchange; otherwise the kind of message."""
    count: int
    delay: float
    """Seconds from when the client could begin to wait for it."""
    is_certain: bool = False
    """True if it always comes, at least as a timeout: a response that was not cancelled."""
    is_on_subscription: bool = False
    """True if it came on a subscription: over HTTP, its order relative to responses is undefined."""


class PlanStep(Struct, frozen=True):
    message: Request | Notification | Malformed | None
    """None: the client cancelled `exchange` by disconnecting (HTTP, 2026-07-28), or ended the session."""
    at: float
    waits: tuple[WaitCondition, ...]
    gap: float
    """Seconds since the client last sent or received something."""
    exchange: Exchange | None = None
    """The exchange that it begins, or cancels."""


class ServerRequest(Struct, frozen=True):
    exchange: Exchange
    params: str | None
    """Canonical; None if they are nested too deeply to be compared."""


class ReplayPlan(Struct, frozen=True):
    """One client, from its first message to its end."""

    steps: tuple[PlanStep, ...]
    questions: tuple[ServerRequest, ...]
    end: PlanStep
    """The end of the session, with what the client had received by then."""

    @property
    def requests(self) -> list[Exchange]:
        return [
            step.exchange
            for step in self.steps
            if step.exchange is not None and isinstance(step.message, Request)
        ]


def plans(session: Session) -> list[ReplayPlan]:
    """Return the plan of each client of an ended session, in the order of their first messages."""
    client_of = _client_of(session)
    readers: dict[str | None, _Reader] = {}
    for change in session.changes:
        if change.flaw == REPEATED_EVENT:
            continue
        what = change.what
        if isinstance(what, Note) and change.exchange is None:
            if what.kind == "eof" and what.fields.get("from") == CLIENT:
                for reader in readers.values():
                    reader.close(what.at)
        elif not isinstance(what, Damaged) and not is_injected(change):
            readers.setdefault(client_of(change), _Reader()).read(change)
    found = [reader.plan() for reader in readers.values()]
    return [plan for plan in found if plan.steps]


class ClientOrder(Struct, frozen=True):
    """A session with the messages of each client together, in the order of their plans: as a replay sends them."""

    session: Session
    lines: dict[int, int]
    """Line in it → line in the recording, if they differ."""
    exchanges: dict[int, int]
    """Number of an exchange in it → its number in the recording, if they differ."""


def by_client(session: Session) -> ClientOrder:
    """Return an ended session in the order of its clients. Entries that belong to no client are at the end."""
    client_of = _client_of(session)
    groups: dict[str | None, list[Change]] = {}
    rest: list[Change] = []
    by_http: dict[object, list[Change]] = {}
    for change in session.changes:
        what = change.what
        if isinstance(what, Note | Damaged):
            number = None if isinstance(what, Damaged) else what.fields.get("http")
            by_http.get(number, rest).append(change)
            continue
        group = groups.setdefault(client_of(change), [])
        group.append(change)
        if what.frame.http is not None:
            by_http[what.frame.http] = group
    if len(groups) <= 1:
        return ClientOrder(session, {}, {})
    order = [change for group in (*groups.values(), rest) for change in group]
    part = Session(session.header).add_all(entry for change in order if (entry := change.entry) is not None)
    part.end()
    lines = change_lines(session)
    recorded = (lines[change.number] for change in order)
    new_lines = dict(zip(change_lines(part), recorded, strict=True))
    exchanges = {
        new.exchange.number: old.exchange.number
        for new, old in zip(part.changes, order, strict=True)
        if new.exchange is not None and old.exchange is not None
    }
    return ClientOrder(part, new_lines, exchanges)


def expects_answer(exchange: Exchange) -> bool:
    """Return True if a request got a response that is not merely the outcome of its cancellation."""
    if exchange.is_subscription or outcome.of(exchange.state).is_late:
        return False
    return exchange.answer is not None or exchange.state is State.REFUSED


def is_unanswered(exchange: Exchange) -> bool:
    judged = outcome.of(exchange.state)
    is_missing = judged.unanswered or judged.is_withheld or judged.is_open or exchange.state is State.UNKNOWN
    return exchange.answer is None and is_missing and not exchange.is_subscription


def notification_key(message: Notification, exchange: int | None) -> object:
    """Return the kind of a notification; None if it cannot be waited for."""
    if message.method == PROGRESS:
        return None if exchange is None else (PROGRESS, exchange)
    return (UPDATED, message.subject) if message.method == UPDATED else message.method


class _Reader:
    def __init__(self) -> None:
        self._steps: list[PlanStep] = []
        self._server_requests: list[ServerRequest] = []
        self._received: list[WaitCondition] = []
        """Since the last message of the client."""
        self._counts: Counter[tuple[WaitKind, object]] = Counter()
        self._active_at = 0.0
        """Time at which the client last sent something, or received a response."""
        self._last_at = 0.0
        self._end: PlanStep | None = None

    def plan(self) -> ReplayPlan:
        self.close(self._last_at)
        assert self._end is not None
        return ReplayPlan(tuple(self._steps), tuple(self._server_requests), self._end)

    def close(self, at: float) -> None:
        if self._end is None:
            end = self._step(None, at, None)
            # Requests without a recorded response may get one now, and some responses came after the client's end.
            left = (step.exchange for step in self._steps if isinstance(step.message, Request))
            waits = [
                WaitCondition(
                    WaitKind.RESPONSE, each.number, 1, max(0.0, each.answer.at - at) if each.answer else 0.0
                )
                for each in left
                if each
                and (expects_answer(each) or is_unanswered(each))
                and not self._counts[WaitKind.RESPONSE, each.number]
            ]
            # Over HTTP, messages that belong to no request arrive at any time: wait a moment before disconnecting.
            for (what, key), count in self._counts.items():
                if what is not WaitKind.RESPONSE:
                    waits.append(WaitCondition(what, key, count, 0.0))
            self._end = structs.replace(end, waits=(*end.waits, *waits))

    def read(self, change: Change) -> None:
        what, exchange = change.what, change.exchange
        if self._end is not None:
            return
        if isinstance(what, Note):
            assert exchange is not None
            if exchange.state is State.REFUSED:
                self._receive(WaitKind.RESPONSE, exchange.number, what.at, is_certain=True)
            elif exchange.state in (State.CANCELLED, State.CLOSED):
                self._send(None, what.at, exchange)
        elif isinstance(what, Malformed):
            if what.side == CLIENT:
                self._send(what, what.at, None)
        elif isinstance(what, Request | Notification):
            if what.side != CLIENT:
                self._read_server_message(what, exchange)
            else:
                self._send(what, what.at, exchange)
        elif isinstance(what, Result | Failure) and exchange is not None and exchange.answer is what:
            self._answer(what, exchange)

    def _answer(self, what: Result | Failure, exchange: Exchange) -> None:
        if what.side == CLIENT:
            self._last_at = what.at
        else:
            self._receive(WaitKind.RESPONSE, exchange.number, what.at, is_certain=expects_answer(exchange))

    def _read_server_message(self, what: Request | Notification, exchange: Exchange | None) -> None:
        if isinstance(what, Request):
            assert exchange is not None
            self._server_requests.append(ServerRequest(exchange, comparable(what)))
            self._receive(WaitKind.SERVER_REQUEST, what.method, what.at)
        elif (key := notification_key(what, exchange.number if exchange is not None else None)) is not None:
            is_on_subscription = exchange is not None and exchange.is_subscription
            self._receive(WaitKind.NOTIFICATION, key, what.at, is_on_subscription=is_on_subscription)

    def _receive(
        self,
        what: WaitKind,
        key: object,
        at: float,
        *,
        is_certain: bool = False,
        is_on_subscription: bool = False,
    ) -> None:
        self._counts[what, key] += 1
        delay = max(0.0, at - self._active_at)
        self._received.append(
            WaitCondition(what, key, self._counts[what, key], delay, is_certain, is_on_subscription)
        )
        self._last_at = at
        if what is WaitKind.RESPONSE:
            self._active_at = at

    def _send(
        self, what: Request | Notification | Malformed | None, at: float, exchange: Exchange | None
    ) -> None:
        self._steps.append(self._step(what, at, exchange))
        self._active_at = self._last_at = at

    def _step(
        self, what: Request | Notification | Malformed | None, at: float, exchange: Exchange | None
    ) -> PlanStep:
        received, self._received = self._received, []
        last = max((place for place, wait in enumerate(received) if wait.is_certain), default=-1)
        waits = tuple(
            wait
            for place, wait in enumerate(received)
            if wait.is_certain or wait.is_on_subscription or place > last
        )
        return PlanStep(what, at, waits, max(0.0, at - self._last_at), exchange)


def comparable(request: Request) -> str:
    """Return the params of a server's request in canonical form, without `_meta`."""
    params = request.params
    if isinstance(params, dict):
        params = {key: value for key, value in params.items() if key != "_meta"}
    return canonical(params or {})


def _client_of(session: Session) -> Callable[[Change], str | None]:
    """Return a function that names the client of a message, or of a note on an exchange.

    A session is a client. Streams without a session are assumed to belong to one client: to the only one, or
    to one without a handshake. A `server/discover` that got a result is of that one; any other is a probe of the
    client whose handshake is the next one.
    """
    opened: list[str | None] = []
    modern: dict[str | None, bool] = {}
    probes: list[tuple[str | None, int]] = []
    for exchange in session.exchanges:
        request = exchange.request
        if request.side != CLIENT:
            continue
        stream = request.frame.stream
        if request.method == "initialize":
            opened.append(stream)
        elif request.method == "server/discover" and not isinstance(exchange.answer, Result):
            probes.append((stream, len(opened)))
        elif exchange.is_modern:
            modern[stream] = request.method != "server/discover" or modern.get(stream, False)
    names: dict[str | None, str | None] = {}
    if len(set(opened)) > 1:
        names |= {stream: stream for stream in opened}
        for stream, place in probes:
            if stream not in names and place < len(opened):
                names[stream] = opened[place]
    if names or (opened and any(modern.values())):
        names |= dict.fromkeys(modern.keys() - set(opened), MODERN)

    def client_of(change: Change) -> str | None:
        what = change.what
        if isinstance(what, Note):
            return names.get(change.exchange.request.frame.stream) if change.exchange is not None else None
        return None if isinstance(what, Damaged) else names.get(what.frame.stream)

    return client_of
