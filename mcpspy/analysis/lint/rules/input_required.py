"""2026-07-28: questions inside of results, and the requests that answer them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import ERROR, Report, RuleFamily
from mcpspy.core.protocol.message import Result, loads, meta_raw
from mcpspy.core.protocol.spec import META, MODERN

RULES = RuleFamily()
rule = RULES.rule

MRTR = "2026-07-28/basic/patterns/mrtr"
_CALL = '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n'
_LISTED = '@ 2026-07-28\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]%s}}'
_ASKS = '< {"id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"a","requestedSchema":{"type":"object","properties":{}}}}}}}\n'
_RETRY = '> {"id":%d,"method":"tools/call","params":{"name":"a","inputResponses":{"k":{"action":"decline"}}%s}}\n< {"id":%d,"result":{"content":[]}}'
QUESTION = _CALL + _ASKS + _RETRY % (3, ',"requestState":"s"', 3)
_ASKED = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
_MAY_ASK = ("tools/call", "prompts/get", "resources/read")


@rule(
    "MOD301",
    ERROR,
    "an answer to a question that was not asked so",
    page=MRTR + "#client-requirements-basic-workflow",
    on=EventKind.REQUEST,
    about=_MAY_ASK,
    since=MODERN,
    valid=(QUESTION,),
    invalid=(_CALL + _ASKS + _RETRY % (3, "", 3), _CALL + _ASKS + _RETRY % (3, ',"requestState":"t"', 3)),
)
def state(seen: LintEvent) -> Iterator[Report]:
    """The client repeats the request with `inputResponses`, and with the very `requestState` that the server gave;
    with none if it gave none. Otherwise the server cannot tell what it had asked.
    """
    body = seen.request.body
    if (
        (body.input_responses or body.request_state)
        and seen.exchange is not None
        and seen.exchange.continues is None
    ):
        yield Report("inputResponses or requestState, but no question that they belong to")


@rule(
    "MOD302",
    ERROR,
    "a repeated request under the same id",
    page=MRTR + "#client-requirements-basic-workflow",
    on=EventKind.REQUEST,
    about=_MAY_ASK,
    since=MODERN,
    valid=(QUESTION,),
    invalid=(_CALL + _ASKS + _RETRY % (2, ',"requestState":"s"', 2),),
)
def same_id(seen: LintEvent) -> Iterator[Report]:
    """The two are independent requests: the one with the answers has another id than the one that was asked back."""
    earlier = seen.exchange.continues if seen.exchange is not None else None
    if earlier is not None and earlier.request.id == seen.request.id:
        yield Report(f"the id {seen.request.id[:40]} is that of the request it repeats")


@rule(
    "MOD303",
    ERROR,
    "a question without anything in it",
    page=MRTR + "#server-requirements-basic-workflow",
    on=EventKind.RESULT,
    since=MODERN,
    valid=(QUESTION,),
    invalid=(_CALL + '< {"id":2,"result":{"resultType":"input_required"}}',),
)
def empty(seen: LintEvent) -> Iterator[Report]:
    """`input_required` has `inputRequests`, `requestState`, or both."""
    if _is_question(seen) and not {"inputRequests", "requestState"} & seen.result.keys():
        yield Report("input_required with neither inputRequests nor requestState")


@rule(
    "MOD304",
    ERROR,
    "a question, where there may be none",
    page=MRTR + "#supported-requests",
    on=EventKind.RESULT,
    since=MODERN,
    valid=(QUESTION,),
    invalid=((_LISTED % "").replace('"tools":[]', '"resultType":"input_required","requestState":"s"'),),
)
def out_of_place(seen: LintEvent) -> Iterator[Report]:
    """Only tools/call, prompts/get and resources/read may be answered by a question."""
    if _is_question(seen) and seen.method not in _MAY_ASK:
        yield Report(f"input_required in answer to {seen.method}")


@rule(
    "MOD305",
    ERROR,
    "a question that the client never said it answers",
    page=MRTR + "#server-requirements-basic-workflow",
    on=EventKind.RESULT,
    about=_MAY_ASK,
    since=MODERN,
    valid=(QUESTION,),
    invalid=(
        QUESTION.replace(
            '{"name":"a"}', '{"name":"a","_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}', 1
        ),
        QUESTION.replace("elicitation/create", "tools/list"),
    ),
)
def undeclared(seen: LintEvent) -> Iterator[Report]:
    """Elicitations, samples and roots are all there is to ask for, and only of a client that declared them in this
    very request.
    """
    asked: Any = seen.result.get("inputRequests") if _is_question(seen) else None
    if not isinstance(asked, dict):
        return
    declared = loads(meta_raw(seen.request.body.meta, META + "clientCapabilities"))
    for key, question in asked.items():
        method = question.get("method") if isinstance(question, dict) else None
        needs = _ASKED.get(method) if isinstance(method, str) else None
        if needs is None:
            yield Report(f"inputRequests/{key[:40]} asks {str(method)[:40]}", question)
        elif isinstance(declared, dict) and needs not in declared:
            yield Report(
                f"inputRequests/{key[:40]} asks {method}, but the client never declared {needs}", question
            )


def _is_question(seen: LintEvent) -> bool:
    return seen.is_result and isinstance(seen.what, Result) and seen.what.result_type == "input_required"
