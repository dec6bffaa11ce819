"""Comparison of the outcomes of identical requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcpspy.analysis.diff.model import ChangeKind, ChangeSeverity, DiffChange, DiffOptions, ignored
from mcpspy.analysis.diff.results import ComparisonContext, compare_steps, ended
from mcpspy.analysis.diff.steps import RequestStep, SessionSteps
from mcpspy.core.session.exchange import State
from mcpspy.core.session.session import Session

BREAKING, DIFFERENT, NOTE = ChangeSeverity
Make = Callable[..., Session]

OK = {"result": {"content": [{"type": "text", "text": "fine"}]}}
TOOL_ERROR = {"result": {"content": [{"type": "text", "text": "bad"}], "isError": True}}
ERROR = {"error": {"code": -32002, "message": "not there"}}
NOTHING: dict[str, Any] = {}
CANCELLED = {"method": "notifications/cancelled", "params": {"requestId": 1}}


def step(
    record: Make, answer: dict[str, Any], method: str = "tools/call", between: tuple[Any, ...] = ()
) -> RequestStep:
    """Return a step with this outcome."""
    params = {"name": "x", "_meta": {"progressToken": "p"}}
    messages: list[Any] = [("client", {"id": 1, "method": method, "params": params}), *between]
    if answer is CANCELLED:
        messages.append(("client", answer))
    elif answer:
        messages.append(("server", {"id": 1, **answer}))
    (found,) = SessionSteps(record(messages)).steps
    return found


def changes(one: RequestStep, two: RequestStep, context: ComparisonContext | None = None) -> list[DiffChange]:
    return list(compare_steps(one, two, context or ComparisonContext(DiffOptions()), is_exact=True))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (OK, TOOL_ERROR, (ChangeKind.ERROR, BREAKING, "ok → tool error: bad")),
        (OK, ERROR, (ChangeKind.ERROR, BREAKING, "ok → error -32002 resource not found: not there")),
        (OK, NOTHING, (ChangeKind.ERROR, BREAKING, "ok → no answer")),
        (TOOL_ERROR, OK, (ChangeKind.RECOVERED, DIFFERENT, "tool error: bad → ok")),
        (
            TOOL_ERROR,
            ERROR,
            (ChangeKind.ERROR, DIFFERENT, "tool error: bad → error -32002 resource not found: not there"),
        ),
        (OK, CANCELLED, (ChangeKind.OUTCOME, DIFFERENT, "ok → cancelled")),
        (
            CANCELLED,
            ERROR,
            (ChangeKind.OUTCOME, DIFFERENT, "cancelled → error -32002 resource not found: not there"),
        ),
    ],
    ids=str,
)
def test_a_different_outcome_is_one_change(
    record: Make, old: dict[str, Any], new: dict[str, Any], expected: tuple[ChangeKind, ChangeSeverity, str]
) -> None:
    (change,) = changes(step(record, old), step(record, new))

    assert (change.kind, change.severity, change.why) == expected


@pytest.mark.parametrize("end", [OK, TOOL_ERROR, ERROR, NOTHING, CANCELLED], ids=str)
def test_the_same_outcome_is_not_a_change(record: Make, end: dict[str, Any]) -> None:
    assert changes(step(record, end), step(record, end)) == []


def test_a_late_response_is_not_a_change(record: Make) -> None:
    late = step(record, OK, between=(("client", CANCELLED),))

    assert (late.state, len(late.results)) == (State.LATE_OK, 1)
    assert changes(step(record, CANCELLED), late) == []
    assert changes(late, step(record, CANCELLED)) == []


@pytest.mark.parametrize(
    ("answer", "state", "why"),
    [
        (TOOL_ERROR, State.LATE_TOOL_ERROR, "ok → late tool error: bad"),
        (ERROR, State.LATE_ERROR, "ok → late error -32002 resource not found: not there"),
    ],
    ids=str,
)
def test_a_late_error_in_place_of_a_success_is_an_error(
    record: Make, answer: dict[str, Any], state: State, why: str
) -> None:
    late = step(record, answer, between=(("client", CANCELLED),))
    assert late.state is state
    (change,) = changes(step(record, OK), late)
    assert (change.kind, change.severity, change.why) == (ChangeKind.ERROR, BREAKING, why)
    assert changes(step(record, CANCELLED), late) == []
    assert changes(step(record, OK, between=(("client", CANCELLED),)), late) == []


def test_a_question_that_no_one_continued_is_no_result(record: Make) -> None:
    question = {"result": {"resultType": "input_required", "inputRequests": {}}}
    asked = step(record, question)
    assert asked.state is State.NOT_CONTINUED
    (change,) = changes(step(record, OK), asked)
    assert (change.kind, change.severity, change.why) == (ChangeKind.ERROR, BREAKING, "ok → not continued")
    assert changes(asked, asked) == []


@pytest.mark.parametrize(
    ("live", "ended"),
    [
        (State.PENDING, State.UNANSWERED),
        (State.WORKING, State.UNFINISHED),
        (State.INPUT_REQUIRED, State.NOT_CONTINUED),
    ],
)
def test_the_time_at_which_a_session_is_read_is_not_a_change(record: Make, live: State, ended: State) -> None:
    one, two = step(record, NOTHING), step(record, NOTHING)
    one.state, two.state = live, ended
    assert changes(one, two) == changes(two, one) == []
    (change,) = changes(step(record, OK), one)
    assert (change.kind, change.severity) == (ChangeKind.ERROR, BREAKING)


def test_errors_are_compared_by_member(record: Make) -> None:
    other = {"error": {"code": -32602, "message": "not there"}}

    (change,) = changes(step(record, ERROR), step(record, other))
    assert (change.kind, change.pointer, change.old, change.new) == (
        ChangeKind.ERROR,
        "/error/code",
        -32002,
        -32602,
    )
    assert (
        changes(step(record, ERROR), step(record, other), ComparisonContext(DiffOptions(), is_across=True))
        == []
    )


def test_changed_metadata_and_formatting_of_a_result_are_notes(record: Make) -> None:
    def result(**more: Any) -> RequestStep:
        return step(record, {"result": {"content": [], **more}})

    expected = changes(result(_meta={"trace": 1}, ttlMs=1), result(_meta={"trace": 2}, ttlMs=2))
    assert [(change.pointer, change.severity) for change in expected] == [
        ("/result/_meta/trace", NOTE),
        ("/result/ttlMs", NOTE),
    ]
    assert (
        changes(
            result(), result(ttlMs=1, cacheScope="public"), ComparisonContext(DiffOptions(), is_across=True)
        )
        == []
    )
    assert len(changes(result(), result(ttlMs=1))) == 1
    laid_out = changes(
        step(record, {"result": {"content": [{"type": "text", "text": '{"a": 1}'}]}}),
        step(record, {"result": {"content": [{"type": "text", "text": '{"a":1}'}]}}),
    )
    assert [(change.severity, change.why) for change in laid_out] == [
        (NOTE, "same JSON, formatted differently")
    ]


def test_ignored_differences_are_not_reported_even_for_an_added_item(record: Make) -> None:
    one = step(record, {"result": {"content": [{"at": 1, "n": 1}]}})
    two = step(record, {"result": {"content": [{"at": 2, "n": 1}, {"at": 3, "n": 1}]}})

    def expected(*patterns: str) -> list[str]:
        context = ComparisonContext(DiffOptions(ignored=tuple(map(ignored, patterns))))
        return [change.pointer for change in changes(one, two, context)]

    assert expected("/result/content/*/at") == ["/result/content/1"]
    assert expected("tools/call x /result/content/*") == []
    assert expected("tools/call y /result/content") == ["/result/content/0/at", "/result/content/1"]


def test_progress_is_compared_without_its_token(record: Make) -> None:
    def reports(*counts: int) -> tuple[Any, ...]:
        return tuple(
            ("server", {"method": "notifications/progress", "params": {"progressToken": "p", "progress": n}})
            for n in counts
        )

    (change,) = changes(step(record, OK, between=reports(1, 2, 3)), step(record, OK, between=reports(1, 3)))
    assert (change.kind, change.severity, change.pointer) == (
        ChangeKind.PROGRESS,
        DIFFERENT,
        "/progress/1",
    )
    assert change.old == {"method": "notifications/progress", "params": {"progress": 2}}
    (change,) = changes(
        step(record, CANCELLED, between=reports(1)), step(record, CANCELLED, between=reports(1, 2))
    )
    assert change.severity is NOTE


def test_the_order_of_roots_is_not_compared(record: Make) -> None:
    def roots(*uris: str) -> RequestStep:
        return step(record, {"result": {"roots": [{"uri": uri} for uri in uris]}}, method="roots/list")

    assert changes(roots("a", "b"), roots("b", "a")) == []
    assert [change.pointer for change in changes(roots("a/b"), roots())] == ["/result/roots/a~1b"]


def test_an_item_of_a_list_is_not_compared_if_the_whole_item_is_ignored_in_one_session(record: Make) -> None:
    def tools(item: Any) -> RequestStep:
        return step(record, {"result": {"tools": [{"name": "a"}, item]}}, method="tools/list")

    old, new = tools({"name": "b", "title": "B"}), tools({"name": "b", "title": "C"})
    assert [change.pointer for change in changes(old, new)] == ["/result/tools/b/title"]
    context = ComparisonContext(DiffOptions(ignored=(ignored("/result/tools/b"),)))
    assert changes(old, new, context) == []


def test_lists_of_items_without_names_are_compared_too(record: Make) -> None:
    def tools(items: Any) -> RequestStep:
        return step(record, {"result": {"tools": items}}, method="tools/list")

    assert [change.pointer for change in changes(tools([1]), tools([1, 2]))] == ["/result/tools/1"]
    assert len(changes(tools([1]), tools([{"name": "a"}]))) == 1
    assert len(changes(tools([{"name": "a"}]), tools({"b": 1}))) == 2


def test_a_different_end_of_an_acknowledged_subscription_is_a_note(record: Make) -> None:
    def listen(answer: dict[str, Any], *, begun: bool) -> RequestStep:
        acknowledged = {
            "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}},
        }
        between = (("server", acknowledged),) if begun else ()
        return step(record, answer, method="subscriptions/listen", between=between)

    (change,) = changes(listen(NOTHING, begun=True), listen(ERROR, begun=True))
    assert change.severity is NOTE
    assert changes(listen(NOTHING, begun=True), listen(ERROR, begun=False))[0].severity is BREAKING


def test_an_end_in_words(record: Make) -> None:
    assert ended(step(record, {"error": "why"})) == "error: why"
    assert ended(step(record, {"error": {"code": 1, "message": "\nfirst\nsecond"}})) == "error 1: first"
    long = ended(step(record, {"result": {"isError": True, "content": [{"text": "x" * 300}]}}))
    assert long == "tool error: " + "x" * 199 + "…"
    assert ended(step(record, {"result": {"isError": True, "content": "odd"}})) == "tool error"
