"""Requests that were given up, or that never got a response, and responses that were ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.requests import LONG_WAIT, SHORT_WAIT, is_limit, without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import NamedError, clause, named_error, of_finding, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts, SlowCall
from mcpspy.analysis.explain.outcomes import BY_USER
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, IgnoredResponse, ServerEnd
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.session.exchange import State

_OF_MEANING = ("AGENT", "HOST", "SEC", "DATA306")
"""Rules about the meaning of a message, and not about its form, for which a parser refuses it."""


@cause(
    "response-ignored",
    "the client did not accept a response that had arrived",
    Level.SPECIFIC,
    positive=ex.session(ex.request("ping"), '< {"id":2,"result":[]}', ex.cancelled()),
)
def response_ignored(facts: Facts) -> Iterator[Claim]:
    """The client waited on after the response, so it did not take it for one: its form is wrong for
    the client's parser.
    """
    for ignored in facts.of(IgnoredResponse):
        sender = other(ignored.side)
        rejecting = [
            each
            for each in ignored.findings
            if each.side != ignored.side and not each.code.startswith(_OF_MEANING)
        ]
        why = f": {rejecting[0].message}" if rejecting else ""
        look = f"look into the {ignored.side}'s log at this time: it got the response"
        title = (
            f"the {ignored.side} did not accept the response to {ignored.about}, and waited "
            f"{duration(ignored.waited)} more{why}"
        )
        next_step = "correct this form of the response" if rejecting else look
        symptoms = [ignored, *facts.violations(*{each.code for each in rejecting}, side=sender)]
        lines = [of_finding(each) for each in rejecting[:2]]
        side = sender if rejecting else ignored.side
        yield Claim(title, next_step, symptoms, evidence=lines, side=side)


def _waited(failed: FailedRequest, title: str, next_step: str, error: NamedError | None) -> Claim:
    """Return a claim of a request without a response; an error on stderr meanwhile is what to correct."""
    if error is None:
        return Claim(title, next_step, [failed])
    level, lines = Level.SPECIFIC, [error.evidence]
    return Claim(title, error.next_step, [failed], evidence=lines, level=level)


@cause(
    "timeout",
    "a request was given up before its response",
    Level.GENERAL,
    positive=(
        ex.session(ex.call(), ex.cancelled()),
        ex.session(ex.call(), "+ 60", ex.cancelled()),
        ex.session(ex.call(), ex.cancelled(), ex.done()),
        ex.session(ex.request("ping"), "+ 30", ex.cancelled()),
    ),
)
def timeout(facts: Facts) -> Iterator[Claim]:
    """The work took longer than the requester waits, or hangs. Progress keeps some requesters
    waiting, if they asked for it.
    """
    for failed in without_response(facts):
        if failed.state is State.UNANSWERED:
            continue
        title = (
            f"the {failed.cancelled_by or failed.side} gave up {failed.about} after {failed.waited}, "
            f"before a response"
        )
        if failed.answer_at is not None:
            after = duration(failed.answer_at - failed.asked_at)
            title += f"; the response came {after} after the request{clause(failed.words)}"
        closed_at, gave_up_at = facts.client.closed_at, failed.gave_up_at
        if closed_at is not None and gave_up_at is not None and 0 <= closed_at - gave_up_at < 0.5:
            title += f", and closed the session {duration(closed_at - gave_up_at)} later"
        is_left_at = (
            closed_at is not None and failed.answer_at is not None and 0 <= closed_at - failed.answer_at < 0.5
        )
        if is_left_at and BY_USER.search(failed.reason):
            yield Claim(
                title=f"the client closed the session {duration((closed_at or 0.0) - (failed.answer_at or 0.0))} after the late response to "
                f"{failed.about}, which it had cancelled itself{clause(failed.words)}",
                next_step="let the client ignore a response to a request that it has cancelled (2025-11-25, Cancellation): it may cross the "
                "notification; the server need not send one",
                symptoms=[failed, *facts.of(ClientLeft)],
                side=CLIENT,
                level=Level.SPECIFIC,
            )
            continue
        if error := named_error(failed.stderr, certain=True):
            title += f"; meanwhile the server printed {quote(error.text, 100)!r}"
        if failed.progress_words and failed.answer_at is None:
            title += f"; its last progress was: {quote(failed.progress_words, 100)}"
        next_step = _more_patience(failed)
        if (silent := _silent_stderr(facts, failed)) is not None:
            title += f"; it had printed {facts.stderr_size:,} characters on stderr until then, and nothing more for {duration(silent)}"
            next_step = (
                f"look whether the host reads the server's stderr: a server waits in its next line once the pipe is full (64 KiB), and with "
                f"it the call; let it log less. Else {next_step}"
            )
        held = _held_up_by(facts, failed)
        if held:
            title += f"; {held[0].about}, sent meanwhile, was answered only then: the server works on one request at a time"
        claim = _waited(failed, title, next_step, error)
        # Without a reason, the user may have stopped a call that worked.
        is_open = failed.progress or (
            failed.method == "tools/call" and failed.gave_up_at is not None and not failed.reason
        )
        long = SHORT_WAIT if failed.method == "ping" else LONG_WAIT
        is_open |= failed.method == "tools/call"  # It may take as long as it took, or hang.
        if failed.answer_at is None and failed.took >= long and not is_open:
            claim.side = other(failed.side)
        elif failed.answer_at is not None and failed.took < SHORT_WAIT / 2 and "cancel" not in failed.words:
            claim.side = failed.side
        if held:
            claim.side = SERVER
            claim.next_step = f"let the server work on calls concurrently (async, threads); {claim.next_step}"
        yield claim


PIPE_SIZE = 65_536
"""Bytes that a pipe holds until someone reads them, on Linux and macOS."""

QUIET_SECONDS = 5.0
"""Seconds without a line on stderr after which one that had printed much may be waiting for a reader."""


def _silent_stderr(facts: Facts, failed: FailedRequest) -> float | None:
    """Return for how many seconds a server that had filled a pipe printed nothing, before a call was given up; else None."""
    last = facts.stderr[-1] if facts.stderr else None
    if failed.side != CLIENT or last is None or facts.stderr_size < PIPE_SIZE:
        return None
    silent = failed.until - last.at
    return silent if silent >= QUIET_SECONDS and last.at >= failed.asked_at else None


def _more_patience(failed: FailedRequest) -> str:
    """Return what keeps a requester waiting, or lets it wait for less."""
    limit = f"the {failed.side}'s timeout"
    if failed.method == "ping":
        return f"let the {other(failed.side)} answer ping with an empty result at once, also while it works on a request"
    if not failed.has_token:
        return (
            f"make the work faster, answer with a task, or raise {limit} of {failed.waited}: the "
            f"request had no progressToken, so progress cannot be reported"
        )
    if not failed.progress:
        return (
            f"the request asked for progress: let the {other(failed.side)} report it, make the work "
            f"faster, or raise {limit}"
        )
    return f"it reported progress {failed.progress} times: raise {limit} of {failed.waited}"


def _held_up_by(facts: Facts, failed: FailedRequest) -> list[SlowCall]:
    """Return the requests that were sent while a call of the client ran, and answered right after its late response."""
    answer_at = failed.answer_at
    if answer_at is None or failed.side != CLIENT:
        return []
    during = [each for each in facts.slow if failed.asked_at < each.asked_at < answer_at]
    return [each for each in during if 0 <= each.answer_at - answer_at <= RIGHT_AFTER]


RIGHT_AFTER = 0.25
"""Seconds after the response to a request in which those that have waited for it are answered."""


_OF_RECEIVER = ex.notified("<", "notifications/cancelled", requestId=2, reason="the job was aborted")


@cause(
    "cancelled-by-receiver",
    "the receiver of a request cancelled it, and its requester waited on",
    Level.SPECIFIC,
    rules="LIFE203",
    positive=(
        ex.session(ex.call(), _OF_RECEIVER, "+ 12", ex.cancelled()),
        ex.session(ex.call(), _OF_RECEIVER, "+ 12", ex.END),
    ),
    negative=(
        ex.session(ex.call(), _OF_RECEIVER, ex.done()),
        ex.session(ex.call(), "+ 12", ex.cancelled(), _OF_RECEIVER),
    ),
)
def cancelled_by_receiver(facts: Facts) -> Iterator[Claim]:
    """Only the sender of a request cancels it (2025-11-25, Cancellation), so its other side may ignore the notification; what
    has failed is answered with an error.
    """
    for failed in without_response(facts):
        receiver = other(failed.side)
        violations = facts.violations("LIFE203", side=receiver)
        found = [
            each
            for violation in violations
            for each in violation.findings
            if each.message.endswith(f" id {failed.id}") and failed.asked_at <= each.at < failed.until
        ]
        if not found:
            continue
        title = (
            f"the {receiver} cancelled {failed.about}, a request of the {failed.side}, after "
            f"{duration(found[0].at - failed.asked_at)}, and the {failed.side} waited on for a response: {failed.waited}"
        )
        next_step = (
            f"let the {receiver} answer with an error what it does not finish: it may cancel only requests of its side; a "
            f"{failed.side} that gets such a notification anyway can end its wait"
        )
        lines = [of_finding(each) for each in found[:2]]
        yield Claim(title, next_step, [failed, *violations], evidence=lines)


_NOT_TAKEN = re.compile(
    r"(?i)\b(?:unknown|unsupported|unrecogni[sz]ed|unhandled|unexpected|invalid|ignor\w+|dropp\w+|discard\w+|skipped|skipping|not (?:known|supported"
    r"|implemented|found)|no handler|cannot|failed)\b"
)
"""The words of a log, of whatever level, about a message that a program does not process."""


def _log_of(failed: FailedRequest) -> NamedError | None:
    """Return the line on stderr that names a request without a response as one that was not processed."""
    for line in failed.stderr:
        if (
            line.at - failed.asked_at < PATIENCE
            and failed.method in line.text
            and _NOT_TAKEN.search(line.text)
        ):
            return NamedError(line, line.text.strip(), "")
    return None


_BATCH = '>> [{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"ping"}]'


def _has_hung_up(failed: FailedRequest) -> bool:
    """Return whether the client closed the connection of its request after a while."""
    return failed.side == CLIENT and "the client disconnected" in failed.why and failed.took >= SHORT_WAIT


def _gave_up_progress(facts: Facts, failed: FailedRequest) -> Claim | None:
    """Return a claim of a call whose connection the client closed although the server reported progress; else None."""
    unknown = [
        violation
        for violation in facts.violations("LIFE303", side=SERVER)
        if any(failed.asked_at <= finding.at <= failed.until for finding in violation.findings)
    ]
    if not _has_hung_up(failed) or not (failed.progress or unknown):
        return None
    title = (
        f"the client disconnected {failed.waited} after {failed.about}, before a response, although the server reported "
        f"progress until then"
    )
    next_step = "let the client start its timeout again at each progress, as it may (2025-11-25, Lifecycle: timeouts), or raise it"
    return Claim(title, next_step, [failed, *unknown], side=CLIENT)


@cause(
    "no-response",
    "a request got no response before the session ended",
    Level.GENERAL,
    rules="LIFE303",
    positive=(
        ex.session(ex.request("ping"), ex.END),
        ex.session("@ 2025-03-26", _BATCH, ex.END),
        ex.session(
            ex.request("tools/list"),
            "+ 0.1",
            ex.stderr("DEBUG: Unknown notification: tools/list"),
            "+ 9",
            ex.END,
        ),
        ex.session(ex.request(""), ex.END),
    ),
)
def no_response(facts: Facts) -> Iterator[Claim]:
    """The receiver still works on it, hangs, or has forgotten it."""
    ended = [failed for end in facts.of(ServerEnd) for failed in end.during]
    for failed in without_response(facts):
        if failed.state is not State.UNANSWERED or failed in ended:
            continue
        receiver = other(failed.side)
        if (given_up := _gave_up_progress(facts, failed)) is not None:
            yield given_up
            continue
        until = "the client disconnected" if _has_hung_up(failed) else "the session ended"
        about = failed.about or f"the request {failed.id}, whose method is empty,"
        title = f"the {receiver} did not respond to {about} for {failed.waited}, until {until}"
        next_step = f"look where the {receiver} waits at this request, with a debugger or py-spy dump"
        next_step += "; mcpspy send repeats it alone" if failed.side == CLIENT else ""
        can_be_asked = facts.session.client_capabilities and not facts.session.is_modern
        if failed.side == CLIENT and can_be_asked and not facts.is_stdio and not facts.http.session_ids:
            next_step += (
                "; the server assigned no session id: so it cannot ask the client for roots, sampling or "
                "input meanwhile"
            )
        closed_at = facts.client.closed_at if facts.is_stdio and failed.side == CLIENT else None
        is_cut_off = closed_at is not None and 0 <= closed_at - failed.asked_at < PATIENCE
        if closed_at is not None and is_cut_off:
            title = (
                f"the client closed stdin {duration(closed_at - failed.asked_at)} after {failed.about}, "
                f"and the server ended without a response to it"
            )
            next_step = (
                "let the server answer what it has read before it ends; the client should wait for "
                "responses before it closes stdin"
            )
        elif failed.batch is not None:
            title += ": it was sent in a batch"
            next_step = (
                f"send each message on its own: only 2025-03-26 has batches, and the {receiver} may not "
                f"know them"
            )
        if error := named_error(failed.stderr, certain=True) or _log_of(failed):
            title += f"; on stderr: {quote(error.text)}"
        claim = _waited(failed, title, next_step, error)
        # A call may need some seconds, and its user may end the session meanwhile.
        patience = 60.0 if failed.method == "tools/call" else PATIENCE
        is_silent = failed.took >= patience or failed.batch is not None
        claim.side = receiver if is_silent else ""
        if failed.method == "tools/call" and facts.is_stdio and is_limit(failed.took):
            claim.title += "; it may have given up then, by its own limit"
            claim.next_step += "; if this call may take longer, raise the timeout of requests in the client"
            claim.side = ""
        yield claim
