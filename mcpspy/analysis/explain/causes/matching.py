"""Responses that do not reach what waits for them, and requests that come too early."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.ids import findings_of, is_near
from mcpspy.analysis.explain.causes.requests import SILENT, errors, without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.outcomes import GAVE_UP
from mcpspy.analysis.explain.symptoms import ERRORS, ClientLeft, FailedRequest, ServerEnd
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER, other
from mcpspy.core.session.exchange import State

_ID = "mcp-session-id"

_CANNOT_READ = re.compile(r"(?i)decode|codec|encoding|unicode|parse|json|charset|utf")
"""A parser of JSON, or a codec, in the words of SDKs and of Python."""


@cause(
    "answer-not-matched",
    "the server does not match the client's response with its own request",
    Level.EXACT,
    rules="ENV204",
)
def answer_not_matched(facts: Facts) -> Iterator[Claim]:
    """A server without sessions gets each POST in its own context, so the response never reaches
    the call that waits for it.
    """
    found = [] if facts.is_stdio else findings_of(facts, "ENV204", side=CLIENT)
    for failed in errors(facts) if not facts.is_stdio else ():
        about = next((name for name in _ASKED if _WAITED_FOR[name].search(failed.words)), "")
        if about and facts.answered[SERVER, about] and GAVE_UP.search(failed.words):
            yield Claim(
                title=f"the client answered the server's {about}, and the server waited on for that answer in {failed.about}: {quote(failed.words)}",
                next_step=_KEEP_SESSIONS,
                symptoms=[failed],
                side=SERVER,
            )
    for asked in without_response(facts, SERVER):
        answers = [each for each in found if each.id == asked.id and each.at >= asked.asked_at]
        if not answers:
            continue
        waiting = without_response(facts, CLIENT)
        held = [failed for failed in waiting if failed.about in asked.waiting or not asked.waiting]
        after = duration(answers[0].at - asked.asked_at)
        title = f"the client answered {asked.about} after {after}, and the server did not continue with it"
        title += "" if facts.http.session_ids else ": without an Mcp-Session-Id, it works without sessions"
        symptoms = [asked, *held, *facts.violations("ENV204", side=CLIENT)]
        lines = [evidence(answers[0].place, f"the client's response: {answers[0].excerpt}")]
        yield Claim(title, _KEEP_SESSIONS, symptoms, evidence=lines, side=SERVER)


_ASKED = ("sampling/createMessage", "elicitation/create", "roots/list")
_WAITED_FOR = {name: re.compile(rf"(?i)\b{name.split('/')[0].removesuffix('s')}") for name in _ASKED}
_KEEP_SESSIONS = (
    "let the server keep sessions if it asks the client for something (sampling, elicitation, "
    "roots), or use input_required of 2026-07-28"
)


@cause(
    "stray-response",
    "an error that belongs to no request",
    Level.QUOTE,
    rules="ENV201 ENV204 ENV205 ENV207 ENV208",
    positive=(
        ex.session(ex.request("ping"), ex.result(), ex.error("boom")),
        ex.session(ex.request("ping"), ex.error("UnicodeDecodeError: cp950", -32700, None)),
        ex.session(
            "@ bare", '>> {"id":1,"method":"initialize"}', ex.error("Invalid Request", -32600, None), ex.END
        ),
        ex.session(ex.call(), ex.error("no such tool", -32602, None), ex.END),
    ),
    negative=ex.session(ex.request("ping"), ex.error("Method not found", -32601)),
)
def stray_response(facts: Facts) -> Iterator[Claim]:
    """A response with the id of no open request reaches no one. One without an id may mean that the
    request was unreadable.
    """
    for violation in facts.violations("ENV204", "ENV205", "ENV207", "ENV208", "ENV201"):
        errors = [each for each in violation.findings if each.error is not None]
        for finding in errors[:1]:
            words = finding.error or finding.excerpt
            is_unread = violation.code in ("ENV207", "ENV208") and _CANNOT_READ.search(words)
            is_answer = violation.code in ("ENV207", "ENV208") and facts.is_stdio
            waiting = without_response(facts) if is_unread or is_answer else ()
            failed = [each for each in waiting if any(is_near(found, each) for found in errors)]
            side = violation.side
            title = f"the {side} sent an error that belongs to no request: {quote(finding.message)}"
            next_step = f"let the {side} answer each request once, with its id"
            found = failed[0].findings if failed else ()
            flaws = [
                each for each in found if each.side != side and not each.code.startswith(("HOST", "AGENT"))
            ]
            if failed and not is_unread:
                title = f"the {side} answered {failed[0].about} with an error without its id: {quote(words)}"
                next_step = (
                    f"correct what the error names; let the {side} copy the id of the request into its error, by "
                    f"which the {other(side)} finds the answer"
                )
                if flaws:
                    side = other(side)
                    title += f"; the request is not valid: {quote(flaws[0].message)}"
                    next_step = f"correct the form of the request: {flaws[0].code} (mcpspy lint explains it)"
            elif failed:
                title = f"the {side} could not read the request {failed[0].about}: {quote(words)}"
                next_step = (
                    f"let the {side} read its input as UTF-8 (Python: PYTHONUTF8=1), and compare the "
                    f"line with what it expects (mcpspy show -v)"
                )
                if failed[0].batch is not None:
                    title = f"the {side} does not take batches, and {failed[0].about} was sent in one: {quote(words)}"
                    next_step = "let the client send each message on its own: only 2025-03-26 has batches, and few servers know them"
            symptoms, level = [violation, *failed], Level.EXACT if failed else None
            yield Claim(title, next_step, symptoms, side=side, level=level)


def _is_without_session(facts: Facts, failed: FailedRequest) -> bool:
    """Return whether a server wants a session, and the client has begun none."""
    has_begun = facts.answered or facts.client.methods["initialize"] or facts.session.is_modern
    is_of_session = (
        re.search(r"(?i)\b(?:no|missing|without|invalid)\b.{0,20}\bsession", failed.words) is not None
    )
    return not has_begun and is_of_session and failed.is_refused


def _waited(end: ServerEnd) -> bool:
    """Return whether a server that ended had let requests wait, for the end of the handshake by its own words."""
    is_said = end.named is not None and re.search(r"(?i)initiali[sz]", end.named.text) is not None
    return is_said and any(end.at - each.asked_at >= PATIENCE for each in end.during)


def _misnamed(facts: Facts, ends: list[ServerEnd]) -> Claim:
    """Return a claim of a client that ends the handshake by the name of the Language Server Protocol."""
    failed = [each for each in facts.failed() if each.side == CLIENT and not each.is_handshake]
    title = "the client sent initialized in place of notifications/initialized"
    title += (
        f", and the server did not answer {failed[0].about}" if failed and failed[0].state in SILENT else ""
    )
    for end in ends[:1]:
        title += f"; it ended: {quote(end.named.text, 100)}" if end.named is not None else "; it ended"
    next_step = "let the client send the notification by its whole name, notifications/initialized"
    symptoms = [
        *failed,
        *ends,
        *facts.of(ClientLeft),
        *facts.violations("LIFE102", "LIFE103", "LIFE401", "LIFE403", "LIFE404"),
    ]
    return Claim(title, next_step, symptoms, side=CLIENT)


_BEGUN = ex.session("@ bare", ex.initialize(), ex.welcome())

_UNINITIALIZED = re.compile(
    r"(?i)\bun-?initiali[sz]ed|\bnot (?:yet |been |properly |fully )*initiali[sz]|before (?:the )?(?:server )?initiali[sz]"
    r"|during (?:the )?(?:session |server )?initiali[sz]|initiali[sz]ation\b.{0,20}\b(?:complete|finished|done|required)|\binitiali[sz]ed? (?:first|request|notification)"
    r"|\bmust (?:be )?initiali[sz]e|\b(?:call|send|sent|requires?|expect\w*|missing|need\w*|without|until) (?:an? |the )?[\"'`]?(?:notifications/)?initiali[sz]"
)
"""The SDKs for a request before the end of the handshake."""

_NO_PARAMS = re.compile(r"(?i)invalid request parameters\.?")
"""The whole error of the Python SDK for a request before the end of the handshake."""

_ALWAYS_ANSWERED = ("initialize", "server/discover", "ping")


def _is_too_early(failed: FailedRequest) -> bool:
    """Return whether an error states that the handshake has not ended; a tool that has run speaks of something else."""
    if failed.state in (State.TOOL_ERROR, State.LATE_TOOL_ERROR):
        return False
    is_unsaid = (
        failed.code == -32602
        and failed.method in METHODS
        and _NO_PARAMS.fullmatch(failed.words.strip()) is not None
    )
    return is_unsaid or _UNINITIALIZED.search(failed.words) is not None


@cause(
    "handshake-incomplete",
    "the client never sent notifications/initialized",
    Level.EXACT,
    rules="LIFE102 LIFE103 LIFE401 LIFE403 LIFE404",
    positive=(
        ex.session("@ bare", ex.request("initialize", 1), ex.result(1), ex.request("tools/list"), ex.END),
        ex.session("@ bare", ex.request("tools/list"), ex.error("Server not initialized", -32002)),
        ex.session("@ http bare", ex.request("tools/list"), ex.answered(400, {_ID: None}, "Not initialized")),
        ex.session(_BEGUN, ex.call(), ex.error("Invalid request parameters", -32602)),
        ex.session(
            "@ bare", ex.request("tools/list"), ex.error("Invalid request parameters", -32602), ex.END
        ),
    ),
    negative=(
        ex.session(_BEGUN, ex.listed("a"), ex.call(3), "+ 60", ex.cancelled(3)),
        ex.session(_BEGUN, ex.call(), ex.done(2, "Failed to initialize the browser", isError=True)),
        ex.session(ex.request("ping"), ex.END),
        ex.session("@ http bare", ex.request("tools/list"), ex.answered(400, "Not initialized")),
    ),
)
def handshake_incomplete(facts: Facts) -> Iterator[Claim]:
    """A server may wait for it before it answers other requests; some refuse them until then."""
    is_sent = facts.client.methods["notifications/initialized"] or facts.session.is_modern
    # A server that has answered other requests does not wait for the notification.
    has_worked = any(side == CLIENT and method not in _ALWAYS_ANSWERED for side, method in facts.answered)
    # A server that ends at a request has not waited for the notification.
    ends = [end for end in facts.of(ServerEnd) if end.has_answered]
    ended = [each for end in ends if not _waited(end) for each in end.during]
    failed = [
        each
        for each in facts.failed()
        if each.side == CLIENT
        and not each.is_handshake
        and not each.effects
        and each not in ended
        and (
            (each.state in SILENT and not has_worked)
            or _is_too_early(each)
            or _is_without_session(facts, each)
        )
    ]
    left = [
        each
        for each in facts.of(ClientLeft)
        if not each.is_initialized and each.message.startswith("the error")
    ]
    if facts.client.methods["initialized"] and not is_sent and (failed or ends):
        yield _misnamed(facts, ends)
        return
    if failed and facts.answered[CLIENT, "initialize"] and not is_sent:
        how = "does not answer" if failed[0].state in SILENT else "refuses"
        title = (
            f"the client never sent notifications/initialized after the result of initialize, and the "
            f"server {how} {failed[0].about}"
        )
        next_step = "the client must send notifications/initialized before other requests"
        symptoms = [*failed, *left, *facts.violations("LIFE103", "LIFE102")]
        for end in ends:
            if end.named is not None and _waited(end):
                title += f"; it then ended: {quote(end.named.text, 100)}"
                symptoms += [end, *facts.violations("LIFE401", "LIFE403", "LIFE404")]
        yield Claim(title, next_step, symptoms, side=CLIENT)
        return
    early = [
        each for each in facts.failed(*ERRORS) if any(found.code == "LIFE102" for found in each.findings)
    ]
    if early and facts.answered[CLIENT, "initialize"]:
        title = f"the client sent {early[0].about} before the response to initialize, and the server refused it{clause(early[0].words)}"
        next_step = "let the client wait for the response to initialize and send notifications/initialized before other requests"
        yield Claim(title, next_step, [*early, *left, *facts.violations("LIFE102")], side=CLIENT)
        return
    # A session whose start the recording lacks has an id.
    is_begun = is_sent or facts.answered or facts.client.methods["initialize"]
    refused = [each for each in failed if each.state not in SILENT]
    refused = [each for each in refused if each.carrier is None or each.carrier.session_id is None]
    if refused and not is_begun:
        title = f"the client sent {refused[0].about} and never initialize: {quote(refused[0].words)}"
        next_step = "the client must send initialize first, and then notifications/initialized"
        yield Claim(title, next_step, [*refused, *left, *facts.violations("LIFE102", "LIFE103")], side=CLIENT)
