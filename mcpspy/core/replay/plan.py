"""A recorded session, read as what its client did, and why then.

Owns causality: a message of the client waits for what the client had heard
before it. Answers say so themselves. Of what else the server said, only what
came after the last answer is waited for: before it, it was part of how that
answer came about; but a subscription has a stream of its own. And it owns which streams of an HTTP recording are one
client.

What the recorded client said, and what it had heard before.

Owns the shape of a plan; `plan` reads it out of a session, `player` plays it.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum, auto

from msgspec import Struct, structs

from mcpspy.core.jsontools import canonical
from mcpspy.core.protocol.message import Failure, Malformed, Notification, Request, Result
from mcpspy.core.protocol.spec import CLIENT, MODERN
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.correlation import COMES_AGAIN
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change, Session, is_ours


class WaitKind(Enum):
    """What can be waited for."""

    ANSWER = auto()
    """The answer to a request of the client."""
    QUESTION = auto()
    """A request of the server."""
    NOTICE = auto()
    """A notification of the server."""


class WaitCondition(Struct, frozen=True):
    """Something that had come in."""

    what: WaitKind
    key: object
    """Of an answer, the number of the recorded exchange; of the others, which kind it is."""
    count: int
    """How many of this key had come by then."""
    delay: float
    """Seconds it had taken, from when the client could begin to wait for it."""
    is_certain: bool = False
    """Whether it comes whatever happens, and be it as a timeout: the answer to what is not cancelled."""
    is_apart: bool = False
    """Whether it came on a subscription: over HTTP, that an answer is there does not say that this is."""


class PlanStep(Struct, frozen=True):
    """One message of the client."""

    message: Request | Notification | Malformed | None
    """None: the client hung up on `exchange` (HTTP, 2026-07-28), or closed its end."""
    at: float
    """When it was sent."""
    waits: tuple[WaitCondition, ...]
    gap: float
    """Seconds between the last it had heard, or said, and this."""
    exchange: Exchange | None = None
    """The exchange it begins; of a cancellation, the one it ends."""


class ServerRequest(Struct, frozen=True):
    """A request of the server, and what the client answered."""

    exchange: Exchange
    params: str | None
    """Canonical; None if they are nested too deep to be compared."""


class ReplayPlan(Struct, frozen=True):
    """One client, from its first message to its end."""

    cues: tuple[PlanStep, ...]
    questions: tuple[ServerRequest, ...]
    end: PlanStep
    """What the client had heard when it closed its end."""

    @property
    def requests(self) -> list[Exchange]:
        """The requests it makes, in their order."""
        return [
            cue.exchange for cue in self.cues if cue.exchange is not None and isinstance(cue.message, Request)
        ]


PROGRESS = "notifications/progress"
UPDATED = "notifications/resources/updated"


def plans(session: Session) -> list[ReplayPlan]:
    """Return what each client of a session that has ended did; nearly always there is one."""
    names = _conversations(session)
    readers: dict[str | None, _Reader] = {}
    for change in session.changes:
        if change.flaw == COMES_AGAIN:
            continue
        what = change.what
        if isinstance(what, Note):
            if what.kind == "eof" and what.fields.get("from") == CLIENT:
                for reader in readers.values():
                    reader.close(what.at)
                continue
            if change.exchange is None:
                continue
            stream = change.exchange.request.frame.stream
        elif isinstance(what, Request | Notification | Result | Failure | Malformed):
            stream = what.frame.stream
        else:
            continue
        if not is_ours(change):
            readers.setdefault(names.get(stream), _Reader()).read(change)
    found = [reader.plan() for reader in readers.values()]
    return [plan for plan in found if plan.cues]


def expects_answer(exchange: Exchange) -> bool:
    """Whether a request was answered, and not only because or although it was taken back."""
    if exchange.is_subscription or exchange.state is State.LATE:
        return False
    return exchange.answer is not None or exchange.state is State.REFUSED


def is_unanswered(exchange: Exchange) -> bool:
    """Whether the server owes the answer."""
    return (
        exchange.answer is None
        and exchange.state in (State.PENDING, State.UNANSWERED)
        and not exchange.is_subscription
    )


def notice_key(message: Notification, exchange: int | None) -> object:
    """Return which kind of notification it is; None if it is one that nobody can wait for."""
    if message.method == PROGRESS:
        return None if exchange is None else (PROGRESS, exchange)
    return (UPDATED, message.subject) if message.method == UPDATED else message.method


class _Reader:
    def __init__(self) -> None:
        self._cues: list[PlanStep] = []
        self._questions: list[ServerRequest] = []
        self._heard: list[WaitCondition] = []
        """Since the last message of the client."""
        self._counts: Counter[tuple[WaitKind, object]] = Counter()
        self._said_at = 0.0
        """When the client last said something, or was answered."""
        self._last_at = 0.0
        self._end: PlanStep | None = None

    def plan(self) -> ReplayPlan:
        """Return what was read."""
        self.close(self._last_at)
        assert self._end is not None
        return ReplayPlan(tuple(self._cues), tuple(self._questions), self._end)

    def close(self, at: float) -> None:
        """The client closed its end: what comes after is not waited for."""
        if self._end is None:
            end = self._cue(None, at, None)
            # What nobody answered then may be answered now.
            left = (cue.exchange for cue in self._cues if isinstance(cue.message, Request))
            waits = [
                WaitCondition(WaitKind.ANSWER, each.number, 1, 0.0)
                for each in left
                if each and is_unanswered(each)
            ]
            # Over HTTP, what belongs to no request comes when it comes: give it a moment before hanging up.
            for (what, key), count in self._counts.items():
                if what is not WaitKind.ANSWER:
                    waits.append(WaitCondition(what, key, count, 0.0))
            self._end = structs.replace(end, waits=(*end.waits, *waits))

    def read(self, change: Change) -> None:
        """Take the next message, or the end of an HTTP exchange."""
        what, exchange = change.what, change.exchange
        if self._end is not None:
            return
        if isinstance(what, Note):
            assert exchange is not None
            if exchange.state is State.REFUSED:
                self._hear(WaitKind.ANSWER, exchange.number, what.at, is_certain=True)
            elif exchange.state in (State.CANCELLED, State.CLOSED):
                self._say(None, what.at, exchange)
        elif isinstance(what, Malformed):
            if what.side == CLIENT:
                self._say(what, what.at, None)
        elif isinstance(what, Request | Notification):
            if what.side != CLIENT:
                self._server(what, exchange)
            else:
                self._say(what, what.at, exchange)
        elif isinstance(what, Result | Failure) and exchange is not None and exchange.answer is what:
            self._answer(what, exchange)

    def _answer(self, what: Result | Failure, exchange: Exchange) -> None:
        if what.side == CLIENT:
            self._last_at = what.at
        else:
            self._hear(WaitKind.ANSWER, exchange.number, what.at, is_certain=expects_answer(exchange))

    def _server(self, what: Request | Notification, exchange: Exchange | None) -> None:
        if isinstance(what, Request):
            assert exchange is not None
            self._questions.append(ServerRequest(exchange, comparable(what)))
            self._hear(WaitKind.QUESTION, what.method, what.at)
        elif (key := notice_key(what, exchange.number if exchange is not None else None)) is not None:
            is_apart = exchange is not None and exchange.is_subscription
            self._hear(WaitKind.NOTICE, key, what.at, is_apart=is_apart)

    def _hear(
        self, what: WaitKind, key: object, at: float, *, is_certain: bool = False, is_apart: bool = False
    ) -> None:
        self._counts[what, key] += 1
        delay = max(0.0, at - self._said_at)
        self._heard.append(WaitCondition(what, key, self._counts[what, key], delay, is_certain, is_apart))
        self._last_at = at
        if what is WaitKind.ANSWER:
            self._said_at = at

    def _say(
        self, what: Request | Notification | Malformed | None, at: float, exchange: Exchange | None
    ) -> None:
        self._cues.append(self._cue(what, at, exchange))
        self._said_at = self._last_at = at

    def _cue(
        self, what: Request | Notification | Malformed | None, at: float, exchange: Exchange | None
    ) -> PlanStep:
        heard, self._heard = self._heard, []
        last = max((place for place, wait in enumerate(heard) if wait.is_certain), default=-1)
        waits = tuple(
            wait for place, wait in enumerate(heard) if wait.is_certain or wait.is_apart or place > last
        )
        return PlanStep(what, at, waits, max(0.0, at - self._last_at), exchange)


def comparable(request: Request) -> str | None:
    """Return the params of a request of the server as they are compared: without `_meta`."""
    params = request.params
    if isinstance(params, dict):
        params = {key: value for key, value in params.items() if key != "_meta"}
    try:
        return canonical(params or {})
    except RecursionError:
        return None


def _conversations(session: Session) -> dict[str | None, str | None]:
    """Return which client each stream belongs to, by a name for it; streams left out belong to None.

    A session is a client. What has none is of one client as far as can be
    told: of the only one there is, or of one that does without a handshake.
    """
    opened: list[str | None] = []
    modern: set[str | None] = set()
    for exchange in session.exchanges:
        request = exchange.request
        if request.side == CLIENT and request.method == "initialize":
            opened.append(request.frame.stream)
        elif request.side == CLIENT and request.method != "server/discover" and exchange.is_modern:
            modern.add(request.frame.stream)
    modern -= set(opened)
    if len(set(opened)) > 1:
        names = {stream: stream for stream in opened}
    elif opened and modern:
        names = {}
    else:
        return {}
    return names | dict.fromkeys(modern, MODERN)
