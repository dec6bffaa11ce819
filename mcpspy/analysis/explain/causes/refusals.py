"""HTTP requests that a server or proxy refused, and whose text or headers name the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.connection import REFUSED_BY_MCPSPY
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.causes.exchanges import about, alike, exchanges, said, who_refused, with_words
from mcpspy.analysis.explain.causes.requests import SILENT
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, RefusedExchange
from mcpspy.core.protocol.spec import CLIENT, REVISIONS, SERVER, UNSUPPORTED_VERSION

_HOST = re.compile(
    r"(?i)\b(?:invalid|disallowed|forbidden|unknown|bad|unexpected|untrusted)\b.{0,20}\bhost\b"
    r"|\bhost\b.{0,30}\b(?:not (?:allowed|trusted|permitted)|is not|invalid|mismatch|blocked)"
    r"|misdirected|DNS rebinding|allowed[_ ]?hosts|\bblocked hosts?\b"
)
_ORIGIN = re.compile(
    r"(?i)\b(?:invalid|disallowed|forbidden|bad)\b.{0,20}\borigin\b"
    r"|\borigin\b.{0,30}\b(?:not (?:allowed|trusted|permitted)|invalid|blocked)|invalid CORS request"
)
"""The checks against DNS rebinding of the SDKs, and of Starlette, Django, Rails and Vite."""
_OF_HEADER = re.compile(
    r"(?i)\bheader|\ballow|\borigin|rebinding|^\W*(?:\d+\W*)?(?:forbidden|misdirected.*)?\W*$"
)
_OTHER_REASON = re.compile(
    r"(?i)\b(?:token|api|key|scopes?|permissions?|permitted|roles?|plan|user|account|organi[sz]ation|license|subscription"
    r"|credentials?|csrf|ip|country|region|disabled|quota|limit|tools?)\b|auth"
)
"""Words of a refusal that is not about the page from which a request came."""


@cause(
    "host-refused",
    "the server refuses the Host or Origin that it receives",
    Level.EXACT,
    positive=(
        ex.first_answer(421, "Invalid Host header"),
        ex.first_answer(403, "mcpspy: Host mcp.example.com is not this machine"),
        ex.first_answer(403, {"origin": "https://a.example"}, "Forbidden"),
    ),
    negative=(
        ex.first_answer(421, {":error": "cannot reach it"}),
        ex.first_answer(403, {"origin": "https://a.example"}, "Invalid API key"),
        ex.session("@ http", ex.listed("a"), ex.call(3), ex.answered(400, "Unknown host: db.internal")),
        ex.session(
            "@ http", ex.listed("a"), ex.call(3), ex.answered(403, {"origin": "https://a.example"}, "Denied")
        ),
    ),
)
def host_refused(facts: Facts) -> Iterator[Claim]:
    """SDKs, frameworks and mcpspy accept only known names, against DNS rebinding; a proxy in front
    may change Host.
    """
    for exchange, symptom in exchanges(facts):
        for text in (exchange.error, exchange.words):
            if found := REFUSED_BY_MCPSPY.search(text):
                name = re.sub(r"^\w+://", "", found[2]).partition(":")[0]
                title = f"mcpspy refused the client: {quote(text)}"
                next_step = (
                    f"start mcpspy http with --allow-host {quote(name)}, if clients shall reach it under "
                    f"this name"
                )
                yield Claim(title, next_step, [symptom], side="configuration")
                return
    for exchange, words in with_words(facts, 400, 403, 421):
        if exchange.asked.startswith("tools/call") and facts.answered and not _OF_HEADER.search(words):
            continue  # A host that the call names.
        is_host, is_origin = bool(_HOST.search(words)), bool(_ORIGIN.search(words))
        if exchange.status == 403 and "origin" in exchange.request and not is_host:
            # A short 403 with an Origin, and no word of signing in: the check of the origin, which gives no reason.
            is_short = len(words) < 40 and exchange.media_type != "text/html"
            # A session that worked came from the same page.
            is_short = is_short and not facts.http.has_accepted(exchange)
            is_short = is_short and not _OTHER_REASON.search(words)
            is_origin = is_origin or (is_short and not exchange.challenge)
        if exchange.status != 421 and not is_origin and not is_host:
            continue
        name, value = "Host", facts.endpoint.netloc
        proxy = (
            ", or let the proxy in front of it keep the Host of the client (nginx: proxy_set_header Host "
            "$http_host)"
        )
        if is_origin:
            name, value, proxy = "Origin", exchange.request.get("origin", ""), ""
        who = who_refused(exchange)
        if who != "the server" and exchange.media_type != "text/html" and (is_host or is_origin):
            # Proxies pass the words of such a check on.
            who = f"the server behind {who.removeprefix('the ')}"
        title = f"{who} refuses the {name} {quote(value, 80)} (HTTP {exchange.status}): {quote(words)}"
        next_step = f"add the name to the server's allowed {name.lower()}s{proxy}"
        # Its list of names, a proxy that changes Host, or the URL: which of them is wrong is open.
        yield Claim(title, next_step, alike(facts, exchange))
        break


FailureRow(
    "valid-message-unreadable",
    "the server calls a valid message unreadable",
    Level.EXACT,
    why="Something before the MCP handler (a body parser, an adapter of a platform) has read the "
    "body of the request, so nothing is"
    " left for the transport: mcpspy could read the same message.",
    title="the server cannot read {about}, although it is valid JSON: HTTP {status}, {words}",
    next_step="something before the MCP handler has read the body: pass the parsed body on to the "
    "transport (handleRequest(req, res, req.body)), or do not parse it there",
    statuses=(400, 500),
    # A message of another form than that of JSON-RPC was read.
    words=r"^(?!.*\b(?:json-?rpc|message|schema)\b).*parse error|stream is not readable|body (?:has )?(?:already|been)|unexpected end of (?:json"
    r"|input)|invalid json(?!-?rpc)",
    if_refused=lambda facts, exchange: (
        # Where requests were read, the message is not what cannot be read.
        bool(exchange.asked) and not facts.answered and not facts.violations("ENV107", side=CLIENT)
    ),
    is_together=True,
    negative=(
        ex.session(
            "@ http bare",
            *(ex.initialize(), ex.answered(400)),
            ex.error("Parse error: Invalid JSON-RPC message", -32700, None),
        ),
        ex.session("@ http", ex.listed("a"), ex.call(3), ex.answered(400, "Invalid JSON: no object")),
    ),
    positive=ex.session(
        "@ http bare", ex.initialize(), ex.answered(400), ex.error("Parse error", -32700, None)
    ),
).define(__name__)


FailureRow(
    "response-refused",
    "the server refused the client's response to its own request",
    Level.SPECIFIC,
    why="A client posts its response to a request of the server (ping, roots, sampling, elicitation). The server "
    "answers 202; a gateway that expects a method in each message refuses it.",
    title="the server asked the client, and then refused {about} with HTTP {status}{quoted}",
    next_step="let the server, or the gateway in front of it, accept a response (a message with result or error and "
    "no method) with 202, and pass it on to what asked",
    statuses=(400, 405, 406, 409, 415, 422, *range(500, 600)),
    if_refused=lambda facts, exchange: exchange.is_response,
    side="",  # The server, or a gateway in front of it.
    brings=lambda facts, exchange: [
        each
        for each in facts.failed(*SILENT)
        if each.side == CLIENT and each.asked_at < exchange.at < each.until
    ],
    is_together=True,
    positive=ex.session("@ http", ex.ping_answered(400, "Invalid MCP request")),
    negative=ex.session("@ http", ex.ping_answered(202)),
).define(__name__)


_PAGE = {"origin": "http://localhost:6274", "access-control-request-headers": "mcp-protocol-version"}


def _unknown_revision(facts: Facts) -> str:
    """Return the revision that the client asked for, if there is none of this name; else nothing."""
    asked = facts.listed.asked_revision or ""
    return "" if asked in REVISIONS else asked


def _preflight_flaw(preflight: RefusedExchange) -> str | None:
    """Return what is wrong with the answer to a preflight; None if the browser goes ahead."""
    if preflight.status is None or preflight.status >= 300:
        return f"HTTP {preflight.status}"
    names = preflight.request.get("access-control-request-headers", "").replace(",", " ").split()
    allowed = preflight.response.get("access-control-allow-headers", "").lower()
    missing = [name for name in names if allowed.strip() != "*" and name.lower() not in allowed]
    origin, page = preflight.response.get("access-control-allow-origin"), preflight.request.get("origin")
    if origin is None:
        missing = missing or ["Access-Control-Allow-Origin"]
    elif page and "," not in origin and origin.strip() not in ("*", page):
        return f"with Access-Control-Allow-Origin: {quote(origin, 60)}, which is not this page"
    return f"without {', '.join(missing)}" if missing else None


@cause(
    "preflight-refused",
    "a browser's preflight request was refused (CORS)",
    Level.EXACT,
    positive=(
        ex.session("@ http bare", ex.http("OPTIONS", 405, head=_PAGE)),
        ex.session(
            "@ http bare",
            ex.http(
                "OPTIONS",
                204,
                head=_PAGE,
                access_control_allow_origin="https://a.example",
                access_control_allow_headers="*",
            ),
        ),
        # An observation: the program continues.
        ex.session("@ http", ex.http("OPTIONS", 405, head=_PAGE), ex.listed("a"), ex.call(3), ex.done(3)),
    ),
    negative=ex.session(
        "@ http bare",
        ex.http(
            "OPTIONS", 204, head=_PAGE, access_control_allow_origin="*", access_control_allow_headers="*"
        ),
    ),
)
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
        title = (
            f"the preflight of the page at {quote(headers.get('origin', ''), 60)} (OPTIONS "
            f"{preflight.path}) was answered {why}; it asked for {asked_for}"
        )
        next_step = (
            f"let the server answer OPTIONS with 204 and Access-Control-Allow-Origin, -Allow-Methods and "
            f"-Allow-Headers: {quote(asked, 120)}"
        )
        symptoms = [*symptoms] or [preflight]
        lines = [evidence(preflight.place, f"{preflight.line}, asked for {asked}")]
        claim = Claim(title, next_step, symptoms, evidence=lines, side=SERVER)
        if (
            facts.http.oauth and facts.http.oauth[-1].at < preflight.at
        ):  # The last step of a sign-in in the browser.
            claim.symptoms += [each for _, each in exchanges(facts, 401) if each not in claim.symptoms]
        claim.is_observation = _has_gone_on(facts, preflight)
        yield claim
        break


def _has_gone_on(facts: Facts, preflight: RefusedExchange) -> bool:
    """Return whether calls of the program that asked succeeded after its preflight was refused, as none of a browser does."""
    calls = facts.answered[CLIENT, "tools/call"]
    is_later = (facts.client.last_at or 0.0) > preflight.at < (facts.server.last_at or 0.0)
    return bool(calls) and is_later and preflight.agent in facts.http.agents and not facts.failed()


_VERSION = re.compile(
    r"(?i)(?:protocol|unsupported|mcp)[ -]?version"
    r"|(?<!api )(?<!client )(?<!app )(?<!plugin )(?<!extension )(?<!server )\bversion .{0,30}(?:not supported|unsupported)"
    r"|unsupported protocol(?! scheme)"
)
"""The SDKs, which check MCP-Protocol-Version."""


@cause(
    "version-header",
    "the server refuses the revision in a header or in initialize",
    Level.EXACT,
    positive=ex.notification_answer(400, "Unsupported protocol version"),
    negative=(
        ex.notification_answer(400),
        ex.list_answer(400, 'Get "": unsupported protocol scheme'),
        ex.session(
            "@ http", ex.listed("a"), ex.call(3), ex.answered(400, "Unsupported protocol version: SNMPv1")
        ),
        ex.first_answer(400, "Client version 1.2 is not supported, please upgrade"),
    ),
)
def version_header(facts: Facts) -> Iterator[Claim]:
    """Some servers refuse a revision that they do not know, in place of answering initialize with
    one that they do.
    """
    for exchange, symptom in exchanges(facts, 400, 403, 406, 426):
        words = said(exchange, symptom)
        if not _VERSION.search(words) or exchange.asked == "server/discover":
            continue
        version, agreed = exchange.request.get("mcp-protocol-version"), facts.session.agreed_revision
        is_call = exchange.asked.startswith("tools/call")
        if is_call and version is not None and version == agreed and facts.answered[CLIENT, "tools/list"]:
            continue  # The same header was accepted: it is a version that the call is about.
        where = f"in the header of {about(exchange)} ({quote(version)})" if version else "in initialize"
        title = f"the server refuses the revision {where}: {quote(words)}"
        next_step = (
            "let the client send the revision that the server answered to initialize, or update the "
            "server's SDK"
        )
        side = ""
        if exchange.asked == "initialize":
            side = SERVER
            next_step = (
                "let the server answer initialize with a revision that it supports, in place of an error (2025-11-25, "
                "Lifecycle): update its SDK"
            )
            if (
                version
            ):  # The header is for requests after initialize, and a server need not look at it before.
                side = ""
                next_step += "; or let the client send this header only after initialize"
            if isinstance(symptom, FailedRequest) and symptom.code == UNSUPPORTED_VERSION:
                side = ""  # A server of 2026-07-28 alone has no older revision to answer with.
                next_step = "use a client of a revision that the error names, or let the server support an older one too"
        if exchange.asked == "initialize" and (unknown := _unknown_revision(facts)):
            title = f"the client asks for the revision {quote(unknown, 40)}, which does not exist, and the server refuses it: {quote(words)}"
            next_step = (
                f"let the client ask for a revision that exists, such as {REVISIONS[-2]}; the server should answer any other "
                f"with the latest one that it supports (2025-11-25, Lifecycle)"
            )
            side = ""
        if version is None and exchange.asked != "initialize":
            title = f"{about(exchange)} has no MCP-Protocol-Version, and the server wants it: {quote(words)}"
            next_step = (
                "let the client send the revision that initialize was answered with in each request after it; look "
                "whether a proxy between client and mcpspy drops the header"
            )
            side = CLIENT
        if version and agreed is not None and version != agreed:
            title = (
                f"the client sends the revision {quote(version)} in the header of {about(exchange)}, "
                f"although the server had answered initialize with {quote(agreed)}: {quote(words)}"
            )
            side = CLIENT
        same = exchanges(facts, exchange.status or 0)
        symptoms = [each for other, each in same if other.request.get("mcp-protocol-version") == version]
        yield Claim(title, next_step, symptoms, side=side)
        break
