"""The facts of HTTP: refused exchanges, steps of OAuth, ids of sessions, and streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct, field

from mcpspy.analysis.explain.evidence import EvidenceLine, evidence, url_parts
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.analysis.lint.finding import EntryPosition
from mcpspy.core.protocol.http_headers import EVENTS, JSON, REDIRECTS
from mcpspy.core.protocol.refusal import ACCEPTED
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.http_exchanges import NOT_OFFERED, RecordedHttpExchange

SECONDS_WITHOUT_HEAD = 5.0
"""Seconds that a client waits for the head of the response to its GET, from which it is of interest."""

MAX_EXCHANGES = 200
"""Kinds of refusals, and steps of OAuth, that are kept."""


class OauthStep(Struct, frozen=True):
    at: float
    place: EntryPosition
    fields: dict[str, Any]
    path: str = ""
    """The path of its request; empty if its exchange is not known."""

    @property
    def step(self) -> str:
        return str(self.fields.get("step"))

    @property
    def status(self) -> int | None:
        status = self.fields.get("status")
        return status if isinstance(status, int) else None


class _Posted(Struct, gc=False):
    asked: str
    number: int | None
    """The number of the request that was posted; None for a notification or a response."""
    is_response: bool = False
    """True for a response to a request of the server."""


_NOTHING = _Posted("", None)


class _Ordinary(NamedTuple):
    """The head of a response to a POST that was accepted. Nearly all of them are of no interest."""

    note: Note
    place: EntryPosition
    posted: _Posted
    is_plain: bool
    """True if it is to have a JSON body."""


class HttpFacts(Struct):
    open: dict[int, RefusedExchange] = field(default_factory=dict)
    """Exchanges whose response has begun, and that are not ordinary."""
    ordinary: dict[int, _Ordinary] = field(default_factory=dict)
    """All others whose response has begun."""
    posted: dict[int, _Posted] = field(default_factory=dict)
    injected: set[int] = field(default_factory=set)
    """Open exchanges with a message of mcpspy."""
    kinds: dict[tuple[object, ...], RefusedExchange] = field(default_factory=dict)
    """The refusals that ended, by what they have in common."""
    heads: dict[str, RefusedExchange] = field(default_factory=dict)
    """`initialize` and `OPTIONS` → the first such exchange, whatever its status."""
    encoded: RefusedExchange | None = None
    """The first response with a Content-Encoding, which mcpspy asks for none."""
    preflights: list[RefusedExchange] = field(default_factory=list)
    """All exchanges of OPTIONS, whatever their status; the first ones."""
    statuses: Counter[tuple[str, int | None]] = field(default_factory=Counter)
    """Method and status → number of exchanges."""
    oauth: list[OauthStep] = field(default_factory=list)
    session_ids: dict[str, float] = field(default_factory=dict)
    """Session ids that the server assigned → when; at most some."""
    accepted: dict[str, float] = field(default_factory=dict)
    """Session id → when a message with it was accepted last."""
    accepted_count: Counter[str] = field(default_factory=Counter)
    """Session id → number of accepted messages with it."""
    ended: dict[str, tuple[float, EntryPosition]] = field(default_factory=dict)
    """Session id → when and where the client ended it by DELETE; at most some."""
    begun: dict[str, tuple[float, EntryPosition]] = field(default_factory=dict)
    """Streams in which `initialize` was sent → when and where, the last time; at most some."""
    answered_in: dict[str, float] = field(default_factory=dict)
    """Stream → when a request got its result last, since there are several."""
    locations: dict[object, str] = field(default_factory=dict)
    """Number of a redirect of a sign-in → its Location, without values."""
    typed_acceptance: RefusedExchange | None = None
    """The last 202 or 204 with a Content-Type that is neither of JSON nor of events: most have none."""
    pages: set[object] = field(default_factory=set)
    """Numbers of accepted POSTs that were answered with a page (text/html)."""
    crossed: list[EvidenceLine] = field(default_factory=list)
    """Responses that came in the answer to the POST of another request; at most some."""
    left_out: list[float] = field(default_factory=list)
    """Times at which a POST without a token was answered with success, after one with a token; at most some."""
    with_token: set[int] = field(default_factory=set)
    """Numbers of refused exchanges whose request had an Authorization header."""
    agents: set[str] = field(default_factory=set)
    """User agents of which a POST was accepted; the first ones."""
    agent_of: dict[int, str] = field(default_factory=dict)
    """Number → user agent of accepted POSTs after the first refused one; the last ones."""
    has_refused: bool = False
    """True if a POST was refused."""
    streams: int = 0
    """GET streams that are open."""
    answered_beside: int = 0
    """POSTs that were answered with a message while a GET stream was open."""
    has_token: bool = False
    """True if a request had a token."""
    token_accepted_at: float | None = None
    """Time at which a request with a token was accepted first; None if none was."""
    not_offered: list[RefusedExchange] = field(default_factory=list)
    """GETs for a stream that got 405, which is allowed; the last ones."""
    unanswered_gets: list[RefusedExchange] = field(default_factory=list)
    """GETs whose response did not begin for long, while the client posted nothing; the last ones."""
    posted_at: float = 0.0
    """Time of the last POST whose response has begun."""
    gets: list[RecordedHttpExchange] = field(default_factory=list)
    """GETs for a stream, in the order in which they ended."""
    last_at: float | None = None
    """Time at which the last exchange ended."""

    def post(self, number: int, asked: str, request: int | None, *, is_response: bool = False) -> None:
        """Take a message that a client posted."""
        if number not in self.posted:
            self.posted[number] = _Posted(asked, request, is_response)

    def accepted_at(self, exchange: RefusedExchange) -> float:
        """Return the time of the last request that was accepted in the session of an exchange; 0 if there is none."""
        return self.accepted.get(exchange.session_id or "", 0.0)

    def has_accepted(self, exchange: RefusedExchange) -> bool:
        """Return whether a request in the session of an exchange was accepted."""
        return (exchange.session_id or "") in self.accepted_count

    def is_of_other_program(self, number: int | None, refused: RefusedExchange | None) -> bool:
        """Return whether another program than the refused one posted the message of an HTTP exchange."""
        agent = self.agent_of.get(number or 0)
        return refused is not None and agent is not None and agent != refused.agent

    def of(self, number: int | None, *, with_plain: bool = False) -> RefusedExchange | None:
        """Return the HTTP exchange that carried a request, if its response has begun.

        One that is to have a JSON body is ordinary, and of no interest, unless the body never comes (`with_plain`).
        """
        if number is None:
            return None
        ordinary = self.ordinary.get(number)
        if ordinary is None or (ordinary.is_plain and not with_plain):
            return self.open.get(number)
        del self.ordinary[number]
        exchange = self.open[number] = _exchange(ordinary.note, ordinary.place, ordinary.posted)
        exchange.is_plain = ordinary.is_plain
        return exchange

    def refused(self, number: int | None) -> RefusedExchange | None:
        """Return the HTTP exchange with this number if it was refused."""
        exchange = self.open.get(number) if self.open and number is not None else None
        return exchange if exchange is not None and (exchange.status or 0) >= 300 else None

    def _take_token(self, number: int, status: int | None, at: float) -> None:
        """Take that the request of an exchange had a token."""
        self.has_token = True
        if status is not None and status < 300 and self.token_accepted_at is None:
            self.token_accepted_at = at
        if (status or 0) >= 400 and len(self.with_token) < MAX_EXCHANGES:
            self.with_token.add(number)

    def begin(self, note: Note, place: EntryPosition) -> None:
        """Take the head of a response, the note `http`."""
        fields, number = note.fields, note.fields.get("http")
        if not isinstance(number, int):
            return
        request, response = _headers(fields, "request"), _headers(fields, "response")
        status, method = _status(fields), str(fields.get("method"))
        posted = self.posted.get(number, _NOTHING)
        self.statuses[method, status] += 1
        if method == "POST":
            self.posted_at = note.at
        if "authorization" in request:
            self._take_token(number, status, note.at)
        if status is None or status >= 300 or method != "POST":
            exchange = self.open[number] = _exchange(note, place, posted)
            self.has_refused |= method == "POST"
            self.streams += exchange.is_stream
            if status in REDIRECTS and len(self.locations) < MAX_EXCHANGES:
                self.locations[number] = exchange.response.get("location", "")
            self._keep_head(exchange)
            return
        if self.token_accepted_at is not None and "authorization" not in request:
            self.left_out = [*self.left_out[-MAX_EXCHANGES:], note.at]
        self._add_agent(number, str(request.get("user-agent", "")))
        used = request.get("mcp-session-id")
        if isinstance(used, str):
            self.accepted[used] = note.at
            self.accepted_count[used] += 1
        if posted.asked == "initialize" or not _UNUSUAL.isdisjoint(response):
            self._keep_head(_exchange(note, place, posted))
        self._accept(note, place, posted, _media_type(response))

    def _accept(self, note: Note, place: EntryPosition, posted: _Posted, media_type: str) -> None:
        """Take the head of the response to a POST that was accepted."""
        number, status = note.fields["http"], _status(note.fields)
        if status in ACCEPTED and media_type not in ("", JSON, EVENTS):
            self.typed_acceptance = _exchange(note, place, posted)
        if media_type in (JSON, EVENTS) or status in ACCEPTED:
            self.answered_beside += self.streams > 0 and status not in ACCEPTED
            if self.kinds:
                self._succeed(_exchange(note, place, posted))
            self.ordinary[number] = _Ordinary(
                note, place, posted, media_type == JSON and status not in ACCEPTED
            )
        else:
            self.open[number] = _exchange(note, place, posted)
            if media_type == "text/html" and len(self.pages) < MAX_EXCHANGES:
                self.pages.add(number)

    def _add_agent(self, number: int, agent: str) -> None:
        """Keep the user agent of an accepted POST."""
        if len(self.agents) < MAX_EXCHANGES:
            self.agents.add(agent)
        if self.has_refused:
            self.agent_of[number] = agent
            if len(self.agent_of) > MAX_EXCHANGES:
                del self.agent_of[next(iter(self.agent_of))]

    def _keep_head(self, exchange: RefusedExchange) -> None:
        """Keep of the head of a response what other exchanges are compared with."""
        # An SDK also sends an id with the refusal of a request that had none.
        is_accepted = exchange.status is not None and exchange.status < 300
        session_id = exchange.response.get("mcp-session-id")
        if is_accepted and session_id and len(self.session_ids) < MAX_EXCHANGES:
            self.session_ids.setdefault(session_id, exchange.at)
        used = exchange.request.get("mcp-session-id")
        if is_accepted and exchange.method == "DELETE" and used and len(self.ended) < MAX_EXCHANGES:
            self.ended.setdefault(used, (exchange.at, exchange.place))
        if (
            self.encoded is None
            and exchange.response.get("content-encoding", "identity").lower() != "identity"
        ):
            self.encoded = exchange
        if exchange.method == "OPTIONS" and len(self.preflights) < MAX_EXCHANGES:
            self.preflights.append(exchange)
        for name in (exchange.asked, exchange.method):
            if name in ("initialize", "OPTIONS"):
                self.heads.setdefault(name, exchange)

    def inject(self, number: int | None) -> None:
        """Take a message of mcpspy, which this exchange carries."""
        if number is not None:
            self.injected.add(number)

    def end(
        self, note: Note, recorded: RecordedHttpExchange | None, is_open: Callable[[int | None], bool]
    ) -> RefusedExchange | None:
        """Take the end of an exchange, the note `http-end`; return the exchange if it is of interest.

        `is_open` returns whether the request with a number has no outcome so far. Then an ordinary one is of interest, too.
        """
        number = note.fields.get("http")
        self.last_at = note.at
        if not isinstance(number, int):
            return None
        posted = self.posted.pop(number, None)
        if posted is not None and is_open(posted.number):
            self.of(number, with_plain=True)
        else:
            self.ordinary.pop(number, None)
        exchange = self.open.pop(number, None)
        if number in self.injected:  # Its refusal is none of the session.
            self.injected.discard(number)
            return None
        if exchange is None or exchange.is_plain:
            return exchange
        exchange.ended_at = note.at
        self.streams -= exchange.is_stream
        hung_up = note.fields.get("hung_up")
        exchange.hung_up = hung_up if isinstance(hung_up, str) else None
        if recorded is not None:
            exchange.words = recorded.words or exchange.words
            if recorded.is_get and len(self.gets) < MAX_EXCHANGES:
                self.gets.append(recorded)
        if exchange.status == NOT_OFFERED and exchange.method == "GET":
            self.not_offered = [*self.not_offered[-9:], exchange]
        waited = exchange.took >= SECONDS_WITHOUT_HEAD and self.posted_at <= exchange.at - exchange.took
        is_given_up = hung_up == CLIENT or note.fields.get("half_closed") is not None
        if exchange.method == "GET" and waited and (exchange.status is not None or is_given_up):
            self.unanswered_gets = [*self.unanswered_gets[-9:], exchange]
        if self._is_refused(exchange):
            self._keep(exchange)
        return exchange

    def add_oauth(self, note: Note, place: EntryPosition) -> None:
        if len(self.oauth) < MAX_EXCHANGES:
            exchange = self.open.get(number) if isinstance(number := note.fields.get("http"), int) else None
            if exchange is not None and exchange.method == "OPTIONS":
                return  # Recordings of earlier versions have preflights as steps.
            self.oauth.append(OauthStep(note.at, place, note.fields, exchange.path if exchange else ""))

    def refusals(self) -> list[RefusedExchange]:
        """Return the refusals that belong to no request of MCP, and that the same request did not overcome."""
        for exchange in self.open.values():  # Their ends were not recorded.
            if self._is_refused(exchange):
                self._keep(exchange)
        return [
            each for each in self.kinds.values() if each.request_number is None and each.succeeded_at is None
        ]

    def _succeed(self, exchange: RefusedExchange) -> None:
        for earlier in self.kinds.values():
            same = (earlier.method, earlier.path, earlier.asked, earlier.agent) == (
                exchange.method,
                exchange.path,
                exchange.asked,
                exchange.agent,
            )
            if same and exchange.asked:
                earlier.succeeded_at = exchange.at

    def _keep(self, exchange: RefusedExchange) -> None:
        key = (exchange.method, exchange.path, exchange.status, exchange.asked, exchange.error)
        if (same := self.kinds.get(key)) is not None:
            same.count += 1
        elif len(self.kinds) < MAX_EXCHANGES:
            same = self.kinds[key] = exchange
        else:
            return
        same.last_at = exchange.at
        words = exchange.error or exchange.words
        same.add_line(evidence(exchange.place, f"{exchange.line}{f': {words}' if words else ''}"))

    @staticmethod
    def _is_refused(exchange: RefusedExchange) -> bool:
        status, method = exchange.status, exchange.method
        if status is None:
            return exchange.hung_up != CLIENT  # A client that does not wait was not refused.
        if method in ("GET", "DELETE") and status == NOT_OFFERED:
            return False
        if status < 300 and ".well-known" in exchange.path:
            return False
        if status in REDIRECTS:  # One that leads to the same address is a loop.
            return method == "GET" and url_parts(exchange.response.get("location", "")).path == exchange.path
        if status >= 300:
            return True
        if method == "GET" and "event-stream" in exchange.request.get("accept", ""):
            return exchange.media_type != EVENTS
        return False


_UNUSUAL = frozenset({"mcp-session-id", "content-encoding"})
"""Headers of an accepted response that are kept."""


def _headers(fields: dict[str, Any], name: str) -> dict[str, Any]:
    headers = fields.get(name)
    return headers if isinstance(headers, dict) else {}


def _status(fields: dict[str, Any]) -> int | None:
    status = fields.get("status")
    return status if isinstance(status, int) else None


def _media_type(response: dict[str, Any]) -> str:
    return str(response.get("content-type", "")).partition(";")[0].strip().lower()


def _exchange(note: Note, place: EntryPosition, posted: _Posted) -> RefusedExchange:
    """Return an exchange whose response has begun."""
    fields = note.fields
    asked_at = fields.get("asked_at")
    return RefusedExchange(
        at=note.at,
        place=place,
        number=fields["http"],
        method=str(fields.get("method")),
        path=str(fields.get("path", "")).partition("?")[0],
        has_query="?" in str(fields.get("path", "")),
        status=_status(fields),
        asked=posted.asked,
        request_number=posted.number,
        is_response=posted.is_response,
        request={name: str(value) for name, value in _headers(fields, "request").items()},
        response={name: str(value) for name, value in _headers(fields, "response").items()},
        error=str(fields.get("error") or ""),
        stream=str(fields.get("stream") or ""),
        took=note.at - asked_at if isinstance(asked_at, int | float) else 0.0,
    )
