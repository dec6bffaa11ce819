"""Headers that a client sent, and that a server misses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.causes.exchanges import (
    about,
    accepts_messages,
    exchanges,
    is_overcome,
    said,
    who_refused,
)
from mcpspy.analysis.explain.causes.http_sse import endpoints
from mcpspy.analysis.explain.causes.sign_in import RULES, sign_in_claim
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ERRORS, ClientLeft, FailedRequest, RefusedExchange, Symptom
from mcpspy.core.protocol.http_headers import EVENTS, JSON
from mcpspy.core.protocol.refusal import challenge_words
from mcpspy.core.protocol.spec import MODERN, REVISIONS, SERVER
from mcpspy.core.session.exchange import State

_HEADER = re.compile(
    r"(?i)header mismatch|missing (?:required )?(?:mcp-[\w-]+ )?header|mcp-(?:method|name|param)"
)

_MISSING = (
    r"(?:missing|no|without|lacks?|absent|required?|requires|(?:not|n't) (?:be )?(?:provided|present|found|sent|set|included"
    r"|specified|received|supplied|given)|must (?:be )?(?:include|provide|have|send|contain|present|set|supplied)d?)"
)


class _Claimed(NamedTuple):
    """A header that servers say is missing or wrong."""

    name: str
    statuses: tuple[int, ...]
    words: str
    """Its names in their words, as a pattern; with a word such as missing beside it."""
    other: str
    """A pattern of words that mean something else: the header came, and its value is refused."""
    always: int = 0
    """The status that is about this header, whatever the words."""


_REFUSED_VALUE = (
    r"\b(?:in)?valid\b|unknown|expired|unsupported|mismatch|malformed|incorrect|wrong|does not exist"
)

_CLAIMED = (
    _Claimed(
        "accept",
        (400, 406),
        r"(?:accept\b|not acceptable)",
        # Another type than those of MCP is wanted.
        r"version|\b(?:application|text)/(?!json\b|event-stream\b)",
        406,
    ),
    _Claimed("content-type", (400, 415), r"content[- ]?type", "charset", 415),
    _Claimed(
        "authorization",
        (400, 401, 403),
        r"(?:authori[sz]ation|bearer|access[ _-]?token|auth(?:entication)? (?:header|token|credentials?)|credentials|token|jwt)",
        # The token came, and was looked up or read: its claims, its permissions, the user that it is of.
        rf"{_REFUSED_VALUE}|insufficient|scope|\bclaim|\bpermissions?\b|\broles?\b|[cx]srf|\black(?:s|ing)?\b"
        r"|missing authentication token|\b401 authorization required"
        r"|(?:token|key|credentials?) (?:was |is |could )?not (?:be )?found(?! in\b)"
        r"|\b(?:for|in|of|with) (?:this |the |your |an? )?(?:access |bearer |api )?(?:token|key|credentials?)\b",
    ),
    _Claimed(
        "mcp-session-id",
        (400, 404, 422),
        r"\bsession(?:[ _-]?id)?\b",
        rf"{_REFUSED_VALUE}|\bsession\b.{{0,60}}not found(?! in\b)|id not found|bad session|terminated|closed|initiali[sz]"
        r"|\bno (?:active |such |open |matching |known |existing )?(?:session|transport)s?(?: (?:found|with|for|exists|matches)\b|\W*$)",
    ),
    _Claimed("mcp-protocol-version", (400, 406, 422), r"protocol[ -]version", _REFUSED_VALUE),
)
"""The words of SDKs, frameworks and gateways."""


def _is_right(claimed: _Claimed, exchange: RefusedExchange) -> bool:
    """Return whether the recorded request has the header as the server wants it."""
    value = exchange.request.get(claimed.name, "").lower()
    if claimed.name == "accept":
        return accepts_messages(exchange)
    if claimed.name == "content-type":
        # With parameters, the server may compare them: `http-status`.
        return value.strip() == JSON
    return bool(value) and (claimed.name != "mcp-session-id" or exchange.asked != "initialize")


def _lost(exchange: RefusedExchange, words: str) -> str:
    """Return the header that a refusal misses, and that the recorded request has; else nothing."""
    for claimed in _CLAIMED:
        if exchange.status not in claimed.statuses or re.search(claimed.other, words, re.IGNORECASE):
            continue
        name, missing = claimed.words, rf"\b{_MISSING}\b"
        is_said = bool(re.search(rf"(?i){missing}.{{0,40}}{name}|{name}.{{0,40}}{missing}", words))
        if claimed.name == "accept" and EVENTS in words:
            is_said = is_said or re.search("(?i)accept|must", words) is not None
        if (is_said or exchange.status == claimed.always) and _is_right(claimed, exchange):
            return claimed.name
    for name in exchange.request:
        # Any other header that the words call by its name, such as X-Api-Key.
        if "-" in name and not name.startswith("mcp-") and exchange.status in (400, 401, 403, 411, 422, 428):
            found = re.search(
                rf"(?i)\b{_MISSING}\b.{{0,30}}{re.escape(name)}|{re.escape(name)}.{{0,30}}\b{_MISSING}\b",
                words,
            )
            if found and not re.search(_REFUSED_VALUE, words, re.IGNORECASE) and name != "content-type":
                return name
    return ""


_AFTER_INITIALIZE = ("mcp-protocol-version", "mcp-session-id")
"""The headers whose values the response to `initialize` brings (2025-11-25, Transports)."""


def _shown(name: str) -> str:
    """Return a header as it is written: Mcp-Session-Id."""
    return "MCP-Protocol-Version" if name == "mcp-protocol-version" else name.title()


def _lost_behind(facts: Facts) -> Iterator[Claim]:
    """Yield a claim for each header that the recorded request has, and that a refusal misses."""
    told: set[str] = set()
    for exchange, symptom in exchanges(facts, 400, 401, 403, 404, 406, 411, 415, 422, 428):
        challenge = challenge_words(exchange.challenge)
        words = said(exchange, symptom) or challenge
        name = _lost(exchange, words) or (challenge and _lost(exchange, challenge))
        if not name or name in told or exchange.is_for_metadata:
            continue
        told.add(name)
        same = [
            each
            for other, each in exchanges(facts, exchange.status or 0)
            if _lost(other, said(other, each)) == name
        ]
        who, header = who_refused(exchange), _shown(name)
        value = "" if name == "authorization" else f" ({header}: {quote(exchange.request[name], 60)})"
        title = (
            f"{about(exchange)} was refused with HTTP {exchange.status} for its {header}, which the recorded request "
            f"has{value}: the header is lost or misread behind this point, "
            f"{f'at {who} or after it' if who != 'the server' else 'on the way to the server or in it'}{clause(words)}"
        )
        next_step = (
            f"sending {header} again does not help: look at what passes requests on from here (a proxy, a gateway, the "
            f"adapter of a platform), and let it keep this header; ask the server directly to compare"
        )
        is_of_scheme = name == "authorization" and "header" not in words.lower()
        if name == "authorization":
            next_step += "; if its value is an empty Bearer, the host did not replace a variable"
        if is_of_scheme:
            next_step = (
                "look whether the value of Authorization in the host's configuration begins with 'Bearer ' and has a token after "
                f"it; if so, {next_step}"
            )
        elif not words:
            next_step += "; or this URL is not that of an MCP endpoint"
        # A server that misses a header has not removed it; one that misreads its value does so itself.
        is_missing = re.search(_MISSING, words, re.IGNORECASE) is not None
        side = "proxy" if who != "the server" else "" if is_missing else SERVER
        side = "" if is_of_scheme else side  # A value of another form has no token, either.
        claim = Claim(title, next_step, same, side=side)
        claim.is_observation = is_overcome(same)
        if exchange.status == 401 and not claim.is_observation:
            claim.symptoms += sign_in_claim(facts, title, next_step).symptoms
        yield claim


@cause(
    "header-dropped",
    "a header that the client sent did not reach the server",
    Level.EXACT,
    rules=f"HTTP101 HTTP102 HTTP103 HTTP104 HTTP106 {RULES}",
    positive=(
        ex.session(
            "@ 2026-07-28 http",
            ex.call(),
            ex.answered(400, {"mcp-name": None}),
            ex.error("Header mismatch: Mcp-Name is missing", -32020),
        ),
        ex.session(
            "@ 2026-07-28 http",
            ex.call(),
            ex.answered(400, {"mcp-protocol-version": "2025-11-25"}),
            ex.error('Mcp-Protocol-Version header "2025-11-25" does not match _meta', -32020),
        ),
        ex.first_answer(
            406, "Not Acceptable: Client must accept both application/json and text/event-stream"
        ),
        ex.list_answer(415, "Unsupported Media Type"),
        ex.list_answer(401, ex.WITH_TOKEN, "Missing Authorization header"),
        ex.list_answer(401, ex.WITH_TOKEN, "Missing bearer token"),
        ex.list_answer(400, "Bad Request: Mcp-Session-Id header is required"),
        ex.list_answer(400, "MCP-Protocol-Version header is missing"),
        ex.list_answer(403, {"x-api-key": "[redacted]"}, "No X-Api-Key in the request"),
    ),
    negative=(
        ex.session("@ 2026-07-28 http", ex.call(), ex.answered(400), ex.error("Unknown tool: a", -32602)),
        ex.first_answer(406, {"accept": "application/json"}, "Not Acceptable"),
        ex.first_answer(406, "Not Acceptable: Client must accept application/x-ndjson"),
        ex.list_answer(415, {"content-type": "text/plain"}, "Unsupported Media Type"),
        ex.list_answer(401, "Missing Authorization header"),
        ex.list_answer(401, ex.WITH_TOKEN, "Missing or invalid access token"),
        ex.list_answer(403, ex.WITH_TOKEN, "Your token lacks the required permission 'read'"),
        ex.list_answer(401, ex.WITH_TOKEN, "Token is missing required claim: aud"),
        ex.list_answer(401, ex.WITH_TOKEN, "Token not found"),
        ex.list_answer(401, ex.WITH_TOKEN, "No user found for token"),
        ex.list_answer(403, ex.WITH_TOKEN, "CSRF token missing"),
        ex.list_answer(404, "Session 'abc' not found"),
        ex.list_answer(400, "No transport found for sessionId"),
        ex.list_answer(400, "No active session"),
        ex.list_answer(400, "No valid session ID provided"),
        ex.list_answer(400, "Unsupported MCP-Protocol-Version"),
        ex.session(
            "@ http",
            ex.request("tools/list"),
            ex.answered(400, {"mcp-protocol-version": "2026-07-28"}),
            ex.error("Unsupported MCP-Protocol-Version", -32020),
        ),
    ),
)
def header_dropped(facts: Facts) -> Iterator[Claim]:
    """The recording has the headers that the client sent. A server compares those of 2026-07-28 with the
    body, and others say that Accept, Content-Type, Authorization, the session id or the revision is missing.
    """
    yield from _lost_behind(facts)
    missing = facts.violations("HTTP101", "HTTP102", "HTTP103", "HTTP104", "HTTP106")
    for failed in facts.failed(*ERRORS, State.REFUSED):
        if failed.code != -32020 and not _HEADER.search(failed.words):
            continue
        named = re.search(r"(?i)\bmcp-[\w-]+", failed.words)
        if named is None and failed.code != -32020:
            continue  # Which header is meant, only the words tell.
        if failed.method == "initialize" and named is not None and named[0].lower() in _AFTER_INITIALIZE:
            continue  # `header-too-early`
        if _has_other_revision(facts, failed, named[0].lower() if named else ""):
            continue  # `version-header`
        is_sent = failed.carrier is None or named is None or named[0].lower() in failed.carrier.request
        title = (
            f"the server misses a header of {failed.about} that the client sent ({quote(failed.words)}): "
            f"something between mcpspy and the server dropped it"
        )
        next_step = "let the proxy or gateway behind mcpspy pass on all headers that begin with Mcp-"
        side = ""
        is_old = not facts.session.is_modern and failed.method != "server/discover" and not failed.is_refused
        if failed.code == -32020 and is_old and not missing:
            title = (
                f"a header of {failed.about} is missing further behind ({quote(failed.words)}): the client need not send it "
                f"in {quote(facts.session.agreed_revision or 'an older revision', 20)}, and what passes the call on in "
                f"{MODERN} has to make it from the body"
            )
            next_step = (
                "let the gateway behind mcpspy send the headers of the revision that it speaks with the server: Mcp-Method, "
                "Mcp-Name, and Mcp-Param-… of each argument that inputSchema marks with x-mcp-header"
            )
        elif missing or not is_sent:
            title = f"{failed.about} came without a header that the server wants: {quote(failed.words)}"
            next_step, side = "let the client send it; or look what drops it before mcpspy", ""
            agreed = facts.session.agreed_revision or MODERN
            if named is not None and named[0].lower() == "mcp-protocol-version" and agreed < REVISIONS[2]:
                title += f": {quote(agreed, 20)}, on which both agreed, does not have it"
                next_step = f"let the server take a request without MCP-Protocol-Version for one of {REVISIONS[1]} (2025-06-18, Transports)"
                side = SERVER
            if is_sent and named is not None:
                title = f"the header {quote(named[0], 40)} of {failed.about} does not fit its body: {quote(failed.words)}"
                next_step = (
                    "let the client make this header from the same message: the revision is that of "
                    "params._meta, method and name are those of the body (2026-07-28, Transports)"
                )
        symptoms, is_over = [failed, *missing], failed.succeeded_at is not None
        yield Claim(title, next_step, symptoms, side=side, is_observation=is_over)


def _has_other_revision(facts: Facts, failed: FailedRequest, name: str) -> bool:
    """Return whether a refused header has another revision than the handshake agreed on, which needs no header of 2026-07-28."""
    sent = "" if failed.carrier is None else failed.carrier.request.get("mcp-protocol-version", "")
    agreed = facts.session.agreed_revision
    return (
        name == "mcp-protocol-version"
        and not facts.session.is_modern
        and bool(agreed)
        and sent not in ("", agreed)
    )


_ONCE = ("mcp-session-id", "content-type", "access-control-allow-origin")
"""Headers of responses with one value each. HTTP joins a header that comes twice by a comma (RFC 9110, 5.3)."""


def _is_twice(value: str) -> bool:
    parts = [part.strip() for part in value.split(",")]
    return len(parts) > 1 and len(set(parts)) == 1 and bool(parts[0])


@cause(
    "header-twice",
    "a response has a header twice that may come once",
    Level.EXACT,
    positive=(
        ex.session(
            "@ http bare",
            *(ex.initialize(), ex.answered(200, {}, {"mcp-session-id": "s-1, s-1"}), ex.welcome()),
            *(
                ex.request("tools/list"),
                ex.answered(404, {"mcp-session-id": "s-1, s-1"}, "Session not found"),
            ),
        ),
        ex.session(
            "@ http bare",
            ex.http(
                "OPTIONS",
                204,
                head={"origin": "http://localhost:6274"},
                access_control_allow_origin="*, *",
                access_control_allow_headers="*",
            ),
        ),
        ex.first_answer(200, {}, {"content-type": "text/event-stream, text/event-stream"}),
    ),
    negative=ex.session("@ http", ex.listed("a")),
)
def header_twice(facts: Facts) -> Iterator[Claim]:
    """A proxy adds a header that the server has set, or copies a list of headers twice. Clients read both as one value."""
    found = [
        *facts.http.preflights,
        *facts.http.heads.values(),
        *(exchange for exchange, _ in exchanges(facts)),
    ]
    for exchange in found:
        name = next((each for each in _ONCE if _is_twice(exchange.response.get(each, ""))), None)
        if name is None:
            continue
        value = exchange.response[name]
        is_id = name == "mcp-session-id"
        same = (each for other, each in exchanges(facts) if not is_id or other.request.get(name) == value)
        symptoms: list[Symptom] = [*facts.of(ClientLeft), *same]
        if not symptoms and (name != "access-control-allow-origin" or facts.client.messages):
            continue
        title = (
            f"the response to {about(exchange)} has {_shown(name)} twice ({quote(value, 80)}), which the client reads as "
            f"one value, and that value is not valid"
        )
        next_step = (
            f"let the server, or the proxy in front of it, send {_shown(name)} once: look whether both add it, or the proxy "
            f"copies the headers of the server and adds its own"
        )
        lines = [evidence(exchange.place, f"{exchange.line}, {_shown(name)}: {value}")]
        yield Claim(title, next_step, symptoms, evidence=lines)  # The server, or something in front of it.
        break


def _is_of_stream(exchange: RefusedExchange) -> bool:
    """Return whether a path has the name that the stream of HTTP+SSE has in most servers."""
    return exchange.path.rstrip("/").endswith("/sse")


def _wants_too_early(facts: Facts, exchange: RefusedExchange) -> bool:
    is_begun = exchange.asked == "initialize" and not endpoints(facts) and not _is_of_stream(exchange)
    return is_begun and not any(name in exchange.request for name in _AFTER_INITIALIZE)


FailureRow(
    "header-too-early",
    "the server wants a header on initialize that no client has before its response",
    Level.EXACT,
    why="The response to initialize brings the revision and the session id. Only the requests after it have their "
    "headers.",
    title="the server refuses initialize (HTTP {status}) for the lack of a header whose value only the response to "
    "initialize brings{quoted}",
    next_step="let the server read the revision of initialize from params.protocolVersion, and want "
    "MCP-Protocol-Version and Mcp-Session-Id only on the requests after it",
    statuses=(400, 401, 403, 404, 406, 422, 428),
    words=rf"\b{_MISSING}\b.{{0,40}}(?:protocol[ -]version|mcp-session-id|session[ _-]?id)"
    rf"|(?:protocol[ -]version|mcp-session-id|session[ _-]?id).{{0,40}}\b{_MISSING}\b"
    r"|^\W*(?:\w+ )?(?:session|transport)\b.{0,30}(?:not found|unknown|does not exist)|\b(?:invalid|unknown) session",
    if_refused=_wants_too_early,
    is_together=True,
    positive=(
        ex.first_answer(400, "Missing required MCP-Protocol-Version header"),
        ex.first_answer(404, "Session not found"),
    ),
    negative=(
        ex.first_answer(400, "Unsupported protocol version"),
        ex.list_answer(400, "MCP-Protocol-Version header is missing"),
    ),
).define(__name__)


FailureRow(
    "posted-to-sse",
    "initialize was posted to the address of the stream of HTTP+SSE",
    Level.EXACT,
    why="That transport has two addresses: GET opens the stream, whose first event names the address for messages, with the session "
    "in its query.",
    title="initialize was posted to an address of the old HTTP+SSE transport, where the server wants a session (HTTP {status}){quoted}",
    next_step="set the client's transport to sse, or use the server's address for Streamable HTTP (often /mcp), if it has one",
    side="",
    statuses=(400, 404, 422),
    words=r"session[ _-]?id",
    if_refused=lambda facts, exchange: (
        exchange.asked == "initialize" and not endpoints(facts) and _is_of_stream(exchange)
    ),
    is_together=True,
    positive=ex.session(
        "@ http bare",
        ex.initialize(),
        ex.note("http", http=1, stream="1", method="POST", path="/sse", status=400, request={}, response={}),
        ex.note("http-end", http=1, stream="1", body="session_id is required", size=22),
    ),
    negative=ex.first_answer(400, "session_id is required"),
).define(__name__)
