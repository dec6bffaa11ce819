"""Evaluation of the rules for one message."""

from __future__ import annotations

import json

import pytest

from mcpspy.core.intercept.evaluator import MessageChecks
from mcpspy.core.intercept.held import RuleDecision
from mcpspy.core.intercept.requests import AwaitedRequest, answer
from mcpspy.core.protocol.message import Request, loads
from tests.core.intercept.interceptors import call, message, progress, result, rules

MODERN = call(1).replace(
    b'"params": {', b'"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, '
)


def decide(
    flag: str, data: bytes, side: str = "client", awaited: AwaitedRequest | None = None
) -> RuleDecision:
    return MessageChecks(rules(flag)).decide(message(data, side), awaited)


def test_rules_apply_in_order_until_a_final_action() -> None:
    checks = MessageChecks(
        rules(
            "tool:echo => delay 1s",
            "tool:echo => replace /params/arguments/x = {{params.arguments.x}}!",
            "tool:echo => replace /params/arguments/y = {{params.arguments.x}}?",
            "tool:echo => delay 500ms",
            "tool:other => drop",
            "tool:echo => error no",
            "tool:echo => drop",
        )
    )
    decision = checks.decide(message(call(1, x="a")), None)

    assert decision.delay == 1.5
    assert json.loads(decision.data or b"")["params"]["arguments"] == {"x": "a!", "y": "a?"}
    assert [rule_note.fields["rule"] for rule_note in decision.notes] == ["1", "2", "3", "4", "6"]
    assert loads(decision.answer or b"")["error"] == {"code": -32000, "message": "no"}
    assert not decision.is_dropped


@pytest.mark.parametrize(
    ("flag", "data", "takes"),
    [
        ("tool:echo => drop", call(), True),
        (" => drop", progress(1), True),
        ("progress => drop", progress(1), True),
        (" => drop", result(), True),
        (" => drop", b"{oops}", True),
        (" => error no", call(), True),
        (" => error no", result(), False),
        (" => respond {}", progress(1), False),
        (" => corrupt wrong-id", result(), True),
        (" => corrupt wrong-id", progress(1), False),
        (" => corrupt bad-json", progress(1), True),
        (" => replace /x = 1", b"{oops}", False),
        (" => hold", b"{oops}", True),
        ("not echo => drop", b"{oops}", False),
    ],
)
def test_an_action_applies_only_to_suitable_messages(flag: str, data: bytes, takes: bool) -> None:
    decision = decide(flag, data)

    assert bool(decision.notes or decision.holder) == takes


def test_a_query_about_names_does_not_match_responses() -> None:
    request = message(call())
    assert isinstance(request, Request)
    awaited = AwaitedRequest(request, None, keep=False)

    assert not decide("tool:echo => drop", result(), "server", awaited).is_dropped
    assert decide("tool:echo kind:result => drop", result(), "server", awaited).is_dropped


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ("", [1, 2, 3, 4, 5, 6]),
        ("times=2", [1, 2]),
        ("after=4", [5, 6]),
        ("times=2 after=1", [2, 3]),
        ("50% seed=3", [3, 6]),
        ("50% seed=3 times=1 after=3", [6]),
        ("0%", []),
    ],
)
def test_the_same_matches_are_taken_every_time(settings: str, taken: list[int]) -> None:
    checks = MessageChecks(rules(f"tool:echo => {settings} drop"))
    verdicts = []
    for number in range(1, 7):
        checks.decide(message(call(0, tool="other")), None)  # Only matches count.
        verdicts.append((number, checks.decide(message(call(number)), None).is_dropped))

    assert [number for number, is_dropped in verdicts if is_dropped] == taken


def test_the_seed_alone_reproduces_a_run() -> None:
    def run(seed: int) -> list[bool]:
        checks = MessageChecks(rules("tool:echo => 20% drop", seed=seed))
        return [checks.decide(message(call(number)), None).is_dropped for number in range(200)]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_an_error_may_contain_values_of_the_request() -> None:
    flag = 'echo => error {"code": 5, "message": "{{params.arguments}}", "data": ["{{id}}", "no {{params.name}}"]}'

    assert loads(decide(flag, call("a", x=1)).answer or b"") == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": 5, "message": '{"x":1}', "data": ["a", "no echo"]},
    }


def test_a_canned_result_is_unchanged_except_for_a_result_type_in_2026_07_28() -> None:
    assert loads(decide('echo => respond {"a": null}', call()).answer or b"")["result"] == {"a": None}
    assert loads(decide('echo => respond {"a": 1}', MODERN).answer or b"")["result"] == {
        "resultType": "complete",
        "a": 1,
    }
    said = decide('echo => respond {"resultType": "task"}', MODERN).answer or b""
    assert loads(said)["result"] == {"resultType": "task"}


def test_a_response_may_be_changed_by_values_of_its_request() -> None:
    request = message(call(1, x="y"))
    assert isinstance(request, Request)
    flag = "kind:result => replace /result/of = {{request.params.arguments.x}}"
    decision = decide(flag, result(), "server", AwaitedRequest(request, None, keep=True))

    assert loads(decision.data or b"")["result"]["of"] == "y"
    assert decision.notes[0].fields["sent"].encode() == decision.data


def test_a_failed_replacement_is_noted_and_the_message_forwarded_unchanged() -> None:
    decision = decide("echo => replace /id/x = 1", call())

    assert decision.data is None
    assert decision.notes[0].fields["failed"] == "/id/x does not exist: x would be in 1"


def test_a_message_is_edited_before_it_is_corrupted() -> None:
    checks = MessageChecks(rules("echo => replace /params/arguments/x = 1", "echo => corrupt bad-json"))
    decision = checks.decide(message(call()), None)

    assert (decision.data or b"").endswith(b'"arguments":{"x":1}},}')
    assert decision.hides_response


def test_the_blanks_of_an_oversized_message_are_noted_as_a_number() -> None:
    decision = decide("echo => corrupt oversize 1mb", call())

    assert decision.data is not None
    assert decision.notes[0].fields["padding"] == len(decision.data) - len(call())
    assert "sent" not in decision.notes[0].fields
    assert not decision.hides_response


def test_a_response_has_the_id_of_its_request_verbatim() -> None:
    assert answer('"1.0"', b"result", {}) == b'{"jsonrpc":"2.0","id":"1.0","result":{}}'


LONG = "get.weather"
LISTED = {
    "tools": [{"name": LONG, "inputSchema": {"allOf": [{"properties": {"a": {}}}]}}, {"name": "b", "x": 1.0}]
}


def listed(checks: MessageChecks, method: str = "tools/list") -> RuleDecision:
    request = message(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode())
    assert isinstance(request, Request)
    answer = message(json.dumps({"jsonrpc": "2.0", "id": 1, "result": LISTED}).encode(), "server")
    return checks.decide(answer, AwaitedRequest(request, None, keep=False))


def test_repaired_names_are_restored_in_calls() -> None:
    checks = MessageChecks(rules(" => repair"))
    decision = listed(checks)

    tools = json.loads(decision.data or b"")["result"]["tools"]
    assert tools[0]["inputSchema"] == {"type": "object", "properties": {"a": {}}, "required": []}
    assert tools[1] == {"name": "b", "x": 1.0}
    assert b'"x": 1.0' in (decision.data or b"")
    assert [note.fields["action"] for note in decision.notes] == ["repair"]
    name = tools[0]["name"]
    assert name.startswith("get_weather_")
    called = checks.decide(message(call(2).replace(b'"echo"', json.dumps(name).encode())), None)
    assert json.loads(called.data or b"")["params"]["name"] == LONG
    other = checks.decide(message(call(3)), None)
    assert (other.data, other.notes) == (None, [])


@pytest.mark.parametrize(
    ("flag", "name", "schema"), [("names", "get_weather_", "allOf"), ("schemas", LONG, "type")]
)
def test_a_repair_may_be_of_names_or_schemas_only(flag: str, name: str, schema: str) -> None:
    decision = listed(MessageChecks(rules(f" => repair {flag}")))
    tool = json.loads(decision.data or b"")["result"]["tools"][0]
    assert tool["name"].startswith(name)
    assert schema in tool["inputSchema"]


def test_only_lists_of_tools_are_repaired() -> None:
    decision = listed(MessageChecks(rules(" => repair")), "resources/list")
    assert (decision.data, decision.notes) == (None, [])
