"""A session in memory: entries in, changes and exchanges out.

Owns all data of a session, live or from disk; it changes only through `add`. `core.session.correlation`
decides the outcome of requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, structs

from mcpspy.core.protocol.message import AnyMessage, Failure, Message, Notification, Request, Result
from mcpspy.core.recording.decode import Damaged, Entry, Header, Note
from mcpspy.core.session.correlation import (
    REPEATED_EVENT,
    CorrelatedEntry,
    Correlation,
    HttpExchangeEnded,
    RequestAnswered,
    RequestCancelled,
    RequestOpened,
    RequestProgressed,
)
from mcpspy.core.session.exchange import FAILED, Exchange, State, outcome_of
from mcpspy.core.session.rule_notes import ABOUT_MESSAGES, RULE, has_effect, words


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

    @property
    def status(self) -> State | None:
        """The outcome that this message reports; None if it reports none.

        The response that settled a request has the request's state, any other response its own outcome, and an open
        or unanswered request its state.
        """
        what, exchange = self.what, self.exchange
        if isinstance(what, Request):
            return exchange.state if exchange is not None and exchange.answer is None else None
        if not isinstance(what, Result | Failure) or self.flaw == REPEATED_EVENT:
            return None
        if exchange is None:
            return outcome if (outcome := outcome_of(what)) in FAILED else None
        return exchange.state if what is exchange.answer else outcome_of(what)

    @property
    def is_error(self) -> bool:
        """Return True if it counts as an error: an error response, also a late one, or a refused request."""
        what, status = self.what, self.status
        if status is State.LATE and isinstance(what, Result | Failure):
            status = outcome_of(what)
        return status in FAILED


class Session(Correlation[Exchange]):
    def __init__(self, header: Header | None = None, *, forgets: bool = False) -> None:
        super().__init__(header, forgets=forgets)
        self.changes: list[Change] = []
        self.exchanges: list[Exchange] = []

    @property
    def pending(self) -> list[Exchange]:
        return list(self._pairing.pending())

    @property
    def failed(self) -> int:
        """Number of errors: failed requests, and errors that settled no request."""
        return sum(change.is_error for change in self.changes)

    @property
    def unanswered(self) -> list[Change]:
        """The requests that are pending, or were when the session ended, without subscriptions."""
        return [
            change
            for change in self.changes
            if isinstance(change.what, Request)
            and (exchange := change.exchange) is not None
            and (exchange.state is State.UNANSWERED or (exchange.is_open and not exchange.is_subscription))
        ]

    def add(self, entry: Entry) -> list[Change]:
        before = len(self.changes)
        for correlated in self.changes_of(entry):
            what, exchange, flaw = correlated.what, correlated.request, correlated.flaw
            if exchange is not None:
                _take(exchange, correlated)
            if isinstance(what, Note) and has_effect(what.kind, what.fields):
                self._note_effect(what.fields)
            self._changed(what, exchange, flaw if isinstance(what, Message) else None)
        return self.changes[before:]

    def add_all(self, entries: Iterable[Entry]) -> Session:
        for entry in entries:
            self.add(entry)
        return self

    def _held(self, request: Exchange, note: Note, seconds: float) -> None:
        request.held += seconds

    def _begin(self, message: Request) -> Exchange:
        exchange = Exchange(len(self.exchanges), message)
        self.exchanges.append(exchange)
        return exchange

    def _method_of(self, request: Exchange) -> str:
        return request.request.method

    def _subject_of(self, request: Exchange) -> str | None:
        return request.request.subject

    def _changed(
        self, what: AnyMessage | Note | Damaged, exchange: Exchange | None = None, flaw: str | None = None
    ) -> Change:
        change = Change(len(self.changes), what, exchange, flaw)
        self.changes.append(change)
        return change

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
_WITH_FLAW = (RequestOpened, HttpExchangeEnded)


def _take(exchange: Exchange, correlated: CorrelatedEntry[Exchange]) -> None:
    what, flaw = correlated.what, correlated.flaw
    if isinstance(correlated, RequestAnswered):
        if isinstance(what, _RESPONSES):
            exchange.answer = what
    elif isinstance(correlated, _WITH_FLAW):
        if flaw is not None:
            exchange.flaws.append(flaw)
        if isinstance(correlated, RequestOpened) and (earlier := correlated.continues) is not None:
            exchange.continues, earlier.continued_by = earlier, exchange
    elif isinstance(correlated, RequestProgressed) and isinstance(what, Notification):
        exchange.progress.append(what)
    elif (
        isinstance(correlated, RequestCancelled)
        and isinstance(what, Notification)
        and exchange.answer is None
    ):
        exchange.cancel = exchange.cancel or what


def is_injected(change: Change) -> bool:
    """Return True if mcpspy injected it: no client and no server would have sent it.

    A response by mcpspy does not count: its requester received it and continued with it.
    """
    what, exchange = change.what, change.exchange
    if exchange is not None and exchange.request.frame.by is not None:
        return True
    return isinstance(what, Request | Notification) and what.frame.by is not None
