"""Comparison of whole sessions: every kind of change, in edited real recordings."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from mcpspy.analysis.diff import (
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    DiffOptions,
    SessionDiff,
    compare,
    compare_exchanges,
    ignored,
    slower,
    unlisted,
)
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.session import Session

BREAKING, DIFFERENT, NOTE = ChangeSeverity

Message = dict[str, Any]
Make = Callable[..., Session]
Edited = Callable[[str, Callable[[str, Message], Message | None]], Session]
Recorded = Callable[[str], Session]

NAMES = sorted(path.stem for path in (Path(__file__).parents[3] / "recordings").glob("*.jsonl"))


def call(id_: int, name: str = "echo", **arguments: Any) -> tuple[str, Message]:
    return "client", {"id": id_, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def text_result(id_: int, text: str, **more: Any) -> tuple[str, Message]:
    return "server", {"id": id_, "result": {"content": [{"type": "text", "text": text}], **more}}


def only(difference: SessionDiff) -> tuple[ComparedCase, DiffChange]:
    """Return the only change."""
    (found,) = difference.changes
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_the_same_as_itself(recorded: Recorded, name: str) -> None:
    difference = compare(recorded(name), recorded(name), DiffOptions(slower_than=slower("1x")))

    assert difference.changes == []
    assert difference.cases
    assert difference.is_same(NOTE)


def test_two_recordings_of_one_server_differ_only_in_a_time(recorded: Recorded) -> None:
    """Other ids, a refused probe and other random ids in an error are ignored: only the time in a text differs."""
    old, new = recorded("everything-sdk-legacy"), recorded("everything-sdk-auto")

    case, change = only(compare(old, new))
    assert (case.about, change.pointer) == (
        "resources/read demo://resource/dynamic/text/1",
        "/result/contents/0/text",
    )
    assert (case.old, case.new) == (ChangePosition(40, 15), ChangePosition(42, 16))
    assert compare(old, new, DiffOptions(dates=True)).changes == []
    pattern = ignored("resources/read demo://resource/dynamic/* /result/contents/*/text")
    assert compare(old, new, DiffOptions(ignored=(pattern,))).changes == []


def test_request_states_and_subscription_ids_of_two_runs_do_not_differ(recorded: Recorded) -> None:
    assert compare(recorded("peer-sdk-auto"), recorded("peer-sdk-modern")).changes == []


def test_sessions_of_two_eras_differ_in_what_the_server_does(recorded: Recorded) -> None:
    """An input request in a result equals a server request of earlier revisions; methods a revision lacks are notes."""
    difference = compare(recorded("peer-sdk-legacy"), recorded("peer-sdk-modern"))

    reported = {(case.about, change.kind, change.severity) for case, change in difference.changes}
    assert reported == {
        ("handshake", ChangeKind.HANDSHAKE, NOTE),
        ("notifications/initialized", ChangeKind.REMOVED, NOTE),
        ("elicitation/create", ChangeKind.REQUEST, DIFFERENT),
        ("prompts/get greet", ChangeKind.ERROR, DIFFERENT),
        ("subscriptions/listen", ChangeKind.ADDED, NOTE),
        ("tools/call touch", ChangeKind.ADDED, DIFFERENT),
        ("ping", ChangeKind.REMOVED, NOTE),
    }


def test_a_removed_tool_is_breaking(edited: Edited, recorded: Recorded) -> None:
    def edit(_: str, message: Message) -> Message:
        if (tools := message.get("result", {}).get("tools")) is not None:
            message["result"]["tools"] = [tool for tool in tools if tool["name"] != "echo"]
        return message

    case, change = only(compare(recorded("peer-sdk-legacy"), edited("peer-sdk-legacy", edit)))

    assert (case.method, change.kind, change.severity) == ("tools/list", ChangeKind.INTERFACE, BREAKING)
    assert (change.pointer, change.why, change.new) == (
        "/result/tools/echo",
        "lost the tool echo",
        UNSET,
    )
    assert change.old["name"] == "echo"


def test_a_required_property_is_breaking_and_a_description_a_note(edited: Edited, recorded: Recorded) -> None:
    def edit(_: str, message: Message) -> Message:
        for tool in message.get("result", {}).get("tools", []):
            if tool["name"] == "add":
                tool["description"] = "Adds."
                tool["inputSchema"]["properties"]["base"] = {"type": "integer"}
                tool["inputSchema"]["required"].append("base")
        message.get("result", {}).get("tools", []).reverse()
        return message

    difference = compare(recorded("peer-sdk-modern"), edited("peer-sdk-modern", edit))

    assert [(change.severity, change.pointer, change.why) for _, change in difference.changes] == [
        (NOTE, "/result/tools/add/description", ""),
        (
            BREAKING,
            "/result/tools/add/inputSchema/properties/base",
            'gained a required property base; now refuses {"a":0,"b":0}',
        ),
    ]
    assert not difference.is_same(BREAKING)


def test_a_new_error_is_breaking(edited: Edited, recorded: Recorded) -> None:
    def edit(_: str, message: Message) -> Message:
        if message.get("id") == 7 and "result" in message:
            return {"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "boom"}}
        return message

    old, new = recorded("everything-sdk-legacy"), edited("everything-sdk-legacy", edit)
    case, change = only(compare(old, new))

    assert (change.kind, change.severity, change.why) == (
        ChangeKind.ERROR,
        BREAKING,
        "ok → error -32603 internal error: boom",
    )
    assert (change.pointer, change.old, change.new["code"]) == ("/error", UNSET, -32603)
    assert case.new == case.old

    case, change = only(compare(new, old))
    assert (change.kind, change.severity) == (ChangeKind.RECOVERED, DIFFERENT)


def test_a_changed_result_names_the_pointer(edited: Edited, recorded: Recorded) -> None:
    def edit(_: str, message: Message) -> Message:
        for item in message.get("result", {}).get("content", []):
            item["text"] = item.get("text", "").replace("entities", "things")
        return message

    old, new = recorded("memory-sdk-auto"), edited("memory-sdk-auto", edit)

    assert {(change.kind, change.severity, change.pointer) for _, change in compare(old, new).changes} == {
        (ChangeKind.RESULT, DIFFERENT, "/result/content/0/text/entities"),
        (ChangeKind.RESULT, DIFFERENT, "/result/content/0/text/things"),
    }


def test_a_removed_call_and_an_added_call_are_changes(edited: Edited, recorded: Recorded) -> None:
    def edit(_: str, message: Message) -> Message | None:
        return None if message.get("id") == 8 else message

    whole, less = recorded("everything-sdk-legacy"), edited("everything-sdk-legacy", edit)

    case, change = only(compare(whole, less))
    assert (case.about, change.kind, change.severity) == (
        "tools/call get-structured-content",
        ChangeKind.REMOVED,
        DIFFERENT,
    )
    assert (change.pointer, change.old["name"], case.new) == (
        "/params",
        "get-structured-content",
        None,
    )
    case, change = only(compare(less, whole))
    assert (change.kind, case.old, change.old) == (ChangeKind.ADDED, None, UNSET)


def test_a_removed_case_keeps_its_position(record: Make) -> None:
    old = record(
        [
            call(1, n=1),
            text_result(1, "a"),
            call(2, n=2),
            text_result(2, "b"),
            call(3, n=3),
            text_result(3, "c"),
        ]
    )
    new = record([call(1, n=1), text_result(1, "a"), call(2, n=3), text_result(2, "c")])

    cases = compare(old, new).cases

    assert [(case.old and case.old.line, case.new and case.new.line) for case in cases] == [
        (2, 2),
        (4, None),
        (6, 4),
    ]


def test_the_order_of_requests_is_compared_with_the_fewest_moves(record: Make) -> None:
    def session(order: list[int]) -> Session:
        return record(
            [message for id_, n in enumerate(order) for message in (call(id_, n=n), text_result(id_, str(n)))]
        )

    case, change = only(compare(session([0, 1, 2, 3, 4]), session([0, 4, 1, 2, 3])))

    assert (change.kind, change.severity) == (ChangeKind.ORDER, DIFFERENT)
    assert change.why == "request 5 of the client, now request 2"
    assert case.new == ChangePosition(4, 1)


def test_the_order_of_responses_is_not_compared(record: Make) -> None:
    old = record([call(1, n=1), call(2, n=2), text_result(1, "a"), text_result(2, "b")])
    new = record([call(1, n=1), call(2, n=2), text_result(2, "b"), text_result(1, "a")])

    assert compare(old, new).changes == []


def test_latency_is_compared_on_request_by_the_median_of_repeated_requests(record: Make) -> None:
    same_thrice = [message for id_ in range(3) for message in (call(id_), text_result(id_, "a"))]
    quick, slow = record(same_thrice), record(same_thrice, pace=0.003)

    assert compare(quick, slow).changes == []
    assert compare(quick, slow, DiffOptions(slower_than=slower("4x"))).changes == []
    _, change = only(compare(quick, slow, DiffOptions(slower_than=slower("2x"))))
    assert (change.kind, change.severity, change.why) == (
        ChangeKind.LATENCY,
        DIFFERENT,
        "median of 3 identical requests",
    )
    assert (change.old, change.new) == (pytest.approx(0.001), pytest.approx(0.003))


def test_one_slow_response_of_many_is_not_a_change_but_a_slower_median_is(record: Make) -> None:
    def timed(*latencies: float) -> Session:
        session = record([], ends=False)
        for n, latency in enumerate(latencies):
            for (side, message), at in ((call(n), n), (text_result(n, "a"), n + latency)):
                session.add(Frame(at, side, orjson.dumps({"jsonrpc": "2.0", **message})))
        return session

    limit = DiffOptions(slower_than=slower("2x"))

    assert compare(timed(0.1, 0.1, 0.1), timed(0.1, 0.9, 0.1), limit).changes == []
    _, change = only(compare(timed(0.1, 0.1, 0.1), timed(0.1, 0.3, 0.3), limit))
    assert change.new == pytest.approx(0.3)


def test_repeated_requests_are_paired_in_order(record: Make) -> None:
    many = 3_000
    old = record([message for n in range(many) for message in (call(n), text_result(n, "a"))])
    new = record(
        [message for n in range(many) for message in (call(n), text_result(n, "b" if n == 1234 else "a"))]
    )

    case, change = only(compare(old, new))

    assert (case.old, case.new) == (ChangePosition(2470, 1234), ChangePosition(2470, 1234))
    assert (change.old, change.new) == ("a", "b")


def test_a_missing_server_request_is_a_change(edited: Edited, recorded: Recorded) -> None:
    def edit(_: str, message: Message) -> Message | None:
        is_asked = message.get("method") == "sampling/createMessage"
        return None if is_asked or "model" in message.get("result", {}) else message

    case, change = only(compare(recorded("everything-sdk-legacy"), edited("everything-sdk-legacy", edit)))

    assert (case.method, change.kind, change.severity) == (
        "sampling/createMessage",
        ChangeKind.REMOVED,
        DIFFERENT,
    )


def test_less_progress_and_a_different_log_message_are_changes(edited: Edited, recorded: Recorded) -> None:
    def edit(_: str, message: Message) -> Message | None:
        params = message.get("params", {})
        if params.get("progress") == 3:
            return None
        if message.get("method") == "notifications/message" and params["level"] == "error":
            params["data"] = "other"
        return message

    difference = compare(recorded("peer-sdk-legacy"), edited("peer-sdk-legacy", edit))

    reported = [(case.about, change.kind, change.pointer) for case, change in difference.changes]
    assert reported == [
        ("tools/call slow", ChangeKind.PROGRESS, "/progress/2"),
        ("notifications/message error", ChangeKind.NOTIFICATION, "/params/data"),
    ]
    assert not difference.is_same()


def test_malformed_lines_are_compared_too(record: Make) -> None:
    old = record([call(1), text_result(1, "a")])
    new = record([call(1), ("server", b"DEBUG: on"), text_result(1, "a"), text_result(9, "b")])

    difference = compare(old, new)

    assert [(case.about, change.kind, change.severity) for case, change in difference.changes] == [
        ("(not JSON)", ChangeKind.ADDED, DIFFERENT),
        ("(unsolicited response)", ChangeKind.ADDED, DIFFERENT),
    ]


def test_a_missing_response_is_breaking_and_a_different_exit_is_a_note(record: Make) -> None:
    old = record([call(1), text_result(1, "a")], exit_code=0)
    new = record([call(1)], exit_code=3)

    (_, lost), (left, change) = compare(old, new).changes

    assert (lost.kind, lost.severity, lost.why) == (ChangeKind.ERROR, BREAKING, "ok → no answer")
    assert (left.method, change.severity, change.new["code"]) == ("exit", NOTE, 3)


def test_a_live_session_is_compared_so_far(record: Make) -> None:
    old = record([call(1)])
    new = record([call(1)], ends=False)

    assert compare(old, new).changes == []


def test_pages_of_a_listing_are_compared_as_one_list(record: Make) -> None:
    def listed(id_: int, names: list[str], given: str | None, then: str | None) -> list[tuple[str, Message]]:
        params = {} if given is None else {"cursor": given}
        after = {} if then is None else {"nextCursor": then}
        tools = [{"name": name, "inputSchema": {}} for name in names]
        return [
            ("client", {"id": id_, "method": "tools/list", "params": params}),
            ("server", {"id": id_, "result": {"tools": tools, **after}}),
        ]

    old = record([*listed(1, ["a", "b"], None, "x"), *listed(2, ["c"], "x", None)])
    new = record([*listed(1, ["c"], None, "q"), *listed(2, ["b"], "q", "r"), *listed(3, ["a"], "r", None)])
    less = record([*listed(1, ["a", "b"], None, "x"), *listed(2, [], "x", None)])
    open_end = record([*listed(1, ["a", "b", "c"], None, "z")])

    assert compare(old, new).changes == []
    assert only(compare(old, less))[1].why == "lost the tool c"
    assert only(compare(old, open_end))[1].pointer == "/result/nextCursor"


def test_an_interface_change_is_reported_once_however_often_it_is_listed(record: Make) -> None:
    def session(names: list[str]) -> Session:
        tools = [{"name": name, "inputSchema": {}} for name in names]
        return record(
            [
                message
                for id_ in (1, 2, 3)
                for message in (
                    ("client", {"id": id_, "method": "tools/list"}),
                    ("server", {"id": id_, "result": {"tools": tools}}),
                )
            ]
        )

    case, change = only(compare(session(["a", "b"]), session(["a"])))

    assert (change.why, case.new) == ("lost the tool b", ChangePosition(2, 0))


def test_the_number_of_listings_of_an_interface_does_not_matter(record: Make) -> None:
    def session(times: int) -> Session:
        requests = [("client", {"id": n, "method": "tools/list"}) for n in range(times)]
        answers = [("server", {"id": n, "result": {"tools": []}}) for n in range(times)]
        return record([*requests, *answers])

    tools = DiffOptions(only=frozenset({"tools"}))

    assert compare(session(1), session(3), tools).changes == []
    assert compare(session(3), session(1), tools).changes == []
    assert len(compare(session(1), session(3)).changes) == 2
    assert only(compare(session(1), record([]), tools))[1].kind is ChangeKind.REMOVED


def test_one_part_of_the_interface_can_be_compared_alone(edited: Edited, recorded: Recorded) -> None:
    def edit(_: str, message: Message) -> Message:
        result = message.get("result", {})
        result.get("prompts", [None]).pop()
        for content in result.get("contents", []):
            content["text"] = "changed"
        return message

    old, new = recorded("everything-sdk-legacy"), edited("everything-sdk-legacy", edit)
    prompts = DiffOptions(only=frozenset({"prompts"}))

    assert compare(old, new, DiffOptions(only=frozenset({"tools"}))).changes == []
    difference = compare(old, new, prompts)
    assert [case.method for case in difference.cases] == ["prompts/list"]
    assert only(difference)[1].severity is BREAKING
    assert unlisted(old, prompts) == []


def test_parts_that_were_never_listed_are_reported(record: Make) -> None:
    listing = record([("client", {"id": 1, "method": "resources/templates/list"})])

    assert unlisted(listing, DiffOptions(only=frozenset({"tools", "resources"}))) == ["tools"]
    assert unlisted(listing, DiffOptions()) == []


def test_ignored_params_do_not_distinguish_requests(record: Make) -> None:
    old = record([call(1, n=1, now=1), text_result(1, "a"), call(2, n=2, now=2), text_result(2, "b")])
    new = record([call(1, n=2, now=3), text_result(1, "b"), call(2, n=1, now=4), text_result(2, "a")])

    options = DiffOptions(ignored=(ignored("/params/arguments/now"),))

    assert [change.kind for _, change in compare(old, new, options).changes] == [ChangeKind.ORDER]
    assert {change.kind for _, change in compare(old, new).changes} == {ChangeKind.REQUEST}


def test_a_method_can_be_left_out_as_a_whole(edited: Edited, recorded: Recorded) -> None:
    def edit(_: str, message: Message) -> Message | None:
        return (
            None
            if message.get("method") in ("notifications/message", "notifications/initialized")
            else message
        )

    old, new = recorded("peer-sdk-legacy"), edited("peer-sdk-legacy", edit)
    out = DiffOptions(ignored=(ignored("notifications/message"), ignored("notifications/init*")))

    assert len(compare(old, new).changes) == 3
    assert compare(old, new, out).changes == []


def test_progress_and_the_handshake_can_be_left_out(edited: Edited, recorded: Recorded) -> None:
    def edit(_: str, message: Message) -> Message | None:
        if message.get("params", {}).get("progress") == 2:
            return None
        if "instructions" in message.get("result", {}):
            message["result"]["instructions"] = "other"
        return message

    old, new = recorded("peer-sdk-legacy"), edited("peer-sdk-legacy", edit)

    def reported(*patterns: str) -> list[str]:
        options = DiffOptions(ignored=tuple(map(ignored, patterns)))
        return [change.pointer for _, change in compare(old, new, options).changes]

    assert reported() == ["/result/instructions", "/progress/1"]
    assert reported("notifications/progress") == ["/result/instructions"]
    assert reported("notifications/progress /params", "/result/instructions") == ["/progress/2"]
    assert reported("/progress", "handshake") == []
    assert reported("tools/call slow /progress", "handshake /result/instr*") == []


@pytest.mark.parametrize("depth", [990, 3000])
def test_deeply_nested_messages_are_compared_without_an_error(record: Make, depth: int) -> None:
    def session(leaf: bytes) -> Session:
        deep = b"[" * depth + leaf + b"]" * depth
        hello = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"x":%b}}}' % deep
        return record(
            [
                ("client", hello),
                ("server", b'{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"x":%b}}}' % deep),
                ("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
                ("server", b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"not":%b},"x":%b}]}}' % (deep, deep)),
                ("client", b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{"x":%b}}}' % deep),
                ("server", b'{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"m","data":%b}}' % deep),
                ("server", b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%b}}' % deep),
            ]
        )  # fmt: skip

    options = DiffOptions(dates=True, ignored=(ignored("/**/nothing"),))

    assert compare(session(b"1"), session(b"1"), options).changes == []
    assert compare(session(b"1"), session(b"2"), options).changes != [] or depth == 3000


def test_changed_arguments_are_one_change_and_the_result_is_not_compared(record: Make) -> None:
    old = record([call(1, city="Oslo"), text_result(1, "cold"), call(2, "other"), text_result(2, "x")])
    new = record([call(1, city="Rome"), text_result(1, "warm"), call(2, "other"), text_result(2, "x")])

    _, change = only(compare(old, new))

    assert (change.kind, change.pointer, change.old, change.new) == (
        ChangeKind.REQUEST,
        "/params/arguments/city",
        "Oslo",
        "Rome",
    )


def test_another_failing_request_is_not_breaking(record: Make) -> None:
    old = record([call(1, city="Oslo"), text_result(1, "cold")])
    new = record([call(1, city="Rome"), text_result(1, "no such city", isError=True)])

    _, (_, change) = compare(old, new).changes

    assert (change.kind, change.severity) == (ChangeKind.ERROR, DIFFERENT)


def test_the_number_of_polls_of_a_task_is_not_compared(edited: Edited, recorded: Recorded) -> None:
    def fewer(_: str, message: Message) -> Message | None:
        return None if message.get("id") in (5, 6) else message

    def failed(_: str, message: Message) -> Message:
        if message.get("id") == 7 and "result" in message:
            message["result"]["status"] = "failed"
        return message

    old = recorded("everything-inspector-task")

    assert compare(old, edited("everything-inspector-task", fewer)).is_same()
    assert not compare(old, edited("everything-inspector-task", failed)).is_same()


def test_two_exchanges_are_compared_by_themselves(recorded: Recorded) -> None:
    session = recorded("peer-sdk-legacy")
    calls = [exchange for exchange in session.exchanges if exchange.request.subject == "echo"]

    same = compare_exchanges(calls[0], calls[0])
    other = compare_exchanges(calls[0], calls[1])

    assert same.changes == ()
    assert same.new == ChangePosition(0, calls[0].number)
    assert {change.kind for change in other.changes} == {ChangeKind.REQUEST}


def test_cases_are_in_the_order_of_the_new_session(recorded: Recorded) -> None:
    first, *cases, last = compare(recorded("everything-sdk-auto"), recorded("everything-sdk-auto")).cases

    lines = [case.new.line for case in cases if case.new is not None]
    assert (first.method, last.method, len(lines)) == ("handshake", "exit", len(cases))
    assert all(one <= two for one, two in pairwise(lines))


CALLS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.sampled_from(["ok", "no", "bad", None])),
    max_size=6,
)


def acted(calls: list[tuple[str, int, str | None]]) -> Session:
    """Return a session of such calls: tool, argument, outcome."""
    session = Session()
    for id_, (name, n, end) in enumerate(calls):
        messages = [call(id_, name, n=n)]
        if end == "bad":
            messages.append(("server", {"id": id_, "error": {"code": 1, "message": "bad"}}))
        elif end is not None:
            messages.append(text_result(id_, end))
        for side, message in messages:
            session.add(Frame(0.0, side, orjson.dumps({"jsonrpc": "2.0", **message})))
    session.end()
    return session


@given(CALLS, CALLS)
def test_every_request_is_in_one_case_and_the_comparison_is_symmetric(
    first_calls: list[tuple[str, int, str | None]], second_calls: list[tuple[str, int, str | None]]
) -> None:
    old, new = acted(first_calls), acted(second_calls)

    there, back = compare(old, new), compare(new, old)

    assert compare(old, old).changes == []
    assert (there.changes == []) == (back.changes == []) == (first_calls == second_calls)
    assert {case.old.exchange for case in there.cases if case.old} == set(range(len(first_calls)))
    assert {case.new.exchange for case in there.cases if case.new} == set(range(len(second_calls)))
    assert len(there.cases) <= len(first_calls) + len(second_calls)


LISTING = {"id": 2, "method": "prompts/list", "params": {}}
PROMPTS = {"id": 2, "result": {"prompts": [{"name": "greet"}, {"name": "part"}]}}


def offering(capabilities: dict[str, Any], *listed: tuple[str, Message]) -> list[tuple[str, Message]]:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    result = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "serverInfo": {"name": "s", "version": "1"},
    }
    handshake = [
        ("client", {"id": 1, "method": "initialize", "params": params}),
        ("server", {"id": 1, "result": result}),
    ]
    return [*handshake, *listed]


def test_a_gained_list_is_compared_with_nothing_because_a_client_lists_what_a_server_has(
    record: Make,
) -> None:
    """@masonator/coolify-mcp gained prompts: the request for their list broke no client."""
    without = record(offering({}))
    with_prompts = record(offering({"prompts": {}}, ("client", LISTING), ("server", PROMPTS)))

    gained = compare(without, with_prompts)
    assert [(change.severity, change.kind, change.why) for case, change in gained.changes] == [
        (NOTE, ChangeKind.HANDSHAKE, "gained the capability prompts"),
        (NOTE, ChangeKind.ADDED, "the old server does not have the capability prompts"),
        (NOTE, ChangeKind.INTERFACE, "gained the prompt greet"),
        (NOTE, ChangeKind.INTERFACE, "gained the prompt part"),
    ]
    assert gained.is_same()

    lost = compare(with_prompts, without)
    assert [(change.severity, change.kind, change.why) for case, change in lost.changes] == [
        (BREAKING, ChangeKind.HANDSHAKE, "lost the capability prompts"),
        (NOTE, ChangeKind.REMOVED, "the new server does not have the capability prompts"),
        (BREAKING, ChangeKind.INTERFACE, "lost the prompt greet"),
        (BREAKING, ChangeKind.INTERFACE, "lost the prompt part"),
    ]


def test_a_list_that_a_client_did_not_request_is_a_difference_if_the_server_has_it(record: Make) -> None:
    unasked = record(offering({"prompts": {}}))
    asked = record(offering({"prompts": {}}, ("client", LISTING), ("server", PROMPTS)))

    assert [(change.severity, change.kind) for _, change in compare(unasked, asked).changes] == [
        (DIFFERENT, ChangeKind.ADDED)
    ]
    silent = record([("client", LISTING), ("server", PROMPTS)])
    nothing = record([])
    assert [(change.severity, change.kind) for _, change in compare(nothing, silent).changes] == [
        (DIFFERENT, ChangeKind.ADDED)
    ]


def test_the_items_of_a_list_that_failed_before_are_named(record: Make) -> None:
    """A resources/list of @angiejones/mcp-selenium failed until 0.2."""
    failing = ("server", {"id": 2, "error": {"code": -32603, "message": "no"}})
    failed = record(offering({"prompts": {}}, ("client", LISTING), failing))
    listed = record(offering({"prompts": {}}, ("client", LISTING), ("server", PROMPTS)))

    assert [(change.severity, change.why) for _, change in compare(failed, listed).changes] == [
        (DIFFERENT, "error -32603 internal error: no → ok"),
        (NOTE, "gained the prompt greet"),
        (NOTE, "gained the prompt part"),
    ]


def test_a_template_that_is_a_resource_now_breaks_no_client(record: Make) -> None:
    """`browser-status://current` of @angiejones/mcp-selenium: its clients read it before and after."""

    def offered(templates: list[str], resources: list[str]) -> Session:
        lists = {
            "resources/templates/list": {"resourceTemplates": [{"uriTemplate": uri} for uri in templates]},
            "resources/list": {"resources": [{"uri": uri} for uri in resources]},
        }
        messages: list[tuple[str, Message]] = []
        for id_, (method, result) in enumerate(lists.items(), 2):
            messages += [("client", {"id": id_, "method": method}), ("server", {"id": id_, "result": result})]
        return record(offering({"resources": {}}, *messages))

    old = offered(["a://now", "a://{x}"], [])
    changes = {change.why: change.severity for _, change in compare(old, offered([], ["a://now"])).changes}
    assert changes == {
        "lost the resource template a://now, which is a resource now": NOTE,
        "lost the resource template a://{x}": BREAKING,
        "gained the resource a://now": NOTE,
    }
