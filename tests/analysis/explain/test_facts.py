"""The facts of a session: which failures are one symptom, and their surroundings."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mcpspy.analysis.explain.facts import MAX_STDERR, Facts
from mcpspy.analysis.explain.outcomes import MAX_ANSWERED, MAX_SYMPTOMS
from mcpspy.analysis.explain.side_facts import MAX_ODD_LINES
from mcpspy.analysis.explain.symptoms import (
    MAX_EVIDENCE,
    ClientLeft,
    IgnoredResponse,
    RefusedExchange,
    ServerEnd,
)
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State
from tests.analysis.explain.sessions import explained, facts_of


def call(number: int, name: str = "a") -> str:
    return f'> {{"id":{number},"method":"tools/call","params":{{"name":"{name}","arguments":{{}}}}}}'


def done(number: int) -> str:
    return f'< {{"id":{number},"result":{{"content":[]}}}}'


def failed(number: int, text: str, code: int = -32603) -> str:
    return f'< {{"id":{number},"error":{{"code":{code},"message":"{text}"}}}}'


def cancelled(number: int, reason: str = "Request timed out") -> str:
    return f'> {{"method":"notifications/cancelled","params":{{"requestId":{number},"reason":"{reason}"}}}}'


CLIENT_CLOSED = '* eof {"from":"client"}'
SERVER_CLOSED = '* eof {"from":"server"}'


def ended(code: int = 0, signal: str = "null") -> str:
    return f'* exit {{"code":{code},"signal":{signal}}}'


def facts(*lines: str, focus: Iterable[int] = ()) -> Facts:
    return facts_of("\n".join(lines), frozenset(focus))


# Groups, and bounds of memory.


def test_requests_that_failed_in_the_same_way_are_one_symptom_with_a_count() -> None:
    found = facts(*(line for number in range(2, 12) for line in (call(number), failed(number, "boom"))))
    (symptom,) = found.failed()
    assert symptom.count == 10
    assert len(symptom.lines) == MAX_EVIDENCE
    assert len(symptom.numbers) == 10
    assert symptom.words == "boom"
    assert symptom.code == -32603


def test_numbers_and_ids_in_the_words_do_not_make_another_symptom() -> None:
    found = facts(
        *(
            line
            for number in range(2, 6)
            for line in (
                call(number),
                failed(number, f"order 12.{number} of 550e8400-e29b-41d4-a716-44665544000{number} is gone"),
            )
        )
    )
    (symptom,) = found.failed()
    assert symptom.count == 4


def test_other_words_tools_sides_and_states_are_other_symptoms() -> None:
    found = facts(
        *(call(2), failed(2, "boom"), call(3), failed(3, "bang"), call(4, "b"), failed(4, "boom")),
        *(
            call(5),
            cancelled(5),
            '< {"id":9,"method":"roots/list"}',
            '> {"id":9,"error":{"code":1,"message":"boom"}}',
        ),
    )
    assert [each.count for each in found.failed()] == [1, 1, 1, 1, 1]
    assert {each.side for each in found.failed()} == {CLIENT, SERVER}


def test_kinds_of_failures_are_bounded_and_all_are_counted() -> None:
    words = [f"{'x' * (number % 50)}{'y' * (number // 50)}" for number in range(MAX_SYMPTOMS + 100)]
    found = facts(
        *(
            line
            for number, each in enumerate(words, 2)
            for line in (call(number), failed(number, f"no {each}."))
        )
    )
    assert len(found.failed()) <= MAX_SYMPTOMS + 1
    assert sum(each.count for each in found.failed()) == len(words)


def test_lines_of_a_symptom_stderr_and_lines_that_are_not_messages_are_bounded() -> None:
    found = facts(
        *(f'* stderr {{"text":"line {number}"}}' for number in range(MAX_STDERR + 10)),
        *(f"<< noise {number}" for number in range(MAX_ODD_LINES + 10)),
        *(line for number in range(2, 20) for line in (call(number), failed(number, f"boom {number}"))),
    )
    assert (len(found.stderr), len(found.first_stderr)) == (MAX_STDERR, MAX_STDERR)
    assert found.first_stderr[0].text == "line 0"
    assert found.stderr[-1].text == f"line {MAX_STDERR + 9}"
    assert (len(found.server.odd), found.server.odd_count) == (MAX_ODD_LINES, MAX_ODD_LINES + 10)
    assert all(len(each.lines) <= MAX_EVIDENCE for each in found.symptoms)


def test_answered_requests_are_forgotten() -> None:
    lines = (line for number in range(2, 200) for line in (call(number), done(number)))
    explainer = explained("\n".join(lines))
    found, requests = explainer.facts, explainer._collector._requests
    assert found.symptoms == []
    assert requests._open == {}
    assert len(requests._succeeded) <= MAX_ANSWERED
    assert found.answered[CLIENT, "tools/call"] == 198


def test_an_exchange_in_focus_is_a_separate_symptom() -> None:
    lines = [line for number in range(2, 6) for line in (call(number), failed(number, "boom"))]
    numbers = {number for each in facts(*lines).failed() for number in each.numbers}
    (chosen, *others) = sorted(numbers)
    found = facts(*lines, focus=[chosen])
    assert sorted(each.count for each in found.failed()) == [1, len(others)]
    assert {chosen} in [each.numbers for each in found.failed()]


# Cancellations.


@pytest.mark.parametrize(
    ("reason", "steps", "is_symptom"),
    [
        ("Request timed out", "+ 0.1", True),
        ("", "+ 2", True),
        ("", "+ 0.1", False),
        ("cancelled by the user", "+ 2", False),
    ],
)
def test_a_cancellation_is_a_symptom_unless_a_user_or_a_quick_client_did_it(
    reason: str, steps: str, is_symptom: bool
) -> None:
    found = facts(steps, call(2), cancelled(2, reason), call(3), done(3))
    assert [each.state for each in found.failed()] == ([State.CANCELLED] if is_symptom else [])


def test_a_cancellation_some_time_after_the_response_shows_that_it_was_ignored() -> None:
    (ignored,) = facts(call(2), done(2), cancelled(2)).of(IgnoredResponse)
    assert (ignored.side, ignored.about) == (CLIENT, "tools/call a")
    assert ignored.waited == pytest.approx(2.0)
    assert len(ignored.lines) == 2


def test_a_cancellation_that_crossed_the_response_shows_nothing() -> None:
    assert facts("+ 0.1", call(2), done(2), cancelled(2)).of(IgnoredResponse) == []


def test_a_late_response_belongs_to_its_request() -> None:
    (late,) = facts(call(2), cancelled(2), failed(2, "boom")).failed()
    assert late.state is State.LATE_ERROR
    assert late.words == "boom"
    assert late.took == pytest.approx(2.0)
    assert late.answer_at is not None
    assert late.gave_up_at is not None
    assert late.answer_at > late.gave_up_at


def test_a_request_knows_its_progress_and_the_lines_on_stderr_meanwhile() -> None:
    (waited,) = facts(
        '* stderr {"text":"before"}',
        '> {"id":2,"method":"tools/call","params":{"name":"a","arguments":{},"_meta":{"progressToken":"t"}}}',
        '* stderr {"text":"meanwhile"}',
        '< {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}',
        cancelled(2),
    ).failed()
    assert (waited.has_token, waited.progress) == (True, 1)
    assert [line.text for line in waited.stderr] == ["meanwhile"]


# Requests of the server.


def test_a_request_of_the_server_knows_which_calls_it_holds_up() -> None:
    found = facts(call(2), call(3, "b"), '< {"id":9,"method":"roots/list"}', CLIENT_CLOSED, ended())
    asked = next(each for each in found.failed() if each.side == SERVER)
    assert asked.waiting == ["tools/call a", "tools/call b"]
    assert len(found.failed()) == 3


def test_a_request_of_the_server_that_is_answered_is_not_a_symptom() -> None:
    found = facts(
        call(2),
        '< {"id":9,"method":"roots/list"}',
        '> {"id":9,"result":{"roots":[]}}',
        done(2),
        CLIENT_CLOSED,
        ended(),
    )
    assert found.failed() == []


# The ends.


def test_a_server_that_ends_after_the_client_closed_its_stdin_has_not_failed() -> None:
    found = facts(call(2), done(2), CLIENT_CLOSED, SERVER_CLOSED, ended(1))
    assert found.of(ServerEnd) == []


@pytest.mark.parametrize("code", [0, 1])
def test_a_server_that_ends_during_a_call_has_failed_also_if_the_client_notices_before_its_exit(
    code: int,
) -> None:
    (end,) = facts("+ 0.01", call(2), done(2), call(3, "b"), SERVER_CLOSED, CLIENT_CLOSED, ended(code)).of(
        ServerEnd
    )
    assert [each.about for each in end.during] == ["tools/call b"]
    assert (end.code, end.has_answered) == (code, True)


def test_the_output_of_a_server_that_never_answered_names_the_error() -> None:
    (end,) = facts(
        "@ bare",
        '> {"id":1,"method":"initialize","params":{}}',
        "<< error: unknown option --stdio",
        ended(2),
    ).of(ServerEnd)
    assert end.has_answered is False
    assert end.named is not None
    assert end.named.text == "error: unknown option --stdio"
    assert end.words == "exit code 2"


def test_a_signal_takes_the_place_of_the_code() -> None:
    (end,) = facts(call(2), ended(-9, '"SIGKILL"')).of(ServerEnd)
    assert end.words == "killed by SIGKILL"


def test_a_server_that_could_not_be_started_has_the_reason() -> None:
    (end,) = facts("@ bare", '* error {"text":"cannot start uvxx: not found on PATH"}', ended(127)).of(
        ServerEnd
    )
    assert end.error == "cannot start uvxx: not found on PATH"


@pytest.mark.parametrize("head", ["", "@ http"])
def test_a_client_that_leaves_right_after_a_list_has_left_because_of_it(head: str) -> None:
    listed = '< {"id":2,"result":{"tools":[]}}'
    end = [] if head else [CLIENT_CLOSED, ended()]
    (left,) = facts(head, '> {"id":2,"method":"tools/list"}', listed, *end).of(ClientLeft)
    assert left.message == "the result of tools/list"
    assert left.is_initialized


@pytest.mark.parametrize("head", ["", "@ http"])
def test_a_client_that_has_called_a_tool_may_leave(head: str) -> None:
    end = [] if head else [CLIENT_CLOSED, ended()]
    assert facts(head, call(2), done(2), *end).of(ClientLeft) == []


def test_a_session_without_an_end_has_none() -> None:
    found = facts(call(2), done(2))
    assert found.of(ServerEnd) == []
    assert found.of(ClientLeft) == []


# HTTP.


def test_a_refused_request_is_one_symptom_with_its_http_exchange() -> None:
    found = facts("@ http", call(2), '= 503 {} {"server":"nginx"} "<h1>Service Unavailable</h1>"')
    (symptom,) = found.failed()
    assert symptom.state is State.REFUSED
    assert symptom.carrier is not None
    assert (symptom.carrier.status, symptom.carrier.words) == (503, "Service Unavailable")
    assert found.of(RefusedExchange) == []


def test_a_refused_notification_is_a_refusal_with_the_words_of_its_json_rpc_error() -> None:
    (refusal,) = facts(
        "@ http",
        '> {"method":"notifications/x"}',
        "= 400",
        '< {"id":null,"error":{"code":-32000,"message":"Unsupported protocol version"}}',
    ).of(RefusedExchange)
    assert (refusal.asked, refusal.status) == ("notifications/x", 400)
    assert "Unsupported protocol version" in refusal.words


def test_a_refusal_that_the_same_request_overcame_has_the_time_of_that() -> None:
    found = facts("@ http", call(2), "= 401", call(3), done(3), call(4, "b"), "= 401")
    overcome, remaining = found.failed()
    assert overcome.succeeded_at is not None
    assert remaining.succeeded_at is None


NOTIFIED = '> {"method":"notifications/x"}'


def test_a_refused_notification_that_is_accepted_later_is_not_a_symptom() -> None:
    assert facts("@ http", NOTIFIED, "= 503", NOTIFIED, "= 202").of(RefusedExchange) == []


def test_a_notification_that_is_refused_after_one_was_accepted_is_a_symptom() -> None:
    assert len(facts("@ http", NOTIFIED, "= 202", NOTIFIED, "= 503").of(RefusedExchange)) == 1


def test_a_get_that_is_answered_with_405_is_not_a_refusal() -> None:
    get = '* http {"http":50,"method":"GET","path":"/mcp","status":405,"request":{"accept":"text/event-stream"},"response":{}}'
    found = facts("@ http", call(2), done(2), get, '* http-end {"http":50}')
    assert found.symptoms == []


def test_ids_of_sessions_are_known_with_how_often_they_were_accepted() -> None:
    found = facts("@ http", call(2), done(2))
    assert list(found.http.session_ids) == ["s-1"]
    assert found.http.accepted_count["s-1"] >= 1
