"""The fold: entries in, a session out.

Owns everything that is known of a session, and is the only way it changes:
live, attached late or from disk, it is `add`, entry by entry. What belongs to
what is `core.session.correlation`'s, who speaks is `core.protocol.peers`'.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Notification,
    Request,
    Result,
    meta_raw,
    read_frame,
    text,
)
from mcpspy.core.protocol.peers import Peers
from mcpspy.core.protocol.spec import META
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note
from mcpspy.core.session.correlation import Correlation, question
from mcpspy.core.session.exchange import Event, Exchange
from mcpspy.core.session.rule_notes import RULE, words

COMES_AGAIN = "the same event again: its stream was resumed"


class Change(Struct, frozen=True, gc=False):
    """What one entry did. A batch makes one for each of its messages."""

    number: int
    """Place among the session's changes, from 0: the order on the wire."""
    what: AnyMessage | Note | Damaged
    exchange: Exchange | None = None
    """The exchange it began, answered, cancelled or reported on."""
    flaw: str | None = None
    """What is wrong with it as a part of this session: `nobody asked` …"""
    effect: str | None = None
    """What rules and viewers did to it, in words. Known when the notes behind it have been read."""


class Session(Peers):
    """A session, as far as it has been read."""

    def __init__(self, header: Header | None = None) -> None:
        super().__init__()
        self.header = header
        self.changes: list[Change] = []
        self.exchanges: list[Exchange] = []
        self.exit: Note | None = None
        self.last_at = 0.0
        """Seconds from the start to the last entry."""
        self._pairing = Correlation[Exchange]()
        self._tickets: dict[int, int] = {}

    @property
    def pending(self) -> list[Exchange]:
        """The requests whose answer is still to come, subscriptions aside."""
        return list(self._pairing.pending())

    def add(self, entry: Entry) -> list[Change]:
        """Take the next entry; return what it changed."""
        if isinstance(entry, Frame):
            self.last_at = entry.at
            before = len(self.changes)
            again = self._pairing.comes_again(entry)
            for message in read_frame(entry):
                if again:
                    self._changed(message, None, COMES_AGAIN)
                elif isinstance(message, Request):
                    self._request(message)
                elif isinstance(message, Result | Failure):
                    self._answer(message)
                elif isinstance(message, Notification):
                    self._notification(message)
                else:
                    self._changed(message)
            return self.changes[before:]
        if isinstance(entry, Note):
            self.last_at = entry.at
            return [self._note(entry)]
        return [self._changed(entry)]

    def add_all(self, entries: Iterable[Entry]) -> Session:
        """Take every entry; return the session itself."""
        for entry in entries:
            self.add(entry)
        return self

    def end(self) -> list[Exchange]:
        """Nothing more will come: return the exchanges that stay unanswered."""
        return self._pairing.end()

    def _changed(
        self, what: AnyMessage | Note | Damaged, exchange: Exchange | None = None, flaw: str | None = None
    ) -> Change:
        if flaw != COMES_AGAIN and isinstance(what, Result | Failure | Notification) and what.frame.is_ours:
            flaw = None  # We answered in somebody's place, and kept their own answer.
        change = Change(len(self.changes), what, exchange, flaw)
        self.changes.append(change)
        return change

    def _note(self, note: Note) -> Change:
        exchange, fields = None, note.fields
        if note.kind == "exit":
            self.exit = note
            self.end()
        elif note.kind == "http":
            self._pairing.http(fields.get("http"), fields.get("status"))
        elif note.kind == "http-end":
            exchange, flaw = self._pairing.http_end(fields.get("http"), fields.get("hung_up"))
            if exchange is not None and flaw is not None:
                exchange.flaws.append(flaw)
        elif note.kind == RULE:
            self._effect(note)
        return self._changed(note, exchange)

    def _effect(self, note: Note) -> None:
        """Keep what was done to a message with the message."""
        fields = note.fields
        ticket = fields.get("ticket")
        number = self._tickets.pop(ticket, None) if isinstance(ticket, int) else None
        if number is None and (number := self._before(fields.get("id"))) is None:
            return
        if fields.get("action") == "hold" and isinstance(ticket, int):
            self._tickets[ticket] = number
        change, said = self.changes[number], words(fields)
        effect = said if change.effect is None else f"{change.effect}; {said}"
        self.changes[number] = structs.replace(change, effect=effect)
        if change.exchange is not None:
            change.exchange.effects.append(said)

    def _before(self, id: object) -> int | None:  # noqa: A002
        """Return the number of the message before a note: of a batch, the one with this id."""
        changes, last = self.changes, len(self.changes) - 1
        while last >= 0 and isinstance(note := changes[last].what, Note) and note.kind == RULE:
            last -= 1
        if last < 0 or isinstance(what := changes[last].what, Note | Damaged):
            return None
        frame, number = what.frame, last
        while number >= 0 and getattr(changes[number].what, "frame", None) is frame:
            if getattr(changes[number].what, "id", None) == id:
                return number
            number -= 1
        return None

    def _request(self, message: Request) -> None:
        exchange = Exchange(len(self.exchanges), message)
        self.exchanges.append(exchange)
        token = message.progress_token if bytes(message.body.meta) else None
        flaw = self._pairing.request(exchange, message.frame, message.id, token, modern=self.is_modern)
        if flaw:
            exchange.flaws.append(flaw)
        body = message.body
        if bytes(body.request_state) or bytes(body.input_responses):
            asked = question(
                message.frame.stream,
                message.method,
                message.subject,
                body.request_state,
                body.input_responses,
            )
            if (earlier := self._pairing.continued(asked)) is not None:
                exchange.continues, earlier.continued_by = earlier, exchange
        self.hear_request(message)
        self._changed(message, exchange, flaw)

    def _answer(self, message: Result | Failure) -> None:
        event = event_of(message)
        exchange, flaw = self._pairing.answer(message.frame, message.id, event)
        if exchange is None:
            self._changed(message, *self._pairing.stray(message.frame, message.id))
            return
        exchange.answer = message
        request = exchange.request
        if event is Event.QUESTION and isinstance(message, Result):
            body = message.body
            asked = question(
                request.frame.stream, request.method, request.subject, body.request_state, body.input_requests
            )
            self._pairing.asks(asked, exchange)
        self.hear_answer(message, request.method)
        self._changed(message, exchange, flaw)

    def _notification(self, message: Notification) -> None:
        body = message.body
        flaw = None
        if message.method == "notifications/progress":
            exchange, flaw = self._pairing.progress(message.frame, text(body.progress_token))
        elif message.method == "notifications/cancelled":
            exchange, flaw = self._pairing.cancel(message.frame, text(body.request_id))
            if exchange is not None and flaw is None:
                exchange.cancel = exchange.cancel or message
            self._changed(message, exchange, flaw)
            return
        else:
            listens = text(meta_raw(body.meta, META + "subscriptionId")) if bytes(body.meta) else None
            exchange = self._pairing.subscription(message.frame, listens)
        if exchange is not None:
            exchange.progress.append(message)
        self._changed(message, exchange, flaw)


def is_ours(change: Change) -> bool:
    """Whether mcpspy asked for it, or said it to one who had not asked: no client and no server would have.

    An answer of ours is not: whoever asked had one, and went on because of it.
    """
    what, exchange = change.what, change.exchange
    if exchange is not None and exchange.request.frame.by is not None:
        return True
    return isinstance(what, Request | Notification) and what.frame.by is not None


def event_of(message: Result | Failure) -> Event:
    """Return what an answer means for its request."""
    if isinstance(message, Failure):
        return Event.FAILURE
    if message.is_tool_error:
        return Event.TOOL_ERROR
    return Event.QUESTION if bytes(message.body.result_type) == b'"input_required"' else Event.RESULT
