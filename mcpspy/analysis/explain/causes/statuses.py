"""HTTP requests that were refused with a status that names the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import (
    about,
    accepts_messages,
    exchanges,
    is_overcome,
    said,
    side_of,
    who_refused,
)
from mcpspy.analysis.explain.causes.requests import has_fixed_form
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import JSON
from mcpspy.core.protocol.spec import CLIENT, SERVER

_TYPE = re.compile(
    r"(?i)(?:unsupported|invalid|unexpected|wrong|bad)\b.{0,20}\b(?:content|media)[- ]?type"
    r"|content[- ]type .{0,40}(?:not supported|unsupported|must be|expected)"
)
"""A body of another type, which some servers refuse with another status than 415."""

STREAM_SILENCE = 2.0
"""Seconds after which a status of a gateway means that it waited for bytes, and not that the server
is down.
"""


class _Status(NamedTuple):
    what: str
    """The act of the refuser."""
    next_step: str
    side: str
    """The origin of the mistake; empty if it is the side that refused."""
    detail: str = ""
    """The header of the request, or with a colon before it of the response, with details; `took`
    for the duration.
    """


_OPEN = "open"
"""The side of a row that the recording does not decide."""

STATUSES = {
    406: _Status(
        "does not accept the request's Accept header",
        "send Accept: application/json, text/event-stream with each POST, notifications too",
        CLIENT,
        "Accept",
    ),
    407: _Status(
        "wants the proxy's own sign-in",
        "give what connects from here the name and password of this proxy (HTTPS_PROXY), or exempt the address (NO_PROXY)",
        "environment",
    ),
    408: _Status(
        "waited too long for the request",
        "send the whole body at once; look for a proxy that holds it back",
        CLIENT,
    ),
    409: _Status(
        "has a stream for this session already",
        "end the earlier GET stream, or let the server accept a new one in its place",
        _OPEN,
    ),
    411: _Status("wants a Content-Length", "send the body with Content-Length", CLIENT),
    413: _Status(
        "allows no request as large as this one",
        "raise the limit of the server (Express: express.json({ limit }), 100 kB by default) or of the proxy (nginx: "
        "client_max_body_size), or send less",
        _OPEN,
        "Content-Length",
    ),
    414: _Status("allows no URL as long as this one", "put the data into the body", CLIENT),
    415: _Status(
        "does not accept the request's Content-Type",
        "send Content-Type: application/json",
        CLIENT,
        "Content-Type",
    ),
    426: _Status("wants another protocol", "use the URL and scheme that it names", ""),
    429: _Status(
        "limits the rate of requests",
        "wait for the time in Retry-After, and send fewer requests",
        _OPEN,
        ":Retry-After",
    ),
    431: _Status(
        "allows no headers as large as these",
        "send fewer or shorter headers: tokens and cookies grow",
        CLIENT,
    ),
    501: _Status("does not know this method of HTTP", "check that the URL is that of an MCP endpoint", ""),
    502: _Status(
        "got no answer from the server behind it",
        "look whether the server behind the proxy runs, and into its log",
        _OPEN,
        "took",
    ),
    520: _Status(
        "got an answer from the server behind it that it does not understand, or none",
        "look into the log of the server behind the proxy at this time: it ended the connection, or sent headers "
        "that are too large or not of HTTP",
        SERVER,
    ),
    521: _Status(
        "could not connect to the server behind it, which refused the connection",
        "look whether the server behind the proxy runs, and whether its firewall lets the addresses of the proxy pass",
        SERVER,
    ),
    **dict.fromkeys(
        (522, 523),
        _Status(
            "could not reach the server behind it",
            "look whether the server behind the proxy runs, whether its address in DNS is right, and whether a firewall "
            "lets the addresses of the proxy pass",
            "environment",
            "took",
        ),
    ),
    **dict.fromkeys(
        (525, 526),
        _Status(
            "could not make a TLS connection to the server behind it",
            "give the server behind the proxy a valid certificate for this name, or change how the proxy connects to it "
            "(Cloudflare: SSL/TLS mode)",
            "proxy",
        ),
    ),
    530: _Status(
        "does not reach the server behind it",
        "look whether the tunnel to the server runs (Cloudflare: error 1033 is a cloudflared that is not connected, 1016 a "
        "name that does not resolve)",
        _OPEN,
    ),
    503: _Status(
        "is not available",
        "look whether the server runs and is not overloaded; Retry-After has the time to try again",
        _OPEN,
        ":Retry-After",
    ),
    504: _Status(
        "gave up the server behind it",
        "raise the proxy's timeout (nginx: proxy_read_timeout), or let the server answer as an "
        "event stream and report progress: it may still work",
        "proxy",
        "took",
    ),
    524: _Status(
        "gave up the server behind it",
        "let the server answer as an event stream and report progress: it may still work",
        "proxy",
        "took",
    ),
}
"""Statuses with a fixed meaning (RFC 9110, 15.5 and 15.6; RFC 6585; those from 520 on are Cloudflare's)."""

_GAVE_UP = _Status(
    "gave up its own work on the request",
    "look into the log of the server at this time, and raise its limit of time; the request had arrived as a whole",
    "",
    "took",
)
"""408 to a message that was recorded, which is sent as a whole."""

_NOT_IMPLEMENTED = _Status(
    "does not implement this request",
    "let the server answer a method that it does not have with a JSON-RPC error (-32601) and HTTP 200 or 404",
    "",
)
"""501 at an endpoint that answers other requests."""

_NEEDS_NO_WORK = (
    "look whether the server behind the proxy runs, and whether the proxy reaches it (its log at this time): this request "
    "needs no long work; if the server starts on demand, raise the proxy's timeout until it has started"
)
"""The next step if a proxy gave up a server at a request such as initialize."""

_TOO_LARGE = re.compile(
    r"(?i)\b(?:body|entity|payload|request) (?:is )?too large|PayloadTooLarge|\bexceed\w* .{0,20}(?:body|payload|request) (?:size|limit)"
)
_BEHIND = re.compile(r"(?i)\bupstream\b|\bno server is available|\bbackend\b")
"""The words of proxies (Envoy, HAProxy) that do not reach what is behind them."""


def _in_context(facts: Facts, exchange: RefusedExchange, words: str) -> _Status | None:
    """Return what a status means for a message that was sent as a whole, to an endpoint that may have worked."""
    status, row = exchange.status or 0, STATUSES.get(exchange.status or 0)
    if _TOO_LARGE.search(words):
        return STATUSES[413]
    if status == 503 and _BEHIND.search(words):
        return STATUSES[502]
    if status == 408 and exchange.asked:
        return _GAVE_UP
    if status == 501 and exchange.asked and facts.answered:
        return _NOT_IMPLEMENTED
    if status in (504, 524) and row is not None and has_fixed_form(exchange.asked):
        return row._replace(next_step=_NEEDS_NO_WORK, side=_OPEN)
    return row


def _detail(exchange: RefusedExchange, name: str) -> str:
    if name == "took" or (name and exchange.status == 503 and exchange.took >= 0.5):
        return f" after {duration(exchange.took)}" if exchange.took >= 0.5 else ""
    of_response = name.startswith(":")
    value = (exchange.response if of_response else exchange.request).get(name.lstrip(":").lower())
    if value is None:
        return "" if of_response or name in ("", "Content-Length") else f" (it has no {name})"
    return f" ({name.lstrip(':')}: {quote(value, 60)})"


def overcome(claim: Claim) -> Claim:
    """Return the claim; as an observation if the same requests succeeded later."""
    claim.is_observation = is_overcome(claim.symptoms)
    return claim


_TOO_MANY_SESSIONS = re.compile(
    r"(?i)(?:too many|max\w*|concurrent|limit|capacity).{0,60}\bsessions?\b|\bsessions?\b.{0,40}(?:limit|max|capacity)"
)
_ACCEPT = re.compile(r"(?i)\baccept headers?\b|\bmust accept\b")
"""The header that a server names with a status that is not 406."""

_END_SESSIONS = (
    "restart the server to end the sessions that are left over; let it end those that are idle, since most clients do not end "
    "them by DELETE, or make it stateless"
)


def _row(facts: Facts, exchange: RefusedExchange, words: str) -> _Status | None:
    """Return what a refusal means; None if neither its status nor its words have a fixed meaning."""
    row = STATUSES[415] if _TYPE.search(words) else _in_context(facts, exchange, words)
    accepted = exchange.request.get("accept", "")
    if (
        exchange.status == 400
        and _ACCEPT.search(words)
        and (accepted == "*/*" or not accepts_messages(exchange))
    ):
        row = STATUSES[406]
    if row is STATUSES[406] and not accepted and facts.http.gets:
        next_step = (
            f"{row.next_step}; a client of HTTP+SSE, which began with GET, need not: look whether the address to which it posts is "
            f"the one that its stream names"
        )
        return row._replace(next_step=next_step, side="")
    if row is STATUSES[406] and accepted == "*/*":
        next_step = f"{row.next_step}: */* lists neither; a proxy or gateway in front of mcpspy may have replaced the client's own header"
        return row._replace(next_step=next_step, side="")
    if row is STATUSES[415]:
        sent = exchange.request.get("content-type", "")
        # RFC 9110, 8.3.1: parameters do not belong to the type.
        if sent.partition(";")[0].strip().lower() == JSON:
            next_step = (
                "the type is right: let the server compare the media type without its parameters (charset)"
            )
            return row._replace(next_step=next_step, side=SERVER)
        if not sent and not exchange.has_token and facts.http.token_accepted_at is None:
            next_step = (
                f"{row.next_step}; if the server wants a token, let it answer 401 before it reads the body: clients begin the "
                f"sign-in there"
            )
            return row._replace(next_step=next_step, side="")
    if row is STATUSES[503] and _TOO_MANY_SESSIONS.search(words):
        return row._replace(
            what="has no room for another session", next_step=_END_SESSIONS, side=side_of(exchange)
        )
    if row is STATUSES[406] and accepts_messages(exchange):
        next_step = (
            "the request has the Accept header of MCP: something treats the endpoint as a page (content negotiation of "
            "a site or framework, a middleware, a CDN), or another media type is wanted; exempt its path from that"
        )
        return row._replace(next_step=next_step, side=side_of(exchange))
    if row is not None and exchange.status == 409 and exchange.method != "GET":
        return None  # A conflict about a message has no fixed meaning.
    if row is not None and row.side in ("", _OPEN):
        row = row._replace(side="" if row.side == _OPEN else side_of(exchange))
    is_gateway = exchange.method == "GET" and exchange.status in (502, 503, 504)
    if row is not None and is_gateway and exchange.took >= STREAM_SILENCE and facts.answered:
        what = (
            f"gave up the stream after {duration(exchange.took)}: no byte had come, and a server need "
            f"not send one"
        )
        next_step = (
            "let the proxy pass the response on at once, without buffering (nginx: proxy_buffering off), "
            "and with a long read timeout for this path; or let the server answer GET with 405"
        )
        return _Status(what, next_step, "proxy")
    return row


@cause(
    "http-status",
    "an HTTP request was refused with a status that names the reason",
    Level.SPECIFIC,
    rules="HTTP304",
    positive=(
        ex.list_answer(429, {}, {"retry-after": "30"}),
        ex.first_answer(406, "Not Acceptable. Supported types: text/html, text/markdown"),
        ex.session("@ http", ex.listed("a"), ex.call(3), ex.answered(408, "Request timed out")),
        ex.session("@ http", ex.listed("a"), ex.request("resources/list", 3), ex.answered(501)),
        ex.first_answer(504),
        ex.first_answer(503, "Maximum 9999 concurrent sessions allowed. Please try again later"),
        ex.first_answer(503, {}, {"server": "envoy", "content-type": "text/plain"}, "no healthy upstream"),
        ex.session("@ http", ex.listed("a"), ex.call(3), ex.answered(500, "request entity too large")),
        ex.first_answer(530, {}, {"server": "cloudflare"}, "error code: 530"),
    ),
    negative=(ex.list_answer(500), ex.list_answer(409, "no such state")),
)
def http_status(facts: Facts) -> Iterator[Claim]:
    """The status has a fixed meaning, and the refusal may say more."""
    told: set[tuple[int, str]] = set()
    for exchange, symptom in exchanges(facts, *range(400, 600)):
        words, status = said(exchange, symptom), exchange.status or 0
        if (row := _row(facts, exchange, words)) is None:
            continue
        # A limit or a failure behind a proxy concerns all requests alike.
        kind = "" if status in (429, 502, 503) else about(exchange)
        if (status, kind) in told:
            continue
        told.add((status, kind))
        same = [each for other, each in exchanges(facts, status) if kind in ("", about(other))]
        what = exchange.asked or f"{exchange.method} {exchange.path}"
        title = f"{what}: {who_refused(exchange)} {row.what}{_detail(exchange, row.detail)}: HTTP {status}"
        title += f", {quote(words)}" if words else ""
        symptoms = [*same, *(facts.violations("HTTP304") if status == 406 else [])]
        yield overcome(Claim(title, row.next_step, symptoms, side=row.side))
