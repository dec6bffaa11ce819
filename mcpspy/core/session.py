"""The fold: entries in, a session out; and the pairing.

Owns everything that is known of a session, and is the only way it changes:
live, attached late or from disk, it is `add`, entry by entry. Pairs by (stream,
who asked, the id's JSON text), since both sides count from 1; a response that
nobody asked for is shown as that, never matched by guessing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import Raw, Struct

from mcpspy.core.exchange import Event, Exchange, State
from mcpspy.core.message import (
    AnyMessage,
    Failure,
    Notification,
    Request,
    Result,
    decoded,
    loads,
    meta_raw,
    read_frame,
    text,
)
from mcpspy.core.record import Damaged, Entry, Frame, Header, Note
from mcpspy.core.spec import CLIENT, META, MODERN, SERVER, other


class Change(Struct, frozen=True, gc=False):
    """What one entry did. A batch makes one for each of its messages."""

    number: int
    """Place among the session's changes, from 0: the order on the wire."""
    what: AnyMessage | Note | Damaged
    exchange: Exchange | None = None
    """The exchange it began, answered, cancelled or reported on."""
    flaw: str | None = None
    """What is wrong with it as a part of this session: `nobody asked` …"""


class Party(NamedTuple):
    """A client or a server, as it introduced itself."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


_Key = tuple[str | None, str, str]
"""Stream, side that asked, id as JSON text."""

_Question = tuple[str | None, str, str | None, str]
"""What a question and the request that answers it share."""


class Session:
    """A session, as far as it has been read."""

    def __init__(self, header: Header | None = None) -> None:
        self.header = header
        self.changes: list[Change] = []
        self.exchanges: list[Exchange] = []
        self.client: Party | None = None
        self.server: Party | None = None
        self.revision: str | None = None
        """The revision in use; until the server has answered, the one the client asked for."""
        self.client_capabilities: dict[str, Any] = {}
        self.server_capabilities: dict[str, Any] = {}
        self.exit: Note | None = None
        self.last_at = 0.0
        """Seconds from the start to the last entry."""
        self._asked: dict[_Key, list[Exchange]] = {}
        self._answered: dict[_Key, Exchange] = {}
        self._progress: dict[_Key, Exchange] = {}
        self._questions: dict[_Question, list[Exchange]] = {}
        self._posted: dict[int, _Key | None] = {}
        self._refused: dict[int, int] = {}
        self._seen_events: set[tuple[str | None, str]] = set()

    @property
    def is_modern(self) -> bool:
        """Whether it speaks a revision without a handshake."""
        return self.revision is not None and self.revision >= MODERN

    @property
    def pending(self) -> list[Exchange]:
        """The requests whose answer is still to come, subscriptions aside."""
        return [
            exchange
            for waiting in self._asked.values()
            for exchange in waiting
            if exchange.is_open and not exchange.is_subscription
        ]

    def add(self, entry: Entry) -> list[Change]:
        """Take the next entry; return what it changed."""
        if isinstance(entry, Frame):
            self.last_at = entry.at
            before = len(self.changes)
            again = self._comes_again(entry)
            for message in read_frame(entry):
                if again:
                    self._changed(message, None, "the same event again: its stream was resumed")
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
            if entry.kind == "exit":
                self.exit = entry
                self.end()
            elif entry.kind == "http":
                self._http(entry)
            elif entry.kind == "http-end":
                return [self._changed(entry, self._http_end(entry))]
        return [self._changed(entry)]

    def add_all(self, entries: Iterable[Entry]) -> Session:
        """Take every entry; return the session itself."""
        for entry in entries:
            self.add(entry)
        return self

    def end(self) -> list[Exchange]:
        """Nothing more will come: return the exchanges that stay unanswered."""
        left = [e for waiting in self._asked.values() for e in waiting if e.is_open]
        for exchange in left:
            exchange.happen(Event.CLOSE if exchange.is_subscription else Event.END)
        self._asked.clear()
        return left

    def _comes_again(self, frame: Frame) -> bool:
        """Whether a resumed stream repeats an event (2025-03-26, resumability): it counts once."""
        if frame.event_id is None or frame.side == CLIENT:
            return False
        event = (frame.stream, frame.event_id)
        if event in self._seen_events:
            return True
        self._seen_events.add(event)
        return False

    def _http(self, note: Note) -> None:
        http, status = note.fields.get("http"), note.fields.get("status")
        if isinstance(http, int) and isinstance(status, int) and status >= 400:
            self._refused[http] = status

    def _http_end(self, note: Note) -> Exchange | None:
        """Settle what the HTTP exchange asked for, where its end says more than no answer.

        An error status refuses it. In 2026-07-28 a client that hangs up has
        cancelled it; before, it may come back for the answer.
        """
        http = note.fields.get("http")
        key = self._posted.get(http) if isinstance(http, int) else None
        waiting = self._asked.get(key) if key is not None else None
        if key is None or not waiting:
            return None
        exchange = _first(waiting)
        if http in self._refused:
            exchange.happen(Event.REFUSE)
            exchange.flaws.append(f"HTTP {self._refused[http]}")
        elif note.fields.get("hung_up") == CLIENT and _is_modern(exchange.request):
            exchange.happen(Event.CLOSE if exchange.is_subscription else Event.CANCEL)
        else:
            return None
        if exchange.state is State.REFUSED:
            waiting.remove(exchange)
            if not waiting:
                del self._asked[key]
        return exchange

    def _changed(
        self, what: AnyMessage | Note | Damaged, exchange: Exchange | None = None, flaw: str | None = None
    ) -> Change:
        change = Change(len(self.changes), what, exchange, flaw)
        self.changes.append(change)
        return change

    def _request(self, message: Request) -> None:
        exchange = Exchange(len(self.exchanges), message)
        self.exchanges.append(exchange)
        stream, side = message.frame.stream, message.side
        key = (stream, side, message.id)
        waiting = self._asked.setdefault(key, [])
        flaw = None
        if any(earlier.is_open for earlier in waiting):
            flaw = f"id {message.id} is in use by an unanswered request"
        elif (waiting or key in self._answered) and not self.is_modern:
            flaw = f"id {message.id} was used before"
        if flaw:
            exchange.flaws.append(flaw)
        waiting.append(exchange)
        if (http := message.frame.http) is not None and side == CLIENT:
            self._posted[http] = None if http in self._posted else key  # A batch is refused as a whole.
        body = message.body
        if bytes(body.meta):
            token = message.progress_token
            if token is not None:
                self._progress[(stream, side, token)] = exchange
            if self.client is None or self.revision is None:
                self._meet_client(message)
        if bytes(body.request_state) or bytes(body.input_responses):
            self._continue(exchange)
        if message.method == "initialize":
            self._greet(message)
        self._changed(message, exchange, flaw)

    def _answer(self, message: Result | Failure) -> None:
        key = (message.frame.stream, other(message.side), message.id or "")
        flaw = None
        if message.id is None and (posted := self._posted_by(message)) is not None:
            key, flaw = posted, "it has no id: paired by the HTTP exchange that carried it"
        waiting = self._asked.get(key)
        if not waiting:
            self._changed(message, *self._stray(message, key))
            return
        exchange = _first(waiting)
        waiting.remove(exchange)
        if not waiting:
            del self._asked[key]
        self._answered[key] = exchange
        exchange.answer = message
        if isinstance(message, Failure):
            exchange.happen(Event.FAILURE)
            if exchange.request.method in _INTRODUCTIONS:
                self.revision = None  # What was asked for was refused: the next request says it anew.
        elif message.is_tool_error:
            exchange.happen(Event.TOOL_ERROR)
        elif bytes(message.body.result_type) == b'"input_required"':
            exchange.happen(Event.QUESTION)
            question = _question(exchange.request, message.body.request_state, message.body.input_requests)
            self._questions.setdefault(question, []).append(exchange)
        else:
            exchange.happen(Event.RESULT)
            if exchange.request.method in _INTRODUCTIONS:
                self._introduce(message, exchange.request.method)
        if self.server is None and isinstance(message, Result) and bytes(message.body.meta):
            self.server = _party(meta_raw(message.body.meta, META + "serverInfo"))
        if exchange.state is State.LATE:
            flaw = "answered after it was cancelled"
        self._changed(message, exchange, flaw)

    def _posted_by(self, message: Result | Failure) -> _Key | None:
        """Return what the HTTP exchange of a server's answer asked for: a 4xx answers it without an id."""
        http = message.frame.http
        return self._posted.get(http) if http is not None and message.side == SERVER else None

    def _stray(self, message: Result | Failure, key: _Key) -> tuple[Exchange | None, str]:
        """Say what is known of an answer that no open request waits for."""
        if message.id is None:
            return None, "answers nothing: it has no id"
        if (earlier := self._answered.get(key)) is not None:
            return earlier, f"id {message.id} was answered before"
        stream, asker, text_id = key
        near = text_id[1:-1] if text_id.startswith('"') else f'"{text_id}"'
        if (stream, asker, near) in self._asked:
            return None, f"nobody asked: the id that waits is {near}, this is {text_id}"
        return None, "nobody asked"

    def _notification(self, message: Notification) -> None:
        stream, side, body = message.frame.stream, message.side, message.body
        if message.method == "notifications/progress":
            token = text(body.progress_token)
            exchange = self._progress.get((stream, other(side), token)) if token is not None else None
            if exchange is None:
                self._changed(message, None, "nobody asked for progress under this token")
                return
            exchange.progress.append(message)
            flaw = (
                None if exchange.happen(Event.PROGRESS) or _is_task(exchange) else "progress after the answer"
            )
            self._changed(message, exchange, flaw)
        elif message.method == "notifications/cancelled":
            self._cancel(message)
        else:
            listen = text(meta_raw(body.meta, META + "subscriptionId")) if bytes(body.meta) else None
            subscription = self._subscription((stream, other(side), listen)) if listen is not None else None
            if subscription is not None:
                subscription.progress.append(message)
            self._changed(message, subscription)

    def _subscription(self, key: _Key) -> Exchange | None:
        listening = [exchange for exchange in self._asked.get(key, ()) if exchange.is_subscription]
        return _first(listening) if listening else None

    def _cancel(self, message: Notification) -> None:
        stream, side = message.frame.stream, message.side
        wanted = text(message.body.request_id)
        if wanted is None:
            self._changed(message, None, "cancels nothing: it has no requestId")
            return
        key = (stream, side, wanted)
        waiting = self._asked.get(key)
        # A server may take a subscription down, and a subscription only (2026-07-28, subscriptions).
        exchange = _first(waiting) if waiting else self._subscription((stream, other(side), wanted))
        if exchange is not None:
            # On stdio this is how a client ends a subscription (2026-07-28): it was not cut short.
            exchange.happen(Event.CLOSE if exchange.is_subscription else Event.CANCEL)
            exchange.cancel = exchange.cancel or message
            self._changed(message, exchange)
            return
        answered = self._answered.get(key)
        self._changed(
            message, answered, "the answer was there already" if answered else "cancels a request nobody made"
        )

    def _continue(self, exchange: Exchange) -> None:
        """Link a request that carries answers to the exchange that asked for them."""
        body = exchange.request.body
        asked = self._questions.get(_question(exchange.request, body.request_state, body.input_responses))
        if asked:
            exchange.continues = asked.pop(0)
            exchange.continues.continued_by = exchange

    def _greet(self, message: Request) -> None:
        params = message.params
        if isinstance(params, dict):
            self.client = _party(params.get("clientInfo")) or self.client
            self.client_capabilities = _dict(params.get("capabilities"))
            if isinstance(version := params.get("protocolVersion"), str):
                self.revision = version

    def _meet_client(self, message: Request) -> None:
        meta = message.body.meta
        self.client = self.client or _party(meta_raw(meta, META + "clientInfo"))
        if self.revision is None and isinstance(
            version := decoded(meta_raw(meta, META + "protocolVersion")), str
        ):
            self.revision = version
            self.client_capabilities = _dict(loads(meta_raw(meta, META + "clientCapabilities")))

    def _introduce(self, message: Result, method: str) -> None:
        result = message.result
        if not isinstance(result, dict):
            return
        self.server = _party(result.get("serverInfo")) or self.server
        self.server_capabilities = _dict(result.get("capabilities"))
        if method == "initialize" and isinstance(version := result.get("protocolVersion"), str):
            self.revision = version


_INTRODUCTIONS = ("initialize", "server/discover")


def _first(waiting: list[Exchange]) -> Exchange:
    """Return whom the next answer is for: a cancelled request may never get one, so an open one goes first."""
    return next((exchange for exchange in waiting if exchange.is_open), waiting[0])


def _is_modern(request: Request) -> bool:
    """Whether a request says of itself that it is of a revision without a handshake: clients of two may share a proxy."""
    version = decoded(meta_raw(request.body.meta, META + "protocolVersion"))
    return isinstance(version, str) and version >= MODERN


def _question(request: Request, state: Raw, parts: Raw) -> _Question:
    """Return what a question and the request that answers it share: the state, else the names of the parts.

    A state is the server's own word for the one question, whichever HTTP
    exchange brings it back; names of parts are anybody's.
    """
    shared = text(state)
    if shared is not None:
        return None, request.method, request.subject, shared
    members = loads(parts)
    shared = ",".join(sorted(members)) if isinstance(members, dict) else ""
    return request.frame.stream, request.method, request.subject, shared


def _is_task(exchange: Exchange) -> bool:
    """Whether the answer was a task: its progress goes on after it (2025-11-25, tasks)."""
    answer = exchange.answer
    return isinstance(answer, Result) and (bool(bytes(answer.body.task)) or answer.result_type == "task")


def _party(info: object) -> Party | None:
    value = loads(info) if isinstance(info, Raw) else info
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str) or not name:
        return None
    version = value.get("version")
    return Party(name, version if isinstance(version, str) else "")


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
