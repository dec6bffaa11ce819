"""Requests that were answered with an error: tools, arguments, methods, revisions, headers, tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import Definition, FailureRow, define
from mcpspy.analysis.explain.claims import Claim, Level
from mcpspy.analysis.explain.evidence import clause, evidence, named_error, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, RefusedExchange, ServerEnd, Symptom
from mcpspy.core.protocol.spec import CLIENT, METHODS, MODERN, SERVER, other
from mcpspy.core.session.exchange import SUBSCRIBE, State

ERRORS = (State.ERROR, State.TOOL_ERROR, State.LATE_ERROR, State.LATE_TOOL_ERROR)

# Words of errors, and who writes them.

_UNKNOWN = re.compile(
    r"(?i)\b(?:unknown|no such|not found|does not exist|unrecognized|not registered|no tool)\b"
)
_RAN = re.compile(r"(?i)^error (?:executing|running|calling|in) (?:the )?tool \S+?:? ")
"""The words that SDKs put before the error of a tool that they know and have run."""

_TYPED = re.compile(
    r"(?i)\b(?:arrays?|lists?|objects?|dict(?:ionary)?|mapping|expected|type|pars(?:e|ing)|must be)\b"
)
_ABSENT = re.compile(
    r"(?i)\b(?:is|are|was|of|got|be) (?:null|none|undefined|nil|empty|missing|required)\b|\bmissing\b|\bnot (?:provided|set|given|specified)\b|NoneType|\brequired\b"
)
"""Validators, and what programs print that use a value without a look."""

_ARGUMENTS = re.compile(
    r"(?i)validation error|invalid arguments?|invalid params|input validation|failed to (?:parse|deserialize) (?:parameters|arguments)|missing (?:required )?(?:argument|parameter|field|property)|required (?:argument|parameter|property)|unexpected keyword|invalid_type|invalid input|must (?:be|have) (?:a |an |required )?(?:string|number|integer|object|array|boolean|property)"
)
"""The SDKs, and pydantic, zod, ajv, jsonschema and serde under them."""

_HEADER = re.compile(
    r"(?i)header mismatch|missing (?:required )?(?:mcp-[\w-]+ )?header|mcp-(?:method|name|param)"
)
_TASK = re.compile(r"(?i)\btask\b.{0,30}required|requires? (?:a )?task")
_SESSION = r"\bsession\b.{0,40}(?:not found|invalid|expired|unknown|missing|terminated|closed|does not exist)|(?:invalid|unknown|missing|no valid|expired).{0,30}\bsession"
"""The SDKs of TypeScript, Python, Go and Rust."""

_UNAUTHORIZED = r"(?:invalid|expired|revoked).{0,30}(?:access )?token|token.{0,30}(?:invalid|expired|revoked)|invalid[-_ ]authori[sz]ation|unauthori[sz]ed|\b401\b"
"""The service behind the server, in the words of its HTTP client."""

_OPTIONAL = "resources/list resources/templates/list prompts/list logging/setLevel completion/complete ping tools/list".split()
"""Methods that clients ask for without need."""


def _errors(facts: Facts, side: str = CLIENT) -> Iterator[FailedRequest]:
    for failed in facts.failed(*ERRORS):
        if failed.side == side and not failed.effects:
            yield failed


def _held_up(facts: Facts, asking: FailedRequest) -> list[FailedRequest]:
    """Return the failed calls during which the other side sent a request."""
    return [each for each in facts.failed(*ERRORS) if each.about in asking.waiting]


def unknown_tool(facts: Facts) -> Iterator[Claim]:
    """The host has an old list, adds its own prefix, or the model invented the name."""
    tools = facts.listed.tools
    for failed in _errors(facts):
        name = failed.subject
        words = _RAN.sub("", failed.words[:300])
        says_so = ("tool" in words.lower() or f"{name!r}" in words) and _UNKNOWN.search(words)
        if failed.method != "tools/call" or name in tools or not (says_so or tools):
            continue
        if not says_so and failed.code not in (-32601, -32602):
            continue
        title = f"the tool {quote(name)!r} was called, which the server does not offer"
        next_step = "list the tools again: the host has an old list, or the model invented the name"
        inner = [each for each in tools if name.endswith(each) or each.endswith(name)]
        near = get_close_matches(name, sorted(tools), 1, 0.6)
        if inner:
            title += f"; it offers {quote(inner[0])!r}: the prefix is the host's or the gateway's"
            next_step = "remove the prefix before the call is sent to this server, or use the name that tools/list has"
        elif near:
            title += f"; it offers {quote(near[0])!r}"
            next_step = f"call {quote(near[0])!r}, or list the tools again"
        symptoms = [failed, *facts.violations("DATA307")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=CLIENT)


def invalid_arguments(facts: Facts) -> Iterator[Claim]:
    """The model did not know what the arguments mean, or the server checks more than its schema states."""
    for failed in _errors(facts):
        broken = [each for each in failed.findings if each.code in ("DATA301", "DATA101")]
        is_said = failed.code == -32602 or _ARGUMENTS.search(failed.words[:400])
        if not broken and (failed.method != "tools/call" or not is_said):
            continue
        side, next_step = "", "compare the arguments with the schema, which should state what is required"
        if broken:
            side = CLIENT
            next_step = "correct the arguments that the client sends: they violate the tool's schema, as tools/list has it"
        elif facts.listed.tools:
            side = SERVER
            next_step = "the arguments fit the schema that the server listed, and it refused them: let the schema state what the tool requires"
        words = failed.words or (broken[0].message if broken else "")
        title = f"{failed.about}: the arguments do not fit: {quote(words)}"
        symptoms = [failed, *facts.violations(*{each.code for each in broken})]
        lines = [evidence(each.place, f"{each.code} {each.message}") for each in broken[:2]]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=side)


def argument_as_text(facts: Facts) -> Iterator[Claim]:
    """Hosts flatten an array or object to its text if the schema of the argument also allows a string, or has no type."""
    for failed in _errors(facts):
        if failed.json_arguments and _TYPED.search(failed.words[:400]):
            names = ", ".join(quote(name, 40) for name in failed.json_arguments[:3])
            title = f"{failed.about}: the client sent {names} as a string that holds JSON, and not as a value: {quote(failed.words)}"
            next_step = "let the client send the array or object itself; a schema that allows nothing else for this argument (no string beside it) keeps hosts from this"
            symptoms = [failed, *facts.violations("DATA301")]
            yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=CLIENT)


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
            title = f"{failed.about}: the call has the argument {name!r}, and the server does not find it: {quote(words)}"
            next_step = f"compare {name!r} with the names in the tool's inputSchema (tools/list): the server reads it under another name or from another place"
            symptoms = [failed, *facts.violations("DATA301")]
            yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=SERVER)


def method_not_found(facts: Facts) -> Iterator[Claim]:
    """The method is of a capability that was not declared, or of another revision. Asking for an optional one is harmless."""
    for side in (CLIENT, SERVER):
        declared = facts.session.server_capabilities if side == CLIENT else facts.session.client_capabilities
        for failed in _errors(facts, side):
            if failed.code != -32601 or failed.method == "server/discover":
                continue
            known, receiver = METHODS.get(failed.method), other(side)
            needed = (known.needs or "").partition(".")[0] if known is not None else ""
            is_declared = bool(needed) and needed in declared
            left: list[Symptom] = [
                each for each in facts.of(ClientLeft) if each.at <= (failed.answer_at or 0.0)
            ]
            is_ping = failed.method == "ping"
            if is_declared:
                title = f"the {receiver} declared {needed}, and does not know {failed.method} (error -32601)"
                next_step = f"implement {failed.method}, or do not declare {needed}"
            elif needed:
                title = f"the {side} asked for {failed.method}, and the {receiver} has not declared {needed}"
                title += ", and left after this error, although it is the right answer" if left else ""
                next_step = f"let the {side} ask only for what is declared; or declare and implement {needed}"
            elif is_ping:
                title = f"the {receiver} answers ping with the error -32601; every side must answer it with an empty result"
                next_step = f"let the {receiver} answer ping with {{}}"
                ends = [each for each in facts.of(ServerEnd) if side == SERVER and not each.code]
                left += [each for each in ends if (failed.answer_at or 0.0) <= each.at]
                title += ": the server took the client for dead, and ended" if left else ""
            else:
                title = f"the {receiver} does not know {failed.method} (error -32601)"
                next_step = f"check the method's name and revision: {failed.method} is not in this {receiver}"
            rules = ("DATA603", "LIFE106", "LIFE108", "LIFE109")
            findings = facts.violations(*rules, side=receiver if is_declared else side)
            symptoms = [failed, *left, *_held_up(facts, failed), *findings]
            is_early = bool(needed) and not is_declared
            who = side if is_early else receiver
            claim = Claim(title=title, next_step=next_step, symptoms=symptoms, side=who)
            claim.is_observation = is_early and failed.method in _OPTIONAL and not left
            is_exact = is_ping or (is_declared and failed.method != "tools/call")
            claim.level = Level.EXACT if is_exact else None
            yield claim


def _wants_task(facts: Facts, failed: FailedRequest) -> bool:
    is_found = any(each.code == "DATA706" for each in failed.findings)
    return failed.method == "tools/call" and (is_found or _TASK.search(failed.words) is not None)


_LISTEN = ex.request(SUBSCRIBE, notifications={"toolsListChanged": True})


def header_dropped(facts: Facts) -> Iterator[Claim]:
    """The server compares headers of 2026-07-28 with the body. mcpspy recorded those that the client sent."""
    missing = facts.violations("HTTP101", "HTTP102", "HTTP103", "HTTP104", "HTTP106")
    for failed in facts.failed(*ERRORS, State.REFUSED):
        if failed.code != -32020 and not _HEADER.search(failed.words):
            continue
        named = re.search(r"(?i)\bmcp-[\w-]+", failed.words)
        is_sent = failed.refusal is None or named is None or named[0].lower() in failed.refusal.request
        title = f"the server misses a header of {failed.about} that the client sent ({quote(failed.words)}): something between mcpspy and the server dropped it"
        next_step = "let the proxy or gateway behind mcpspy pass on all headers that begin with Mcp-"
        side = "proxy"
        if missing or not is_sent:
            title = f"{failed.about} came without a header that the server wants: {quote(failed.words)}"
            next_step, side = "let the client send it; or look what drops it before mcpspy", CLIENT
        symptoms, is_over = [failed, *missing], failed.succeeded_at is not None
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side, is_observation=is_over)


_REFUSED_KEY = ex.done(2, "401 Unauthorized: invalid access token", isError=True)
_SAMPLE = ex.asked("sampling/createMessage", messages=[], maxTokens=9)
_SAMPLING = ex.session(ex.call(), _SAMPLE, ex.error("no sampling here", -32603, 7, ">"), ex.done())


def capability_missing(facts: Facts) -> Iterator[Claim]:
    """A server must not ask for sampling, elicitation or roots of a client that has not declared them."""
    rules = ("LIFE106", "LIFE115", "MOD305")
    for failed in facts.failed():
        is_found = failed.state in ERRORS and any(each.code in rules for each in failed.findings)
        is_unknown = failed.code == -32601 and failed.side == CLIENT
        if failed.code == -32021 or (is_found and not is_unknown):
            who, peer = failed.side, other(failed.side)
            title = f"the {who} sent {failed.about}, and the {peer} has not declared that it can do this: {quote(failed.words)}"
            next_step = f"let the {who} ask only for what the {peer} declared in the handshake; or let the {peer} declare it"
            symptoms = [failed, *_held_up(facts, failed), *facts.violations(*rules, side=who)]
            level = Level.EXACT if failed.findings else None
            yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=who, level=level)
    for violation in facts.violations("MOD305"):
        title = quote(violation.findings[0].message)
        next_step = "let the server ask only for what the client declared in its request"
        waiting = [violation, *facts.failed(State.NOT_CONTINUED)]
        yield Claim(title=title, next_step=next_step, symptoms=waiting, side=SERVER)


_COMPLETED = ex.session(ex.task(2, "completed"), ex.request("tasks/result", 4, taskId="t"), ex.done(4))


def task_not_finished(facts: Facts) -> Iterator[Claim]:
    """The client never asked for the state of the task, gave it up, or the task takes longer than the session."""
    has_asked = facts.client.methods["tasks/get"] + facts.client.methods["tasks/result"]
    for failed in facts.failed(State.UNFINISHED):
        title = f"the task of {failed.about} was still working after {failed.waited}, when the session ended"
        next_step = "let the client wait for the task, and let the server report its state; the work may still continue"
        if not has_asked:
            title = f"{failed.about} was answered with a task, and the client never asked for its state"
            next_step = "the client does not know tasks: let the server create one only if the client asked for it or declared the extension"
        side = "" if has_asked else CLIENT
        yield Claim(title=title, next_step=next_step, symptoms=[failed], side=side)


_REVISION = re.compile(
    r"(?i)(?:protocol|unsupported|revision|mcp)[ -]?version|version .{0,30}not supported|unsupported protocol"
)
"""The SDKs, which refuse the revision of a request."""


_DISCOVER = ex.request("server/discover", 9, _meta={"io.modelcontextprotocol/protocolVersion": MODERN})
_UPDATE = "update the server's SDK for features of the newer revision"


def discover_refused(facts: Facts) -> Iterator[Claim]:
    """A client of 2026-07-28 asks an older server first for its revisions; after any refusal it begins with initialize."""
    went_on = facts.client.methods["initialize"] > 0
    for failed in facts.failed():
        # Some clients begin another process, and so another session, for initialize.
        is_unknown = failed.code == -32601 and not failed.effects and failed.state in ERRORS
        if failed.method == "server/discover" and failed.code != -32020 and (went_on or is_unknown):
            how = "continued with initialize, as it should" if went_on else "has to begin with initialize"
            title = f"the server refused server/discover ({MODERN}), and the client {how}: {quote(failed.words or failed.why)}"
            symptoms = [failed, *facts.violations("MOD106", "MOD108")]
            claim = Claim(title=title, next_step=_UPDATE, symptoms=symptoms, is_observation=True)
            claim.level = Level.EXACT if went_on else Level.SPECIFIC
            yield claim


def initialize_not_tried(facts: Facts) -> Iterator[Claim]:
    """Any refusal of server/discover but one for the revision means a server of an older revision, to which clients send
    initialize (2026-07-28, versioning: compatibility with earlier revisions).
    """
    if facts.client.methods["initialize"] or facts.is_stdio:
        return  # On stdio, some clients begin another process, and so another session, for initialize.
    for failed in facts.failed(State.REFUSED, State.ERROR):
        status = None if failed.refusal is None else failed.refusal.status
        is_of_server = status in (None, 200, 400, 404, 405) and not _REVISION.search(failed.words)
        if failed.method != "server/discover" or not is_of_server:
            continue
        how = f" (HTTP {status})" if status else ""
        title = f"the client stopped after server/discover was refused{how}, and never sent initialize, which a server of an earlier revision needs: {quote(failed.words or failed.why)}"
        next_step = "update the client: it must send initialize after this refusal"
        gets = [each for each in facts.of(RefusedExchange) if each.method == "GET"]
        symptoms = [failed, *facts.of(ClientLeft), *gets, *facts.violations("MOD106", "MOD108")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=CLIENT)


def version_mismatch(facts: Facts) -> Iterator[Claim]:
    """A server should answer initialize with a revision that it knows, and a client that does not know it leaves."""
    for failed in facts.failed():
        is_about = failed.code == -32022 or (failed.code is not None and _REVISION.search(failed.words))
        is_discover = failed.method == "server/discover"
        has_gone_on = failed.succeeded_at is not None or (is_discover and facts.client.methods["initialize"])
        if failed.effects or has_gone_on or not is_about:
            continue
        if is_discover:
            title = f"the server does not know the revision of server/discover: {quote(failed.words)}, and the client did not fall back to initialize"
            next_step = "the client must send initialize to an older server: update it, or set it to the older revisions"
            symptoms = [failed, *facts.violations("MOD106", "MOD108")]
            yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=CLIENT)
            continue
        asked = facts.listed.asked_revision if failed.method == "initialize" else None
        left = facts.of(ClientLeft) if failed.is_handshake else []
        title = f"the server refused the revision{f' {quote(asked, 20)}' if asked else ''} that the client asked for: {quote(failed.words)}"
        next_step = "let the server answer with a revision that it knows, in place of an error; or update the older side"
        symptoms = [failed, *left, *facts.violations("LIFE104", "MOD106", "HOST303")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=SERVER)
    has_worked = facts.answered[CLIENT, "tools/list"] or facts.answered[CLIENT, "tools/call"]
    closed_at = facts.client.closed_at
    has_left_before = closed_at is not None and (facts.server.last_at or 0.0) >= closed_at
    for violation in facts.violations("LIFE114", "HOST303"):
        message = violation.findings[0].message
        if not has_worked and not has_left_before and "revision None" not in message:
            title = quote(message)
            next_step = "update the older side: the revisions are in initialize and its response"
            yield Claim(title=title, next_step=next_step, symptoms=[violation, *facts.of(ClientLeft)])


def revision_not_supported(facts: Facts) -> Iterator[Claim]:
    """Since 2026-07-28, a client asks server/discover for the revisions, and leaves if it knows none of them."""
    went_on = facts.client.methods["tools/list"] + facts.client.methods["initialize"]
    if facts.listed.unsupported is not None and not went_on:
        asked, supported = facts.listed.unsupported
        title = f"the client asked for {quote(asked, 20)}, and the server supports {quote(', '.join(supported), 100)}"
        next_step = "update the older side: they have no revision in common"
        yield Claim(title=title, next_step=next_step, symptoms=[*facts.of(ClientLeft)])


def downgrade(facts: Facts) -> Iterator[Claim]:
    """Both speak the older revision, so all is well; features of the newer one are not available."""
    asked, agreed = facts.listed.asked_revision, facts.session.agreed_revision
    if asked is not None and agreed is not None and agreed < asked:
        title = f"the client asked for {quote(asked, 20)}, and the server chose {quote(agreed, 20)}"
        next_step = "update the server's SDK for features of the newer revision"
        yield Claim(title=title, next_step=next_step, symptoms=[], is_observation=True)


def request_failed(facts: Facts) -> Iterator[Claim]:
    """The error is the best explanation there is."""
    for failed in facts.failed():
        receiver, words = other(failed.side), failed.words or failed.why
        title = f"{failed.about}: {failed.state}{clause(words)}"
        next_step = f"look into the {receiver}'s own log at this time"
        if failed.state in ERRORS:
            kind = "tool error" if failed.state in (State.TOOL_ERROR, State.LATE_TOOL_ERROR) else "error"
            code = f" {failed.code}" if failed.code is not None else ""
            title = f"{failed.about} failed: {kind}{code}{clause(words)}"
            next_step = f"these are the words of the {receiver}: correct what they name; mcpspy show -v prints the whole message"
        on_stderr = named_error(failed.stderr, certain=True)
        if on_stderr is not None and on_stderr.text[:60] not in words:
            title += f"; on stderr: {quote(on_stderr.text)}"
        lines = [] if on_stderr is None else [on_stderr.evidence]
        yield Claim(title=title, next_step=next_step, symptoms=[failed], evidence=lines)


_DROPPED = '* rule {"action":"drop","rule":"1","from":"client","id":"2","method":"tools/call","subject":"a"}'


def mcpspy_rule(facts: Facts) -> Iterator[Claim]:
    """--rule, --rules, --call-timeout, a script or a viewer acted on this very request."""
    for failed in facts.failed():
        if failed.effects:
            title = f"mcpspy acted on {failed.about}: {quote('; '.join(dict.fromkeys(failed.effects)))}"
            next_step = "remove --rule, --rules, --script and --call-timeout, and try again"
            yield Claim(title=title, next_step=next_step, symptoms=[failed], side="mcpspy")


define(__name__,
    Definition(unknown_tool, "unknown-tool", "a tool was called that the server does not offer", Level.EXACT,
               ex.session(ex.listed("forecast"), ex.call(3, "weather_forecast"), ex.error("Unknown tool: x", -32602, 3)),
               ex.session(ex.call(2, "forecast"), ex.error("internal error"))),
    FailureRow("own-result-refused", "the server's own library refused the result of its tool", Level.EXACT,
        "SDKs check results before they send them, and answer with the code of invalid params: it is not about the arguments.",
        "the result of {about} was refused by the server's own library{quoted}",
        "correct the result that the tool returns: the form that its schema or the protocol requires",
        ex.session(ex.call(), ex.error("Invalid tools/call result: content 0 data: Invalid Base64 string", -32602)),
        ex.session(ex.call(), ex.error("Invalid arguments for tool a", -32602)), states=ERRORS,
        words=r"invalid \S{0,20} ?result|output validation|invalid structured content|result (?:is )?not valid"),
    Definition(invalid_arguments, "invalid-arguments", "arguments do not fit the tool's schema", Level.SPECIFIC,
               ex.session(ex.call(), ex.done(2, "Input validation error: days is a required property", isError=True)),
               ex.session(ex.call(), ex.done(2, "no data", isError=True))),
    Definition(argument_as_text, "argument-as-text", "an argument is the JSON text of a value, and not the value", Level.EXACT,
               ex.session(ex.request("tools/call", name="a", arguments={"path": '["b"]'}), ex.done(2, "path must be an array", isError=True)),
               ex.session(ex.request("tools/call", name="a", arguments={"path": '["b"]'}), ex.done(2, "the disk is full", isError=True))),
    Definition(argument_not_read, "argument-not-read", "the server misses an argument that was sent", Level.EXACT,
               ex.session(ex.request("tools/call", name="a", arguments={"city": "Rome"}), ex.done(2, 'Cannot read "city" because it is null', isError=True)),
               ex.session(ex.call(), ex.done(2, "city is required", isError=True))),
    Definition(method_not_found, "method-not-found", "the receiver does not know a method", Level.SPECIFIC,
               ex.session(ex.request("tools/list"), ex.error("Method not found", -32601)), ex.session(ex.request("tools/list"), ex.error("internal error"))),
    Definition(initialize_not_tried, "initialize-not-tried", "the client stopped after server/discover, without initialize", Level.EXACT,
               ex.session("@ http bare", _DISCOVER, ex.answered(400, {"mcp-session-id": None}, {"content-type": "text/plain"})),
               ex.session("@ http bare", _DISCOVER, ex.answered(503, {"mcp-session-id": None}, {"content-type": "text/plain"}))),
    Definition(discover_refused, "discover-refused", "the server refused server/discover, and the client continued with initialize", Level.EXACT,
               ex.session("@ http bare", _DISCOVER, ex.answered(400, {"mcp-session-id": None}, {"content-type": "text/plain"}), *(ex.initialize(), ex.welcome(), ex.INITIALIZED))),
    Definition(version_mismatch, "version-mismatch", "client and server have no common revision of the protocol", Level.EXACT,
               ex.session("@ bare", ex.initialize(), ex.error("Unsupported protocol version", -32602, 1))),
    Definition(revision_not_supported, "revision-not-supported", "the server supports none of the revisions that the client asked for", Level.EXACT,
               ex.session(f"@ {MODERN} http", ex.request("server/discover"), ex.result(supportedVersions=["2099-01-01"])),
               ex.session(f"@ {MODERN} http", ex.request("server/discover"), ex.result(supportedVersions=[MODERN]))),
    Definition(downgrade, "downgrade", "the server answered with an older revision than the client asked for", Level.GENERAL,
               ex.session("@ bare", ex.initialize(), ex.welcome(1, "2025-06-18"), ex.INITIALIZED, ex.request("ping"), ex.result())),
    FailureRow("ended-by-design", "an error that the specification has for something that is not a failure", Level.EXACT,
        "A subscription ends with an error when its connection does, and -32042 asks the client to open a URL first.",
        "{about} was answered with error {code}{quoted}", "nothing; after -32042 the client opens the URL for its user, and sends the request again",
        ex.session("@ 2026-07-28", _LISTEN, ex.error("Connection closed", -32000)), ex.session("@ 2026-07-28", _LISTEN, ex.error("Connection closed")), side="",
        states=ERRORS, is_observation=True, if_failed=lambda _, failed: failed.code == -32042 or (failed.method == SUBSCRIBE and failed.code == -32000)),
    Definition(header_dropped, "header-dropped", "a header that the client sent did not reach the server", Level.EXACT,
               ex.session("@ 2026-07-28 http", ex.call(), ex.answered(400, {"mcp-name": None}), ex.error("Header mismatch: Mcp-Name is missing", -32020)),
               ex.session("@ 2026-07-28 http", ex.call(), ex.answered(400), ex.error("Unknown tool: a", -32602))),
    FailureRow("session-refused-in-200", "the server refuses the session with an error in place of HTTP 404", Level.EXACT,
        "A client sends initialize again after a 404; after an error of JSON-RPC it cannot know that it should.",
        "the server refuses the session that it had assigned, with HTTP 200 and an error{quoted}: it lost its sessions, and the client cannot know that it must begin again",
        "let the server answer 404 for a session that it does not know, and keep its sessions over restarts",
        ex.session("@ http", ex.call(), ex.error("Session not found", -32000)), ex.session("@ http", ex.call(), ex.error("no data", -32000)), states=ERRORS,
        is_together=True, words=_SESSION, if_failed=lambda facts, failed: failed.refusal is None and bool(facts.http.session_ids)),
    FailureRow("token-refused-in-200", "a refused token is hidden in a result", Level.EXACT,
        "A client refreshes its token after a 401; an error in a result with HTTP 200 does not have that effect.",
        "the token of the client is not accepted, and the server answers with a result and HTTP 200{quoted}",
        "let the server answer 401, so that the client refreshes its token; until then sign in again",
        ex.session("@ http", ex.call(), ex.answered(200, {"authorization": "Bearer x"}), _REFUSED_KEY), ex.session("@ http", ex.call(), _REFUSED_KEY), states=ERRORS,
        is_together=True, words=_UNAUTHORIZED, if_failed=lambda facts, failed: failed.refusal is None and facts.http.has_token),
    Definition(capability_missing, "capability-missing", "a feature is used that the other side did not declare", Level.SPECIFIC,
               ex.session("@ client={}", _SAMPLING), _SAMPLING),
    FailureRow("task-required", "a tool that wants a task was called without one", Level.EXACT,
        'execution.taskSupport is "required" in tools/list, and the client does not know tasks.', "{about} was called without a task, which the tool requires{quoted}",
        'use a client that knows tasks, or let the server declare taskSupport "optional"',
        ex.session(ex.call(), ex.error("Tool a requires task-augmented execution", -32601)), ex.session(ex.call(), ex.error("internal error")), side=CLIENT,
        states=ERRORS, rules="DATA706", if_failed=_wants_task),
    FailureRow("task-failed", "a task failed", Level.SPECIFIC, "The call was answered with a task, and the task ended as failed.",
        "the task of {about} failed after {waited}{quoted}", "read the server's log at this time; let it state the reason in statusMessage or as an error",
        ex.task(2, "failed"), _COMPLETED, states=(State.TASK_FAILED,)),
    Definition(task_not_finished, "task-not-finished", "a task had not ended when the session did", Level.SPECIFIC, ex.session(ex.task(2, "working"), ex.END),
               ex.session(_COMPLETED, ex.END)),
    FailureRow("question-not-answered", "a request was answered with a question that the client never answered", Level.SPECIFIC,
        "Since 2026-07-28, a server asks for input in its result, and the client sends the request again with the answers.",
        "{about} was answered with a question (input_required), and the client never sent it again with an answer",
        "look into the client: it does not know this question, or the user has not answered it",
        ex.session("@ 2026-07-28", ex.call(), ex.result(resultType="input_required", inputRequests={}), ex.END), side=CLIENT, states=(State.NOT_CONTINUED,)),
    Definition(mcpspy_rule, "mcpspy-rule", "a rule or a viewer of mcpspy changed, held or dropped a message", Level.DELIBERATE,
               ex.session(ex.call(), _DROPPED, ex.cancelled()), ex.session(ex.call(), ex.cancelled())),
    Definition(request_failed, "request-failed", "a request failed, for the reason that its error names", Level.QUOTE, ex.session(ex.call(), ex.error("boom"))),
)  # fmt: skip
