"""HTTP requests that a server or proxy refused: by status and text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.connection import REFUSED_BY_MCPSPY
from mcpspy.analysis.explain.causes.definition import Definition, FailureRow, define
from mcpspy.analysis.explain.causes.exchanges import about, alike, exchanges, is_overcome, said, who_refused
from mcpspy.analysis.explain.claims import Claim, Level
from mcpspy.analysis.explain.evidence import clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, RefusedExchange
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import EVENTS, JSON
from mcpspy.core.protocol.refusal import ACCEPTED
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State

_HOST = re.compile(
    r"(?i)\b(?:invalid|disallowed|forbidden|unknown|bad|unexpected|untrusted)\b.{0,20}\bhost\b|\bhost\b.{0,30}\b(?:not (?:allowed|trusted|permitted)|is not|invalid|mismatch|blocked)|misdirected|DNS rebinding|allowed[_ ]?hosts"
)
_ORIGIN = re.compile(
    r"(?i)\b(?:invalid|disallowed|forbidden|bad)\b.{0,20}\borigin\b|\borigin\b.{0,30}\b(?:not (?:allowed|trusted|permitted)|invalid|blocked)"
)
"""The checks against DNS rebinding of the SDKs, and of Starlette, Django, Rails and Vite."""

_VERSION = re.compile(
    r"(?i)(?:protocol|unsupported|mcp)[ -]?version|version .{0,30}(?:not supported|unsupported)|unsupported protocol"
)
"""The SDKs, which check MCP-Protocol-Version."""

_TYPE = re.compile(
    r"(?i)(?:unsupported|invalid|unexpected|wrong|bad)\b.{0,20}\b(?:content|media)[- ]?type|content[- ]type .{0,40}(?:not supported|unsupported|must be|expected)"
)
"""A body of another type, which some servers refuse with another status than 415."""

STREAM_SILENCE = 2.0
"""Seconds after which a status of a gateway means that it waited for bytes, and not that the server is down."""

_BOT = re.compile(
    r"(?i)just a moment|attention required|captcha|are you (?:a )?human|checking your browser|bot (?:detection|protection)|access denied.{0,40}(?:akamai|reference)|enable javascript and cookies|cloudflare"
)
"""The pages of Cloudflare and Akamai for browsers."""

_LOGIN = re.compile(r"(?i)\b(?:log ?in|sign ?in|sso|single sign|authenticate)\b")


def host_refused(facts: Facts) -> Iterator[Claim]:
    """SDKs, frameworks and mcpspy accept only known names, against DNS rebinding; a proxy in front may change Host."""
    for exchange, symptom in exchanges(facts):
        for text in (exchange.error, exchange.words):
            if found := REFUSED_BY_MCPSPY.search(text):
                name = re.sub(r"^\w+://", "", found[2]).partition(":")[0]
                title = f"mcpspy refused the client: {quote(text)}"
                next_step = f"start mcpspy http with --allow-host {quote(name)}, if clients shall reach it under this name"
                yield Claim(title=title, next_step=next_step, symptoms=[symptom], side="configuration")
                return
    for exchange, symptom in exchanges(facts, 400, 403, 421):
        words = said(exchange, symptom)
        is_host, is_origin = bool(_HOST.search(words)), bool(_ORIGIN.search(words))
        if exchange.status == 403 and "origin" in exchange.request and not is_host:
            # A short 403 with an Origin, and no word of signing in: the check of the origin, which gives no reason.
            is_short = len(words) < 40 and exchange.media_type != "text/html"
            is_origin = is_origin or (is_short and "www-authenticate" not in exchange.response)
        if exchange.status != 421 and not is_origin and not is_host:
            continue
        name, value = "Host", urlsplit(facts.header.upstream or "").netloc
        proxy = ", or let the proxy in front of it keep the Host of the client (nginx: proxy_set_header Host $http_host)"
        if is_origin:
            name, value, proxy = "Origin", exchange.request.get("origin", ""), ""
        title = f"{who_refused(exchange)} refuses the {name} {quote(value, 80)} (HTTP {exchange.status}): {quote(words)}"
        next_step = f"add the name to the server's allowed {name.lower()}s{proxy}"
        yield Claim(title=title, next_step=next_step, symptoms=alike(facts, exchange), side="configuration")
        break


_PAGE = {"origin": "http://localhost:6274", "access-control-request-headers": "mcp-protocol-version"}


def preflight_refused(facts: Facts) -> Iterator[Claim]:
    """Before a request with headers of MCP, a browser asks with OPTIONS whether the page may send them."""
    refused = [each for each in facts.of(RefusedExchange) if each.method == "OPTIONS"]
    symptoms = [*refused, *facts.of(ClientLeft)]
    for preflight in facts.http.preflights:
        if (why := _preflight_flaw(preflight)) is None or (not symptoms and facts.client.messages):
            continue
        headers = preflight.request
        asked = headers.get("access-control-request-headers", "")
        asked_for = quote(asked, 120) or headers.get("access-control-request-method", "")
        title = f"the preflight of the page at {quote(headers.get('origin', ''), 60)} (OPTIONS {preflight.path}) was answered {why}; it asked for {asked_for}"
        next_step = f"let the server answer OPTIONS with 204 and Access-Control-Allow-Origin, -Allow-Methods and -Allow-Headers: {quote(asked, 120)}"
        symptoms = [*symptoms] or [preflight]
        lines = [evidence(preflight.place, f"{preflight.line}, asked for {asked}")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=SERVER)
        break


def _preflight_flaw(preflight: RefusedExchange) -> str | None:
    """Return what is wrong with the answer to a preflight; None if the browser goes ahead."""
    if preflight.status is None or preflight.status >= 300:
        return f"HTTP {preflight.status}"
    names = preflight.request.get("access-control-request-headers", "").replace(",", " ").split()
    allowed = preflight.response.get("access-control-allow-headers", "").lower()
    missing = [name for name in names if allowed.strip() != "*" and name.lower() not in allowed]
    if "access-control-allow-origin" not in preflight.response:
        missing = missing or ["Access-Control-Allow-Origin"]
    return f"without {', '.join(missing)}" if missing else None


def version_header(facts: Facts) -> Iterator[Claim]:
    """Some servers refuse a revision that they do not know, in place of answering initialize with one that they do."""
    for exchange, symptom in exchanges(facts, 400, 403, 406, 426):
        words = said(exchange, symptom)
        if not _VERSION.search(words) or exchange.asked == "server/discover":
            continue
        version, agreed = exchange.request.get("mcp-protocol-version"), facts.session.agreed_revision
        where = f"in the header of {about(exchange)} ({quote(version)})" if version else "in initialize"
        title = f"the server refuses the revision {where}: {quote(words)}"
        next_step = "let the client send the revision that the server answered to initialize, or update the server's SDK"
        side = SERVER if exchange.asked == "initialize" else ""
        if version and agreed is not None and version != agreed:
            title = f"the client sends the revision {quote(version)} in the header of {about(exchange)}, although the server had answered initialize with {quote(agreed)}: {quote(words)}"
            side = CLIENT
        same = exchanges(facts, exchange.status or 0)
        symptoms = [each for other, each in same if other.request.get("mcp-protocol-version") == version]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side)
        break


def redirect_not_followed(facts: Facts) -> Iterator[Claim]:
    """Frameworks redirect for a slash, proxies to https, gateways to a sign-in; not every client repeats its POST there."""
    redirects = [note.fields for note, _ in facts.notes.get("redirect", [])]
    noted = {fields.get("http"): fields.get("location") for fields in redirects}
    old = urlsplit(facts.header.upstream or "")
    for failed in facts.failed(State.REDIRECTED):
        location, status, path = "", "3xx", old.path
        if (exchange := failed.refusal) is not None:
            location = str(noted.get(exchange.number) or exchange.response.get("location", ""))
            status, path = str(exchange.status), exchange.path
        new = urlsplit(location)
        title = f"{failed.about} was redirected ({status} → {quote(location or failed.why, 100)}), and the client did not follow"
        next_step = f"use the URL {quote(location, 100)} in the client's configuration"
        if _LOGIN.search(new.path):
            title += ": it is a page for signing in"
            next_step = "the gateway wants a browser's sign-in: give the client a token (Authorization), or let the gateway answer 401"
        elif old.scheme == "https" and new.scheme == "http":
            title += ": the server behind the proxy does not know that it is reached by https"
            next_step = "let the server trust the proxy's X-Forwarded-Proto (uvicorn --proxy-headers --forwarded-allow-ips), or use the URL with the slash at once"
        elif new.path.rstrip("/") == path.rstrip("/") and new.path != old.path:
            next_step += " (with the slash as the server wants it)"
        symptoms = [failed, *facts.violations("HTTP307")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side="configuration")


def _is_bot_wall(facts: Facts, exchange: RefusedExchange) -> bool:
    """Return whether a page for browsers answered, or a proxy with 403 and no word of signing in."""
    is_page = exchange.media_type.startswith("text/html") and _BOT.search(exchange.words)
    is_edge = exchange.status == 403 and who_refused(exchange) != "the server" and exchange.media_type != JSON
    is_edge = is_edge and "www-authenticate" not in exchange.response
    return bool(is_page or is_edge or "cf-mitigated" in exchange.response)


def _is_of_mcp(facts: Facts, exchange: RefusedExchange) -> bool:
    """Return False for a metadata address, and for a GET for a stream that a server refuses without a word."""
    is_silent_get = exchange.method == "GET" and facts.server.messages and not exchange.words
    return ".well-known" not in exchange.path and not is_silent_get


class _Status(NamedTuple):
    what: str
    """The act of the refuser."""
    next_step: str
    side: str
    """The origin of the mistake."""
    detail: str = ""
    """The header of the request, or with a colon before it of the response, with details; `took` for the duration."""


_STATUSES = {
    406: _Status("does not accept the request's Accept header", "send Accept: application/json, text/event-stream with each POST, notifications too", CLIENT, "Accept"),
    408: _Status("waited too long for the request", "send the whole body at once; look for a proxy that holds it back", CLIENT),
    409: _Status("has a stream for this session already", "end the earlier GET stream, or let the server accept a new one in its place", SERVER),
    411: _Status("wants a Content-Length", "send the body with Content-Length", CLIENT),
    413: _Status("allows no request as large as this one", "raise the limit of the proxy (nginx: client_max_body_size) or of the server, or send less", "proxy", "Content-Length"),
    414: _Status("allows no URL as long as this one", "put the data into the body", CLIENT),
    415: _Status("does not accept the request's Content-Type", "send Content-Type: application/json", CLIENT, "Content-Type"),
    426: _Status("wants another protocol", "use the URL and scheme that it names", "configuration"),
    429: _Status("limits the rate of requests", "wait for the time in Retry-After, and send fewer requests", "", ":Retry-After"),
    431: _Status("allows no headers as large as these", "send fewer or shorter headers: tokens and cookies grow", CLIENT),
    501: _Status("does not know this method of HTTP", "check that the URL is that of an MCP endpoint", "configuration"),
    502: _Status("got no answer from the server behind it", "look whether the server behind the proxy runs, and into its log", SERVER, "took"),
    503: _Status("is not available", "look whether the server runs and is not overloaded; Retry-After has the time to try again", SERVER, ":Retry-After"),
    504: _Status("gave up the server behind it", "raise the proxy's timeout (nginx: proxy_read_timeout), or let the server answer as an event stream and report progress: it may still work", "proxy", "took"),
    524: _Status("gave up the server behind it", "let the server answer as an event stream and report progress: it may still work", "proxy", "took"),
}  # fmt: skip
"""Statuses with a fixed meaning (RFC 9110, 15.5 and 15.6; RFC 6585; 524 is Cloudflare's)."""


def _detail(exchange: RefusedExchange, name: str) -> str:
    if name == "took" or (name and exchange.status == 503 and exchange.took >= 0.5):
        return f" after {duration(exchange.took)}" if exchange.took >= 0.5 else ""
    of_response = name.startswith(":")
    value = (exchange.response if of_response else exchange.request).get(name.lstrip(":").lower())
    if value is None:
        return "" if of_response or not name or exchange.status == 413 else f" (it has no {name})"
    return f" ({name.lstrip(':')}: {quote(value, 60)})"


def _overcome(claim: Claim) -> Claim:
    """Return the claim; as an observation if the same requests succeeded later."""
    claim.is_observation = is_overcome(claim.symptoms)
    return claim


def _row(facts: Facts, exchange: RefusedExchange, words: str) -> _Status | None:
    """Return what a refusal means; None if neither its status nor its words have a fixed meaning."""
    row = _STATUSES[415] if _TYPE.search(words) else _STATUSES.get(exchange.status or 0)
    if row is _STATUSES[415]:
        sent = exchange.request.get("content-type", "")
        if (
            sent.partition(";")[0].strip().lower() == JSON
        ):  # RFC 9110, 8.3.1: parameters do not belong to the type.
            next_step = (
                "the type is right: let the server compare the media type without its parameters (charset)"
            )
            return row._replace(next_step=next_step, side=SERVER)
    is_gateway = exchange.method == "GET" and exchange.status in (502, 503, 504)
    if row is not None and is_gateway and exchange.took >= STREAM_SILENCE and facts.answered:
        what = f"gave up the stream after {duration(exchange.took)}: no byte had come, and a server need not send one"
        next_step = "let the proxy pass the response on at once, without buffering (nginx: proxy_buffering off), and with a long read timeout for this path; or let the server answer GET with 405"
        return _Status(what, next_step, "proxy")
    return row


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


def wrong_endpoint(facts: Facts) -> Iterator[Claim]:
    """The path, the port or the host is wrong: a page, a 404 or a 405 answers to the first POST."""
    for exchange, symptom in exchanges(facts, 404, 405, 410):
        is_other = exchange.method != "POST" or ".well-known" in exchange.path
        has_worked = exchange.asked != "initialize" and facts.server.messages > (exchange.media_type == JSON)
        if is_other or has_worked or "mcp-session-id" in exchange.request:
            continue
        hint, allow = "most servers use /mcp, those of 2024-11-05 use /sse", exchange.response.get("allow")
        if exchange.status == 405 and allow:
            hint = f"it allows {quote(allow, 40)}: with GET alone it may be an endpoint of the old HTTP+SSE transport"
        title = f"no MCP endpoint at {quote(facts.header.upstream or exchange.path)}: {who_refused(exchange)} answers HTTP {exchange.status}{clause(said(exchange, symptom))}"
        next_step = f"correct the path of the URL ({hint})"
        symptoms = [*alike(facts, exchange), *facts.violations("HTTP307")]
        yield _overcome(Claim(title=title, next_step=next_step, symptoms=symptoms, side="configuration"))
        break


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
        next_step = "check the URL: this is not the MCP endpoint, but another part of the web server"
        if _LOGIN.search(exchange.words):
            next_step = "this is a page for signing in: give the client a token, or let the gateway answer programs with 401"
        elif "html" not in kind:
            next_step = f"let the server answer with Content-Type application/json or text/event-stream, not {kind or 'none'}"
            side = SERVER
        title = f"{exchange.asked} was answered with {kind or 'no content type'} in place of a message (HTTP {exchange.status}): {quote(exchange.words)}"
        symptoms = [symptom, *facts.of(ClientLeft), *facts.violations("HTTP303")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side)


def notification_body(facts: Facts) -> Iterator[Claim]:
    """Notifications and responses are answered with 202 and no body; clients that parse each 200 as a message fail."""
    left = facts.of(ClientLeft)
    for violation in facts.violations("HTTP301", "HTTP302"):
        if left or facts.failed() or not facts.answered[CLIENT, "tools/call"]:
            title = violation.findings[0].message
            next_step = "let the server answer notifications with 202 Accepted and no body"
            yield Claim(title=title, next_step=next_step, symptoms=[violation, *left], side=SERVER)


def http_refused(facts: Facts) -> Iterator[Claim]:
    """The status and the text of the refusal are the best explanation there is."""
    for refusal in facts.of(RefusedExchange):
        title = f"{refusal.line}{clause(refusal.error or refusal.words)}"
        next_step = "look into the log of the server, or of the proxy in front of it, at this time"
        yield Claim(title=title, next_step=next_step, symptoms=[refusal])


define(__name__,
    Definition(host_refused, "host-refused", "the server refuses the Host or Origin that it receives", Level.EXACT,
               (ex.first_answer(421, "Invalid Host header"), ex.first_answer(403, "mcpspy: Host mcp.example.com is not this machine")),
               ex.first_answer(421, {":error": "cannot reach it"})),
    FailureRow("valid-message-unreadable", "the server calls a valid message unreadable", Level.EXACT,
        "Something before the MCP handler (a body parser, an adapter of a platform) has read the body of the request, so nothing is"
        " left for the transport: mcpspy could read the same message.", "the server cannot read {about}, although it is valid JSON: HTTP {status}, {words}",
        "something before the MCP handler has read the body: pass the parsed body on to the transport (handleRequest(req, res, req.body)), or do not parse it there",
        ex.session("@ http bare", ex.initialize(), ex.answered(400), ex.error("Parse error", -32700, None)), statuses=(400, 500), is_together=True,
        if_refused=lambda _, exchange: bool(exchange.asked),
        words=r"parse error|stream is not readable|body (?:already|has been)|unexpected end of (?:json|input)|invalid json"),
    Definition(preflight_refused, "preflight-refused", "a browser's preflight request was refused (CORS)", Level.EXACT,
               ex.session("@ http bare", ex.http("OPTIONS", 405, head=_PAGE)),
               ex.session("@ http bare", ex.http("OPTIONS", 204, head=_PAGE, access_control_allow_origin="*", access_control_allow_headers="*"))),
    Definition(version_header, "version-header", "the server refuses the revision in a header or in initialize", Level.EXACT,
               ex.notification_answer(400, "Unsupported protocol version"), ex.notification_answer(400)),
    Definition(redirect_not_followed, "redirect-not-followed", "a redirect was not followed", Level.EXACT,
               ex.list_answer(307, {}, {"location": "http://127.0.0.1:3001/mcp/"})),
    FailureRow("bot-wall", "a protection against bots answered in place of the server", Level.EXACT,
        "Cloudflare, Akamai and others answer programs with a page for browsers.", "{who} blocked {about} before it reached the server (HTTP {status}){quoted}",
        "allow this client (User-Agent) and the path of the endpoint in the rules of this protection against bots; it is not about signing in",
        ex.first_answer(403, {}, {"cf-mitigated": "challenge", "content-type": "text/html"}, "Just a moment..."), ex.first_answer(403, "Forbidden"), side="proxy",
        is_together=True, if_refused=_is_bot_wall),
    Definition(http_status, "http-status", "an HTTP request was refused with a status that names the reason", Level.SPECIFIC,
               ex.list_answer(429, {}, {"retry-after": "30"}), ex.list_answer(500)),
    Definition(wrong_endpoint, "wrong-endpoint", "the URL is not that of an MCP endpoint", Level.SPECIFIC, ex.first_answer(404), ex.list_answer(404)),
    Definition(page_in_place, "page-in-place-of-message", "a page or another body came in place of a message", Level.SPECIFIC,
               ex.first_answer(200, {}, {"content-type": "text/html"}, "<title>Sign in</title>")),
    Definition(notification_body, "notification-body", "a notification was not answered with 202", Level.SPECIFIC, ex.notification_answer(200),
               ex.notification_answer(202)),
    FailureRow("server-error", "the server failed at a request", Level.GENERAL, "An HTTP status of 500 and more without a message: an exception that nothing caught.",
        "{about}: {who} failed with HTTP {status}{quoted}", "look into the server's own log at this time: an exception is there",
        ex.list_answer(500, "Internal Server Error"), ex.list_answer(429), statuses=tuple(status for status in range(500, 1000) if status not in _STATUSES)),
    FailureRow("request-refused", "the server refused an HTTP request", Level.GENERAL, "A status of 400 to 499, with the text of the refusal.",
        "{about}: {who} refused it with HTTP {status}{quoted}",
        ((r"not (?:been )?initiali[sz]ed|initiali[sz]e first|before initiali", "the client must send initialize first, and then notifications/initialized with the session id"),
         ("", "correct what the refusal names; signing in would not help")), ex.list_answer(400, "Bad Request: no such list"), ex.list_answer(500), side="",
        if_refused=_is_of_mcp, statuses=tuple(status for status in range(400, 500) if status not in (401, 403, *_STATUSES))),
    Definition(http_refused, "http-refused", "an HTTP request was refused", Level.QUOTE, ex.session("@ http", ex.call(), ex.done(), ex.http("PUT", 304, head={}))),
)  # fmt: skip
