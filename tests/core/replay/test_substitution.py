"""Live values in place of recorded ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.protocol.message import Failure, Notification, Request, Result, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.core.replay.substitution import SubstitutionRule, Substitutions, rule

RELATED = "io.modelcontextprotocol/related-task"


def answer(**members: Any) -> Result | Failure:
    (found,) = read_frame(Frame(0.0, "server", json.dumps({"jsonrpc": "2.0", "id": 1, **members}).encode()))
    assert isinstance(found, Result | Failure)
    return found


def request(**params: Any) -> Request:
    data = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).encode()
    (found,) = read_frame(Frame(0.0, "client", data))
    assert isinstance(found, Request)
    return found


def apply(carried: Substitutions, **params: Any) -> Any:
    message = request(**params)
    return json.loads(carried.apply(message, message.data))["params"]


@pytest.mark.parametrize(
    ("before", "now", "given", "expected"),
    [
        ({"nextCursor": "p2"}, {"nextCursor": "q7"}, {"cursor": "p2"}, {"cursor": "q7"}),
        (
            {"resultType": "input_required", "requestState": "old"},
            {"resultType": "input_required", "requestState": "new"},
            {"requestState": "old", "name": "old"},
            {"requestState": "new", "name": "old"},
        ),
        ({"task": {"taskId": "a"}}, {"task": {"taskId": "b"}}, {"taskId": "a"}, {"taskId": "b"}),
        (
            {"resultType": "task", "taskId": "a"},
            {"resultType": "task", "taskId": "b"},
            {"taskId": "a"},
            {"taskId": "b"},
        ),
        (
            {"task": {"taskId": "a"}},
            {"task": {"taskId": "b"}},
            {"_meta": {RELATED: {"taskId": "a"}}},
            {"_meta": {RELATED: {"taskId": "b"}}},
        ),
    ],
)
def test_values_of_the_protocol_are_sent_back_with_their_live_values(
    before: Any, now: Any, given: Any, expected: Any
) -> None:
    carried = Substitutions()
    carried.learn(answer(result=before), answer(result=now))

    assert apply(carried, **given) == expected
    assert carried.missing(request(**given)) is None


def test_a_value_that_the_live_server_did_not_return_is_missing() -> None:
    carried = Substitutions()
    carried.learn(answer(result={"nextCursor": "p2"}), answer(result={}))

    assert carried.missing(request(cursor="p2")) == "cursor"
    assert carried.missing(request(cursor="from elsewhere")) is None


def test_a_request_without_a_response_returns_no_values() -> None:
    carried = Substitutions()
    carried.learn(answer(result={"task": {"taskId": "a"}}), None)

    assert carried.missing(request(taskId="a")) == "taskId"


def test_a_state_is_the_same_however_its_text_is_escaped() -> None:
    carried = Substitutions()
    carried.learn(answer(result={"requestState": "é"}), answer(result={"requestState": "neu"}))
    data = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"requestState":"é"}}'.encode()
    (message,) = read_frame(Frame(0.0, "client", data))

    assert isinstance(message, Request)
    assert json.loads(carried.apply(message, data))["params"] == {"requestState": "neu"}


def test_a_rule_carries_a_part_of_a_text_into_all_texts() -> None:
    carried = Substitutions((rule(r"/result/content/0/text=session (\w+)"),))
    old, new = ({"content": [{"type": "text", "text": f"your session {name}, Ada"}]} for name in ("s1", "s2"))
    carried.learn(answer(result=old), answer(result=new))

    assert apply(carried, arguments={"id": "s1", "path": "/x/s1/y", "n": 1}) == {
        "arguments": {"id": "s2", "path": "/x/s2/y", "n": 1}
    }


def test_a_rule_carries_a_number_as_a_number() -> None:
    carried = Substitutions((rule("/result/structuredContent/port"),))
    carried.learn(*(answer(result={"structuredContent": {"port": port}}) for port in (4001, 4002)))

    assert apply(carried, arguments={"port": 4001, "other": 4003, "is": True, "all": [[4001], 1]}) == {
        "arguments": {"port": 4002, "other": 4003, "is": True, "all": [[4002], 1]}
    }


def test_two_swapped_values_are_both_replaced() -> None:
    carried = Substitutions((rule("/result/a"), rule("/result/b")))
    carried.learn(answer(result={"a": "one", "b": "two"}), answer(result={"a": "two", "b": "one"}))

    assert apply(carried, x="one two") == {"x": "two one"}


def test_a_message_without_carried_values_is_sent_byte_for_byte() -> None:
    data = b'{ "jsonrpc":"2.0", "id":2, "method":"m", "params":{"x":1.0,"x":12345678901234567890123} }'
    (message,) = read_frame(Frame(0.0, "client", data))

    assert isinstance(message, Request | Notification)
    assert Substitutions((rule("/result/a"),)).apply(message, data) == data


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("result/x", "must begin with /"),
        ("/params/x", "/result/"),
        ("/result/x=(", "not a regular expression"),
        ("/result/x=abc", "one group"),
        ("/result/x=(a)(b)", "one group"),
    ],
)
def test_an_invalid_rule_has_a_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        rule(text)


def test_a_rule_is_written_as_it_is_read() -> None:
    for text in ("/result/a~1b/0", r"/result/content/0/text=session (\w+)=x"):
        assert str(rule(text)) == text


@settings(max_examples=30, deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_rule_takes_any_answer(value: Any) -> None:
    found = SubstitutionRule(("result", "0", "a"), "(.)").value({"result": value})

    assert found is None or isinstance(found, str)


def test_compared_messages_have_the_recorded_values() -> None:
    carried = Substitutions((rule("/result/session"), rule("/result/port")))
    carried.learn(*(answer(result={"session": s, "port": p}) for s, p in (("a/1", 4001), ("b/2", 4002))))

    assert carried.as_recorded(b'{"x":"at b/2","y":4002,"z":14002,"f":4002.5,"t":"no"}') == (
        b'{"x":"at a/1","y":4001,"z":14002,"f":4002.5,"t":"no"}'
    )
