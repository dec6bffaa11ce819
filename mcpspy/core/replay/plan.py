"""A recorded session, read as what its client did, and why then.

Owns causality: a message of the client waits for what the client had heard
before it. Answers say so themselves. Of what else the server said, only what
came after the last answer is waited for: before it, it was part of how that
answer came about; but a subscription has a stream of its own. And it owns which streams of an HTTP recording are one
client.
"""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from mcpspy.core.canonical import canonical
from mcpspy.core.exchange import Exchange, State
from mcpspy.core.message import Failure, Malformed, Notification, Request, Result
from mcpspy.core.record import Note
from mcpspy.core.replay.cue import Cue, Plan, Question, Wait, What
from mcpspy.core.session import COMES_AGAIN, Change, Session, is_ours
from mcpspy.core.spec import CLIENT, MODERN

PROGRESS = "notifications/progress"
UPDATED = "notifications/resources/updated"


def plans(session: Session) -> list[Plan]:
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
        self._cues: list[Cue] = []
        self._questions: list[Question] = []
        self._heard: list[Wait] = []
        """Since the last message of the client."""
        self._counts: Counter[tuple[What, object]] = Counter()
        self._said_at = 0.0
        """When the client last said something, or was answered."""
        self._last_at = 0.0
        self._end: Cue | None = None

    def plan(self) -> Plan:
        """Return what was read."""
        self.close(self._last_at)
        assert self._end is not None
        return Plan(tuple(self._cues), tuple(self._questions), self._end)

    def close(self, at: float) -> None:
        """The client closed its end: what comes after is not waited for."""
        if self._end is None:
            end = self._cue(None, at, None)
            # What nobody answered then may be answered now.
            left = (cue.exchange for cue in self._cues if isinstance(cue.message, Request))
            waits = [Wait(What.ANSWER, each.number, 1, 0.0) for each in left if each and is_unanswered(each)]
            # Over HTTP, what belongs to no request comes when it comes: give it a moment before hanging up.
            for (what, key), count in self._counts.items():
                if what is not What.ANSWER:
                    waits.append(Wait(what, key, count, 0.0))
            self._end = structs.replace(end, waits=(*end.waits, *waits))

    def read(self, change: Change) -> None:
        """Take the next message, or the end of an HTTP exchange."""
        what, exchange = change.what, change.exchange
        if self._end is not None:
            return
        if isinstance(what, Note):
            assert exchange is not None
            if exchange.state is State.REFUSED:
                self._hear(What.ANSWER, exchange.number, what.at, is_certain=True)
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
            self._hear(What.ANSWER, exchange.number, what.at, is_certain=expects_answer(exchange))

    def _server(self, what: Request | Notification, exchange: Exchange | None) -> None:
        if isinstance(what, Request):
            assert exchange is not None
            self._questions.append(Question(exchange, comparable(what)))
            self._hear(What.QUESTION, what.method, what.at)
        elif (key := notice_key(what, exchange.number if exchange is not None else None)) is not None:
            is_apart = exchange is not None and exchange.is_subscription
            self._hear(What.NOTICE, key, what.at, is_apart=is_apart)

    def _hear(
        self, what: What, key: object, at: float, *, is_certain: bool = False, is_apart: bool = False
    ) -> None:
        self._counts[what, key] += 1
        delay = max(0.0, at - self._said_at)
        self._heard.append(Wait(what, key, self._counts[what, key], delay, is_certain, is_apart))
        self._last_at = at
        if what is What.ANSWER:
            self._said_at = at

    def _say(
        self, what: Request | Notification | Malformed | None, at: float, exchange: Exchange | None
    ) -> None:
        self._cues.append(self._cue(what, at, exchange))
        self._said_at = self._last_at = at

    def _cue(
        self, what: Request | Notification | Malformed | None, at: float, exchange: Exchange | None
    ) -> Cue:
        heard, self._heard = self._heard, []
        last = max((place for place, wait in enumerate(heard) if wait.is_certain), default=-1)
        waits = tuple(
            wait for place, wait in enumerate(heard) if wait.is_certain or wait.is_apart or place > last
        )
        return Cue(what, at, waits, max(0.0, at - self._last_at), exchange)


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
