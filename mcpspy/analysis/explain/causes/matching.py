"""Responses that do not find their request: ids, batches, and messages that a side cannot read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes.waiting import without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, SERVER, other

_CANNOT_READ = re.compile(r"(?i)decode|codec|encoding|unicode|parse|json|charset|utf")


@cause(
    "wrong-id",
    "a response has another id than its request",
    level=Level.EXACT,
    positive='> {"id":2,"method":"ping"}\n< {"id":"2","result":{}}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
)
def wrong_id(facts: Facts) -> Iterator[Claim]:
    """The receiver matches responses by id, value and type: 1, "1" and 1.0 are different ids. Some servers count by
    themselves, read the id as a string, or as a number that has no room for it (beyond 2^53).
    """
    found = [
        finding
        for violation in facts.violations("ENV204", "ENV205", "ENV207", "ENV201")
        for finding in violation.findings
        if "error" not in finding.excerpt[:200].partition('"result"')[0]
    ]
    for failed in without_response(facts):
        for finding in found:
            id_found = re.search(r'"id"\s*:\s*("[^"]{0,60}"|[-\w.+]{1,40})', finding.excerpt)
            if id_found and id_found[1] == failed.id:
                continue
            is_near = failed.asked_at <= finding.at <= failed.asked_at + max(failed.took, 0.0) + 1.0
            if finding.side != failed.side and is_near:
                wrong = f"the id {id_found[1]}" if id_found else "no id"
                yield Claim(
                    title=f"the {other(failed.side)}'s response to {failed.about} has {wrong}, which is not that of the request",
                    next_step=f"the {other(failed.side)} must copy the id of the request into its response, unchanged in type and value",
                    symptoms=[
                        failed,
                        *facts.violations("ENV204", "ENV205", "ENV207", "DATA102", side=finding.side),
                    ],
                    evidence=[evidence(finding.place, f"{finding.message} | {finding.excerpt}")],
                    side=other(failed.side),
                )
                break


@cause(
    "answer-not-matched",
    "the server does not match the client's response with its own request",
    level=Level.EXACT,
)
def answer_not_matched(facts: Facts) -> Iterator[Claim]:
    """A server without sessions gets each POST in its own context, so the response to its sampling or elicitation request
    never reaches the call that waits for it.
    """
    if facts.is_stdio:
        return
    answers = [finding for each in facts.violations("ENV204", side=CLIENT) for finding in each.findings]
    for asked in without_response(facts, SERVER):
        for finding in answers:
            id_found = re.search(r'"id"\s*:\s*("[^"]{0,60}"|[-\w.+]{1,40})', finding.excerpt)
            if id_found is None or id_found[1] != asked.id or finding.at < asked.asked_at:
                continue
            held = [
                failed
                for failed in without_response(facts, CLIENT)
                if failed.about in asked.waiting or not asked.waiting
            ]
            why = (
                ""
                if facts.http.session_ids
                else ": it assigned no Mcp-Session-Id, so it works without sessions"
            )
            yield Claim(
                title=f"the client answered {asked.about} after {duration(finding.at - asked.asked_at)}, and the server did not continue"
                f" with it{why}",
                next_step="let the server keep sessions if it asks the client for something (sampling, elicitation, roots), or use"
                " input_required of 2026-07-28",
                symptoms=[asked, *held, *facts.violations("ENV204", side=CLIENT)],
                evidence=[evidence(finding.place, f"the client's response: {finding.excerpt}")],
                side=SERVER,
            )
            break


@cause(
    "cannot-read-request",
    "the receiver cannot read a request",
    level=Level.EXACT,
    positive='> {"id":2,"method":"ping"}\n< {"id":null,"error":{"code":-32700,"message":"UnicodeDecodeError: cp950"}}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"error":{"code":-32601,"message":"Method not found"}}',
)
def cannot_read_request(facts: Facts) -> Iterator[Claim]:
    """An error without an id is what a server sends that could not read the id: the line is not JSON for it, or in another
    encoding than it expects.
    """
    errors = [finding for each in facts.violations("ENV207", "ENV208") for finding in each.findings]
    for failed in without_response(facts):
        for finding in errors:
            if finding.side == failed.side or not failed.asked_at <= finding.at <= failed.asked_at + max(
                failed.took, 1.0
            ):
                continue
            message = re.search(r'"message"\s*:\s*"((?:[^"\\]|\\.){1,300})', finding.excerpt)
            words = message[1] if message else finding.excerpt
            if not _CANNOT_READ.search(words):
                continue
            receiver = other(failed.side)
            is_encoding = re.search(r"(?i)codec|decode|encod|unicode|charset|cp\d+|utf", words)
            yield Claim(
                title=f"the {receiver} could not read the request {failed.about}: {quote(words)}",
                next_step=f"let the {receiver} read its input as UTF-8 (Python: PYTHONUTF8=1, or sys.stdin.reconfigure(encoding='utf-8'))"
                if is_encoding
                else f"compare what the {failed.side} sent with what the {receiver} expects: mcpspy show -v prints the line",
                symptoms=[failed, *facts.violations("ENV207", "ENV208", side=receiver)],
                evidence=[evidence(finding.place, f"error without an id: {words}")],
                side=receiver,
            )
            break


@cause(
    "batch-not-known",
    "a batch got no response",
    level=Level.EXACT,
    positive='@ 2025-03-26\n>> [{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"ping"}]\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
    negative='@ 2025-03-26\n> {"id":3,"method":"ping"}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
)
def batch_not_known(facts: Facts) -> Iterator[Claim]:
    """Only the revision 2025-03-26 has batches, and few servers know them."""
    failed = [each for each in without_response(facts) if each.batch is not None]
    if failed:
        side = other(failed[0].side)
        count = sum(each.count for each in failed)
        yield Claim(
            title=f"the {side} did not respond to {count} requests that came as a batch: it does not know batches",
            next_step=f"send each message on its own: only 2025-03-26 has batches; in the {side}, respond to each message of an array",
            symptoms=[*failed],
            side=side,
        )


@cause("duplicate-id", "two open requests have the same id", level=Level.EXACT,
    positive='> {"id":2,"method":"ping"}\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
)  # fmt: skip
def duplicate_id(facts: Facts) -> Iterator[Claim]:
    """Responses are matched by id: of two open requests with one id, one gets the other's response, or none."""
    for violation in facts.violations("ENV202"):
        ids = {
            each
            for finding in violation.findings
            for each in re.findall(r'"id"\s*:\s*("[^"]{0,60}"|-?\d+)', finding.excerpt)
        }
        failed = [each for each in without_response(facts, violation.side) if each.id in ids or not ids]
        yield Claim(
            title=f"the {violation.side} gave {'a request' if not ids else f'two open requests the id {min(ids)}'}"
            f"{' an id that is in use' if not ids else ''}: their responses are mixed up",
            next_step=f"the {violation.side} must give each request its own id within the session",
            symptoms=[*failed, *facts.violations("ENV202", "ENV204", "ENV205")],
            side=violation.side,
        )
