"""A session in memory: entries in, changes and exchanges out.

Owns all data of a session, live or from disk; it changes only through `add`. `core.session.correlation`
decides the outcome of requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from msgspec import Struct, structs

from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Message,
    Notification,
    Request,
    Result,
)
from mcpspy.core.recording.decode import Damaged, Entry, Header, Note
from mcpspy.core.session.correlation import (
    REPEATED_EVENT,
    CorrelatedEntry,
    Correlation,
    RequestAnswered,
    RequestCancelled,
    RequestOpened,
    RequestProgressed,
    RequestRepeated,
    ResponseKept,
    ResponseMissing,
)
from mcpspy.core.session.exchange import Exchange, State, outcome_of
from mcpspy.core.session.http_exchanges import RecordedHttpExchange
from mcpspy.core.session.outcome import FAILED, UNANSWERED, SessionCounts, filter_status
from mcpspy.core.session.rule_notes import ABOUT_MESSAGES, RULE, has_effect, words
from mcpspy.core.session.tasks import TaskChange


class Change(Struct, frozen=True, gc=False):
    """The change that one entry made. A batch makes one for each of its messages."""

    number: int
    """Place among the session's changes, from 0: the order on the wire."""
    what: AnyMessage | Note | Damaged
    exchange: Exchange | None = None
    flaw: str | None = None
    """Its protocol issue in this session: `unsolicited response` …"""
    effect: str | None = None
    """Actions of rules and viewers on it, in words. Known once the notes after it were read."""
    http: RecordedHttpExchange | None = None
    """The HTTP exchange that a note begins or ends, or whose allowed refusal has this error as its text."""
    is_kept: bool = False
    """True for a response that mcpspy keeps in a translated session: its requester gets another one."""

    @property
    def entry(self) -> Entry | None:
        """The entry that made it; None for a message of a batch after the first, which that one brings."""
        what = self.what
        if isinstance(what, Note | Damaged):
            return what
        return None if what.index else what.frame

    @property
    def opened(self) -> Exchange | None:
        """The exchange that it opens. A request that is sent again after a redirect opens none."""
        exchange = self.exchange
        return exchange if exchange is not None and self.what is exchange.request else None

    @property
    def status(self) -> State | None:
        """The outcome that this message reports; None if it reports none.

        The response that settled a request has the request's state, any other response its own outcome, and an open
        or unanswered request its state.
        """
        what, exchange = self.what, self.exchange
        if isinstance(what, Request):
            if exchange is None or what is not exchange.request:
                return None
            is_shown_later = exchange.answer is not None and (
                not exchange.is_task or exchange.final is not None
            )
            return None if is_shown_later else exchange.state
        if not isinstance(what, Result | Failure) or self.flaw == REPEATED_EVENT:
            return None
        if exchange is None:
            if self.http is not None:
                return None
            return outcome if (outcome := outcome_of(what)) in FAILED else None
        if exchange.poll_of is not None and what is exchange.poll_of.final:
            return exchange.poll_of.state
        if what is not exchange.answer:
            return outcome_of(what)
        return None if exchange.is_task else exchange.state

    @property
    def is_error(self) -> bool:
        """Return True if it is one of the errors of the session (`SessionCounts`): it shows an operation that failed."""
        return self.is_counted and self.status in FAILED

    @property
    def is_counted(self) -> bool:
        """Return False if its outcome does not count."""
        exchange = self.exchange
        if exchange is not None and exchange.poll_of is not None and self.what is exchange.poll_of.final:
            return exchange.poll_of.is_counted
        return (exchange is None or exchange.is_counted) and not is_injected(self)

    @property
    def filter_status(self) -> str:
        """The status that filters test."""
        status = self.status
        return "" if status is None else filter_status(status, is_counted=self.is_counted)

    @property
    def has_issue(self) -> bool:
        """Return True for a message with a protocol issue, a malformed one, and a damaged line of the recording."""
        what = self.what
        if isinstance(what, Note):
            return False
        if isinstance(what, Damaged | Malformed):
            return True
        return bool(what.flaws or self.flaw is not None) and not is_injected(self)


class Session(Correlation[Exchange]):
    def __init__(self, header: Header | None = None, *, forgets: bool = False) -> None:
        super().__init__(header, forgets=forgets)
        self.changes: list[Change] = []
        self._numbered = 0
        """Number of changes, also of those that are not kept."""
        self.exchanges: list[Exchange] = []

    @property
    def pending(self) -> list[Exchange]:
        return list(self._pairing.pending())

    @property
    def counts(self) -> SessionCounts:
        """The numbers of the session; a streaming session does not have them."""
        counted = [exchange for exchange in self.exchanges if exchange.is_counted]
        messages = [change for change in self.changes if isinstance(change.what, Message)]
        return SessionCounts(
            len(messages),
            sum(change.is_error for change in messages),
            sum(request.is_counted for request in self._pairing.pending()),
            sum(change.has_issue for change in self.changes),
            sum(exchange.state in UNANSWERED for exchange in counted),
            sum(change.what.kind in _CALLS and change.what.frame.by is not None for change in messages),  # type: ignore[union-attr]  # Of every call.
        )

    @property
    def unanswered(self) -> list[Change]:
        """The requests that are unanswered, or open without being a subscription."""
        return [
            change
            for change in self.changes
            if (exchange := change.exchange) is not None
            and change.what is exchange.request
            and exchange.is_counted
            and (exchange.state in UNANSWERED or (exchange.is_open and not exchange.is_subscription))
        ]

    def add(self, entry: Entry) -> list[Change]:
        before = len(self.changes)
        for correlated in self.changes_of(entry):
            what, exchange, flaw = correlated.what, correlated.request, correlated.flaw
            if exchange is not None:
                _take(exchange, correlated)
            if isinstance(what, Message):
                shown, effect = exchange, None
                if (task := correlated.task) is not None:
                    _take_task(task, what)
                    if task.call is exchange and isinstance(correlated, RequestAnswered):
                        exchange.is_task = True
            else:
                shown = None if isinstance(correlated, ResponseMissing) else exchange
                flaw, effect = None, correlated.why if exchange is None else None
                if isinstance(what, Note) and has_effect(what.kind, what.fields):
                    self._note_effect(what.fields)
            is_kept = isinstance(correlated, ResponseKept)
            self.changes.append(Change(self._numbered, what, shown, flaw, effect, correlated.http, is_kept))
            self._numbered += 1
        return self.changes[before:]

    def add_all(self, entries: Iterable[Entry]) -> Session:
        for entry in entries:
            self.add(entry)
        return self

    def _held(self, request: Exchange, note: Note, seconds: float) -> None:
        request.held += seconds

    def _begin(self, message: Request) -> Exchange:
        exchange = Exchange(len(self.exchanges), message)
        exchange.is_injected = self.is_injected(message.frame)
        self.exchanges.append(exchange)
        return exchange

    def _restated(self, request: Exchange, before: State) -> None:
        if request.state is State.PENDING:
            request.why = ""

    def _poll(self, request: Exchange, call: Exchange) -> None:
        request.poll_of = call
        call.polls.append(request)

    def _method_of(self, request: Exchange) -> str:
        return request.request.method

    def _time_of(self, request: Exchange) -> float:
        return request.request.at

    def _subject_of(self, request: Exchange) -> str | None:
        return request.request.subject

    def _note_effect(self, fields: dict[str, Any]) -> None:
        number = self._noted(len(self.changes) - 1, fields)
        if number is None:
            return
        change, action = self.changes[number], words(fields)
        effect = action if change.effect is None else f"{change.effect}; {action}"
        self.changes[number] = structs.replace(change, effect=effect)
        if change.exchange is not None:
            change.exchange.effects.append(action)

    def _spot(self, row: int) -> object:
        what = self.changes[row].what
        if isinstance(what, Note):
            return RULE if what.kind in ABOUT_MESSAGES else None
        return None if isinstance(what, Damaged) else id(what.frame)

    def _id_of(self, row: int) -> str | None:
        return getattr(self.changes[row].what, "id", None)


# Each message passes here, and `A | B` in a call makes a new union.
_RESPONSES = (Result, Failure)
_CALLS = (Request.kind, Notification.kind)


def _take(exchange: Exchange, correlated: CorrelatedEntry[Exchange]) -> None:
    what, flaw = correlated.what, correlated.flaw
    if correlated.why is not None:
        exchange.why = correlated.why
    if isinstance(correlated, RequestAnswered):
        if isinstance(what, _RESPONSES):
            exchange.answer = what
    elif isinstance(correlated, RequestOpened):
        if flaw is not None:
            exchange.flaws.append(flaw)
        if (earlier := correlated.continues) is not None:
            exchange.continues, earlier.continued_by = earlier, exchange
    elif isinstance(correlated, RequestRepeated):
        exchange.redirect = ", ".join(filter(None, (exchange.redirect, exchange.why)))
        exchange.why = ""
    elif isinstance(correlated, RequestProgressed) and isinstance(what, Notification):
        exchange.progress.append(what)
    elif (
        isinstance(correlated, RequestCancelled)
        and isinstance(what, Notification)
        and exchange.answer is None
    ):
        exchange.cancel = exchange.cancel or what


def _take_task(task: TaskChange[Exchange], what: Message) -> None:
    call = task.call
    if task.why is not None:
        call.why = task.why
    if task.has_ended and call.ended_at is None:
        call.ended_at = what.at
    if task.is_final and isinstance(what, Result | Failure):
        call.final = what


def change_lines(session: Session) -> list[int]:
    """Return the line of each change in the recording, whose header is line 1: messages of a batch share one."""
    return list(accumulate((change.entry is not None for change in session.changes), initial=1))[1:]


def is_injected(change: Change) -> bool:
    """Return True if mcpspy injected it: no client and no server would have sent it.

    So is a response that mcpspy kept, because its requester got another one (translation). A response by mcpspy does
    not count: its requester received it and continued with it.
    """
    what, exchange = change.what, change.exchange
    if exchange is not None:
        if exchange.is_injected:
            return True
        if exchange.request.frame.by is not None:  # Translated.
            return False
    elif change.is_kept:
        return True
    # A test of an object against a class that is not exactly its own takes as long as a call.
    return what.kind in _CALLS and what.frame.by is not None  # type: ignore[union-attr]  # Of every call.
