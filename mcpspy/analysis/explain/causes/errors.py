"""Requests that were answered with an error: capabilities, tasks, and what no other cause knows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.causes.requests import has_fixed_form, held_up
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import BUG, NamedError, clause, named_error, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.symptoms import ERRORS, FailedRequest
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.session.exchange import State

_REFUSED = (*ERRORS, State.REFUSED)
_TASK = re.compile(
    r"(?i)\btask[- ]?(?:augment\w*|based|support|execution|mode)\b.{0,30}required|requires? (?:a )?task[- ]?(?:augment|based|support|execution)"
    r"|\b(?:called|invoked|run|executed) (?:as|with|in) a task|tool .{0,80} requires (?:a )?task\b"
)
"""The SDKs; servers of to-do lists have other tasks, whose title is required."""
_SAMPLE = ex.asked("sampling/createMessage", messages=[], maxTokens=9)
_SAMPLING = ex.session(ex.call(), _SAMPLE, ex.error("no sampling here", -32603, 7, ">"), ex.done())

_LACKS = re.compile(
    r"(?i)\b(?:client|host)\b.{0,80}(?:(?:not|n't|without|needs?|requires?|must).{0,40}|form )\b(sampling|elicitation|roots)(\.tools| with tools)?\b"
    r"|\b(?:requires?|without).{0,20}\bclient\b.{0,20}\b(sampling|elicitation|roots)\b"
    r"|\b(sampling|elicitation|roots)(?: is)? not (?:supported|available)\b(?: by)?(?: (?:the|this|your))?(?: (?:client|host))?"
)
"""A tool that needs what the client can do for a server."""


def _said_by_tools(facts: Facts) -> Iterator[Claim]:
    """Yield the calls whose error is that the client cannot do what it has indeed not declared."""
    declared = facts.session.client_capabilities
    asked = {failed.method.partition("/")[0] for failed in facts.failed() if failed.side == SERVER}
    for failed in facts.failed(*ERRORS):
        on_stderr = named_error(failed.stderr, certain=True)
        told = f"{failed.words[:400]}\n{on_stderr.text if on_stderr else ''}"
        found = _LACKS.search(told) if failed.method == "tools/call" else None
        name = next((each for each in found.group(1, 3, 4) if each), "").lower() if found else ""
        is_part = found is not None and found[2] is not None
        inner = declared.get(name)
        has_all = name in declared and not (
            is_part and "tools" not in (inner if isinstance(inner, dict) else {})
        )
        if not name or name in asked or has_all:
            continue
        name = f"{name}.tools" if is_part else name
        yield Claim(
            title=f"{failed.about} needs {name}, which the client has not declared: {quote(failed.words)}",
            next_step=f"use a client that declares {name}, or switch it on there (a handler, a setting); a server that is meant for all "
            "clients should have a way without it",
            symptoms=[failed],
            level=Level.EXACT,
        )


@cause(
    "capability-missing",
    "a feature is used that the other side did not declare",
    Level.SPECIFIC,
    rules="LIFE106 LIFE115 MOD305",
    positive=(
        ex.session("@ client={}", _SAMPLING),
        ex.session("@ client={}", ex.call(), ex.done(2, "Client does not support sampling", isError=True)),
        ex.session(
            '@ client={"sampling":{}}',
            *(ex.call(), ex.done(2, "The client must advertise the sampling.tools capability", isError=True)),
        ),
    ),
    negative=(
        _SAMPLING,
        ex.session(ex.call(), ex.done(2, "Client does not support sampling", isError=True)),
        ex.session("@ client={}", ex.call(), ex.done(2, "Sampling rate is not supported", isError=True)),
    ),
)
def capability_missing(facts: Facts) -> Iterator[Claim]:
    """A server must not ask for sampling, elicitation or roots of a client that has not declared them: a tool that cannot do
    without them says so.
    """
    yield from _said_by_tools(facts)
    rules = ("LIFE106", "LIFE115", "MOD305")
    for failed in facts.failed():
        is_found = failed.state in ERRORS and any(each.code in rules for each in failed.findings)
        is_unknown = failed.code == -32601 and failed.side == CLIENT
        if failed.code == -32021 or (is_found and not is_unknown):
            who, peer = failed.side, other(failed.side)
            if failed.code == -32021:  # The receiver needs it of the sender (2026-07-28, Error codes).
                title = f"{failed.about} needs a capability that the {who} has not declared: {quote(failed.words)}"
                next_step = f"use a {who} that declares it, or switch it on there; a {peer} that is meant for all should have a way without it"
                yield Claim(
                    title, next_step, [failed, *facts.violations(*rules, side=who)], level=Level.EXACT
                )
                continue
            title = (
                f"the {who} sent {failed.about}, and the {peer} has not declared that it can do this: "
                f"{quote(failed.words)}"
            )
            next_step = (
                f"let the {who} ask only for what the {peer} declared in the handshake; or let the "
                f"{peer} declare it"
            )
            symptoms = [failed, *held_up(facts, failed), *facts.violations(*rules, side=who)]
            level = Level.EXACT if failed.findings else None
            yield Claim(title, next_step, symptoms, side=who, level=level)
    for violation in facts.violations("MOD305"):
        title = quote(violation.findings[0].message)
        next_step = "let the server ask only for what the client declared in its request"
        waiting = [violation, *facts.failed(State.NOT_CONTINUED)]
        yield Claim(title, next_step, waiting, side=SERVER)


def _wants_task(facts: Facts, failed: FailedRequest) -> bool:
    is_found = any(each.code == "DATA706" for each in failed.findings)
    return failed.method == "tools/call" and (is_found or _TASK.search(failed.words) is not None)


FailureRow(
    "task-required",
    "a tool that wants a task was called without one",
    Level.EXACT,
    why='execution.taskSupport is "required" in tools/list, and the client does not know tasks.',
    title="{about} was called without a task, which the tool requires{quoted}",
    next_step='use a client that knows tasks, or let the server declare taskSupport "optional"',
    side=CLIENT,
    rules="DATA706",
    states=ERRORS,
    if_failed=_wants_task,
    positive=ex.session(ex.call(), ex.error("Tool a requires task-augmented execution", -32601)),
    negative=(
        ex.session(ex.call(), ex.error("internal error")),
        ex.session(ex.call(), ex.done(2, "Error: Task title is required", isError=True)),
    ),
).define(__name__)


_COMPLETED = ex.session(ex.task(2, "completed"), ex.request("tasks/result", 4, taskId="t"), ex.done(4))


FailureRow(
    "task-failed",
    "a task failed",
    Level.SPECIFIC,
    why="The call was answered with a task, and the task ended as failed.",
    title="the task of {about} failed after {waited}{quoted}",
    next_step="read the server's log at this time; let it state the reason in statusMessage or as an error",
    side="",
    states=(State.TASK_FAILED,),
    positive=ex.task(2, "failed"),
    negative=_COMPLETED,
).define(__name__)


@cause(
    "task-not-finished",
    "a task had not ended when the session did",
    Level.SPECIFIC,
    positive=ex.session(ex.task(2, "working"), ex.END),
    negative=ex.session(_COMPLETED, ex.END),
)
def task_not_finished(facts: Facts) -> Iterator[Claim]:
    """The client never asked for the state of the task, gave it up, or the task takes longer than
    the session.
    """
    has_asked = facts.client.methods["tasks/get"] + facts.client.methods["tasks/result"]
    for failed in facts.failed(State.UNFINISHED):
        title = f"the task of {failed.about} was still working after {failed.waited}, when the session ended"
        next_step = (
            "let the client wait for the task, and let the server report its state; the work may still "
            "continue"
        )
        if not has_asked:
            title = f"{failed.about} was answered with a task, and the client never asked for its state"
            next_step = (
                "the client does not know tasks: let the server create one only if the client asked for "
                "it or declared the extension"
            )
        side = "" if has_asked else CLIENT
        yield Claim(title, next_step, [failed], side=side)


FailureRow(
    "question-not-answered",
    "a request was answered with a question that the client never answered",
    Level.SPECIFIC,
    why="Since 2026-07-28, a server asks for input in its result, and the client sends the "
    "request again with the answers.",
    title="{about} was answered with a question (input_required), and the client never sent it "
    "again with an answer",
    next_step="look into the client: it does not know this question, or the user has not answered it",
    side=CLIENT,
    states=(State.NOT_CONTINUED,),
    positive=ex.session(
        "@ 2026-07-28", ex.call(), ex.result(resultType="input_required", inputRequests={}), ex.END
    ),
).define(__name__)


_DROPPED = '* rule {"action":"drop","rule":"1","from":"client","id":"2","method":"tools/call","subject":"a"}'


@cause(
    "mcpspy-rule",
    "a rule or a viewer of mcpspy changed, held or dropped a message",
    Level.DELIBERATE,
    positive=ex.session(ex.call(), _DROPPED, ex.cancelled()),
    negative=ex.session(ex.call(), ex.cancelled()),
)
def mcpspy_rule(facts: Facts) -> Iterator[Claim]:
    """--rule, --rules, --call-timeout, a script or a viewer acted on this very request."""
    for failed in facts.failed():
        if failed.effects:
            title = f"mcpspy acted on {failed.about}: {quote('; '.join(dict.fromkeys(failed.effects)))}"
            next_step = "remove --rule, --rules, --script and --call-timeout, and try again"
            yield Claim(title, next_step, [failed], side="mcpspy")


def _is_chunked(failed: FailedRequest) -> bool:
    """Return whether a request was posted without the length of its body."""
    exchange = failed.carrier
    return exchange is not None and exchange.method == "POST" and "content-length" not in exchange.request


_SHAPE = re.compile(
    r"(?i)unrecogni[sz]ed (?:field|prop\w*|key)|unknown (?:field|prop\w*|variant|key)|not marked as ignorable"
    r"|(?:de)?seriali[sz]|could not be mapped|correct format|did not match any variant|invalid type: "
    r"|missing handler|no handler|cannot unmarshal|failed to (?:decode|parse)|additional prop\w*|DecodingError"
)
"""A decoder that refuses the form of a message: Jackson, serde, System.Text.Json, Foundation, encoding/json, zod."""
_OF_OTHERS = re.compile(
    r"(?i)(?<![\w.])(?:response|reply|upstream|backend|downstream|remote|config\w*|settings?|spec|openapi|swagger|yaml|database|file)"
    r"(?!\.?\w)"
)
"""Inputs that a receiver reads beside the request; not the parts of a dotted name, such as io.modelcontextprotocol.spec.X."""
_EMPTY_LIST = '> {"id":2,"method":"tools/list","params":[]}'


def _is_about_form(words: str) -> bool:
    return _SHAPE.search(words) is not None and _OF_OTHERS.search(words) is None


@cause(
    "request-not-understood",
    "a request of the protocol is not understood",
    Level.EXACT,
    rules="ENV107",
    positive=(
        ex.session(_EMPTY_LIST, ex.error("Invalid message", -32600)),
        ex.session("@ bare", ex.initialize(), ex.error('Unrecognized field "form"', number=1)),
    ),
    negative=(
        ex.session(ex.call(), ex.error('Unrecognized field "form"')),
        ex.session(
            ex.request("tools/list"),
            ex.error("backend weather: failed to decode response: invalid character '<'"),
        ),
    ),
)
def request_not_understood(facts: Facts) -> Iterator[Claim]:
    """A library that encodes missing params as [] or null sends a request that strict servers refuse. A
    decoder that knows only the members of an older revision refuses newer ones, which it must ignore.
    """
    for failed in facts.failed():
        words, receiver = failed.words or failed.why, other(failed.side)
        flaws = [each for each in failed.findings if each.code == "ENV107"]
        has_form = has_fixed_form(failed.method)
        if failed.effects:
            continue
        if flaws:
            title = f"the {failed.side} sent {failed.about} with params that are not an object{clause(words)}"
            next_step = f"let the {failed.side} leave params out, or send {{}} in place of [] or null"
            symptoms = [failed, *facts.violations("ENV107", side=failed.side)]
            yield Claim(title, next_step, symptoms, side=failed.side)
        elif has_form and failed.code != -32601 and _is_about_form(words) and failed.state in _REFUSED:
            title = f"the {receiver} cannot read {failed.about}, which is a valid request{clause(words)}"
            next_step = (
                f"let the {receiver} ignore members that it does not know, and declare only what it implements: "
                f"update its SDK"
            )
            level = Level.SPECIFIC
            if _is_chunked(failed):
                title += "; its body came in chunks, without Content-Length"
                next_step = (
                    f"let the {receiver} read bodies with Transfer-Encoding: chunked (RFC 9112, 7.1), or the client "
                    f"send Content-Length; compare with mcpspy send, which sends it"
                )
            yield Claim(title, next_step, [failed], side=receiver, level=level)


_VALUES = re.compile(
    r"(?i)\bnot (?:found|connected|open)\b|does not exist|\bno (?:such|active)\b|\bunknown (?:resource|prompt|uri|template)|\bfirst\b|\b(?:reject|declin|cancel)"
)
"""The words of tools about values that the caller chose, about calls that have to come before, or about consent."""

_TWO_ZODS = re.compile(r"\b_parse is not a function|reading '_zod'")
"""A schema of zod 4 in the hands of zod 3, and the reverse: each looks for a member that the other does not have."""

INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
USER_REJECTED = -1
"""Codes of JSON-RPC, and of MCP (2025-11-25, Resources: error handling; Sampling: error handling)."""


@cause(
    "request-failed",
    "a request failed, for the reason that its error names",
    Level.QUOTE,
    positive=(
        ex.session(ex.call(), ex.error("boom")),
        ex.session(ex.call(), ex.done(2, "'NoneType' object is not iterable", isError=True)),
    ),
)
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
            next_step = (
                f"these are the words of the {receiver}: correct what they name; mcpspy show -v prints "
                f"the whole message"
            )
        if _TWO_ZODS.search(words):
            next_step = (
                "the server's schemas are of another version of zod than its SDK knows (npm ls zod): let its package.json "
                "name the version that this @modelcontextprotocol/sdk works with, or update the SDK"
            )
        on_stderr = named_error(failed.stderr, certain=True)
        if on_stderr is not None and on_stderr.text[:60] not in words:
            title += f"; on stderr: {quote(on_stderr.text)}"
        lines = [] if on_stderr is None else [on_stderr.evidence]
        # JSON-RPC 2.0, 5.1: "Internal error" is the receiver's own, whatever its words are.
        # A request without a flaw is the receiver's to answer, unless it asks for what may not exist, or for a consent.
        is_valid = failed.state in ERRORS and not any(each.side == failed.side for each in failed.findings)
        is_open = failed.code in (RESOURCE_NOT_FOUND, USER_REJECTED) or _VALUES.search(words) is not None
        is_valid &= has_fixed_form(failed.method) or not is_open
        is_own = failed.code == INTERNAL_ERROR or is_valid
        # A tool may fail for its arguments, a setting, another service or a mistake in its code: only a bug is named.
        is_own &= has_fixed_form(failed.method) or failed.method not in (
            "tools/call",
            "prompts/get",
            "resources/read",
        )
        side = receiver if BUG.search(words) or is_own else ""
        yield Claim(title, next_step, [failed], evidence=lines, side=side)


_AT_NOTIFICATION = re.compile(r"(?i)\b(?:error|exception|fail\w*|panic)\b.{0,80}\b(notifications/[\w/]+)")
_HAS_NO_HANDLER = re.compile(
    r"(?i)\b(?:unknown|no handler|not supported|unsupported|unhandled|ignor\w+|not found)\b"
)
"""A server that does not need this notification."""


def _failed_at_notification(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of a notification at which the server failed: as it has no response, only stderr has the error."""
    for line in facts.stderr:
        found = _AT_NOTIFICATION.search(line.text)
        if found is None or not facts.client.methods[found[1]] or _HAS_NO_HANDLER.search(line.text):
            continue
        after = [each for each in facts.stderr if line.place <= each.place and each.at - line.at < PATIENCE]
        error = named_error(after) or NamedError(line, line.text.strip(), "")
        yield Claim(
            title=f"the server failed at {found[1]}, which gets no response: {quote(error.framed)}",
            next_step="correct what this error names, or update the server's SDK; what the server does at this notification did not happen",
            symptoms=[],
            evidence=[line.evidence, error.evidence],
            side=SERVER if BUG.search(error.text) or "Exception" in error.text else "",
        )
        return


@cause(
    "error-printed",
    "the server printed an error, and no request failed",
    Level.GENERAL,
    positive=(
        ex.session(ex.call(), ex.stderr("InvalidGrantError: Missing code verifier"), ex.done()),
        ex.session(
            ex.stderr("ERROR Protocol -- Error handling notification: notifications/initialized"),
            ex.stderr("java.util.NoSuchElementException: Key method is missing in the map."),
            *(ex.call(), ex.done()),
        ),
    ),
    negative=(
        ex.session(ex.call(), ex.stderr("INFO: 0 errors"), ex.done()),
        ex.session(
            ex.call(), ex.done(), ex.CLIENT_CLOSED, ex.stderr("asyncio.CancelledError: stdin"), ex.exited(0)
        ),
    ),
)
def error_printed(facts: Facts) -> Iterator[Claim]:
    """A failure beside the protocol, such as the callback of a sign-in in a browser, is only on stderr."""
    yield from _failed_at_notification(facts)
    until = facts.client.closed_at
    printed = [line for line in facts.stderr if until is None or line.at < until]
    error = None if facts.symptoms else named_error(printed, certain=True)
    if error is not None:
        title = f"the server printed an error, and no request failed: {quote(error.framed)}"
        next_step = "if something does not work without an error in a response, begin with this one"
        yield Claim(title, next_step, [], evidence=[error.evidence], is_observation=True)
