"""A session split into steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcpspy.analysis.diff.model import ChangePosition
from mcpspy.analysis.diff.steps import SessionSteps
from mcpspy.core.recording.decode import read_entry
from mcpspy.core.session.exchange import State
from mcpspy.core.session.session import Session

Make = Callable[..., Session]
Recorded = Callable[[str], Session]


def ask(id_: int, method: str, **params: Any) -> tuple[str, dict[str, Any]]:
    return "client", {"id": id_, "method": method, "params": params}


def answer(id_: int, **result: Any) -> tuple[str, dict[str, Any]]:
    return "server", {"id": id_, "result": result}


def test_an_input_required_result_and_its_retry_are_one_call_and_a_server_request(
    recorded: Recorded,
) -> None:
    steps = SessionSteps(recorded("peer-sdk-modern")).steps

    calls = [step for step in steps if step.subject == "ask"]
    server_requests = [step for step in steps if step.side == "server"]
    assert [(step.state, len(step.results), step.position.line) for step in calls] == [
        (State.OK, 1, 29),
        (State.OK, 1, 33),
    ]
    assert [
        (step.method, step.params["message"], step.result["action"], step.position)
        for step in server_requests
    ] == [
        ("elicitation/create", "Which colour?", "accept", ChangePosition(30, 11)),
        ("elicitation/create", "Will you decline?", "decline", ChangePosition(34, 13)),
    ]


def test_an_input_request_without_a_response_is_an_unanswered_request(record: Make) -> None:
    question = {"method": "elicitation/create", "params": {"message": "?"}}
    steps = SessionSteps(
        record(
            [
                ask(1, "tools/call", name="a"),
                answer(1, resultType="input_required", inputRequests={"q": question, "odd": 1}),
            ]
        )
    ).steps

    assert [(step.method, step.state) for step in steps] == [
        ("tools/call", State.NOT_CONTINUED),
        ("elicitation/create", State.UNANSWERED),
    ]


def test_pages_are_one_list_and_the_last_cursor_is_its_own(record: Make) -> None:
    messages = [
        ask(1, "tools/list"),
        answer(1, tools=[{"name": "a"}], nextCursor="é1", _meta={"v": 1}),
        ask(2, "tools/list", cursor="é1"),
        answer(2, tools=[{"name": "b"}], nextCursor="2"),
        ask(3, "tools/list", cursor="unknown"),
        answer(3, tools=[]),
    ]

    whole, alone = SessionSteps(record(messages)).steps

    assert whole.result == {"tools": [{"name": "a"}, {"name": "b"}], "nextCursor": "2", "_meta": {"v": 1}}
    assert whole.latency is not None
    assert round(whole.latency, 6) == 0.002
    assert alone.result == {"tools": []}


def test_messages_of_a_request_belong_to_its_step_alone(recorded: Recorded) -> None:
    found = SessionSteps(recorded("peer-sdk-legacy"))

    slow = next(step for step in found.steps if step.subject == "slow")
    hang = next(step for step in found.steps if step.subject == "hang")
    assert (len(slow.progress), slow.state, hang.state) == (3, State.OK, State.CANCELLED)
    assert [message.method for message in found.standalone] == [
        "notifications/initialized",
        "notifications/message",
        "notifications/message",
    ]
    assert [exchange.request.method for exchange, _ in found.introductions] == ["initialize"]
    assert found.exit is not None


def test_lines_are_those_of_the_file_and_a_batch_has_one(record: Make) -> None:
    batch = b'[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]'

    messages = SessionSteps(record([("client", batch), ("client", {"method": "c"})])).standalone

    assert [(one.method, one.position.line) for one in messages] == [("a", 2), ("b", 2), ("c", 3)]


def test_an_event_that_comes_again_counts_once(record: Make) -> None:
    from mcpspy.core.recording.decode import Frame

    session = record([], ends=False)
    for _ in range(2):
        session.add(Frame(0.0, "server", b'{"jsonrpc":"2.0","method":"a"}', "1", 1, "\n", "e1"))

    assert len(SessionSteps(session).standalone) == 1


def test_the_name_of_a_step(record: Make) -> None:
    steps = SessionSteps(
        record(
            [
                ask(1, "tools/call", name="a"),
                ask(2, "tasks/get", taskId="t"),
                ask(3, "logging/setLevel", level="x"),
            ]
        )
    ).steps

    assert [step.name for step in steps] == ["a", None, None]


def test_injected_requests_are_not_steps() -> None:
    lines = [
        b'{"t":1,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}',
        b'{"t":3,"from":"client","by":"mcpspy","msg":{"jsonrpc":"2.0","id":"m-1","method":"tools/list"}}',
        b'{"t":4,"from":"server","to":"mcpspy","msg":{"jsonrpc":"2.0","id":"m-1","result":{}}}',
    ]
    steps = SessionSteps(Session().add_all(map(read_entry, lines)))

    assert [step.method for step in steps.steps] == ["ping"]
