"""Responses that do not find their request: ids, batches, and messages that a side cannot read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import Definition, define
from mcpspy.analysis.explain.causes.waiting import without_response
from mcpspy.analysis.explain.claims import Claim, Level
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest
from mcpspy.analysis.lint.finding import Finding
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, SERVER, other

_ID = re.compile(r'"id"\s*:\s*("[^"]{0,60}"|[-\w.+]{1,40})')
_MESSAGE = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.){1,300})')
_ERROR = re.compile(r'"error"|"isError":true')
_CANNOT_READ = re.compile(r"(?i)decode|codec|encoding|unicode|parse|json|charset|utf")
_ENCODING = re.compile(r"(?i)codec|decode|encod|unicode|charset|cp\d+|utf")
"""A parser of JSON, or a codec, in the words of SDKs and of Python."""


def _findings(facts: Facts, *codes: str, side: str = "") -> list[Finding]:
    return [finding for each in facts.violations(*codes, side=side) for finding in each.findings]


def _id(finding: Finding) -> str | None:
    """Return the JSON text of the id in a message with a finding."""
    found = _ID.search(finding.excerpt)
    return found[1] if found else None


def _is_near(finding: Finding, failed: FailedRequest) -> bool:
    """Return whether the other side sent the message with a finding while a request waited."""
    until = failed.asked_at + max(failed.took, 0.0) + 1.0
    return finding.side != failed.side and failed.asked_at <= finding.at <= until


def wrong_id(facts: Facts) -> Iterator[Claim]:
    """Responses are matched by value and type of the id: 1, "1" and 1.0 differ, and some types have no room beyond 2^53."""
    found = _findings(facts, "ENV204", "ENV205", "ENV207", "ENV201")
    found = [each for each in found if "error" not in each.excerpt[:200].partition('"result"')[0]]
    for failed in without_response(facts):
        for finding in found:
            if _is_near(finding, failed) and (given := _id(finding)) != failed.id:
                side, wrong = other(failed.side), f"the id {given}" if given else "no id"
                title = f"the {side}'s response to {failed.about} has {wrong}, and not that of the request"
                next_step = f"the {side} must copy the id of the request into its response, unchanged in type and value"
                symptoms = [failed, *facts.violations("ENV204", "ENV205", "ENV207", "DATA102", side=side)]
                lines = [evidence(finding.place, f"{finding.message} | {finding.excerpt}")]
                yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=side)
                break


def answer_not_matched(facts: Facts) -> Iterator[Claim]:
    """A server without sessions gets each POST in its own context, so the response never reaches the call that waits for it."""
    found = [] if facts.is_stdio else _findings(facts, "ENV204", side=CLIENT)
    for asked in without_response(facts, SERVER):
        answers = [each for each in found if _id(each) == asked.id and each.at >= asked.asked_at]
        if not answers:
            continue
        waiting = without_response(facts, CLIENT)
        held = [failed for failed in waiting if failed.about in asked.waiting or not asked.waiting]
        after = duration(answers[0].at - asked.asked_at)
        title = f"the client answered {asked.about} after {after}, and the server did not continue with it"
        title += (
            "" if facts.http.session_ids else ": it assigned no Mcp-Session-Id, so it works without sessions"
        )
        next_step = "let the server keep sessions if it asks the client for something (sampling, elicitation, roots), or use input_required of 2026-07-28"
        symptoms = [asked, *held, *facts.violations("ENV204", side=CLIENT)]
        lines = [evidence(answers[0].place, f"the client's response: {answers[0].excerpt}")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=SERVER)


def cannot_read_request(facts: Facts) -> Iterator[Claim]:
    """An error without an id comes from a server that could not read the line: it expects another encoding, or no JSON."""
    for failed in without_response(facts):
        for finding in _findings(facts, "ENV207", "ENV208"):
            words = message[1] if (message := _MESSAGE.search(finding.excerpt)) else finding.excerpt
            if not _is_near(finding, failed) or not _CANNOT_READ.search(words):
                continue
            side = other(failed.side)
            next_step = f"compare what the {failed.side} sent with what the {side} expects: mcpspy show -v prints the line"
            if _ENCODING.search(words):
                next_step = f"let the {side} read its input as UTF-8 (Python: PYTHONUTF8=1, or sys.stdin.reconfigure(encoding='utf-8'))"
            title = f"the {side} could not read the request {failed.about}: {quote(words)}"
            symptoms = [failed, *facts.violations("ENV207", "ENV208", side=side)]
            lines = [evidence(finding.place, f"error without an id: {words}")]
            yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=side)
            break


_BATCH = '>> [{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"ping"}]'


def batch_not_known(facts: Facts) -> Iterator[Claim]:
    """Only the revision 2025-03-26 has batches, and few servers know them."""
    failed = [each for each in without_response(facts) if each.batch is not None]
    if failed:
        side, count = other(failed[0].side), sum(each.count for each in failed)
        title = f"the {side} did not respond to {count} requests that came as a batch: it knows no batches"
        next_step = f"send each message on its own: only 2025-03-26 has batches; in the {side}, respond to each message of an array"
        yield Claim(title=title, next_step=next_step, symptoms=[*failed], side=side)


def duplicate_id(facts: Facts) -> Iterator[Claim]:
    """Responses are matched by id: of two open requests with one id, one gets the other's response, or none."""
    for violation in facts.violations("ENV202"):
        ids = {each for finding in violation.findings if (each := _id(finding)) is not None}
        failed = [each for each in without_response(facts, violation.side) if each.id in ids or not ids]
        title = f"the {violation.side} sent {violation.findings[0].message}: two open requests have one id, and their responses are mixed up"
        next_step = f"the {violation.side} must give each request its own id within the session"
        symptoms = [*failed, *facts.violations("ENV202", "ENV204", "ENV205")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=violation.side)


def stray_response(facts: Facts) -> Iterator[Claim]:
    """A response with the id of no open request reaches no one; if it reports an error, a request may wait for it in vain."""
    for violation in facts.violations("ENV204", "ENV205", "ENV207", "ENV208", "ENV201"):
        errors = [each for each in violation.findings if _ERROR.search(each.excerpt)]
        if errors:
            title = (
                f"the {violation.side} sent an error that belongs to no request: {quote(errors[0].message)}"
            )
            next_step = f"let the {violation.side} answer each request once, with its id"
            yield Claim(title=title, next_step=next_step, symptoms=[violation], side=violation.side)


define(__name__,
    Definition(wrong_id, "wrong-id", "a response has another id than its request", Level.EXACT, ex.session(ex.request("ping"), '< {"id":"2","result":{}}'),
               ex.session(ex.request("ping"), ex.result())),
    Definition(answer_not_matched, "answer-not-matched", "the server does not match the client's response with its own request", Level.EXACT),
    Definition(cannot_read_request, "cannot-read-request", "the receiver cannot read a request", Level.EXACT,
               ex.session(ex.request("ping"), ex.error("UnicodeDecodeError: cp950", -32700, None)),
               ex.session(ex.request("ping"), ex.error("Method not found", -32601))),
    Definition(batch_not_known, "batch-not-known", "a batch got no response", Level.EXACT, ex.session("@ 2025-03-26", _BATCH, ex.END),
               ex.session("@ 2025-03-26", ex.request("ping"), ex.END)),
    Definition(duplicate_id, "duplicate-id", "two open requests have the same id", Level.EXACT,
               ex.session(ex.request("ping"), ex.request("ping"), ex.result(), ex.END)),
    Definition(stray_response, "stray-response", "an error that belongs to no request", Level.QUOTE, ex.session(ex.request("ping"), ex.result(), ex.error("boom"))),
)  # fmt: skip
