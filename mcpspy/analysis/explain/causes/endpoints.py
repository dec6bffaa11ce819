"""HTTP requests that did not reach an endpoint of MCP, or got something else than a message there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import (
    LOGIN,
    NO_ROUTE,
    about,
    alike,
    exchanges,
    is_stream,
    said,
    who_refused,
    with_words,
)
from mcpspy.analysis.explain.causes.http_sse import endpoints, lost_query
from mcpspy.analysis.explain.causes.statuses import overcome
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote, url_parts
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest
from mcpspy.core.protocol.http_headers import EVENTS, JSON
from mcpspy.core.protocol.refusal import ACCEPTED
from mcpspy.core.protocol.spec import CLIENT, SERVER


def _paths(facts: Facts) -> set[str]:
    """Return the paths for messages: that of the endpoint, and the one that a stream of HTTP+SSE names."""
    urls = [
        facts.header.upstream or "",
        *(str(note.fields.get("data", "")) for note, _ in endpoints(facts)[:1]),
    ]
    return {url_parts(url).path.rstrip("/") for url in urls}


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
        yield overcome(Claim(title, next_step, alike(facts, exchange), side="proxy"))
        break


_AT_MESSAGE = ex.answered(404, {":path": "/message"}, {}, "Not Found")
_BY_SSE = ("@ sse bare 2024-11-05", ex.initialize())


def _posted_without_query(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of messages without the session, which is in the query of the address that an SSE stream names."""
    for exchange, words in with_words(facts, 400, 404, 422):
        query = lost_query(facts, exchange)
        if exchange.method != "POST" or not query or not re.search(r"(?i)\bsession", words):
            continue
        title = (
            f"{exchange.asked or 'a message'} was posted to {quote(exchange.path, 80)}, without the session of the address that the "
            f"SSE stream had named ({quote(query, 60)}): HTTP {exchange.status}{clause(words)}"
        )
        next_step = (
            "let the client post to the whole address of the event endpoint, with its query; look whether a proxy between client "
            "and mcpspy drops it"
        )
        yield Claim(title, next_step, alike(facts, exchange), side=CLIENT)
        break


@cause(
    "posted-elsewhere",
    "the client posts to another address than that of the endpoint",
    Level.EXACT,
    rules="HTTP307",
    positive=(
        ex.session("@ http bare", ex.initialize(), _AT_MESSAGE),
        ex.session(*_BY_SSE, _AT_MESSAGE),
        ex.session(*_BY_SSE, ex.answered(400, {":path": "/messages"}, "No session id")),
        ex.session("@ http", ex.listed("a"), ex.call(3), _AT_MESSAGE),
    ),
    negative=(
        ex.first_answer(404),
        ex.session("@ http bare", ex.initialize(), ex.answered(404, {":path": "/mcp/"})),
        ex.session(*_BY_SSE, ex.answered(400, "No session id")),
        ex.session(*_BY_SSE, ex.answered(400, {":path": "/messages"}, "No key")),
    ),
)
def posted_elsewhere(facts: Facts) -> Iterator[Claim]:
    """The URL in the client's configuration has another path, or the client makes the address of its messages
    itself, from the URL of the stream, in place of the one that the server names. In HTTP+SSE, that one has the session
    in its query.
    """
    yield from _posted_without_query(facts)
    upstream = facts.endpoint.path
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
        yield overcome(Claim(title, next_step, symptoms, evidence=lines, side=side))
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
        ex.session("@ http bare", ex.http("GET", 404).replace('"/mcp"', '"/"')),
        ex.first_answer(403, ex.WITH_TOKEN, "Missing Authentication Token"),
        ex.first_answer(403, "Error 403 - This web app is stopped."),
    ),
    negative=ex.list_answer(404),
)
def wrong_endpoint(facts: Facts) -> Iterator[Claim]:
    """The path, the port or the host is wrong: a page, a 404 or a 405 answers to the first POST."""
    for exchange, symptom in exchanges(facts, 403, 404, 405, 410):
        words = said(exchange, symptom)
        is_root = is_stream(exchange) and exchange.status == 404 and exchange.path in ("", "/")
        is_other = (exchange.method != "POST" and not is_root) or exchange.is_for_metadata
        is_other |= exchange.status == 403 and not (
            _AWS_HAS_NO_ROUTE.search(words) or _NO_APPLICATION.search(words)
        )
        has_worked = exchange.asked != "initialize" and facts.server.messages > (exchange.media_type == JSON)
        has_worked |= isinstance(symptom, FailedRequest) and not symptom.is_first
        if is_other or has_worked or exchange.session_id is not None:
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
        next_step = f"correct the path of the URL ({hint})"
        # The URL may be wrong, or the server lack the address that its own page names: only one without a path is wrong.
        side = "configuration" if exchange.path in ("", "/") else ""
        if hint.startswith("/sse"):  # A host may also use another transport than the one that is configured.
            next_step = f"{hint}; if it is set to sse already, the client does not use it"
        if exchange.status == 403:
            next_step = (
                f"{next_step}: Amazon API Gateway answers so for a path or a method that it does not have"
            )
        elif words and not NO_ROUTE.search(words) and not _NOT_FOUND.search(words):
            next_step = f"look what the refusal means; if it knows nothing of MCP, {next_step}"
        own = facts.endpoint.path
        if exchange.path != own and exchange.path.rstrip("/") == own.rstrip("/"):
            title += f"; the client posts to {quote(exchange.path, 60)}, and the endpoint has the path {quote(own, 60)}"
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
        claim = overcome(Claim(title, next_step, symptoms, side=side))
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
        if kind in (JSON, EVENTS) or (endpoints(facts) and not exchange.words):
            continue  # In HTTP+SSE, the response comes on the stream.
        side = ""  # The URL may be wrong, or the server have no route of MCP there.
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
        yield Claim(title, next_step, symptoms, side=side)


_ACCEPTED_AS_TEXT = ex.session(
    *("@ http bare", "+ 0.01", ex.initialize(), ex.answered(200), ex.welcome()),
    *(ex.INITIALIZED, ex.answered(202, {}, {"content-type": "text/plain"})),
)


@cause(
    "notification-body",
    "a notification was not answered with 202",
    Level.SPECIFIC,
    rules="HTTP301 HTTP302",
    positive=(ex.notification_answer(200), _ACCEPTED_AS_TEXT),
    negative=(
        ex.notification_answer(202),
        ex.session(_ACCEPTED_AS_TEXT, ex.request("tools/list"), ex.answered(200), ex.result(tools=[])),
    ),
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
            if "status 204" in title:  # It has no body, either.
                side = ""
                next_step += "; and let the client take any status of success"
            if violation.code == "HTTP302":  # Its status is enough.
                title = f"a notification was answered with {title}"
                side = ""
                next_step = (
                    "let the client ignore the body and the type of a 202, whose status is enough; the server should "
                    "send none (2025-11-25, Transports)"
                )
            yield Claim(title, next_step, [violation, *(left if not facts.failed() else [])], side=side)
    accepted, asked = facts.http.typed_acceptance, facts.client.methods.keys()
    if accepted is None or facts.violations("HTTP302") or asked - {"initialize", "notifications/initialized"}:
        return
    for departure in left:
        kind = quote(accepted.response.get("content-type", ""), 60)
        title = (
            f"the client asked for nothing and left after the HTTP {accepted.status} for {accepted.asked}, whose Content-Type is "
            f"{kind}, although it has no body"
        )
        next_step = (
            "look into the client's log at this time, and for an update of its SDK: the type of a response without a body does not "
            "matter; until then let the server send 202 without Content-Type"
        )
        lines = [evidence(accepted.place, accepted.line)]
        yield Claim(title, next_step, [departure], evidence=lines, side=CLIENT)
