"""HTTP requests that were refused or not answered by a message: what status and body mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow, define
from mcpspy.analysis.explain.causes.exchanges import (
    LOGIN,
    NO_ROUTE,
    about,
    accepts_messages,
    alike,
    exchanges,
    is_overcome,
    is_stream,
    said,
    side_of,
    who_refused,
)
from mcpspy.analysis.explain.causes.http_sse import endpoints
from mcpspy.analysis.explain.causes.requests import has_fixed_form
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, RefusedExchange
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import EVENTS, JSON
from mcpspy.core.protocol.refusal import ACCEPTED
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


_STATUSES = {
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
        SERVER,
    ),
    411: _Status("wants a Content-Length", "send the body with Content-Length", CLIENT),
    413: _Status(
        "allows no request as large as this one",
        "raise the limit of the server (Express: express.json({ limit }), 100 kB by default) or of the proxy (nginx: "
        "client_max_body_size), or send less",
        "",
        "Content-Length",
    ),
    414: _Status("allows no URL as long as this one", "put the data into the body", CLIENT),
    415: _Status(
        "does not accept the request's Content-Type",
        "send Content-Type: application/json",
        CLIENT,
        "Content-Type",
    ),
    426: _Status("wants another protocol", "use the URL and scheme that it names", "configuration"),
    429: _Status(
        "limits the rate of requests",
        "wait for the time in Retry-After, and send fewer requests",
        "",
        ":Retry-After",
    ),
    431: _Status(
        "allows no headers as large as these",
        "send fewer or shorter headers: tokens and cookies grow",
        CLIENT,
    ),
    501: _Status(
        "does not know this method of HTTP", "check that the URL is that of an MCP endpoint", "configuration"
    ),
    502: _Status(
        "got no answer from the server behind it",
        "look whether the server behind the proxy runs, and into its log",
        SERVER,
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
        "proxy",
    ),
    503: _Status(
        "is not available",
        "look whether the server runs and is not overloaded; Retry-After has the time to try again",
        SERVER,
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

_OPEN = "open"
"""The side of a row that the recording does not decide."""


_TOO_LARGE = re.compile(
    r"(?i)\b(?:body|entity|payload|request) (?:is )?too large|PayloadTooLarge|\bexceed\w* .{0,20}(?:body|payload|request) (?:size|limit)"
)
_BEHIND = re.compile(r"(?i)\bupstream\b|\bno server is available|\bbackend\b")
"""The words of proxies (Envoy, HAProxy) that do not reach what is behind them."""


def _in_context(facts: Facts, exchange: RefusedExchange, words: str) -> _Status | None:
    """Return what a status means for a message that was sent as a whole, to an endpoint that may have worked."""
    status, row = exchange.status or 0, _STATUSES.get(exchange.status or 0)
    if _TOO_LARGE.search(words):
        return _STATUSES[413]
    if status == 503 and _BEHIND.search(words):
        return _STATUSES[502]
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


def _overcome(claim: Claim) -> Claim:
    """Return the claim; as an observation if the same requests succeeded later."""
    claim.is_observation = is_overcome(claim.symptoms)
    return claim


_TOO_MANY_SESSIONS = re.compile(
    r"(?i)(?:too many|max\w*|concurrent|limit|capacity).{0,60}\bsessions?\b|\bsessions?\b.{0,40}(?:limit|max|capacity)"
)
_END_SESSIONS = (
    "restart the server to end the sessions that are left over; let it end those that are idle, since most clients do not end "
    "them by DELETE, or make it stateless"
)


def _row(facts: Facts, exchange: RefusedExchange, words: str) -> _Status | None:
    """Return what a refusal means; None if neither its status nor its words have a fixed meaning."""
    row = _STATUSES[415] if _TYPE.search(words) else _in_context(facts, exchange, words)
    if row is _STATUSES[415]:
        sent = exchange.request.get("content-type", "")
        # RFC 9110, 8.3.1: parameters do not belong to the type.
        if sent.partition(";")[0].strip().lower() == JSON:
            next_step = (
                "the type is right: let the server compare the media type without its parameters (charset)"
            )
            return row._replace(next_step=next_step, side=SERVER)
    if row is _STATUSES[503] and _TOO_MANY_SESSIONS.search(words):
        return row._replace(
            what="has no room for another session", next_step=_END_SESSIONS, side=side_of(exchange)
        )
    if row is _STATUSES[406] and accepts_messages(exchange):
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
        yield _overcome(Claim(title=title, next_step=row.next_step, symptoms=symptoms, side=row.side))


def _paths(facts: Facts) -> set[str]:
    """Return the paths for messages: that of the endpoint, and the one that a stream of HTTP+SSE names."""
    urls = [
        facts.header.upstream or "",
        *(str(note.fields.get("data", "")) for note, _ in endpoints(facts)[:1]),
    ]
    return {urlsplit(url).path.rstrip("/") for url in urls}


@cause(
    "endpoint-gone",
    "the endpoint that had worked does not exist for a while",
    Level.EXACT,
    positive=ex.session("@ http", ex.listed("a"), ex.call(3), ex.answered(404, "404 page not found")),
    negative=(
        ex.session("@ http", ex.listed("a"), ex.call(3), ex.answered(404, "Session not found")),
        ex.first_answer(404),
        ex.session(
            "@ http",
            ex.listed("a"),
            ex.call(3),
            ex.answered(404, {":path": "/message"}, "Cannot POST /message"),
        ),
    ),
)
def endpoint_gone(facts: Facts) -> Iterator[Claim]:
    """A proxy that finds its servers by itself (Traefik, an ingress) answers 404 while a container is
    replaced. Clients take this 404 for a lost session.
    """
    for exchange, symptom in exchanges(facts, 404):
        words = said(exchange, symptom)
        is_page = bool(NO_ROUTE.search(words)) or exchange.media_type == "text/html"
        if exchange.path.rstrip("/") not in _paths(facts):
            continue  # `posted-elsewhere`
        if not is_page or not isinstance(symptom, FailedRequest) or symptom.is_first:
            continue
        title = (
            f"{about(exchange)}: the endpoint that had worked before answers HTTP 404 with a page that is not of MCP"
            f"{clause(words)}"
        )
        next_step = (
            "look whether the server was restarted at this time: a proxy in front of it that has no route meanwhile "
            "should answer 503 with Retry-After; clients take a 404 for a lost session"
        )
        yield _overcome(
            Claim(title=title, next_step=next_step, symptoms=alike(facts, exchange), side="proxy")
        )
        break


_AT_MESSAGE = ex.answered(404, {":path": "/message"}, {}, "Not Found")


@cause(
    "posted-elsewhere",
    "the client posts to another path than that of the endpoint",
    Level.EXACT,
    rules="HTTP307",
    positive=(
        ex.session("@ http bare", ex.initialize(), _AT_MESSAGE),
        ex.session("@ sse bare 2024-11-05", ex.initialize(), _AT_MESSAGE),
        ex.session("@ http", ex.listed("a"), ex.call(3), _AT_MESSAGE),
    ),
    negative=(
        ex.first_answer(404),
        ex.session("@ http bare", ex.initialize(), ex.answered(404, {":path": "/mcp/"})),
    ),
)
def posted_elsewhere(facts: Facts) -> Iterator[Claim]:
    """The URL in the client's configuration has another path, or the client makes the address of its messages
    itself, from the URL of the stream, in place of the one that the server names.
    """
    upstream = urlsplit(facts.header.upstream or "").path
    named = [(str(note.fields.get("data", "")), place) for note, place in endpoints(facts)[:1]]
    for exchange, symptom in exchanges(facts, 404, 405, 410):
        is_other = (
            exchange.method == "POST" and exchange.asked and exchange.path.rstrip("/") not in _paths(facts)
        )
        is_redirected = isinstance(symptom, FailedRequest) and symptom.redirect
        if not is_other or is_redirected or len(upstream) < 2:
            continue
        title = (
            f"the client posts {exchange.asked} to {quote(exchange.path, 100)}, where {who_refused(exchange)} answers "
            f"HTTP {exchange.status}: "
        )
        lines, side = [evidence(place, f"endpoint: {url}") for url, place in named], "configuration"
        next_step = f"use the path {quote(upstream, 100)} in the URL of the client's configuration"
        if named:
            title += f"the SSE stream names {quote(named[0][0], 100)} for messages"
            side = CLIENT
            next_step = (
                "let the client resolve this address against the URL of the stream (RFC 3986, 5.2): a path that "
                "begins with a slash replaces the whole path; look for an update of its SDK"
            )
        else:
            title += f"the endpoint is {quote(upstream, 100)}"
            if isinstance(symptom, FailedRequest) and not symptom.is_first:
                side, next_step = CLIENT, "let the client send each message to the URL of the endpoint"
            elif exchange.path.startswith(f"{upstream.rstrip('/')}/"):
                side = ""  # Some clients append the usual path to each URL.
                next_step += (
                    f"; if it has this path already, the client appends {quote(exchange.path[len(upstream.rstrip('/')) :], 40)} "
                    f"by itself: give it the URL without that, or correct the client"
                )
        same = [each for other, each in exchanges(facts, 404, 405, 410) if other.path == exchange.path]
        symptoms = [*same, *facts.violations("HTTP307")]
        yield _overcome(Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=side))
        break


_NO_APPLICATION = re.compile(
    r"(?i)\bapplication not found|no such app|\bdeployment[_ ](?:could not be|not)[_ ]found|\b(?:app|application) (?:is )?(?:not running|stopped)"
    r"|web ?site (?:is )?(?:not found|stopped)|there.s nothing here, yet|no server is available"
)
"""The words of platforms (Railway, Heroku, Vercel, Azure) for an address at which no application runs."""

_NOT_FOUND = re.compile(r"(?i)\bnot found\b|not allowed|does(?: not|n't) exist")
"""The words of frameworks for a path or a method that they do not have."""

_AWS_HAS_NO_ROUTE = re.compile(r"^Missing Authentication Token$")


@cause(
    "wrong-endpoint",
    "the URL is not that of an MCP endpoint",
    Level.SPECIFIC,
    rules="HTTP307",
    positive=(
        ex.first_answer(404),
        ex.first_answer(404, "Application not found"),
        ex.first_answer(403, ex.WITH_TOKEN, "Missing Authentication Token"),
        ex.first_answer(403, "Error 403 - This web app is stopped."),
    ),
    negative=ex.list_answer(404),
)
def wrong_endpoint(facts: Facts) -> Iterator[Claim]:
    """The path, the port or the host is wrong: a page, a 404 or a 405 answers to the first POST."""
    for exchange, symptom in exchanges(facts, 403, 404, 405, 410):
        words = said(exchange, symptom)
        is_other = exchange.method != "POST" or ".well-known" in exchange.path
        is_other |= exchange.status == 403 and not (
            _AWS_HAS_NO_ROUTE.search(words) or _NO_APPLICATION.search(words)
        )
        has_worked = exchange.asked != "initialize" and facts.server.messages > (exchange.media_type == JSON)
        has_worked |= isinstance(symptom, FailedRequest) and not symptom.is_first
        if is_other or has_worked or "mcp-session-id" in exchange.request:
            continue
        hint, allow = "most servers use /mcp, those of 2024-11-05 use /sse", exchange.response.get("allow")
        if exchange.status == 405 and allow:
            hint = (
                f"it allows {quote(allow, 40)}: with GET alone it may be an endpoint of the old HTTP+SSE "
                f"transport"
            )
        elif exchange.status == 405 and exchange.path.rstrip("/").endswith("/sse"):
            hint = (
                "/sse is the usual address of the old HTTP+SSE transport, which takes no POST: set the type of this "
                "server to sse, or leave /sse out for Streamable HTTP"
            )
        title = (
            f"no MCP endpoint at {quote(facts.header.upstream or exchange.path)}: "
            f"{who_refused(exchange)} answers HTTP {exchange.status}{clause(words)}"
        )
        next_step, side = f"correct the path of the URL ({hint})", "configuration"
        if exchange.status == 403:
            next_step = (
                f"{next_step}: Amazon API Gateway answers so for a path or a method that it does not have"
            )
        elif words and not NO_ROUTE.search(words) and not _NOT_FOUND.search(words):
            next_step = f"look what the refusal means; if it knows nothing of MCP, {next_step}"
        own = urlsplit(facts.header.upstream or "").path
        if exchange.path != own and exchange.path.rstrip("/") == own.rstrip("/"):
            title += f"; the client posts to {quote(exchange.path, 60)}, and the endpoint has the path {quote(own, 60)}"
            side = ""  # In its configuration, or by the client itself.
            next_step = (
                "use the path of the endpoint in the client's configuration, without or with a slash as it is there; if it has that "
                "already, the client changes it: let the client keep the URL, or the server answer at both paths"
            )
        if _NO_APPLICATION.search(words) or "x-railway-fallback" in exchange.response:
            side = ""
            next_step = (
                "look at the platform whether the application runs (it may not have started, or have been removed), and "
                "compare the host name of the URL with the one that it shows: no path of this address would answer"
            )
        symptoms = [*alike(facts, exchange), *facts.violations("HTTP307")]
        claim = _overcome(Claim(title=title, next_step=next_step, symptoms=symptoms, side=side))
        if any(note.at > exchange.at for note, _ in endpoints(facts)):
            # A client that tries Streamable HTTP first (2025-11-25, Transports: backwards compatibility).
            claim.title += ", and the client then used the old HTTP+SSE transport, as it should"
            claim.is_observation = True
        elif any(is_stream(other) and other.at > exchange.at for other, _ in exchanges(facts, 401, 403)):
            claim.title += ", and the client then asked for a stream, as the old HTTP+SSE transport begins"
            claim.is_observation = True  # What refused that is the reason.
        yield claim
        break


@cause(
    "page-in-place-of-message",
    "a page or another body came in place of a message",
    Level.SPECIFIC,
    rules="HTTP303",
    positive=(
        ex.first_answer(200, {}, {"content-type": "text/html"}, "<title>Sign in</title>"),
        ex.first_answer(200, {}, {"content-type": "text/plain"}, "OK"),
    ),
)
def page_in_place(facts: Facts) -> Iterator[Claim]:
    """A proxy, a gateway for signing in or the web server of an application answers, not the MCP server."""
    for exchange, symptom in exchanges(facts):
        is_success = exchange.status is not None and exchange.status < 300 and exchange.status not in ACCEPTED
        if not is_success or exchange.method != "POST" or exchange.error or exchange.request_number is None:
            continue
        kind = exchange.media_type
        if kind in (JSON, EVENTS):
            continue
        side = "configuration"
        next_step = (
            "check the URL, and what is in front of the server: a web page answered, and not the MCP endpoint"
        )
        if LOGIN.search(exchange.words):
            next_step = (
                "this is a page for signing in: give the client a token, or let the gateway answer "
                "programs with 401"
            )
        elif "html" not in kind:
            next_step = (
                f"let the server answer with Content-Type application/json or text/event-stream, not "
                f"{kind or 'none'}"
            )
            side = SERVER
            if exchange.words and not re.match(r"\s*[{\[]|(?:event|data|id|retry)?:", exchange.words):
                side = ""
                next_step = (
                    "check the URL: what answered may not be an MCP server; if it is, its log has the reason for this text, "
                    "in place of which a message belongs"
                )
        title = (
            f"{exchange.asked} was answered with {kind or 'no content type'} in place of a message (HTTP "
            f"{exchange.status}): {quote(exchange.words)}"
        )
        symptoms = [symptom, *facts.of(ClientLeft), *facts.violations("HTTP303")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side)


@cause(
    "notification-body",
    "a notification was not answered with 202",
    Level.SPECIFIC,
    rules="HTTP301 HTTP302",
    positive=ex.notification_answer(200),
    negative=ex.notification_answer(202),
)
def notification_body(facts: Facts) -> Iterator[Claim]:
    """Notifications and responses are answered with 202 and no body; clients that parse each 200 as
    a message fail.
    """
    left = facts.of(ClientLeft)
    for violation in facts.violations("HTTP301", "HTTP302"):
        if left or facts.failed() or not facts.answered[CLIENT, "tools/call"]:
            title, side = violation.findings[0].message, SERVER
            next_step = "let the server answer notifications with 202 Accepted and no body"
            if violation.code == "HTTP302":  # Its status is enough.
                title = f"a notification was answered with {title}"
                side = ""
                next_step = (
                    "let the client ignore the body and the type of a 202, whose status is enough; the server should "
                    "send none (2025-11-25, Transports)"
                )
            yield Claim(title=title, next_step=next_step, symptoms=[violation, *left], side=side)


define(
    __name__,
    FailureRow(
        "server-error",
        "the server failed at a request",
        Level.GENERAL,
        why="An HTTP status of 500 and more without a message: an exception that nothing caught.",
        title="{about}: {who} failed with HTTP {status}{quoted}",
        next_step="look into the server's own log at this time: an exception is there",
        statuses=tuple(status for status in range(500, 1000) if status not in _STATUSES),
        positive=ex.list_answer(500, "Internal Server Error"),
        negative=ex.list_answer(429),
    ),
)


def _is_of_mcp(facts: Facts, exchange: RefusedExchange) -> bool:
    """Return False for a metadata address, and for a GET for a stream that a server refuses without
    a word.
    """
    is_silent_get = exchange.method == "GET" and facts.server.messages and not exchange.words
    return ".well-known" not in exchange.path and not is_silent_get and exchange.method != "HEAD"


define(
    __name__,
    FailureRow(
        "notification-refused",
        "a notification is refused where requests are answered",
        Level.SPECIFIC,
        why="A handler that answers only requests leaves notifications to the framework, which answers 404 or 405.",
        title="{about} was refused with HTTP {status}, at the endpoint that had answered requests{quoted}",
        next_step="let the server answer each notification with 202 Accepted and no body, also one that it does nothing with",
        side=lambda _, exchange: SERVER if exchange is None else side_of(exchange),
        statuses=(400, 404, 405, 500, 501),
        if_refused=lambda facts, exchange: (
            exchange.asked.startswith("notifications/") and bool(facts.answered) and not exchange.words
        ),
        positive=ex.notification_answer(404, {"mcp-session-id": None}),
        negative=(ex.notification_answer(202), ex.first_answer(404)),
    ),
)


_OF_REFUSAL = ("HTTP205", "HTTP304", "HTTP307")
"""Findings on requests that are made of their refusals."""


_OF_USER = re.compile(
    r"(?i)\bapi[ _-]?key|\bx-[\w-]*(?:key|token|id)\b|\bquery (?:string|param)|\bpayment|\bbilling|\bsubscription|\btrial\b"
    r"|\bcredits?\b|\b(?:upgrade|update) (?:your|to a|the) (?:plan|client|app|version)|please (?:upgrade|update)"
    r"|\b(?:missing|required?)\b.{0,20}\b(?:authori[sz]ation|bearer|(?:access|auth) token|credentials)"
    r"|\b(?:missing|required?|invalid|unknown)\b.{0,20}\b(?:tenant|workspace|project|organi[sz]ation|account)\b"
)
"""Words of what a user has to give, such as a key, a parameter of the URL or a plan."""

_WANTS_TLS = r"HTTP request (?:was sent )?to (?:an )?HTTPS"
"""The words of Go's net/http and of nginx at a port for TLS."""


def _side_of_refusal(facts: Facts, exchange: RefusedExchange | None) -> str:
    """Return who refused a message without a flaw; else nothing is known."""
    words = next((said(each, symptom) for each, symptom in exchanges(facts) if each is exchange), "")
    if exchange is not None and (
        exchange.status == 402 or _OF_USER.search(words) or re.search(_WANTS_TLS, words)
    ):
        return "configuration"
    is_flawed = any(
        violation.side == CLIENT and violation.code not in _OF_REFUSAL
        for violation in facts.findings.values()
    )
    return side_of(exchange) if exchange is not None and exchange.asked and not is_flawed else ""


define(
    __name__,
    FailureRow(
        "request-refused",
        "the server refused an HTTP request",
        Level.GENERAL,
        why="A status of 400 to 499, with the text of the refusal.",
        title="{about}: {who} refused it with HTTP {status}{quoted}",
        next_step=(
            (
                r"not (?:been )?initiali[sz]ed|initiali[sz]e first|before initiali",
                (
                    "the client must send initialize first, and then notifications/initialized with the "
                    "session id"
                ),
            ),
            (_WANTS_TLS, "use https:// in place of http:// in the URL: this port speaks TLS"),
            (
                r"csrf|xsrf|page expired",
                (
                    "exempt the endpoint from the check of forms of its framework (Django: csrf_exempt; Laravel: except of its "
                    "middleware; Rails: skip_forgery_protection)"
                ),
            ),
            (
                r"\bapi[ _-]?key|\bauthori[sz]ation\b|\bbearer\b|\btoken\b|credentials",
                "give the client what the refusal names in the host's configuration; the server should answer 401 for that",
            ),
            ("", "correct what the refusal names; signing in would not help"),
        ),
        side=_side_of_refusal,
        statuses=tuple(
            status for status in range(400, 500) if status == 409 or status not in (401, 403, *_STATUSES)
        ),
        if_refused=_is_of_mcp,
        positive=(
            ex.list_answer(400, "Bad Request: no such list"),
            ex.first_answer(400, "Client sent an HTTP request to an HTTPS server."),
            ex.first_answer(400, "Missing API key. Provide the x-api-key header"),
            ex.first_answer(402),
            ex.first_answer(400, "bad request: missing required Authorization header"),
            ex.first_answer(419, "Page Expired"),
        ),
        negative=ex.list_answer(500),
    ),
)


@cause(
    "http-refused",
    "an HTTP request was refused",
    Level.QUOTE,
    positive=ex.session("@ http", ex.call(), ex.done(), ex.http("PUT", 304, head={})),
)
def http_refused(facts: Facts) -> Iterator[Claim]:
    """The status and the text of the refusal are the best explanation there is."""
    for refusal in facts.of(RefusedExchange):
        title = f"{refusal.line}{clause(refusal.error or refusal.words)}"
        next_step = "look into the log of the server, or of the proxy in front of it, at this time"
        yield Claim(title=title, next_step=next_step, symptoms=[refusal])
