"""HTTP requests that a server, or a proxy in front of it, refused: by status, and by what the refusal says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from mcpspy.analysis.explain.causes.connection import exchanges, is_overcome
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, HttpRefusal, Symptom
from mcpspy.core.counted import counted, duration
from mcpspy.core.protocol.http_headers import EVENTS, JSON, LOOPBACK
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State

_HOST = re.compile(
    r"(?i)\b(?:invalid|disallowed|forbidden|unknown|bad|unexpected|untrusted)\b.{0,20}\bhost\b|\bhost\b.{0,30}\b(?:not (?:allowed|trusted|permitted)|is not|invalid|mismatch|blocked)|misdirected|DNS rebinding|allowed[_ ]?hosts"
)
_ORIGIN = re.compile(
    r"(?i)\b(?:invalid|disallowed|forbidden|bad)\b.{0,20}\borigin\b|\borigin\b.{0,30}\b(?:not (?:allowed|trusted|permitted)|invalid|blocked)"
)
_SESSION = re.compile(r"(?i)session")
_VERSION = re.compile(
    r"(?i)(?:protocol|unsupported|mcp)[ -]?version|version .{0,30}(?:not supported|unsupported)|unsupported protocol"
)
_INITIALIZED = re.compile(r"(?i)not (?:been )?initiali[sz]ed|initiali[sz]e first|before initiali")
_BOT = re.compile(
    r"(?i)just a moment|attention required|captcha|are you (?:a )?human|checking your browser|bot (?:detection|protection)|access denied.{0,40}(?:akamai|reference)|enable javascript and cookies|cloudflare"
)
_LOGIN = re.compile(r"(?i)\b(?:log ?in|sign ?in|sso|single sign|authenticate)\b")


def _status(*statuses: int, facts: Facts) -> Iterator[tuple[HttpRefusal, Symptom]]:
    for exchange, symptom in exchanges(facts):
        if exchange.status in statuses and not exchange.error:
            yield exchange, symptom


def _who(exchange: HttpRefusal) -> str:
    """Return who refused: a proxy that names itself, or the server."""
    server = exchange.response.get("server", "")
    if re.match(
        r"(?i)nginx|cloudflare|haproxy|envoy|traefik|caddy|awselb|akamai|varnish|apache|gws|vercel|istio|openresty",
        server,
    ):
        return f"the proxy {quote(server, 40)}"
    return "the server"


def _said(exchange: HttpRefusal, symptom: Symptom) -> str:
    words = symptom.words if isinstance(symptom, FailedRequest) and symptom.words else exchange.words
    return words or exchange.words


def _same(facts: Facts, first: HttpRefusal) -> list[Symptom]:
    """Return all symptoms of refusals with the same status."""
    return [
        symptom
        for exchange, symptom in exchanges(facts)
        if exchange.status == first.status and not exchange.error
    ]


@cause("host-refused", "the server refuses the Host or Origin that it receives", level=Level.EXACT)
def host_refused(facts: Facts) -> Iterator[Claim]:
    """SDKs and web frameworks accept only known names, against DNS rebinding. A proxy in front changes Host, or the server is
    reached under a name that it does not know.
    """
    for exchange, symptom in _status(400, 403, 421, facts=facts):
        words = _said(exchange, symptom)
        is_origin = _ORIGIN.search(words) is not None
        if exchange.status == 403 and "origin" in exchange.request and not is_origin and not _HOST.search(words):
            # A short 403 with an Origin, and no word of signing in: the check of the origin, which says no more.
            is_origin = "www-authenticate" not in exchange.response and len(words) < 40 and exchange.media_type != "text/html"
        if exchange.status != 421 and not is_origin and not _HOST.search(words):
            continue
        name = "Origin" if is_origin else "Host"
        upstream = urlsplit(facts.header.upstream or "").netloc
        value = exchange.request.get("origin", "") if is_origin else upstream
        yield Claim(
            title=f"{_who(exchange)} refuses the {name} {quote(value, 80)} (HTTP {exchange.status}): {quote(words)}",
            next_step=f"add the name to the server's allowed {name.lower()}s"
            + (
                ""
                if is_origin
                else ", or let the proxy in front of it keep the Host of the client (nginx: proxy_set_header Host $http_host)"
            ),
            symptoms=_same(facts, exchange),
            side="configuration",
        )
        break


@cause(
    "sse-transport",
    "the client uses the old HTTP+SSE transport, and the server Streamable HTTP",
    level=Level.EXACT,
)
def sse_transport(facts: Facts) -> Iterator[Claim]:
    """A client of the transport of 2024-11-05 begins with GET; a server of Streamable HTTP wants a POST first."""
    if facts.client.methods["initialize"] or facts.client.methods["server/discover"]:
        return
    for refusal in facts.of(HttpRefusal):
        if (
            refusal.method == "GET"
            and EVENTS in refusal.request.get("accept", "")
            and ".well-known" not in refusal.path
        ):
            if refusal.status in (400, 404, 405, 406) and not facts.client.messages:
                said = f": {quote(refusal.words)}" if refusal.words else ""
                yield Claim(
                    title=f"the client opened a stream with GET before any POST (the old HTTP+SSE transport), and the server"
                    f" answered HTTP {refusal.status}{said}",
                    next_step="set the client's transport to Streamable HTTP (type: http), or give it the server's URL for SSE",
                    symptoms=[refusal, *facts.violations("ENV204", "ENV208", side=SERVER)],
                    side="configuration",
                )


@cause("sse-endpoint-lost", "the endpoint that the SSE stream names does not exist", level=Level.EXACT)
def sse_endpoint_lost(facts: Facts) -> Iterator[Claim]:
    """The `endpoint` event has a path that lacks the prefix under which a proxy or a mount serves the server."""
    events = [
        (note, place) for note, place in facts.notes.get("sse", []) if note.fields.get("event") == "endpoint"
    ]
    for note, place in events[:1]:
        named = str(note.fields.get("data", ""))
        host = urlsplit(named).hostname
        if (
            host is not None
            and host not in (urlsplit(facts.header.upstream or "").hostname, *LOOPBACK)
            and not facts.client.messages
        ):
            yield Claim(
                title=f"the SSE stream names an endpoint at another host, {quote(named, 100)}, and no message was ever posted here:"
                " the client cannot reach that host, or posts past this URL",
                next_step="let the server name its endpoint by path, or with the host that clients use (base URL, X-Forwarded-Host)",
                symptoms=[],
                evidence=[evidence(place, f"endpoint: {named}")],
                side="configuration",
            )
        for exchange, symptom in _status(404, 405, 400, 307, 308, facts=facts):
            is_new = not any(
                status is not None and status < 300
                for method, status in facts.http.statuses
                if method == "POST"
            )
            if (
                exchange.method == "POST"
                and is_new
                and urlsplit(named).path.rstrip("/") == exchange.path.rstrip("/")
            ):
                stream = urlsplit(facts.header.upstream or "").path
                yield Claim(
                    title=f"the SSE stream {quote(stream)} names the endpoint {quote(named, 100)}, and {_who(exchange)} answers HTTP {exchange.status} there",
                    next_step="tell the server its public path (root_path, mount path, base URL), so that the endpoint has the prefix;"
                    " or let the proxy serve this path too",
                    symptoms=_same(facts, exchange),
                    evidence=[evidence(place, f"endpoint: {named}")],
                    side="configuration",
                )
                break


@cause("session-not-assigned", "the server wants a session id, and none came with the result of initialize", level=Level.EXACT)
def session_not_assigned(facts: Facts) -> Iterator[Claim]:
    """A gateway or proxy between mcpspy and the server drops Mcp-Session-Id from the response, or the server forgets it."""
    if facts.http.session_ids or not facts.answered[CLIENT, "initialize"]:
        return
    for exchange, symptom in _status(400, 404, facts=facts):
        if exchange.method == "POST" and "mcp-session-id" not in exchange.request and _SESSION.search(_said(exchange, symptom)):
            yield Claim(
                title=f"the response to initialize had no Mcp-Session-Id, and {exchange.asked} without one is refused with HTTP {exchange.status}: {quote(_said(exchange, symptom))}",
                next_step="let the gateway or proxy behind mcpspy pass on the header Mcp-Session-Id of responses; ask the server directly to compare",
                symptoms=_same(facts, exchange),
                side="proxy",
            )
            break


@cause("valid-message-unreadable", "the server calls a valid message unreadable", level=Level.EXACT)
def valid_message_unreadable(facts: Facts) -> Iterator[Claim]:
    """Something before the MCP handler (a body parser, an adapter of a platform) has read the body of the request, so nothing
    is left for the transport: mcpspy could read the same message.
    """
    for exchange, symptom in _status(400, 500, facts=facts):
        words = _said(exchange, symptom)
        if exchange.asked and re.search(r"(?i)parse error|stream is not readable|body (?:already|has been)|unexpected end of (?:json|input)|invalid json", words):
            yield Claim(
                title=f"the server cannot read {exchange.asked}, although it is valid JSON: HTTP {exchange.status}, {quote(words)}",
                next_step="something before the MCP handler has read the body: pass the parsed body on to the transport (handleRequest(req, res, req.body)), or do not parse it there",
                symptoms=_same(facts, exchange),
                side=SERVER,
            )
            break


@cause(
    "session-header-missing", "the client does not send the session id that it was given", level=Level.EXACT
)
def session_header_missing(facts: Facts) -> Iterator[Claim]:
    """In a browser, a header is only readable if Access-Control-Expose-Headers names it. Proxies drop headers that they do not
    know. Some clients do not support sessions.
    """
    if not facts.http.session_ids:
        return
    first_at = min(facts.http.session_ids.values())
    for exchange, symptom in _status(400, 401, 403, 404, facts=facts):
        if exchange.at < first_at or "mcp-session-id" in exchange.request or exchange.asked == "initialize":
            continue
        if exchange.method not in ("POST", "GET", "DELETE") or ".well-known" in exchange.path:
            continue
        begin = facts.http.heads.get("initialize")
        origin = exchange.request.get("origin")
        is_hidden = (
            origin
            and begin is not None
            and "mcp-session-id" not in begin.response.get("access-control-expose-headers", "").lower()
        )
        if not is_hidden and not _SESSION.search(_said(exchange, symptom)):
            continue
        title = f"{exchange.asked or exchange.method} came without the session id that the server had assigned, and got HTTP {exchange.status}"
        next_step = "let the client send Mcp-Session-Id with each request after initialize; look whether a proxy between client and mcpspy drops it"
        if is_hidden:
            title += f": the page at {quote(origin or '', 60)} cannot read it, since Access-Control-Expose-Headers does not name Mcp-Session-Id"
            next_step = "let the server answer with Access-Control-Expose-Headers: Mcp-Session-Id (CORS)"
        yield Claim(
            title=title,
            next_step=next_step,
            symptoms=[*_same(facts, exchange), *facts.violations("HTTP202")],
            side="server" if is_hidden else "client",
        )
        break


@cause("preflight-refused", "a browser's preflight request was refused (CORS)", level=Level.EXACT)
def preflight_refused(facts: Facts) -> Iterator[Claim]:
    """Before a request with headers of MCP, a browser asks with OPTIONS whether the page may send them."""
    refused = [each for each in facts.of(HttpRefusal) if each.method == "OPTIONS"]
    preflight = refused[0] if refused else facts.http.heads.get("OPTIONS")
    if preflight is None:
        return
    asked = preflight.request.get("access-control-request-headers", "")
    allowed = preflight.response.get("access-control-allow-headers", "")
    is_refused = preflight.status is None or preflight.status >= 300
    missing = [
        name.strip()
        for name in asked.split(",")
        if name.strip() and name.strip().lower() not in allowed.lower()
    ]
    if (
        not is_refused
        and (allowed.strip() == "*" or not missing)
        and "access-control-allow-origin" in preflight.response
    ):
        return
    origin = preflight.request.get("origin", "")
    symptoms: list[Symptom] = [*refused, *facts.of(ClientLeft)]
    if not symptoms:
        if facts.client.messages:
            return
        symptoms = [preflight]
    why = (
        f"HTTP {preflight.status}"
        if is_refused
        else f"without {', '.join(missing) or 'Access-Control-Allow-Origin'}"
    )
    yield Claim(
        title=f"the preflight of the page at {quote(origin, 60)} (OPTIONS {preflight.path}) was answered {why};"
        f" it asked for {quote(asked, 120) or preflight.request.get('access-control-request-method', '')}",
        next_step=f"let the server answer OPTIONS with 204 and Access-Control-Allow-Origin, -Allow-Methods and -Allow-Headers: {quote(asked, 120)}",
        symptoms=symptoms,
        evidence=[evidence(preflight.place, f"{preflight.line}, asked for {asked}")],
        side="server",
    )


@cause("replicas", "several copies of the server do not share their sessions", level=Level.EXACT)
def replicas(facts: Facts) -> Iterator[Claim]:
    """A load balancer sends requests of one session to different copies; one that did not create the session refuses it."""
    for exchange, symptom in _status(400, 404, facts=facts):
        session_id = exchange.request.get("mcp-session-id")
        if session_id is None or exchange.asked in ("initialize", ""):
            continue
        accepted_after = facts.http.accepted.get(session_id, 0.0) > exchange.at
        assigned = facts.http.session_ids.get(session_id)
        is_new = (
            assigned is not None
            and exchange.at - assigned < 1.0
            and facts.http.accepted_count[session_id] <= 2
        )
        if accepted_after or (is_new and exchange.status == 404):
            yield Claim(
                title=f"the server refused the session with HTTP {exchange.status} in some requests and accepted it in others:"
                " several copies of it stand behind this address and do not share sessions"
                if accepted_after
                else f"the server assigned a session, and {duration(exchange.at - (assigned or 0.0))} later did not know it"
                f" (HTTP {exchange.status}): another copy of it answered, or it does not keep its sessions",
                next_step="route all requests with one Mcp-Session-Id to the same copy, share the sessions, or make the server stateless",
                symptoms=[each for other, each in exchanges(facts) if other.status == exchange.status],
                side="proxy",
                level=Level.EXACT if accepted_after else Level.SPECIFIC,
            )
            break


@cause("delete-refused", "the end of a session was refused", level=Level.EXACT)
def delete_refused(facts: Facts) -> Iterator[Claim]:
    """A client may end its session with DELETE. A server that does not allow it answers 405; nothing depends on it."""
    for refusal in facts.of(HttpRefusal):
        if refusal.method == "DELETE" and refusal.status is not None and refusal.status >= 400:
            yield Claim(
                title=f"DELETE at the end of the session was answered HTTP {refusal.status}; nothing depends on it",
                next_step="let the server answer 204, or 405 if clients may not end sessions",
                symptoms=[refusal],
                is_observation=True,
            )


@cause("initialize-with-session", "initialize was sent with the id of an old session", level=Level.EXACT)
def initialize_with_session(facts: Facts) -> Iterator[Claim]:
    """Initialize begins a session, so it carries no session id; a server looks the id up and refuses it."""
    for exchange, symptom in _status(400, 404, facts=facts):
        if exchange.asked == "initialize" and "mcp-session-id" in exchange.request:
            lost = [
                each
                for other, each in exchanges(facts)
                if other.status == exchange.status and "mcp-session-id" in other.request
            ]
            yield Claim(
                title=f"the client sent initialize with the id of the session that had ended, and the server refused it with HTTP {exchange.status}",
                next_step="the client must send initialize without Mcp-Session-Id; the server could ignore the header there",
                symptoms=lost,
                side=CLIENT,
            )
            break


@cause(
    "sessions-not-ended",
    "the client begins sessions and never ends them, until the server has no room",
    level=Level.EXACT,
)
def sessions_not_ended(facts: Facts) -> Iterator[Claim]:
    """A client that begins a session for each call has to end it with DELETE; a server has to end those that are idle."""
    begun = facts.answered[CLIENT, "initialize"]
    for exchange, symptom in _status(429, 500, 503, facts=facts):
        is_full = re.search(r"(?i)too many|limit|max\w*|session", _said(exchange, symptom))
        if (
            exchange.asked == "initialize"
            and begun >= 4
            and is_full
            and not any(method == "DELETE" for method, _ in facts.http.statuses)
        ):
            yield Claim(
                title=f"the server refused initialize with HTTP {exchange.status} after {begun} sessions, none of which the client had ended: {quote(_said(exchange, symptom))}",
                next_step="let the client use one session for its calls, or end each with DELETE; let the server end sessions that are idle",
                symptoms=_same(facts, exchange),
                side=CLIENT,
            )
            break


@cause("session-lost", "the server does not know the session any more", level=Level.SPECIFIC)
def session_lost(facts: Facts) -> Iterator[Claim]:
    """The server restarted, or the session expired. It answers 404, and the client must send initialize again."""
    lost: list[Symptom] = []
    first: HttpRefusal | None = None
    for exchange, symptom in exchanges(facts):
        if exchange.method == "DELETE":
            continue
        is_lost = exchange.status == 404 and "mcp-session-id" in exchange.request and not exchange.error
        is_stale = (
            exchange.status in (400, 401, 403)
            and "mcp-session-id" in exchange.request
            and re.search(r"(?i)session|initiali[sz]ed", _said(exchange, symptom)) is not None
        )
        if is_lost or is_stale:
            first = first or exchange
            lost.append(symptom)
    if first is None:
        return
    lost += [
        each
        for each in facts.of(HttpRefusal)
        if each not in lost
        and each.status == first.status
        and each.request.get("mcp-session-id") == first.request["mcp-session-id"]
    ]
    has_worked = facts.http.accepted_count[first.request["mcp-session-id"]] > 0
    began_again = facts.client.methods["initialize"] > 1
    count = sum(symptom.count for symptom in lost)
    known = "that had worked before" if has_worked else "that it had never accepted here"
    said = next(
        (quote(symptom.words) for symptom in lost if isinstance(symptom, FailedRequest) and symptom.words),
        quote(first.words),
    )
    title = (
        f"the server no longer knows the session {known} (HTTP {first.status}{f': {said}' if said else ''})"
    )
    if first.status == 404:
        title += (
            f", and the client went on with it in {counted(count, 'request')}"
            if count > 1 and not began_again
            else ""
        )
        next_step = "the client must send initialize again after a 404; keep the server's sessions over restarts, or make it stateless"
        side = CLIENT
    else:
        title += ": it restarted or lost its state, and does not answer 404"
        next_step = "let the server answer 404 for a session that it does not know, so that the client sends initialize again; keep sessions over restarts"
        side = SERVER
    if began_again and all(
        isinstance(each, FailedRequest) and each.succeeded_at is not None for each in lost
    ):
        yield Claim(
            title=title,
            next_step="the client began a new session, as it should",
            symptoms=lost,
            is_observation=True,
        )
        return
    yield Claim(title=title, next_step=next_step, symptoms=[*lost, *facts.violations("HTTP205")], side=side)


@cause("version-header", "the server refuses the revision in a header or in initialize", level=Level.EXACT)
def version_header(facts: Facts) -> Iterator[Claim]:
    """MCP-Protocol-Version names the revision that both sides agreed on. Some servers refuse revisions that they do not know,
    in place of answering initialize with one that they do.
    """
    for exchange, symptom in _status(400, 403, 406, 426, facts=facts):
        words = _said(exchange, symptom)
        if not _VERSION.search(words):
            continue
        version = exchange.request.get("mcp-protocol-version", "")
        where = (
            f"in the header of {exchange.asked or exchange.method} ({quote(version)})"
            if version
            else "in initialize"
        )
        yield Claim(
            title=f"the server refuses the revision {where}: {quote(words)}",
            next_step="let the client send the revision that the server answered to initialize, or update the server's SDK",
            symptoms=_same(facts, exchange),
            side=SERVER if exchange.asked == "initialize" else "",
        )
        break


@cause("redirect-not-followed", "a redirect was not followed", level=Level.EXACT)
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


@cause("bot-wall", "a protection against bots answered in place of the server", level=Level.EXACT)
def bot_wall(facts: Facts) -> Iterator[Claim]:
    """Cloudflare, Akamai and others answer programs with a page for browsers."""
    for exchange, symptom in exchanges(facts):
        is_page = exchange.media_type.startswith("text/html")
        is_edge = exchange.status == 403 and _who(exchange) != "the server" and exchange.media_type != JSON
        is_told = "www-authenticate" in exchange.response
        if (
            "cf-mitigated" in exchange.response
            or (is_page and _BOT.search(exchange.words))
            or (is_edge and not is_told)
        ):
            yield Claim(
                title=f"{_who(exchange)} blocked {exchange.asked or exchange.method} before it reached the server (HTTP {exchange.status}): {quote(exchange.words)}",
                next_step="allow this client (User-Agent) and the path of the endpoint in the rules of this protection against bots;"
                " it is not about signing in",
                symptoms=_same(facts, exchange),
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
    429: ("limits the rate of requests", "wait as long as Retry-After says, and send fewer requests", ""),
    431: ("allows no headers as large as these", "send fewer or shorter headers: tokens and cookies grow", CLIENT),
    501: ("does not know this method of HTTP", "check that the URL is that of an MCP endpoint", "configuration"),
    502: ("got no answer from the server behind it", "look whether the server behind the proxy runs, and into its log", "server"),
    503: ("is not available", "look whether the server runs and is not overloaded; Retry-After says when to try again", "server"),
    504: ("gave up the server behind it", "raise the proxy's timeout (nginx: proxy_read_timeout), or let the server answer as an event stream and report progress: it may still work", "proxy"),
    524: ("gave up the server behind it", "let the server answer as an event stream and report progress: it may still work", "proxy"),
}  # fmt: skip
"""Status → what the refuser does, the next step, and whose mistake it is (RFC 9110, 15.5 and 15.6)."""


@cause("http-status", "an HTTP request was refused with a status that says why", level=Level.SPECIFIC)
def http_status(facts: Facts) -> Iterator[Claim]:
    """The status has a fixed meaning, and the refusal may say more."""
    told: set[tuple[int | None, str]] = set()
    for exchange, symptom in exchanges(facts):
        if exchange.error or exchange.status not in _PLAIN:
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
        what, next_step, side = _PLAIN[exchange.status]
        words = _said(exchange, symptom)
        about = exchange.asked or f"{exchange.method} {exchange.path}"
        detail = ""
        if exchange.status == 413 and (size := exchange.request.get("content-length")):
            detail = f" ({int(size):,} bytes)" if size.isdigit() else ""
        elif exchange.status == 406:
            accept = exchange.request.get("accept")
            detail = f" (Accept: {quote(accept, 60)})" if accept else " (it has none)"
        elif exchange.status == 415:
            detail = f" ({quote(exchange.request.get('content-type', 'none'), 60)})"
        elif exchange.status in (502, 503, 504, 524) and exchange.took >= 0.5:
            detail = f" after {duration(exchange.took)}"
        elif exchange.status in (429, 503) and (wait := exchange.response.get("retry-after")):
            detail = f" (Retry-After: {quote(wait, 40)})"
        yield Claim(
            title=f"{about}: {_who(exchange)} {what}{detail}: HTTP {exchange.status}"
            + (f", {quote(words)}" if words else ""),
            next_step=next_step,
            symptoms=[*same, *(facts.violations("HTTP304") if exchange.status == 406 else [])],
            side=side,
            is_observation=is_overcome(same),
        )


@cause("wrong-endpoint", "the URL is not that of an MCP endpoint", level=Level.SPECIFIC)
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
        said = f": {quote(_said(exchange, symptom))}" if _said(exchange, symptom) else ""
        hint = "most servers use /mcp, those of 2024-11-05 use /sse"
        if exchange.status == 405 and (allow := exchange.response.get("allow")):
            hint = f"it allows {quote(allow, 40)}: with GET alone it may be an endpoint of the old HTTP+SSE transport"
        yield Claim(
            title=f"there is no MCP endpoint at {quote(facts.header.upstream or exchange.path)}: {_who(exchange)} answers HTTP {exchange.status}{said}",
            next_step=f"correct the path of the URL ({hint})",
            symptoms=[*_same(facts, exchange), *facts.violations("HTTP307")],
            side="configuration",
        )
        break


@cause("page-in-place-of-message", "a page or another body came in place of a message", level=Level.SPECIFIC)
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


@cause("notification-body", "a notification was not answered with 202", level=Level.SPECIFIC)
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


@cause("one-session-only", "the server can serve one session only", level=Level.EXACT)
def one_session_only(facts: Facts) -> Iterator[Claim]:
    """One server object is shared by all sessions, and the SDK connects it to one transport only."""
    for failed in facts.failed():
        if failed.method != "initialize" or failed.is_first or not facts.answered[CLIENT, "initialize"]:
            continue
        status = None if failed.refusal is None else failed.refusal.status
        says_so = re.search(r"(?i)already (?:connected|initiali[sz]ed|started)", failed.words)
        if says_so or status == 500:
            yield Claim(
                title=f"the server answered the first initialize, and each later one with {f'HTTP {status}' if status else 'an error'}: {quote(failed.words) or 'it can serve one session only'}",
                next_step="make a server object for each session (one transport and one server for each Mcp-Session-Id), and end sessions that are over",
                symptoms=[failed],
                side=SERVER,
                level=Level.EXACT if says_so else Level.SPECIFIC,
            )


@cause("server-error", "the server failed at a request", level=Level.GENERAL)
def server_error(facts: Facts) -> Iterator[Claim]:
    """An HTTP status of 500 and more without a message: an exception that nothing caught."""
    for exchange, symptom in exchanges(facts):
        if exchange.status is None or exchange.status < 500 or exchange.status in _PLAIN or exchange.error:
            continue
        words = _said(exchange, symptom)
        yield Claim(
            title=f"{exchange.asked or exchange.method}: {_who(exchange)} failed with HTTP {exchange.status}"
            + (f": {quote(words)}" if words else ""),
            next_step="look into the server's own log at this time: an exception is there",
            symptoms=[symptom],
            side=SERVER,
        )


@cause("request-refused", "the server refused an HTTP request", level=Level.GENERAL)
def request_refused(facts: Facts) -> Iterator[Claim]:
    """A status of 400 to 499, with what the refusal says."""
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
        words = _said(exchange, symptom)
        if exchange.method == "GET" and facts.server.messages and not exchange.words:
            continue
        is_early = _INITIALIZED.search(words)
        yield Claim(
            title=f"{exchange.asked or f'{exchange.method} {exchange.path}'}: {_who(exchange)} refused it with HTTP {exchange.status}"
            + (f": {quote(words)}" if words else ""),
            next_step="the client must send initialize first, and then notifications/initialized with the session id"
            if is_early
            else "correct what the refusal names; it says nothing of signing in",
            symptoms=[symptom],
        )
