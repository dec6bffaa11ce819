"""The ids of requests and responses: changed, missing, used twice, or of a form that is not read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.requests import LONG_WAIT, errors, without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ERRORS, ClientLeft, FailedRequest
from mcpspy.analysis.lint.finding import Finding
from mcpspy.core.protocol.message import Failure
from mcpspy.core.protocol.spec import CLIENT, SERVER, other


def findings_of(facts: Facts, *codes: str, side: str = "") -> list[Finding]:
    return [finding for each in facts.violations(*codes, side=side) for finding in each.findings]


def is_near(finding: Finding, failed: FailedRequest) -> bool:
    """Return whether the other side sent the message with a finding while a request waited."""
    return finding.side != failed.side and failed.asked_at <= finding.at <= failed.until + 1.0


_NO_SESSION = re.compile(r"(?i)\bsession\b|\bnot (?:yet )?initiali[sz]ed\b")


_STRAY = '< {"id":"err_1","error":{"code":-32600,"message":"Server not initialized"}}'


@cause(
    "wrong-id",
    "a response has another id than its request",
    Level.EXACT,
    rules="DATA102 ENV201 ENV204 ENV205 ENV207",
    positive=(
        ex.session(ex.request("ping"), '< {"id":"2","result":{}}'),
        ex.session(
            *(ex.call(), ex.done(), ex.call(3), _STRAY),
            *("+ 12", ex.cancelled(3)),
        ),
    ),
    negative=ex.session(ex.call(), ex.request("ping", 3), _STRAY, ex.done(), ex.result(3)),
)
def wrong_id(facts: Facts) -> Iterator[Claim]:
    """Responses are matched by value and type of the id: 1, "1" and 1.0 differ, and some types have
    no room beyond 2^53.
    """
    found = findings_of(facts, "ENV204", "ENV205", "ENV207", "ENV201")
    waiting = [*without_response(facts)]
    # An error may be about something else than the only request that waits, unless it has an id that no one gave.
    found = [
        each
        for each in found
        if each.kind != Failure.kind
        or (each.code == "ENV204" and sum(is_near(each, failed) for failed in waiting) == 1)
    ]
    for failed in waiting:
        for finding in found:
            if is_near(finding, failed) and (given := finding.id) != failed.id:
                side, wrong = other(failed.side), f"the id {given}" if given else "no id"
                title = f"the {side}'s response to {failed.about} has {wrong}, and not that of the request"
                next_step = (
                    f"the {side} must copy the id of the request into its response, unchanged in type "
                    f"and value"
                )
                if finding.kind == Failure.kind:
                    title = f"the {side}'s error for {failed.about} has {wrong}, and not that of the request: {quote(finding.error or '')}"
                    next_step += "; until then correct what the error names"
                    if not facts.is_stdio and facts.has_worked and _NO_SESSION.search(finding.error or ""):
                        next_step += ", or begin a new session; a session that the server no longer knows is answered with HTTP 404"
                symptoms = [failed, *facts.violations("ENV204", "ENV205", "ENV207", "DATA102", side=side)]
                symptoms += [left for left in facts.of(ClientLeft) if finding in left.findings]
                lines = [evidence(finding.place, f"{finding.message} | {finding.excerpt}")]
                # A gateway that reads messages and writes them again may have changed the id.
                is_of_gateway = not facts.is_stdio and given == f'"{failed.id}"'
                yield Claim(title, next_step, symptoms, evidence=lines, side="" if is_of_gateway else side)
                break


_UNREADABLE_REQUEST = (-32700, -32600)
"""Codes of errors that have the id null, because the server could not read the id (JSON-RPC 2.0, 5)."""


@cause(
    "error-without-id",
    "an error has no id, so the client cannot match it with its request",
    Level.EXACT,
    rules="ENV104 ENV106 ENV207",
    positive=(
        ex.session("@ http", ex.call(), ex.answered(200), ex.error("boom", -32602, None)),
        ex.session("@ http", ex.call(), ex.answered(200), '<< {"success":false,"error":"route not found"}'),
    ),
    negative=ex.session("@ http", ex.call(), ex.answered(200), ex.error("boom", -32602)),
)
def error_without_id(facts: Facts) -> Iterator[Claim]:
    """Over HTTP, the exchange shows which request was meant. Clients look only at the id: they wait until they give up."""
    if facts.is_stdio:
        return
    for failed in facts.failed(*ERRORS):
        found = [
            each for each in findings_of(facts, "ENV207", side=other(failed.side)) if is_near(each, failed)
        ]
        if not found or failed.is_refused or failed.code in _UNREADABLE_REQUEST:
            continue
        side = other(failed.side)
        has = (
            "no id"
            if found[0].id is None
            else f"the id {quote(found[0].id, 40)} and not {quote(failed.id or '', 40)}"
        )
        title = f"the {side}'s error for {failed.about} has {has}, so the client cannot match it, and waits: {quote(failed.words)}"
        next_step = f"the {side} must copy the id of the request into its error, with its type (a number stays a number)"
        symptoms = [failed, *facts.violations("ENV207", side=side)]
        if any(is_near(each, failed) for each in findings_of(facts, "ENV104", side=side)):
            title = (
                f"the {side} answered {failed.about} with an error that is not a JSON-RPC message: "
                f"{quote(failed.words)}"
            )
            next_step = f"let the {side} answer with an error of JSON-RPC that has the id of the request"
            symptoms += [*facts.violations("ENV104", "ENV106", side=side), *facts.of(ClientLeft)]
        yield Claim(title, next_step, symptoms, side=side)


LARGEST_EXACT = (1 << 53) - 1
"""Largest integer that JavaScript represents exactly, as all smaller ones (Number.MAX_SAFE_INTEGER)."""


@cause(
    "id-too-large",
    "the server does not answer requests whose id is beyond 2^53",
    Level.EXACT,
    positive=ex.session(ex.call(), ex.done(), ex.call(1795881489177719583), "+ 9", ex.END),
    negative=ex.session(ex.call(), ex.done(), ex.call(3), "+ 9", ex.END),
)
def id_too_large(facts: Facts) -> Iterator[Claim]:
    """JavaScript reads another number. Servers on the TypeScript SDK refuse such an id, and drop the request silently."""
    failed = [each for each in without_response(facts) if _is_too_large(each.id)]
    small = [each for each in without_response(facts) if not _is_too_large(each.id)]
    for side in {each.side for each in failed}:
        affected = [each for each in failed if each.side == side]
        has_worked = any(key[0] == side for key in facts.answered)
        # Without any answer, it is one of the reasons that a server may have.
        if any(each.side == side for each in small) or not (has_worked or affected[0].took >= LONG_WAIT):
            continue
        title = (
            f"{affected[0].about} has the id {affected[0].id}, which is beyond 2^53 - 1, and got no response"
        )
        title += "; requests with small ids did" if has_worked else ""
        next_step = f"the {side} must use small ids: JavaScript reads larger ones as another number"
        yield Claim(title, next_step, [*affected], side="")  # JSON-RPC allows them.


def _is_too_large(id_: str | None) -> bool:
    return id_ is not None and id_.lstrip("-").isdigit() and abs(int(id_)) > LARGEST_EXACT


_TAKE_TEXTS = "let the server take texts as ids, and answer with the same one (JSON-RPC 2.0, 4): clients choose the form"
_REFUSES_TEXT = re.compile(
    r"(?i)token type 'String' as a number|unmarshal string into .{0,60}\bid\b|\bid\b.{0,40}(?:must be|expected) .{0,12}(?:int|number|[iu]64)|\bid\b.{0,60}invalid type: string"
    r"|invalid type: string .{0,60}expected (?:[iu]\d\d|a number|an integer)"
)
"""A decoder that wants a number as the id: encoding/json, serde, zod, pydantic."""


@cause(
    "text-id-unanswered",
    "the server does not answer requests whose id is a text",
    Level.EXACT,
    positive=(
        ex.session(
            *(
                ex.call(),
                ex.done(),
                '> {"id":"req-1","method":"tools/list"}',
                "+ 9",
                ex.request("tools/list", 4),
            ),
            *(ex.result(4, tools=[]), ex.END),
        ),
        ex.session(
            *("@ bare", '> {"id":"a","method":"initialize","params":{}}', "+ 0.1"),
            ex.stderr("json: cannot unmarshal string into Go struct field Request.id of type int"),
            *("+ 30", ex.END),
        ),
    ),
    negative=(
        ex.session(ex.call(), ex.done(), '> {"id":"req-1","method":"tools/list"}', "+ 9", ex.END),
        ex.session(ex.call(), ex.done(), ex.request("tools/list", 3), "+ 9", ex.END),
    ),
)
def text_id_unanswered(facts: Facts) -> Iterator[Claim]:
    """JSON-RPC allows texts and numbers. A server that reads only numbers drops the request, or fails at it."""
    # HTTP may have refused one for another reason.
    unanswered = [
        each
        for each in facts.failed()
        if each.side == CLIENT and each.answer_at is None and not (each.is_refused and each.words)
    ]
    failed = [each for each in unanswered if (each.id or "").startswith('"')]
    # Others of the same method, with a number, were answered.
    answered = [each for each in failed if facts.answered[CLIENT, each.method]]
    told = next(
        (
            each
            for each in errors(facts)
            if (each.id or "").startswith('"') and _REFUSES_TEXT.search(each.words)
        ),
        None,
    )
    if told is not None and not facts.text_ids_answered:
        title = f"{told.about} has a text as its id, {quote(told.id or '', 40)}, which the server does not read: {quote(told.words)}"
        yield Claim(title, _TAKE_TEXTS, [told], side=SERVER)
        return
    for each in failed if not facts.text_ids_answered else ():
        line = next((line for line in each.stderr if _REFUSES_TEXT.search(line.text)), None)
        if line is not None:
            title = f"{each.about} has a text as its id, {quote(each.id or '', 40)}, which the server does not read: {quote(line.text)}"
            yield Claim(title, _TAKE_TEXTS, [each], evidence=[line.evidence], side=SERVER)
            return
    if answered and len(failed) == len(unanswered) and not facts.text_ids_answered:
        first = answered[0]
        title = (
            f"{first.about} has a text as its id, {quote(first.id or '', 40)}: {first.state}; requests with a number as their id were "
            f"answered"
        )
        yield Claim(title, _TAKE_TEXTS, [*answered], side=SERVER)


@cause(
    "duplicate-id",
    "two open requests have the same id",
    Level.EXACT,
    rules="ENV202 ENV204 ENV205",
    positive=ex.session(ex.request("ping"), ex.request("ping"), ex.result(), ex.END),
)
def duplicate_id(facts: Facts) -> Iterator[Claim]:
    """Responses are matched by id: of two open requests with one id, one gets the other's response,
    or none.
    """
    for violation in facts.violations("ENV202"):
        ids = {each for finding in violation.findings if (each := finding.id) is not None}
        failed = [each for each in without_response(facts, violation.side) if each.id in ids or not ids]
        shared = f"two open requests the id {min(ids)}" if ids else "a request an id that is in use"
        title = f"the {violation.side} gave {shared}: their responses are mixed up"
        next_step = f"the {violation.side} must give each request its own id within the session"
        symptoms = [*failed, *facts.violations("ENV202", "ENV204", "ENV205")]
        yield Claim(title, next_step, symptoms, side=violation.side)
