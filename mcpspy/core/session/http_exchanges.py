"""HTTP exchanges: their duration, the text of a refusal, and the streams that clients open with GET.

A client opens a stream with GET to receive what the server sends on its own (Streamable HTTP, Listening for Messages
from the Server), and opens it again when it has ended. A stream that ended without an event belongs to the stream of
the same client before it, and so does a repeated refusal. Counts events of open streams only, so that others cost
nothing.
"""

from __future__ import annotations

from msgspec import Struct

from mcpspy.core.counted import counted, duration
from mcpspy.core.protocol.http_headers import EVENTS, REDIRECTS
from mcpspy.core.protocol.refusal import challenge_words, refusal_words
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Frame, Note

NOT_OFFERED = 405
"""The status by which a server offers no stream (GET), or does not let clients end sessions (DELETE): both are allowed."""

KEPT, KEPT_OPEN = 1 << 10, 1 << 14
"""Streams that are remembered by a correlation that forgets, and exchanges without an end."""

_ENDED_BY = {
    CLIENT: "ended by the client",
    SERVER: "broken off by the server",
    "mcpspy": "ended by mcpspy",
    None: "ended by the server",
}
"""Side that hung up → the end of a stream in words."""


class RecordedHttpExchange(Struct, gc=False):
    """One HTTP exchange whose response has begun."""

    number: int
    method: str
    key: str
    """The client and the path, as far as they are known: what a repeated GET has in common with the one before."""
    asked_at: float
    status: int | None
    is_get: bool
    """True for a GET that opens a stream of events, or that asked for one and was refused; a redirected one is sent again."""
    ended_at: float | None = None
    hung_up: str | None = None
    words: str = ""
    """The text of a refusal, not sanitized."""
    is_told: bool = False
    """True if the outcome of a request has the words."""
    events: int = 0
    repeats: int = 0
    """Later streams of the client that ended without an event, or refusals like this one."""
    is_folded: bool = False
    """True if it is one of them."""

    @property
    def is_refused(self) -> bool:
        return self.status is None or self.status >= 300

    @property
    def took(self) -> float | None:
        """Seconds until the end of the response."""
        return None if self.ended_at is None else max(self.ended_at - self.asked_at, 0.0)

    @property
    def is_harmless(self) -> bool:
        """Return whether it succeeded, or is a refusal that the specification allows."""
        return not self.is_refused or (self.method in ("GET", "DELETE") and self.status == NOT_OFFERED)

    def describe(self) -> str:
        """Return a GET in words."""
        if self.is_refused:
            refusal = "no response" if self.status is None else f"HTTP {self.status}"
            allowed = "the server offers none, which is allowed" if self.status == NOT_OFFERED else self.words
            text = f"no GET stream: {refusal}" + (f", {allowed}" if allowed else "")
            return text + (f"; asked {counted(self.repeats, 'more time')}" if self.repeats else "")
        events = counted(self.events, "event") if self.events else "no events"
        text = f"GET stream: {events}"
        if self.took is None:
            text += ", open"
        else:
            text += f" in {duration(self.took)}, {_ENDED_BY.get(self.hung_up, f'{self.hung_up} hung up')}"
        if self.repeats:
            text += f"; reopened {counted(self.repeats, 'time')}, {'each ' if self.repeats > 1 else ''}empty"
        return text


class GetTotals(Struct):
    """The streams of a session."""

    streams: int = 0
    events: int = 0
    longest: float = 0.0
    """Seconds of the longest stream that has ended."""
    empty: int = 0
    """Streams that were opened again and had no event."""
    refused: int = 0

    def describe(self) -> str:
        """Return the streams in words; empty if there are none."""
        parts = [
            f"{self.streams:,} with {counted(self.events, 'event')}" if self.streams else "",
            f"longest {duration(self.longest)}" if self.longest else "",
            f"{self.empty:,} reopened and empty" if self.empty else "",
            f"{self.refused:,} refused" if self.refused else "",
        ]
        return ", ".join(filter(None, parts))


class HttpExchanges:
    """The exchanges that are in progress, and all GET streams."""

    def __init__(self, *, forgets: bool = False, follows_all: bool = True) -> None:
        """Follow no exchange yet. `follows_all`: also the ordinary ones, a POST with a status of success."""
        self.open: dict[int, RecordedHttpExchange] = {}
        self.listening: dict[int, RecordedHttpExchange] = {}
        """Those of `open` that are GET streams, whose events are counted."""
        self.gets: dict[int, RecordedHttpExchange] = {}
        """All GETs for a stream, without those that belong to an earlier one."""
        self.latest: dict[str, int] = {}
        """Key → number of the latest of them."""
        self.folded: list[int] = []
        """Numbers of GETs that belong to an earlier one, in the order in which they ended."""
        self.totals = GetTotals()
        self._forgets = forgets
        self._follows_all = follows_all

    def begin(self, note: Note) -> RecordedHttpExchange | None:
        """Take the head of a response, the note `http`."""
        fields, number = note.fields, note.fields.get("http")
        if not isinstance(number, int):
            return None
        method, status, asked_at = str(fields.get("method")), fields.get("status"), fields.get("asked_at")
        if method == "POST" and isinstance(status, int) and status < 300 and "error" not in fields:
            if not self._follows_all:
                return None
            at = asked_at if isinstance(asked_at, int | float) else note.at
            ordinary = self.open[number] = RecordedHttpExchange(number, method, "", at, status, is_get=False)
            return ordinary
        request, response = (
            value if isinstance(value := fields.get(name), dict) else {} for name in ("request", "response")
        )
        status = status if isinstance(status, int) else None
        refused = status is None or status >= 300
        opens = request.get("accept", "") if refused else response.get("content-type", "")
        stream, path = fields.get("stream"), str(fields.get("path")).partition("?")[0]
        exchange = self.open[number] = RecordedHttpExchange(
            number,
            method,
            path if stream in (None, str(number)) else f"{stream} {path}",
            asked_at if isinstance(asked_at, int | float) else note.at,
            status,
            method == "GET"
            and EVENTS in str(opens)
            and not (refused and status in REDIRECTS)
            and "by" not in fields
            and "error" not in fields,
        )
        while self._forgets and len(self.open) > KEPT_OPEN:
            oldest = next(iter(self.open))
            del self.open[oldest]
            self.listening.pop(oldest, None)
        if isinstance(error := fields.get("error"), str):
            exchange.words = error
        elif refused and (challenge := response.get("www-authenticate")):
            exchange.words = challenge_words(str(challenge))
        if exchange.is_get:
            self.gets[number] = exchange
            self.totals.refused += refused
            self.totals.streams += not refused
            if not refused:
                self.listening[number] = exchange
            while self._forgets and len(self.gets) > KEPT:
                del self.gets[next(iter(self.gets))]
        return exchange

    def end(self, note: Note) -> RecordedHttpExchange | None:
        """Take the end of an exchange, the note `http-end`."""
        number = note.fields.get("http")
        exchange = self.open.pop(number, None) if isinstance(number, int) else None
        if exchange is None:
            return None
        hung_up, body = note.fields.get("hung_up"), note.fields.get("body")
        exchange.ended_at, exchange.hung_up = note.at, hung_up if isinstance(hung_up, str) else None
        if isinstance(body, str):
            exchange.words = refusal_words(body) or exchange.words
        if exchange.is_get:
            self.listening.pop(exchange.number, None)
            self._end_get(exchange)
        return exchange

    def add_event(self, number: object) -> None:
        """Count an event of an exchange, if it is a GET stream."""
        if isinstance(number, int) and (exchange := self.listening.get(number)) is not None:
            exchange.events += 1
            self.totals.events += 1

    def add_answer(self, frame: Frame, *, settles: bool) -> RecordedHttpExchange | None:
        """Take an error in the body of a refusal. Return the exchange if it is one that the specification allows.

        A message that settles a request is shown with it.
        """
        exchange = self.open.get(frame.http) if frame.http is not None else None
        if exchange is None or not exchange.is_refused or frame.side == CLIENT:
            return None
        exchange.is_told |= settles
        return exchange if exchange.is_harmless else None

    def add_body(self, number: int, body: bytes) -> None:
        """Take a body of JSON that is not a message."""
        if (exchange := self.open.get(number)) is not None and exchange.is_refused:
            exchange.words = refusal_words(body) or exchange.words

    def _end_get(self, exchange: RecordedHttpExchange) -> None:
        """Add a stream without an event to the one before it."""
        if not exchange.is_refused:
            self.totals.longest = max(self.totals.longest, exchange.took or 0.0)
        before = self.gets.get(self.latest.get(exchange.key, -1))
        if before is None or exchange.events or _kind(before) != _kind(exchange):
            self.latest[exchange.key] = exchange.number
            while self._forgets and len(self.latest) > KEPT:
                del self.latest[next(iter(self.latest))]
            return
        before.repeats += 1
        exchange.is_folded = True
        self.totals.empty += not exchange.is_refused
        self.gets.pop(exchange.number, None)
        if not self._forgets:
            self.folded.append(exchange.number)


def _kind(exchange: RecordedHttpExchange) -> tuple[bool, int | None]:
    return exchange.is_refused, exchange.status if exchange.is_refused else None


def http_exchange(head: Note, end: Note | None = None) -> RecordedHttpExchange | None:
    """Return an exchange from its notes alone."""
    exchanges = HttpExchanges()
    exchange = exchanges.begin(head)
    if end is not None:
        exchanges.end(end)
    return exchange
