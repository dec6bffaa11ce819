"""The terms of a contract, on sessions that meet them and on sessions that do not."""

from __future__ import annotations

import pytest

from mcpspy.analysis.contract import CallLimit, Contract, TermResult, check, read_call_limit
from mcpspy.core.recording.decode import read_entry
from mcpspy.core.session.session import Session


def session(*messages: str, over: bool = True) -> Session:
    """Return a session; a message is `>` (client) or `<` (server) and members of a JSON-RPC message, one per second."""
    made = Session()
    for at, text in enumerate(messages, start=1):
        side = "client" if text[0] == ">" else "server"
        line = f'{{"t":{at},"from":"{side}","msg":{{"jsonrpc":"2.0",{text[1:].strip()}}}}}'
        made.add(read_entry(line.encode()))
    if over:
        made.end()
    return made


def call(number: int, tool: str, more: str = "") -> str:
    return f'> "id":{number},"method":"tools/call","params":{{"name":"{tool}"{more}}}'


def ok(number: int) -> str:
    return f'< "id":{number},"result":{{"content":[]}}'


RUN = session(call(1, "search"), ok(1), call(2, "search"), ok(2), call(3, "delete_all"), ok(3))


def only(session: Session, contract: Contract) -> TermResult:
    (result,) = check(session, contract)
    return result


@pytest.mark.parametrize(
    ("contract", "is_met", "found", "evidence"),
    [
        (Contract(expect_tools=("search",)), True, "2 calls", []),
        (Contract(expect_tools=("s*h",)), True, "2 calls", []),
        (Contract(expect_tools=("Search",)), False, "no call; called tools: delete_all, search", []),
        (Contract(forbid_tools=("delete_*",)), False, "1 call", [5.0]),
        (Contract(forbid_tools=("write_*",)), True, "no calls", []),
        (Contract(max_calls=(CallLimit("*", 3),)), True, "3 calls", []),
        (Contract(max_calls=(CallLimit("*", 2),)), False, "3 calls", [5.0]),
        (Contract(max_calls=(CallLimit("search", 1),)), False, "2 calls", [3.0]),
        (Contract(max_duration=6.0), True, "6.00 s", []),
        (Contract(max_duration=5.5), False, "6.00 s", []),
        (Contract(no_errors=True), True, "no errors", []),
        (Contract(no_issues=True), True, "no issues", []),
    ],
)
def test_each_term_is_met_or_names_the_messages_that_break_it(
    contract: Contract, is_met: bool, found: str, evidence: list[float]
) -> None:
    result = only(RUN, contract)

    assert (result.is_met, result.found, [one.at for one in result.evidence]) == (is_met, found, evidence)


@pytest.mark.parametrize(
    ("messages", "is_met"),
    [
        ((call(1, "a"), '< "id":1,"error":{"code":-32602,"message":"no"}'), False),
        ((call(1, "a"), '< "id":1,"result":{"content":[],"isError":true}'), False),
        ((call(1, "a"),), False),
        (('< "id":1,"method":"roots/list"', '> "id":1,"error":{"code":-32601,"message":"no"}'), False),
        (
            (
                '> "id":1,"method":"server/discover"',
                '< "id":1,"error":{"code":-32601,"message":"Method not found"}',
            ),
            True,
        ),
        (('> "id":1,"method":"server/discover"', '< "id":1,"error":{"code":-32603,"message":"no"}'), False),
        (('> "id":1,"method":"server/discover"',), False),
        (('< "id":null,"error":{"code":-32700,"message":"no"}',), False),
        ((call(1, "a"), ok(1), '< "id":1,"error":{"code":-32603,"message":"again"}'), False),
        ((call(1, "a"), '> "method":"notifications/cancelled","params":{"requestId":1}'), True),
    ],
)
def test_errors_are_failed_and_unanswered_requests_of_both_sides(
    messages: tuple[str, ...], is_met: bool
) -> None:
    assert only(session(*messages), Contract(no_errors=True)).is_met is is_met


def test_a_request_that_is_still_open_in_a_live_session_is_not_an_error() -> None:
    assert only(session(call(1, "a"), over=False), Contract(no_errors=True)).is_met


def test_a_request_with_the_answers_to_a_question_continues_its_call() -> None:
    run = session(
        call(1, "book"),
        '< "id":1,"result":{"resultType":"input_required","requestState":"s",'
        '"inputRequests":{"a":{"method":"elicitation/create","params":{}}}}',
        call(2, "book", ',"requestState":"s","inputResponses":{"a":{"action":"accept"}}'),
        ok(2),
    )

    assert only(run, Contract(max_calls=(CallLimit("book", 1),))).found == "1 call"


def test_protocol_issues_are_found_on_messages_without_a_request() -> None:
    result = only(session(ok(7)), Contract(no_issues=True))

    assert not result.is_met
    assert [one.at for one in result.evidence] == [1.0]


def test_calls_by_mcpspy_do_not_count() -> None:
    made = Session()
    line = b'{"t":1,"from":"client","by":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}}'
    made.add(read_entry(line))
    made.end()

    assert only(made, Contract(expect_tools=("a",))).found == "no call; called tools: none"
    assert only(made, Contract(no_errors=True)).is_met


@pytest.mark.parametrize(
    ("text", "limit"),
    [("20", CallLimit("*", 20)), ("search=3", CallLimit("search", 3)), ("a=b=0", CallLimit("a=b", 0))],
)
def test_a_limit_is_a_number_or_a_tool_with_a_number(text: str, limit: CallLimit) -> None:
    assert read_call_limit(text) == limit


@pytest.mark.parametrize("text", ["", "x", "-1", "=3", "a=", "1.5", "²"])
def test_a_limit_without_a_number_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        read_call_limit(text)
