"""Calls that were answered with an error: tools, arguments, methods, headers, tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest
from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER, other
from mcpspy.core.session.exchange import SUBSCRIBE, State

ERRORS = (State.ERROR, State.TOOL_ERROR, State.LATE_ERROR, State.LATE_TOOL_ERROR)

# Words of errors, and who writes them.

_UNKNOWN = re.compile(
    r"(?i)\b(?:unknown|no such|not found|does not exist|unrecognized|not registered|no tool)\b"
)
_ARGUMENTS = re.compile(
    r"(?i)validation error|invalid arguments?|invalid params|input validation|failed to (?:parse|deserialize) (?:parameters|arguments)|missing (?:required )?(?:argument|parameter|field|property)|required (?:argument|parameter|property)|unexpected keyword|invalid_type|invalid input|must (?:be|have) (?:a |an |required )?(?:string|number|integer|object|array|boolean|property)"
)
"""The SDKs, and pydantic, zod, ajv, jsonschema and serde under them."""

_OWN_RESULT = re.compile(
    r"(?i)invalid \S{0,20} ?result|output validation|invalid structured content|result (?:is )?not valid"
)
_HEADER = re.compile(
    r"(?i)header mismatch|missing (?:required )?(?:mcp-[\w-]+ )?header|mcp-(?:method|name|param)"
)
_TASK = re.compile(r"(?i)\btask\b.{0,30}required|requires? (?:a )?task")
_SESSION = re.compile(
    r"(?i)\bsession\b.{0,40}(?:not found|invalid|expired|unknown|missing|terminated|closed|does not exist)|(?:invalid|unknown|missing|no valid|expired).{0,30}\bsession"
)
"""The SDKs of TypeScript, Python, Go and Rust."""

_TOKEN = re.compile(
    r"(?i)(?:invalid|expired|revoked).{0,30}(?:access )?token|token.{0,30}(?:invalid|expired|revoked)|invalid[-_ ]authori[sz]ation|unauthori[sz]ed|\b401\b"
)
"""The service behind the server, in the words of its HTTP client."""

_OPTIONAL = frozenset(
    "resources/list resources/templates/list prompts/list logging/setLevel completion/complete ping tools/list".split()
)
"""Methods that clients ask for without need."""


def _errors(facts: Facts, side: str = CLIENT) -> Iterator[FailedRequest]:
    for failed in facts.failed(*ERRORS):
        if failed.side == side and not failed.effects:
            yield failed


def _held_up(facts: Facts, asking: FailedRequest) -> list[FailedRequest]:
    """Return the failed calls during which the other side sent a request."""
    return [each for each in facts.failed(*ERRORS) if each.about in asking.waiting]


@cause(
    "unknown-tool",
    "a tool was called that the server does not offer",
    level=Level.EXACT,
    positive=ex.session(
        ex.listed("forecast"), ex.call(3, "weather_forecast"), ex.error("Unknown tool: x", -32602, 3)
    ),
    negative=ex.session(ex.call(2, "forecast"), ex.error("internal error")),
)
def unknown_tool(facts: Facts) -> Iterator[Claim]:
    """The host has an old list, adds its own prefix, or the model invented the name."""
    tools = facts.listed.tools
    for failed in _errors(facts):
        name = failed.subject
        is_named = "tool" in failed.words.lower() or f"{name!r}" in failed.words
        says_so = is_named and _UNKNOWN.search(failed.words[:300])
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


@cause(
    "own-result-refused",
    "the server's own library refused the result of its tool",
    level=Level.EXACT,
    positive=ex.session(
        ex.call(), ex.error("Invalid tools/call result: content 0 data: Invalid Base64 string", -32602)
    ),
    negative=ex.session(ex.call(), ex.error("Invalid arguments for tool a", -32602)),
)
def own_result_refused(facts: Facts) -> Iterator[Claim]:
    """SDKs check results before they send them, and answer with the code of invalid params: it is not about the arguments."""
    for failed in _errors(facts):
        if _OWN_RESULT.search(failed.words[:200]):
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
    positive=ex.session(ex.call(), ex.tool_error("Input validation error: days is a required property")),
    negative=ex.session(ex.call(), ex.tool_error("no data")),
)
def invalid_arguments(facts: Facts) -> Iterator[Claim]:
    """The model did not know what the arguments mean, or the server checks more than its schema states."""
    for failed in _errors(facts):
        broken = [each for each in failed.findings if each.code in ("DATA301", "DATA101")]
        is_said = failed.code == -32602 or _ARGUMENTS.search(failed.words[:400])
        if broken:
            side = CLIENT
            next_step = "correct the arguments that the client sends: they violate the tool's schema, as tools/list has it"
        elif failed.method != "tools/call" or not is_said:
            continue
        elif facts.listed.tools:
            side = SERVER
            next_step = "the arguments fit the schema that the server listed, and it refused them: let the schema say what the tool requires"
        else:
            side, next_step = (
                "",
                "compare the arguments with the tool's schema; let the schema say what the tool requires",
            )
        words = failed.words or (broken[0].message if broken else "")
        yield Claim(
            title=f"{failed.about}: the arguments do not fit: {quote(words)}",
            next_step=next_step,
            symptoms=[failed, *facts.violations(*{each.code for each in broken})],
            evidence=[evidence(each.place, f"{each.code} {each.message}") for each in broken[:2]],
            side=side,
        )


@cause(
    "method-not-found",
    "the receiver does not know a method",
    level=Level.SPECIFIC,
    positive=ex.session(ex.request("tools/list"), ex.error("Method not found", -32601)),
    negative=ex.session(ex.request("tools/list"), ex.error("internal error")),
)
def method_not_found(facts: Facts) -> Iterator[Claim]:
    """The method needs a capability that the receiver did not declare, or is of another revision. Asking for an optional one is
    harmless: the client continues without it.
    """
    for side, declared in (
        (CLIENT, facts.session.server_capabilities),
        (SERVER, facts.session.client_capabilities),
    ):
        for failed in _errors(facts, side):
            if failed.code != -32601 or failed.method == "server/discover":
                continue
            known, receiver = METHODS.get(failed.method), other(side)
            needed = (known.needs or "").partition(".")[0] if known is not None else ""
            is_declared = bool(needed) and needed in declared
            left = [each for each in facts.of(ClientLeft) if each.at <= (failed.answer_at or 0.0)]
            if is_declared:
                title = f"the {receiver} declared {needed}, and does not know {failed.method} (error -32601)"
                next_step = f"implement {failed.method}, or do not declare {needed}"
            elif needed:
                title = f"the {side} asked for {failed.method}, and the {receiver} has not declared {needed}"
                title += (
                    ", and left after the error -32601 to it, although that is the right answer"
                    if left
                    else ""
                )
                next_step = (
                    f"let the {side} ask only for declared capabilities; or declare {needed} and implement it"
                )
            else:
                title = f"the {receiver} does not know {failed.method} (error -32601)"
                next_step = f"check the method's name and revision: {failed.method} is not in this {receiver}"
            rules = ("DATA603", "LIFE106", "LIFE108", "LIFE109")
            findings = facts.violations(*rules, side=receiver if is_declared else side)
            yield Claim(
                title=title,
                next_step=next_step,
                symptoms=[failed, *left, *_held_up(facts, failed), *findings],
                side=side if needed and not is_declared else receiver,
                is_observation=bool(needed) and not is_declared and failed.method in _OPTIONAL and not left,
                level=Level.EXACT if is_declared and failed.method != "tools/call" else None,
            )


_LISTEN = ex.request(SUBSCRIBE, notifications={"toolsListChanged": True})


@cause(
    "ended-by-design",
    "an error that the specification has for something that is not a failure",
    level=Level.EXACT,
    positive=ex.session("@ 2026-07-28", _LISTEN, ex.error("Connection closed", -32000)),
    negative=ex.session("@ 2026-07-28", _LISTEN, ex.error("Connection closed")),
)
def ended_by_design(facts: Facts) -> Iterator[Claim]:
    """A subscription ends with an error when its connection does, and -32042 asks the client to open a URL first."""
    for failed in _errors(facts):
        is_subscription = failed.method == SUBSCRIBE and failed.code == -32000
        if is_subscription or failed.code == -32042:
            open_url = "the client opens the URL for its user, and sends the request again"
            yield Claim(
                title=f"{failed.about} was answered with error {failed.code}: {quote(failed.words)}",
                next_step="nothing" if is_subscription else open_url,
                symptoms=[failed],
                is_observation=True,
            )


@cause(
    "header-dropped",
    "a header that the client sent did not reach the server",
    level=Level.EXACT,
    positive=ex.session(
        "@ 2026-07-28 http",
        ex.call(),
        ex.answered(400, {"mcp-name": None}),
        ex.error("Header mismatch: Mcp-Name is missing", -32020),
    ),
    negative=ex.session(
        "@ 2026-07-28 http", ex.call(), ex.answered(400), ex.error("Unknown tool: a", -32602)
    ),
)
def header_dropped(facts: Facts) -> Iterator[Claim]:
    """The server compares headers of 2026-07-28 with the body. mcpspy recorded the headers as the client sent them, so it is
    known on which side of mcpspy one was lost.
    """
    missing = facts.violations("HTTP101", "HTTP102", "HTTP103", "HTTP104", "HTTP106")
    for failed in facts.failed(*ERRORS, State.REFUSED):
        if failed.code != -32020 and not _HEADER.search(failed.words):
            continue
        named = re.search(r"(?i)\bmcp-[\w-]+", failed.words)
        is_sent = failed.refusal is None or named is None or named[0].lower() in failed.refusal.request
        title = f"the server misses a header of {failed.about} that the client sent ({quote(failed.words)}): something between mcpspy and the server dropped it"
        next_step, side = (
            "let the proxy or gateway behind mcpspy pass on all headers that begin with Mcp-",
            "proxy",
        )
        if missing or not is_sent:
            title = f"{failed.about} came without a header that the server wants: {quote(failed.words)}"
            next_step, side = (
                "let the client send it; or look what drops it between the client and mcpspy",
                CLIENT,
            )
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
    positive=ex.session("@ http", ex.call(), ex.error("Session not found", -32000)),
    negative=ex.session("@ http", ex.call(), ex.error("no data", -32000)),
)
def session_refused(facts: Facts) -> Iterator[Claim]:
    """A client sends initialize again after a 404; after an error of JSON-RPC it cannot know that it should."""
    failed = [each for each in _errors(facts) if _SESSION.search(each.words[:200]) and each.refusal is None]
    if failed and facts.http.session_ids:
        yield Claim(
            title=f"the server refuses the session that it had assigned, with HTTP 200 and the error {quote(failed[0].words)!r}: it lost its sessions, and the client cannot know that it must begin again",
            next_step="let the server answer 404 for a session that it does not know, and keep its sessions over restarts",
            symptoms=[*failed],
            side=SERVER,
        )


_REFUSED_KEY = ex.session(ex.tool_error("401 Unauthorized: invalid access token"))


@cause(
    "token-refused-in-200",
    "a refused token is hidden in a result",
    level=Level.EXACT,
    positive=ex.session("@ http", ex.call(), ex.answered(200, {"authorization": "Bearer x"}), _REFUSED_KEY),
    negative=ex.session("@ http", ex.call(), _REFUSED_KEY),
)
def token_refused_in_result(facts: Facts) -> Iterator[Claim]:
    """A client refreshes its token after a 401; an error in a result with HTTP 200 does not have that effect."""
    failed = [each for each in _errors(facts) if _TOKEN.search(each.words[:600]) and each.refusal is None]
    if failed and facts.http.has_token:
        how = "no longer" if facts.answered[CLIENT, "tools/call"] else "not"
        yield Claim(
            title=f"the token of the client is {how} accepted, and the server says so in a result with HTTP 200: {quote(failed[0].words)}",
            next_step="let the server answer 401, so that the client refreshes its token; until then sign in again",
            symptoms=[*failed],
            side=SERVER,
        )


_SAMPLING = ex.session(
    ex.call(),
    ex.asked("sampling/createMessage", messages=[], maxTokens=9),
    ex.error("no sampling here", -32603, 7, ">"),
    ex.done(),
)


@cause(
    "capability-missing",
    "a feature is used that the other side did not declare",
    level=Level.SPECIFIC,
    positive=ex.session("@ client={}", _SAMPLING),
    negative=_SAMPLING,
)
def capability_missing(facts: Facts) -> Iterator[Claim]:
    """A server must not ask for sampling, elicitation or roots of a client that has not declared them."""
    rules = ("LIFE106", "LIFE115", "MOD305")
    for failed in facts.failed():
        is_found = failed.state in ERRORS and any(each.code in rules for each in failed.findings)
        is_unknown = failed.code == -32601 and failed.side == CLIENT
        if failed.code == -32021 or (is_found and not is_unknown):
            who, peer = failed.side, other(failed.side)
            yield Claim(
                title=f"the {who} sent {failed.about}, and the {peer} has not declared that it can do this: {quote(failed.words)}",
                next_step=f"let the {who} ask only for what the {peer} declared in the handshake; or let the {peer} declare it",
                symptoms=[failed, *_held_up(facts, failed), *facts.violations(*rules, side=who)],
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
    positive=ex.session(ex.call(), ex.error("Tool a requires task-augmented execution", -32601)),
    negative=ex.session(ex.call(), ex.error("internal error")),
)
def task_required(facts: Facts) -> Iterator[Claim]:
    """execution.taskSupport is "required" in tools/list, and the client does not know tasks."""
    for failed in _errors(facts):
        is_found = any(each.code == "DATA706" for each in failed.findings)
        if failed.method == "tools/call" and (is_found or _TASK.search(failed.words)):
            yield Claim(
                title=f"{failed.about} was called without a task, which the tool requires: {quote(failed.words)}",
                next_step='use a client that knows tasks, or let the server declare taskSupport "optional"',
                symptoms=[failed, *facts.violations("DATA706")],
                side=CLIENT,
            )


_COMPLETED = ex.session(ex.task(2, "completed"), ex.request("tasks/result", 4, taskId="t"), ex.done(4))


@cause(
    "task-failed",
    "a task failed",
    level=Level.SPECIFIC,
    positive=ex.task(2, "failed"),
    negative=_COMPLETED,
)
def task_failed(facts: Facts) -> Iterator[Claim]:
    """The call was answered with a task, and the task ended as failed."""
    for failed in facts.failed(State.TASK_FAILED):
        words = clause(failed.words or failed.why) or ", and gave no reason"
        yield Claim(
            title=f"the task of {failed.about} failed after {failed.waited}{words}",
            next_step="read the server's log at this time; let it say the reason in statusMessage or as an error",
            symptoms=[failed],
            side=SERVER,
        )


@cause(
    "task-not-finished",
    "a task had not ended when the session did",
    level=Level.SPECIFIC,
    positive=ex.session(ex.task(2, "working"), ex.END),
    negative=ex.session(_COMPLETED, ex.END),
)
def task_not_finished(facts: Facts) -> Iterator[Claim]:
    """The client never asked for the state of the task, gave it up, or the task takes longer than the session."""
    has_asked = facts.client.methods["tasks/get"] + facts.client.methods["tasks/result"]
    for failed in facts.failed(State.UNFINISHED):
        title = f"the task of {failed.about} was still working after {failed.waited}, when the session ended"
        next_step = "let the client wait for the task, and let the server report its state; the work may still continue"
        if not has_asked:
            title = (
                f"{failed.about} was answered with a task, and the client never asked for its state or result"
            )
            next_step = "the client does not know tasks: let the server create one only if the client asked for it or declared the extension"
        side = "" if has_asked else CLIENT
        yield Claim(title=title, next_step=next_step, symptoms=[failed], side=side)


@cause(
    "question-not-answered",
    "a request was answered with a question that the client never answered",
    level=Level.SPECIFIC,
    positive=ex.session(
        "@ 2026-07-28", ex.call(), ex.result(resultType="input_required", inputRequests={}), ex.END
    ),
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
