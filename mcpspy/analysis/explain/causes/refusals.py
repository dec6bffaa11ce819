"""HTTP requests that a server or proxy refused: by status and text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from mcpspy.analysis.explain.causes.connection import exchanges, is_overcome
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, RefusedExchange, Symptom
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import EVENTS, JSON
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State

_HOST = re.compile(
    r"(?i)\b(?:invalid|disallowed|forbidden|unknown|bad|unexpected|untrusted)\b.{0,20}\bhost\b|\bhost\b.{0,30}\b(?:not (?:allowed|trusted|permitted)|is not|invalid|mismatch|blocked)|misdirected|DNS rebinding|allowed[_ ]?hosts"
)
_ORIGIN = re.compile(
    r"(?i)\b(?:invalid|disallowed|forbidden|bad)\b.{0,20}\borigin\b|\borigin\b.{0,30}\b(?:not (?:allowed|trusted|permitted)|invalid|blocked)"
)
SESSION = re.compile(r"(?i)session")
_VERSION = re.compile(
    r"(?i)(?:protocol|unsupported|mcp)[ -]?version|version .{0,30}(?:not supported|unsupported)|unsupported protocol"
)
_INITIALIZED = re.compile(r"(?i)not (?:been )?initiali[sz]ed|initiali[sz]e first|before initiali")
_TYPE = re.compile(
    r"(?i)(?:unsupported|invalid|unexpected|wrong|bad)\b.{0,20}\b(?:content|media)[- ]?type|content[- ]type .{0,40}(?:not supported|unsupported|must be|expected)"
)
STREAM_SILENCE = 2.0
"""Seconds after which a status of a gateway means that it waited for bytes, and not that the server is down."""

UNSUPPORTED_TYPE = 415
"""The status for a body of another type, which some servers only say in words."""

_BOT = re.compile(
    r"(?i)just a moment|attention required|captcha|are you (?:a )?human|checking your browser|bot (?:detection|protection)|access denied.{0,40}(?:akamai|reference)|enable javascript and cookies|cloudflare"
)
_LOGIN = re.compile(r"(?i)\b(?:log ?in|sign ?in|sso|single sign|authenticate)\b")


def refused_with(*statuses: int, facts: Facts) -> Iterator[tuple[RefusedExchange, Symptom]]:
    for exchange, symptom in exchanges(facts):
        if exchange.status in statuses and not exchange.error:
            yield exchange, symptom


def who_refused(exchange: RefusedExchange) -> str:
    """Return who refused: a proxy that names itself, or the server."""
    server = exchange.response.get("server", "")
    if re.match(
        r"(?i)nginx|cloudflare|haproxy|envoy|traefik|caddy|awselb|akamai|varnish|apache|gws|vercel|istio|openresty",
        server,
    ):
        return f"the proxy {quote(server, 40)}"
    return "the server"


def said_by(exchange: RefusedExchange, symptom: Symptom) -> str:
    words = symptom.words if isinstance(symptom, FailedRequest) and symptom.words else exchange.words
    return words or exchange.words


def same_status(facts: Facts, first: RefusedExchange) -> list[Symptom]:
    """Return all symptoms of refusals with the same status."""
    return [
        symptom
        for exchange, symptom in exchanges(facts)
        if exchange.status == first.status and not exchange.error
    ]


@cause(
    "host-refused",
    "the server refuses the Host or Origin that it receives",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 421 {} {} "Invalid Host header"
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 421 {":error":"cannot reach it"}
    """,
)
def host_refused(facts: Facts) -> Iterator[Claim]:
    """SDKs and web frameworks accept only known names, against DNS rebinding. A proxy in front changes Host, or the server is
    reached under a name that it does not know.
    """
    for exchange, symptom in refused_with(400, 403, 421, facts=facts):
        words = said_by(exchange, symptom)
        is_origin = _ORIGIN.search(words) is not None
        if (
            exchange.status == 403
            and "origin" in exchange.request
            and not is_origin
            and not _HOST.search(words)
        ):
            # A short 403 with an Origin, and no word of signing in: the check of the origin, which gives no reason.
            is_origin = (
                "www-authenticate" not in exchange.response
                and len(words) < 40
                and exchange.media_type != "text/html"
            )
        if exchange.status != 421 and not is_origin and not _HOST.search(words):
            continue
        name = "Origin" if is_origin else "Host"
        upstream = urlsplit(facts.header.upstream or "").netloc
        value = exchange.request.get("origin", "") if is_origin else upstream
        yield Claim(
            title=f"{who_refused(exchange)} refuses the {name} {quote(value, 80)} (HTTP {exchange.status}): {quote(words)}",
            next_step=f"add the name to the server's allowed {name.lower()}s"
            + (
                ""
                if is_origin
                else ", or let the proxy in front of it keep the Host of the client (nginx: proxy_set_header Host $http_host)"
            ),
            symptoms=same_status(facts, exchange),
            side="configuration",
        )
        break


@cause(
    "valid-message-unreadable",
    "the server calls a valid message unreadable",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 400
        << {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def valid_message_unreadable(facts: Facts) -> Iterator[Claim]:
    """Something before the MCP handler (a body parser, an adapter of a platform) has read the body of the request, so nothing
    is left for the transport: mcpspy could read the same message.
    """
    for exchange, symptom in refused_with(400, 500, facts=facts):
        words = said_by(exchange, symptom)
        if exchange.asked and re.search(
            r"(?i)parse error|stream is not readable|body (?:already|has been)|unexpected end of (?:json|input)|invalid json",
            words,
        ):
            yield Claim(
                title=f"the server cannot read {exchange.asked}, although it is valid JSON: HTTP {exchange.status}, {quote(words)}",
                next_step="something before the MCP handler has read the body: pass the parsed body on to the transport (handleRequest(req, res, req.body)), or do not parse it there",
                symptoms=same_status(facts, exchange),
                side=SERVER,
            )
            break


@cause(
    "preflight-refused",
    "a browser's preflight request was refused (CORS)",
    level=Level.EXACT,
    positive="""
        @ http bare
        * http {"http":50,"method":"OPTIONS","path":"/mcp","status":405,"request":{"origin":"http://localhost:6274","access-control-request-headers":"mcp-protocol-version"},"response":{}}
        * http-end {"http":50}
    """,
    negative="""
        @ http bare
        * http {"http":50,"method":"OPTIONS","path":"/mcp","status":204,"request":{"origin":"http://localhost:6274","access-control-request-headers":"mcp-protocol-version"},"response":{"access-control-allow-origin":"*","access-control-allow-headers":"*"}}
        * http-end {"http":50}
    """,
)
def preflight_refused(facts: Facts) -> Iterator[Claim]:
    """Before a request with headers of MCP, a browser asks with OPTIONS whether the page may send them."""
    for preflight in facts.http.preflights:
        if (why := _preflight_flaw(preflight)) is None:
            continue
        refused = [each for each in facts.of(RefusedExchange) if each.method == "OPTIONS"]
        symptoms: list[Symptom] = [*refused, *facts.of(ClientLeft)]
        if not symptoms and facts.client.messages:
            continue
        asked = preflight.request.get("access-control-request-headers", "")
        origin = preflight.request.get("origin", "")
        yield Claim(
            title=f"the preflight of the page at {quote(origin, 60)} (OPTIONS {preflight.path}) was answered {why};"
            f" it asked for {quote(asked, 120) or preflight.request.get('access-control-request-method', '')}",
            next_step="let the server answer OPTIONS with 204 and Access-Control-Allow-Origin, -Allow-Methods and"
            f" -Allow-Headers: {quote(asked, 120)}",
            symptoms=symptoms or [preflight],
            evidence=[evidence(preflight.place, f"{preflight.line}, asked for {asked}")],
            side="server",
        )
        break


def _preflight_flaw(preflight: RefusedExchange) -> str | None:
    """Return what is wrong with the answer to a preflight; None if the browser goes ahead."""
    if preflight.status is None or preflight.status >= 300:
        return f"HTTP {preflight.status}"
    asked = preflight.request.get("access-control-request-headers", "")
    allowed = preflight.response.get("access-control-allow-headers", "").lower()
    names = [name.strip() for name in asked.split(",") if name.strip()]
    missing = [] if allowed.strip() == "*" else [name for name in names if name.lower() not in allowed]
    if missing:
        return f"without {', '.join(missing)}"
    return (
        None if "access-control-allow-origin" in preflight.response else "without Access-Control-Allow-Origin"
    )


@cause(
    "version-header",
    "the server refuses the revision in a header or in initialize",
    level=Level.EXACT,
    positive="""
        @ http
        > {"method":"notifications/x"}
        = 400 {} {} "Unsupported protocol version"
    """,
    negative="""
        @ http
        > {"method":"notifications/x"}
        = 400
    """,
)
def version_header(facts: Facts) -> Iterator[Claim]:
    """MCP-Protocol-Version names the revision that both sides agreed on. Some servers refuse revisions that they do not know,
    in place of answering initialize with one that they do.
    """
    for exchange, symptom in refused_with(400, 403, 406, 426, facts=facts):
        words = said_by(exchange, symptom)
        if not _VERSION.search(words) or exchange.asked == "server/discover":
            continue
        version = exchange.request.get("mcp-protocol-version", "")
        where = (
            f"in the header of {exchange.asked or exchange.method} ({quote(version)})"
            if version
            else "in initialize"
        )
        agreed = facts.session.agreed_revision
        is_another = bool(version) and agreed is not None and version != agreed
        yield Claim(
            title=f"the client sends the revision {quote(version)} in the header of {exchange.asked or exchange.method}, although"
            f" the server had answered initialize with {quote(agreed or '')}: {quote(words)}"
            if is_another
            else f"the server refuses the revision {where}: {quote(words)}",
            next_step="let the client send the revision that the server answered to initialize, or update the server's SDK",
            symptoms=[
                each
                for other, each in refused_with(exchange.status or 0, facts=facts)
                if other.request.get("mcp-protocol-version") == exchange.request.get("mcp-protocol-version")
            ],
            side=CLIENT if is_another else SERVER if exchange.asked == "initialize" else "",
        )
        break


@cause(
    "redirect-not-followed",
    "a redirect was not followed",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 307 {} {"location":"http://127.0.0.1:3001/mcp/"}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
    """,
)
def redirect_not_followed(facts: Facts) -> Iterator[Claim]:
    """Frameworks redirect to the URL with or without a slash, proxies to https, gateways to a page for signing in. Not every
    client repeats a POST at the new URL, and none its token at another origin.
    """
    redirects = {note.fields.get("http"): (note, place) for note, place in facts.notes.get("redirect", [])}
    for failed in facts.failed(State.REDIRECTED):
        exchange = failed.refusal
        location = exchange.response.get("location", "") if exchange is not None else ""
        status = exchange.status if exchange is not None else "3xx"
        old, new = urlsplit(facts.header.upstream or ""), urlsplit(location)
        noted = redirects.get(exchange.number if exchange is not None else None)
        if noted is not None:
            location = str(noted[0].fields.get("location") or location)
            new = urlsplit(location)
        title = f"{failed.about} was redirected ({status} → {quote(location or failed.why, 100)}), and the client did not follow"
        next_step = f"use the URL {quote(location, 100)} in the client's configuration"
        if _LOGIN.search(new.path):
            title += ": it is a page for signing in"
            next_step = "the gateway wants a browser's sign-in: give the client a token (Authorization), or let the gateway answer 401"
        elif old.scheme == "https" and new.scheme == "http":
            title += ": the server behind the proxy does not know that it is reached by https"
            next_step = "let the server trust the proxy's X-Forwarded-Proto (uvicorn --proxy-headers --forwarded-allow-ips), or use the URL with the slash at once"
        elif (
            new.path.rstrip("/") == (exchange.path if exchange is not None else old.path).rstrip("/")
            and new.path != old.path
        ):
            next_step += " (with the slash as the server wants it)"
        yield Claim(
            title=title,
            next_step=next_step,
            symptoms=[failed, *facts.violations("HTTP307")],
            side="configuration",
        )


@cause(
    "bot-wall",
    "a protection against bots answered in place of the server",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 403 {} {"server":"cloudflare","cf-mitigated":"challenge","content-type":"text/html"} "Just a moment..."
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 403 {} {} "Forbidden"
    """,
)
def bot_wall(facts: Facts) -> Iterator[Claim]:
    """Cloudflare, Akamai and others answer programs with a page for browsers."""
    for exchange, _ in exchanges(facts):
        is_page = exchange.media_type.startswith("text/html")
        is_edge = (
            exchange.status == 403 and who_refused(exchange) != "the server" and exchange.media_type != JSON
        )
        is_told = "www-authenticate" in exchange.response
        if (
            "cf-mitigated" in exchange.response
            or (is_page and _BOT.search(exchange.words))
            or (is_edge and not is_told)
        ):
            yield Claim(
                title=f"{who_refused(exchange)} blocked {exchange.asked or exchange.method} before it reached the server (HTTP {exchange.status}): {quote(exchange.words)}",
                next_step="allow this client (User-Agent) and the path of the endpoint in the rules of this protection against bots;"
                " it is not about signing in",
                symptoms=same_status(facts, exchange),
                side="proxy",
            )
            break


_PLAIN: dict[int, tuple[str, str, str]] = {
    406: ("does not accept the request's Accept header", "send Accept: application/json, text/event-stream with each POST, notifications too", CLIENT),
    408: ("waited too long for the request", "send the whole body at once; look for a proxy that holds it back", CLIENT),
    409: ("has a stream for this session already", "end the earlier GET stream, or let the server accept a new one in its place", SERVER),
    411: ("wants a Content-Length", "send the body with Content-Length", CLIENT),
    413: ("allows no request as large as this one", "raise the limit of the proxy (nginx: client_max_body_size) or of the server, or send less", "proxy"),
    414: ("allows no URL as long as this one", "put the data into the body", CLIENT),
    415: ("does not accept the request's Content-Type", "send Content-Type: application/json", CLIENT),
    426: ("wants another protocol", "use the URL and scheme that it names", "configuration"),
    429: ("limits the rate of requests", "wait for the time in Retry-After, and send fewer requests", ""),
    431: ("allows no headers as large as these", "send fewer or shorter headers: tokens and cookies grow", CLIENT),
    501: ("does not know this method of HTTP", "check that the URL is that of an MCP endpoint", "configuration"),
    502: ("got no answer from the server behind it", "look whether the server behind the proxy runs, and into its log", "server"),
    503: ("is not available", "look whether the server runs and is not overloaded; Retry-After has the time to try again", "server"),
    504: ("gave up the server behind it", "raise the proxy's timeout (nginx: proxy_read_timeout), or let the server answer as an event stream and report progress: it may still work", "proxy"),
    524: ("gave up the server behind it", "let the server answer as an event stream and report progress: it may still work", "proxy"),
}  # fmt: skip
"""Status → what the refuser does, the next step, and whose mistake it is (RFC 9110, 15.5 and 15.6)."""


@cause(
    "http-status",
    "an HTTP request was refused with a status that names the reason",
    level=Level.SPECIFIC,
    positive="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 429 {} {"retry-after":"30"}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 500
    """,
)
def http_status(facts: Facts) -> Iterator[Claim]:
    """The status has a fixed meaning, and the refusal may say more."""
    told: set[tuple[int | None, str]] = set()
    for exchange, symptom in exchanges(facts):
        words = said_by(exchange, symptom)
        meaning = UNSUPPORTED_TYPE if _TYPE.search(words) else exchange.status
        if exchange.error or meaning not in _PLAIN:
            continue
        kind = (
            exchange.status,
            "" if exchange.status in (429, 502, 503) else exchange.asked or exchange.method,
        )
        if kind in told:
            continue
        told.add(kind)
        same = [
            each
            for other, each in exchanges(facts)
            if other.status == exchange.status and kind[1] in ("", other.asked or other.method)
        ]
        what, next_step, side = _PLAIN[meaning]
        is_stream = (
            exchange.method == "GET"
            and exchange.status in (502, 503, 504)
            and exchange.took >= STREAM_SILENCE
            and bool(facts.answered)
        )
        if is_stream:
            what = f"gave up the stream after {duration(exchange.took)}: no byte had come, and a server need not send one"
            side = "proxy"
            next_step = (
                "let the proxy pass the response on at once, without buffering (nginx: proxy_buffering off), and with a long read"
                " timeout for this path; or let the server answer GET with 405"
            )
        about = exchange.asked or f"{exchange.method} {exchange.path}"
        detail = ""
        if exchange.status == 413 and (size := exchange.request.get("content-length")):
            detail = f" ({int(size):,} bytes)" if size.isdigit() else ""
        elif exchange.status == 406:
            accept = exchange.request.get("accept")
            detail = f" (Accept: {quote(accept, 60)})" if accept else " (it has none)"
        elif meaning == UNSUPPORTED_TYPE:
            sent = exchange.request.get("content-type", "none")
            detail = f" ({quote(sent, 60)})"
            if (
                sent.partition(";")[0].strip().lower() == JSON
            ):  # RFC 9110, 8.3.1: parameters do not belong to the type.
                next_step = "the type is right: let the server compare the media type without its parameters (charset)"
                side = SERVER
        elif exchange.status in (502, 503, 504, 524) and exchange.took >= 0.5 and not is_stream:
            detail = f" after {duration(exchange.took)}"
        elif exchange.status in (429, 503) and (wait := exchange.response.get("retry-after")):
            detail = f" (Retry-After: {quote(wait, 40)})"
        yield Claim(
            title=f"{about}: {who_refused(exchange)} {what}{detail}: HTTP {exchange.status}"
            + (f", {quote(words)}" if words else ""),
            next_step=next_step,
            symptoms=[*same, *(facts.violations("HTTP304") if exchange.status == 406 else [])],
            side=side,
            is_observation=is_overcome(same),
        )


@cause(
    "wrong-endpoint",
    "the URL is not that of an MCP endpoint",
    level=Level.SPECIFIC,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 404
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 404
    """,
)
def wrong_endpoint(facts: Facts) -> Iterator[Claim]:
    """The path, the port or the host is wrong: a page, a 404 or a 405 answers to the first POST."""
    for exchange, symptom in exchanges(facts):
        is_absent = exchange.status in (404, 405, 410) and "mcp-session-id" not in exchange.request
        if exchange.error or exchange.method != "POST" or not is_absent or ".well-known" in exchange.path:
            continue
        if (
            facts.server.messages - (1 if exchange.media_type == JSON else 0) > 0
            and exchange.asked != "initialize"
        ):
            continue
        said = f": {quote(said_by(exchange, symptom))}" if said_by(exchange, symptom) else ""
        hint = "most servers use /mcp, those of 2024-11-05 use /sse"
        if exchange.status == 405 and (allow := exchange.response.get("allow")):
            hint = f"it allows {quote(allow, 40)}: with GET alone it may be an endpoint of the old HTTP+SSE transport"
        yield Claim(
            title=f"no MCP endpoint at {quote(facts.header.upstream or exchange.path)}: {who_refused(exchange)} answers HTTP {exchange.status}{said}",
            next_step=f"correct the path of the URL ({hint})",
            symptoms=[*same_status(facts, exchange), *facts.violations("HTTP307")],
            side="configuration",
            is_observation=is_overcome(same_status(facts, exchange)),
        )
        break


@cause(
    "page-in-place-of-message",
    "a page or another body came in place of a message",
    level=Level.SPECIFIC,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 200 {} {"content-type":"text/html"} "<title>Sign in</title>"
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
    """,
)
def page_in_place(facts: Facts) -> Iterator[Claim]:
    """A proxy, a gateway for signing in or the web server of an application answers, not the MCP server."""
    for exchange, symptom in exchanges(facts):
        if exchange.status is None or exchange.status >= 300 or exchange.method != "POST" or exchange.error:
            continue
        if exchange.status in (202, 204):
            continue
        if exchange.media_type in (JSON, EVENTS) or exchange.request_number is None:
            continue
        next_step = "check the URL: this is not the MCP endpoint, but another part of the web server"
        side = "configuration"
        if _LOGIN.search(exchange.words):
            next_step = "this is a page for signing in: give the client a token, or let the gateway answer programs with 401"
        elif "html" not in exchange.media_type:
            next_step, side = (
                f"let the server answer with Content-Type application/json or text/event-stream, not {exchange.media_type or 'none'}",
                SERVER,
            )
        yield Claim(
            title=f"{exchange.asked} was answered with {exchange.media_type or 'no content type'} in place of a message (HTTP {exchange.status}): {quote(exchange.words)}",
            next_step=next_step,
            symptoms=[symptom, *facts.of(ClientLeft), *facts.violations("HTTP303")],
            side=side,
        )


@cause(
    "notification-body",
    "a notification was not answered with 202",
    level=Level.SPECIFIC,
    positive="""
        @ http
        > {"method":"notifications/x"}
        = 200
    """,
    negative="""
        @ http
        > {"method":"notifications/x"}
        = 202
    """,
)
def notification_body(facts: Facts) -> Iterator[Claim]:
    """The answer to a POST with notifications or responses is 202 without a body; clients that parse each 200 as a message
    fail over it.
    """
    for violation in facts.violations("HTTP301", "HTTP302"):
        left = facts.of(ClientLeft)
        if left or facts.failed() or not facts.answered["client", "tools/call"]:
            yield Claim(
                title=violation.findings[0].message,
                next_step="let the server answer notifications with 202 Accepted and no body",
                symptoms=[violation, *left],
                side=SERVER,
            )


@cause(
    "server-error",
    "the server failed at a request",
    level=Level.GENERAL,
    positive="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 500 {} {} "Internal Server Error"
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 429
    """,
)
def server_error(facts: Facts) -> Iterator[Claim]:
    """An HTTP status of 500 and more without a message: an exception that nothing caught."""
    for exchange, symptom in exchanges(facts):
        if exchange.status is None or exchange.status < 500 or exchange.status in _PLAIN or exchange.error:
            continue
        words = said_by(exchange, symptom)
        yield Claim(
            title=f"{exchange.asked or exchange.method}: {who_refused(exchange)} failed with HTTP {exchange.status}"
            + (f": {quote(words)}" if words else ""),
            next_step="look into the server's own log at this time: an exception is there",
            symptoms=[symptom],
            is_observation=is_overcome([symptom]),
            side=SERVER,
        )


@cause(
    "request-refused",
    "the server refused an HTTP request",
    level=Level.GENERAL,
    positive="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 400 {} {} "Bad Request: no such list"
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 500
    """,
)
def request_refused(facts: Facts) -> Iterator[Claim]:
    """A status of 400 to 499, with the text of the refusal."""
    for exchange, symptom in exchanges(facts):
        if (
            exchange.status is None
            or not 400 <= exchange.status < 500
            or exchange.status in _PLAIN
            or exchange.error
        ):
            continue
        if exchange.status in (401, 403) or ".well-known" in exchange.path:
            continue
        words = said_by(exchange, symptom)
        if exchange.method == "GET" and facts.server.messages and not exchange.words:
            continue
        is_early = _INITIALIZED.search(words)
        yield Claim(
            title=f"{exchange.asked or f'{exchange.method} {exchange.path}'}: {who_refused(exchange)} refused it with HTTP {exchange.status}"
            + (f": {quote(words)}" if words else ""),
            next_step="the client must send initialize first, and then notifications/initialized with the session id"
            if is_early
            else "correct what the refusal names; signing in would not help",
            symptoms=[symptom],
            is_observation=is_overcome([symptom]),
        )
