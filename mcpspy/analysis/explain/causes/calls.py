"""Calls that were answered with an error: tools, arguments, methods, revisions, tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, RefusedExchange, ServerEnd, Symptom
from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER, other
from mcpspy.core.session.exchange import SUBSCRIBE, State

_ERRORS = (State.ERROR, State.TOOL_ERROR, State.LATE_ERROR, State.LATE_TOOL_ERROR)

_UNKNOWN = re.compile(
    r"(?i)\b(?:unknown|no such|not found|does not exist|unrecognized|not registered|no tool)\b"
)
_RAN = re.compile(r"(?i)^error (?:executing|running|calling|in) (?:the )?tool \S+?:? ")
"""The words that SDKs put before the error of a tool that they know and have run."""

_ARGUMENTS = re.compile(
    r"(?i)validation error|invalid arguments?|invalid params|input validation|failed to (?:parse|deserialize) (?:parameters|arguments)|missing (?:required )?(?:argument|parameter|field|property)|required (?:argument|parameter|property)|unexpected keyword|invalid_type|invalid input|must (?:be|have) (?:a |an |required )?(?:string|number|integer|object|array|boolean|property)"
)
_TYPED = re.compile(
    r"(?i)\b(?:arrays?|lists?|objects?|dict(?:ionary)?|mapping|expected|type|pars(?:e|ing)|must be)\b"
)
_ABSENT = re.compile(
    r"(?i)\b(?:is|are|was|of|got|be) (?:null|none|undefined|nil|empty|missing|required)\b|\bmissing\b|\bnot (?:provided|set|given|specified)\b|NoneType|\brequired\b"
)
_REVISION = re.compile(
    r"(?i)(?:protocol|unsupported|revision|mcp)[ -]?version|version .{0,30}not supported|unsupported protocol"
)
_SESSION = re.compile(
    r"(?i)\bsession\b.{0,40}(?:not found|invalid|expired|unknown|missing|terminated|closed|does not exist)|(?:invalid|unknown|missing|no valid|expired).{0,30}\bsession"
)
_TOKEN = re.compile(
    r"(?i)(?:invalid|expired|revoked).{0,30}(?:access )?token|token.{0,30}(?:invalid|expired|revoked)|invalid[-_ ]authori[sz]ation|unauthori[sz]ed|\b401\b"
)

_OPTIONAL = ("resources/list", "resources/templates/list", "prompts/list", "logging/setLevel", "completion/complete", "server/discover", "ping", "tools/list")  # fmt: skip


def _errors(facts: Facts, side: str = CLIENT) -> Iterator[FailedRequest]:
    for failed in facts.failed(*_ERRORS):
        if failed.side == side and not failed.effects:
            yield failed


@cause(
    "unknown-tool",
    "a tool was called that the server does not offer",
    level=Level.EXACT,
    positive='> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}}\n> {"id":3,"method":"tools/call","params":{"name":"weather_forecast","arguments":{}}}\n< {"id":3,"error":{"code":-32602,"message":"Unknown tool: weather_forecast"}}',
    negative='> {"id":3,"method":"tools/call","params":{"name":"forecast","arguments":{}}}\n< {"id":3,"error":{"code":-32603,"message":"internal error"}}',
)
def unknown_tool(facts: Facts) -> Iterator[Claim]:
    """The host has an old list, adds its own prefix, or the model invented the name."""
    for failed in _errors(facts):
        is_unlisted = bool(facts.listed.tools) and failed.subject not in facts.listed.tools
        words = _RAN.sub("", failed.words[:300])
        says_so = _UNKNOWN.search(words) and ("tool" in words.lower() or f"{failed.subject!r}" in words)
        if failed.method != "tools/call" or not (is_unlisted or (says_so and not facts.listed.tools)):
            continue
        if not says_so and failed.code not in (-32601, -32602):
            continue
        near = get_close_matches(failed.subject, sorted(facts.listed.tools), 1, 0.6)
        inner = [
            name
            for name in facts.listed.tools
            if failed.subject.endswith(name) or name.endswith(failed.subject)
        ]
        title = f"the tool {quote(failed.subject)!r} was called, which the server does not offer"
        next_step = "list the tools again: the host has an old list, or the model invented the name"
        if inner:
            title += f"; it offers {quote(inner[0])!r}: the prefix is the host's or the gateway's"
            next_step = "remove the prefix before the call is sent to this server, or use the name that tools/list has"
        elif near:
            title += f"; it offers {quote(near[0])!r}"
            next_step = f"call {quote(near[0])!r}, or list the tools again"
        yield Claim(
            title=title, next_step=next_step, symptoms=[failed, *facts.violations("DATA307")], side=CLIENT
        )


@cause(
    "own-result-refused",
    "the server's own library refused the result of its tool",
    level=Level.EXACT,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"error":{"code":-32602,"message":"Invalid tools/call result: content 0 data: Invalid Base64 string"}}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"error":{"code":-32602,"message":"Invalid arguments for tool a"}}
    """,
)
def own_result_refused(facts: Facts) -> Iterator[Claim]:
    """SDKs check results before they send them, and answer with the code of invalid params: it is not about the arguments."""
    for failed in _errors(facts):
        if re.search(
            r"(?i)invalid \S{0,20} ?result|output validation|invalid structured content|result (?:is )?not valid",
            failed.words[:200],
        ):
            yield Claim(
                title=f"the result of {failed.about} was refused by the server's own library: {quote(failed.words)}",
                next_step="correct the result that the tool returns: the form that its schema or the protocol requires",
                symptoms=[failed],
                side=SERVER,
            )


@cause(
    "invalid-arguments",
    "arguments do not fit the tool's schema",
    level=Level.SPECIFIC,
    positive='> {"id":3,"method":"tools/call","params":{"name":"a","arguments":{}}}\n< {"id":3,"result":{"isError":true,"content":[{"type":"text","text":"Input validation error: days is a required property"}]}}',
    negative='> {"id":3,"method":"tools/call","params":{"name":"a","arguments":{}}}\n< {"id":3,"result":{"isError":true,"content":[{"type":"text","text":"no data"}]}}',
)
def invalid_arguments(facts: Facts) -> Iterator[Claim]:
    """The model did not know what the arguments mean, or the server checks more than its schema states."""
    for failed in _errors(facts):
        broken = [each for each in failed.findings if each.code in ("DATA301", "DATA101")]
        if not (
            broken
            or (
                failed.method == "tools/call"
                and (failed.code == -32602 or _ARGUMENTS.search(failed.words[:400]))
            )
        ):
            continue
        said = failed.words or (broken[0].message if broken else "")
        title = f"{failed.about}: the arguments do not fit: {quote(said)}"
        next_step = "correct the arguments that the client sends: they violate the tool's schema, as tools/list has it"
        side = CLIENT
        if not broken:
            next_step = "the arguments fit the schema that the server listed, and it refused them: let the schema say what the tool requires"
            side = SERVER
            if not facts.listed.tools:
                next_step = (
                    "compare the arguments with the tool's schema; let the schema say what the tool requires"
                )
                side = ""
        yield Claim(
            title=title,
            next_step=next_step,
            symptoms=[failed, *(facts.violations(*{each.code for each in broken}) if broken else [])],
            evidence=[evidence(each.place, f"{each.code} {each.message}") for each in broken[:2]],
            side=side,
        )


@cause(
    "argument-as-text",
    "an argument is the JSON text of a value, and not the value",
    level=Level.EXACT,
    positive=r"""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{"path":"[\"b\"]"}}}
        < {"id":2,"result":{"isError":true,"content":[{"type":"text","text":"path must be an array"}]}}
    """,
    negative=r"""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{"path":"[\"b\"]"}}}
        < {"id":2,"result":{"isError":true,"content":[{"type":"text","text":"the disk is full"}]}}
    """,
)
def argument_as_text(facts: Facts) -> Iterator[Claim]:
    """Hosts flatten an array or object to its text if the schema of the argument also allows a string, or has no type."""
    for failed in _errors(facts):
        if failed.json_arguments and _TYPED.search(failed.words[:400]):
            names = ", ".join(quote(name, 40) for name in failed.json_arguments[:3])
            yield Claim(
                title=f"{failed.about}: the client sent {names} as a string that holds JSON, and not as a value: {quote(failed.words)}",
                next_step="let the client send the array or object itself; a schema that allows nothing else for this argument"
                " (no string beside it) keeps hosts from this",
                symptoms=[failed, *facts.violations("DATA301")],
                side=CLIENT,
            )


@cause(
    "argument-not-read",
    "the server misses an argument that was sent",
    level=Level.EXACT,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{"city":"Rome"}}}
        < {"id":2,"result":{"isError":true,"content":[{"type":"text","text":"Cannot read the length of \\"city\\" because it is null"}]}}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"isError":true,"content":[{"type":"text","text":"city is required"}]}}
    """,
)
def argument_not_read(facts: Facts) -> Iterator[Claim]:
    """The server has the argument under another name (arg0, if Java was compiled without -parameters), or reads it from another
    place than params.arguments.
    """
    for failed in _errors(facts):
        words = failed.words[:400]
        absent = _ABSENT.search(words)
        if failed.method != "tools/call" or absent is None or "header" in words:
            continue
        around = words[max(absent.start() - 40, 0) : absent.end() + 40]
        missed = [name for name in sorted(failed.arguments) if re.search(rf"\b{re.escape(name)}\b", around)]
        if missed:
            name = quote(missed[0], 40)
            yield Claim(
                title=f"{failed.about}: the call has the argument {name!r}, and the server does not find it: {quote(words)}",
                next_step=f"compare {name!r} with the names in the tool's inputSchema (tools/list): the server reads it under another"
                " name or from another place",
                symptoms=[failed, *facts.violations("DATA301")],
                side=SERVER,
            )


@cause(
    "method-not-found",
    "the receiver does not know a method",
    level=Level.SPECIFIC,
    positive='> {"id":3,"method":"tools/list"}\n< {"id":3,"error":{"code":-32601,"message":"Method not found"}}',
    negative='> {"id":3,"method":"tools/list"}\n< {"id":3,"error":{"code":-32603,"message":"internal error"}}',
)
def method_not_found(facts: Facts) -> Iterator[Claim]:
    """The method needs a capability that the receiver did not declare, or is of another revision. Asking for an optional one is
    harmless: the client continues without it.
    """
    for side in (CLIENT, SERVER):
        declared = facts.session.server_capabilities if side == CLIENT else facts.session.client_capabilities
        for failed in _errors(facts, side):
            if failed.code != -32601:
                continue
            if failed.method == "server/discover":
                yield Claim(  # Some clients begin another process, and so another session, for initialize.
                    title="the server does not know server/discover (2026-07-28), so the client has to begin with initialize",
                    next_step="update the server's SDK for features of 2026-07-28",
                    symptoms=[failed, *facts.violations("MOD108", "MOD106")],
                    is_observation=True,
                )
                continue
            method = METHODS.get(failed.method)
            needed = (method.needs or "").partition(".")[0] if method is not None else ""
            is_declared = bool(needed) and needed in declared
            receiver = other(side)
            title = f"the {receiver} does not know {failed.method} (error -32601)"
            next_step = f"check the method's name and revision: {failed.method} is not in this {receiver}"
            is_harmless = False
            left: list[Symptom] = [
                each
                for each in facts.of(ClientLeft)
                if failed.answer_at is not None and each.at <= failed.answer_at
            ]
            held = [each for each in facts.failed(*_ERRORS) if each.about in failed.waiting]
            if method is not None and needed and not is_declared:
                title = f"the {side} asked for {failed.method}, and the {receiver} has not declared {needed}"
                next_step = (
                    f"let the {side} ask only for declared capabilities; or declare {needed} and implement it"
                )
                is_harmless = failed.method in _OPTIONAL and not left
                if left:
                    title += ", and left after the error -32601 to it, although that is the right answer"
            elif failed.method == "ping":
                title = f"the {receiver} answers ping with the error -32601; every side must answer it with an empty result"
                next_step = f"let the {receiver} answer ping with {{}}"
                ended = [
                    end
                    for end in facts.of(ServerEnd)
                    if failed.answer_at is not None and failed.answer_at <= end.at and not end.code
                ]
                if ended and side == SERVER:
                    title += ": the server took the client for dead, and ended"
                left = [*ended, *left]
            elif is_declared:
                title = f"the {receiver} declared {needed}, and does not know {failed.method} (error -32601)"
                next_step = f"implement {failed.method}, or do not declare {needed}"
            yield Claim(
                title=title,
                next_step=next_step,
                symptoms=[
                    failed,
                    *left,
                    *held,
                    *facts.violations(
                        "DATA603", "LIFE106", "LIFE108", "LIFE109", side=receiver if is_declared else side
                    ),
                ],
                side=side if method is not None and needed and not is_declared else receiver,
                is_observation=is_harmless,
                level=Level.EXACT
                if failed.method == "ping" or (is_declared and failed.method != "tools/call")
                else None,
            )


@cause(
    "initialize-not-tried",
    "the client stopped after server/discover, without initialize",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":9,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        = 400 {"mcp-session-id":null} {"content-type":"text/plain"}
    """,
    negative="""
        @ http bare
        > {"id":9,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        = 503 {"mcp-session-id":null} {"content-type":"text/plain"}
    """,
)
def initialize_not_tried(facts: Facts) -> Iterator[Claim]:
    """Any refusal of server/discover but one for the revision means a server of an older revision, to which clients send
    initialize (2026-07-28, versioning: compatibility with earlier revisions).
    """
    if facts.client.methods["initialize"] or facts.is_stdio:
        return  # On stdio, some clients begin another process, and so another session, for initialize.
    for failed in facts.failed(State.REFUSED, State.ERROR):
        status = None if failed.refusal is None else failed.refusal.status
        if (
            failed.method != "server/discover"
            or status not in (None, 200, 400, 404, 405)
            or _REVISION.search(failed.words)
        ):
            continue
        said = quote(failed.words or failed.why)
        yield Claim(
            title="the client stopped after server/discover was refused"
            + (f" (HTTP {status})" if status else "")
            + f", and never sent initialize, which a server of an earlier revision needs: {said}",
            next_step="update the client: it must send initialize after this refusal",
            symptoms=[
                failed,
                *facts.of(ClientLeft),
                *(each for each in facts.of(RefusedExchange) if each.method == "GET"),
                *facts.violations("MOD106", "MOD108"),
            ],
            side=CLIENT,
        )


@cause(
    "discover-refused",
    "the server refused server/discover, and the client continued with initialize",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":9,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        = 400 {"mcp-session-id":null} {"content-type":"text/plain"}
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        < {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}}
        > {"method":"notifications/initialized"}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def discover_refused(facts: Facts) -> Iterator[Claim]:
    """A client of 2026-07-28 asks an older server first for its revisions; after any refusal it begins with initialize."""
    for failed in facts.failed():
        if (
            failed.method == "server/discover"
            and facts.client.methods["initialize"]
            and failed.code != -32020
        ):
            yield Claim(
                title=f"the server refused server/discover (2026-07-28), and the client continued with initialize, as it should: {quote(failed.words or failed.why)}",
                next_step="nothing",
                symptoms=[failed, *facts.violations("MOD106", "MOD108")],
                is_observation=True,
            )


@cause(
    "version-mismatch",
    "client and server have no common revision of the protocol",
    level=Level.EXACT,
    positive='@ bare\n> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n< {"id":1,"error":{"code":-32602,"message":"Unsupported protocol version"}}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
)
def version_mismatch(facts: Facts) -> Iterator[Claim]:
    """A server should answer initialize with a revision that it knows, and a client that does not know it leaves."""
    for failed in facts.failed():
        if failed.effects or not (
            failed.code == -32022 or (failed.code is not None and _REVISION.search(failed.words))
        ):
            continue
        if failed.succeeded_at is not None:
            continue
        left = facts.of(ClientLeft) if failed.is_handshake else []
        if failed.method == "server/discover":
            went_on = facts.client.methods["initialize"] > 0
            yield Claim(
                title=f"the server does not know the revision of server/discover: {quote(failed.words)}"
                + (
                    "; the client continued with initialize, as it should"
                    if went_on
                    else ", and the client did not fall back to initialize"
                ),
                next_step="nothing"
                if went_on
                else "the client must send initialize to an older server: update it, or set it to the older revisions",
                symptoms=[failed, *facts.violations("MOD106", "MOD108")],
                side=CLIENT,
                is_observation=went_on,
            )
            continue
        asked = facts.listed.asked_revision if failed.method == "initialize" else None
        yield Claim(
            title=f"the server refused the revision{f' {quote(asked, 20)}' if isinstance(asked, str) else ''} that the client asked for: {quote(failed.words)}",
            next_step="let the server answer with a revision that it knows, in place of an error; or update the older side",
            symptoms=[failed, *left, *facts.violations("LIFE104", "MOD106", "HOST303")],
            side=SERVER,
        )
    for violation in facts.violations("LIFE114", "HOST303"):
        if facts.answered[CLIENT, "tools/list"] or facts.answered[CLIENT, "tools/call"]:
            continue
        if "revision None" in violation.findings[0].message:
            continue
        if facts.client.closed_at is not None and (facts.server.last_at or 0.0) >= facts.client.closed_at:
            continue  # It left before the response.
        yield Claim(
            title=quote(violation.findings[0].message),
            next_step="update the older side: the revisions are in the request and the response of initialize",
            symptoms=[violation, *facts.of(ClientLeft)],
            side="",
        )


@cause(
    "revision-not-supported",
    "the server supports none of the revisions that the client asked for",
    level=Level.EXACT,
    positive="""
        @ 2026-07-28 http
        > {"id":1,"method":"server/discover"}
        < {"id":1,"result":{"supportedVersions":["2099-01-01"],"capabilities":{}}}
    """,
    negative="""
        @ 2026-07-28 http
        > {"id":1,"method":"server/discover"}
        < {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}
    """,
)
def revision_not_supported(facts: Facts) -> Iterator[Claim]:
    """Since 2026-07-28, a client asks server/discover for the revisions, and leaves if it knows none of them."""
    if (
        facts.listed.unsupported is not None
        and not facts.client.methods["tools/list"]
        and not facts.client.methods["initialize"]
    ):
        asked, supported = facts.listed.unsupported
        yield Claim(
            title=f"the client asked for {quote(asked, 20)}, and the server supports {quote(', '.join(supported), 100)}",
            next_step="update the older side: they have no revision in common",
            symptoms=[*facts.of(ClientLeft)],
        )


@cause(
    "ended-by-design",
    "an error that the specification has for something that is not a failure",
    level=Level.EXACT,
    positive="""
        @ 2026-07-28
        > {"id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}
        < {"id":2,"error":{"code":-32000,"message":"Connection closed"}}
    """,
    negative="""
        @ 2026-07-28
        > {"id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}
        < {"id":2,"error":{"code":-32603,"message":"Connection closed"}}
    """,
)
def ended_by_design(facts: Facts) -> Iterator[Claim]:
    """A subscription ends with an error when its connection does, and -32042 asks the client to open a URL first."""
    for failed in _errors(facts):
        is_subscription = failed.method == SUBSCRIBE and failed.code == -32000
        if is_subscription or failed.code == -32042:
            yield Claim(
                title=f"{failed.about} was answered with error {failed.code}: {quote(failed.words)}",
                next_step="nothing"
                if is_subscription
                else "the client opens the URL for its user, and sends the request again",
                symptoms=[failed],
                is_observation=True,
            )


@cause(
    "header-dropped",
    "a header that the client sent did not reach the server",
    level=Level.EXACT,
    positive="""
        @ 2026-07-28 http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 400 {"mcp-name":null}
        < {"id":2,"error":{"code":-32020,"message":"Header mismatch: Mcp-Name is missing"}}
    """,
    negative="""
        @ 2026-07-28 http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 400
        < {"id":2,"error":{"code":-32602,"message":"Unknown tool: a"}}
    """,
)
def header_dropped(facts: Facts) -> Iterator[Claim]:
    """The server compares headers of 2026-07-28 with the body. mcpspy recorded the headers as the client sent them, so it is
    known on which side of mcpspy one was lost.
    """
    for failed in facts.failed(*_ERRORS, State.REFUSED):
        if failed.code != -32020 and not re.search(
            r"(?i)header mismatch|missing (?:required )?(?:mcp-[\w-]+ )?header|mcp-(?:method|name|param)",
            failed.words,
        ):
            continue
        missing: list[Symptom] = [*facts.violations("HTTP101", "HTTP102", "HTTP103", "HTTP104", "HTTP106")]
        named = re.search(r"(?i)\bmcp-[\w-]+", failed.words)
        is_sent = failed.refusal is None or named is None or named[0].lower() in failed.refusal.request
        if missing or not is_sent:
            title = f"{failed.about} came without a header that the server wants: {quote(failed.words)}"
            next_step = "let the client send it; or look what drops it between the client and mcpspy"
            side = CLIENT
        else:
            title = f"the server misses a header of {failed.about} that the client sent ({quote(failed.words)}): something between mcpspy and the server dropped it"
            next_step = "let the proxy or gateway behind mcpspy pass on all headers that begin with Mcp-"
            side = "proxy"
        yield Claim(
            title=title,
            next_step=next_step,
            symptoms=[failed, *missing],
            side=side,
            is_observation=failed.succeeded_at is not None,
        )


@cause(
    "session-refused-in-200",
    "the server refuses the session with an error in place of HTTP 404",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"error":{"code":-32000,"message":"Session not found"}}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"error":{"code":-32000,"message":"no data"}}
    """,
)
def session_refused(facts: Facts) -> Iterator[Claim]:
    """A client sends initialize again after a 404; after an error of JSON-RPC it cannot know that it should."""
    if facts.is_stdio:
        return
    failed = [each for each in _errors(facts) if _SESSION.search(each.words[:200]) and each.refusal is None]
    if failed and facts.http.session_ids:
        yield Claim(
            title=f"the server refuses the session that it had assigned, with HTTP 200 and the error {quote(failed[0].words)!r}: it lost its sessions, and the client cannot know that it must begin again",
            next_step="let the server answer 404 for a session that it does not know, and keep its sessions over restarts",
            symptoms=[*failed],
            side=SERVER,
        )


@cause(
    "token-refused-in-200",
    "a refused token is hidden in a result",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 200 {"authorization":"Bearer x"}
        < {"id":2,"result":{"isError":true,"content":[{"type":"text","text":"401 Unauthorized: invalid access token"}]}}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"isError":true,"content":[{"type":"text","text":"401 Unauthorized: invalid access token"}]}}
    """,
)
def token_refused_in_result(facts: Facts) -> Iterator[Claim]:
    """A client refreshes its token after a 401; an error in a result with HTTP 200 does not have that effect."""
    failed = [each for each in _errors(facts) if _TOKEN.search(each.words[:600]) and each.refusal is None]
    if failed and facts.http.has_token:
        had_worked = facts.answered[CLIENT, "tools/call"] > 0
        yield Claim(
            title=f"the token of the client is {'no longer ' if had_worked else 'not '}accepted, and the server says so in a result with HTTP 200: {quote(failed[0].words)}",
            next_step="let the server answer 401, so that the client refreshes its token; until then sign in again",
            symptoms=[*failed],
            side=SERVER,
        )


@cause(
    "capability-missing",
    "a feature is used that the other side did not declare",
    level=Level.SPECIFIC,
    positive="""
        @ client={}
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":7,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}
        > {"id":7,"error":{"code":-32603,"message":"no sampling here"}}
        < {"id":2,"result":{"content":[]}}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":7,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}
        > {"id":7,"error":{"code":-32603,"message":"no sampling here"}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def capability_missing(facts: Facts) -> Iterator[Claim]:
    """A server must not ask for sampling, elicitation or roots of a client that has not declared them."""
    for failed in facts.failed():
        if failed.code == -32021 or (
            failed.state in _ERRORS
            and any(each.code in ("LIFE106", "LIFE115", "MOD305") for each in failed.findings)
        ):
            if failed.code == -32601 and failed.side == CLIENT:
                continue
            who, peer = failed.side, other(failed.side)
            held = [each for each in facts.failed(*_ERRORS) if each.about in failed.waiting]
            yield Claim(
                title=f"the {who} sent {failed.about}, and the {peer} has not declared that it can do this: {quote(failed.words)}",
                next_step=f"let the {who} ask only for what the {peer} declared in the handshake; or let the {peer} declare it",
                symptoms=[failed, *held, *facts.violations("LIFE106", "LIFE115", "MOD305", side=who)],
                side=who,
                level=Level.EXACT if failed.findings else None,
            )
    for violation in facts.violations("MOD305"):
        yield Claim(
            title=quote(violation.findings[0].message),
            next_step="let the server ask only for what the client declared in its request",
            symptoms=[violation, *facts.failed(State.NOT_CONTINUED)],
            side=SERVER,
        )


@cause(
    "task-required",
    "a tool that wants a task was called without one",
    level=Level.EXACT,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"error":{"code":-32601,"message":"Tool a requires task-augmented execution"}}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"error":{"code":-32603,"message":"internal error"}}
    """,
)
def task_required(facts: Facts) -> Iterator[Claim]:
    """execution.taskSupport is "required" in tools/list, and the client does not know tasks."""
    for failed in _errors(facts):
        wants = [each for each in failed.findings if each.code == "DATA706"]
        if failed.method == "tools/call" and (
            wants or re.search(r"(?i)\btask\b.{0,30}required|requires? (?:a )?task", failed.words)
        ):
            yield Claim(
                title=f"{failed.about} was called without a task, which the tool requires: {quote(failed.words)}",
                next_step='use a client that knows tasks, or let the server declare taskSupport "optional"',
                symptoms=[failed, *facts.violations("DATA706")],
                side=CLIENT,
            )


@cause(
    "task-failed",
    "a task failed",
    level=Level.SPECIFIC,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{},"task":{"ttl":60000}}}
        < {"id":2,"result":{"task":{"taskId":"t","status":"working","createdAt":"2026-11-21T00:00:00Z","lastUpdatedAt":"2026-11-21T00:00:00Z","ttl":60000}}}
        > {"id":3,"method":"tasks/get","params":{"taskId":"t"}}
        < {"id":3,"result":{"taskId":"t","status":"failed","createdAt":"2026-11-21T00:00:00Z","lastUpdatedAt":"2026-11-21T00:00:00Z","ttl":60000,"statusMessage":"worker died"}}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{},"task":{"ttl":60000}}}
        < {"id":2,"result":{"task":{"taskId":"t","status":"working","createdAt":"2026-11-21T00:00:00Z","lastUpdatedAt":"2026-11-21T00:00:00Z","ttl":60000}}}
        > {"id":3,"method":"tasks/get","params":{"taskId":"t"}}
        < {"id":3,"result":{"taskId":"t","status":"completed","createdAt":"2026-11-21T00:00:00Z","lastUpdatedAt":"2026-11-21T00:00:00Z","ttl":60000}}
        > {"id":4,"method":"tasks/result","params":{"taskId":"t"}}
        < {"id":4,"result":{"content":[]}}
    """,
)
def task_failed(facts: Facts) -> Iterator[Claim]:
    """The call was answered with a task, and the task ended as failed."""
    for failed in facts.failed(State.TASK_FAILED):
        yield Claim(
            title=f"the task of {failed.about} failed after {failed.waited}{f': {quote(failed.words or failed.why)}' if failed.words or failed.why else ', and gave no reason'}",
            next_step="read the server's log at this time; let it say the reason in statusMessage or as an error",
            symptoms=[failed],
            side=SERVER,
        )


@cause(
    "task-not-finished",
    "a task had not ended when the session did",
    level=Level.SPECIFIC,
    positive="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{},"task":{"ttl":60000}}}
        < {"id":2,"result":{"task":{"taskId":"t","status":"working","createdAt":"2026-11-21T00:00:00Z","lastUpdatedAt":"2026-11-21T00:00:00Z","ttl":60000}}}
        > {"id":3,"method":"tasks/get","params":{"taskId":"t"}}
        < {"id":3,"result":{"taskId":"t","status":"working","createdAt":"2026-11-21T00:00:00Z","lastUpdatedAt":"2026-11-21T00:00:00Z","ttl":60000}}
        * eof {"from":"client"}
        * exit {"code":0,"signal":null}
    """,
    negative="""
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{},"task":{"ttl":60000}}}
        < {"id":2,"result":{"task":{"taskId":"t","status":"working","createdAt":"2026-11-21T00:00:00Z","lastUpdatedAt":"2026-11-21T00:00:00Z","ttl":60000}}}
        > {"id":3,"method":"tasks/get","params":{"taskId":"t"}}
        < {"id":3,"result":{"taskId":"t","status":"completed","createdAt":"2026-11-21T00:00:00Z","lastUpdatedAt":"2026-11-21T00:00:00Z","ttl":60000}}
        > {"id":4,"method":"tasks/result","params":{"taskId":"t"}}
        < {"id":4,"result":{"content":[]}}
        * eof {"from":"client"}
        * exit {"code":0,"signal":null}
    """,
)
def task_not_finished(facts: Facts) -> Iterator[Claim]:
    """The client never asked for the state of the task, gave it up, or the task takes longer than the session."""
    polls = facts.client.methods["tasks/get"] + facts.client.methods["tasks/result"]
    for failed in facts.failed(State.UNFINISHED):
        title = f"the task of {failed.about} was still working after {failed.waited}, when the session ended"
        next_step = "let the client wait for the task, and let the server report its state; the work may still continue"
        side = ""
        if not polls:
            title = (
                f"{failed.about} was answered with a task, and the client never asked for its state or result"
            )
            next_step = "the client does not know tasks: let the server create one only if the client asked for it or declared the extension"
            side = CLIENT
        yield Claim(title=title, next_step=next_step, symptoms=[failed], side=side)


@cause(
    "question-not-answered",
    "a request was answered with a question that the client never answered",
    level=Level.SPECIFIC,
    positive="""
        @ 2026-07-28
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{}}}}}}}
        * eof {"from":"client"}
        * exit {"code":0,"signal":null}
    """,
    negative="""
        @ 2026-07-28
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
        * eof {"from":"client"}
        * exit {"code":0,"signal":null}
    """,
)
def question_not_answered(facts: Facts) -> Iterator[Claim]:
    """Since 2026-07-28, a server asks for input in its result, and the client sends the request again with the answers."""
    for failed in facts.failed(State.NOT_CONTINUED):
        yield Claim(
            title=f"{failed.about} was answered with a question (input_required), and the client never sent it again with an answer",
            next_step="look into the client: it does not know this question, or the user has not answered it",
            symptoms=[failed],
            side=CLIENT,
        )
