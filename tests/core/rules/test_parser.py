"""A rule as keys and values."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from mcpspy.core.rules.model import (
    CorruptAction,
    DelayAction,
    DisconnectAction,
    DropAction,
    FailAction,
    HoldAction,
    ReplaceAction,
    RespondAction,
)
from mcpspy.core.rules.parser import RuleError, read_rule, seed


@pytest.mark.parametrize(
    ("key", "value", "action"),
    [
        ("delay", "2s", DelayAction(2)),
        ("delay", 0.5, DelayAction(0.5)),
        ("drop", True, DropAction()),
        ("disconnect", True, DisconnectAction()),
        ("hold", True, HoldAction()),
        ("error", "boom", FailAction(-32000, "boom")),
        ("error", {"code": 1, "message": "m"}, FailAction(1, "m")),
        ("error", {"message": "m", "data": None}, FailAction(-32000, "m", None, has_data=True)),
        ("respond", {"content": []}, RespondAction({"content": []})),
        ("respond", '{"x": null}', RespondAction({"x": None})),
        ("replace", '{"params": {"x": null}}', ReplaceAction({"params": {"x": None}})),
        (
            "replace",
            {"/params/x": 1, "/a~1b": 2},
            ReplaceAction(values=((("params", "x"), 1), (("a/b",), 2))),
        ),
        ("corrupt", "bad-json", CorruptAction("bad-json")),
        ("corrupt", "Wrong ID", CorruptAction("wrong-id")),
        ("corrupt", "half_line", CorruptAction("half-line")),
        ("corrupt", "oversize 2 mb", CorruptAction("oversize", 2 << 20)),
    ],
)
def test_an_action_is_read(key: str, value: Any, action: object) -> None:
    rule = read_rule(3, {"when": "tool:echo", key: value})

    assert rule.action == action
    assert (rule.label, rule.action_name) == ("3", key)
    assert (rule.probability, rule.times, rule.after, rule.seed) == (1, None, 0, None)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("tools", 'repair takes true, "names", "names 50" or "schemas"'),
        ("names 50 60", 'repair takes true, "names", "names 50" or "schemas"'),
        (False, 'repair takes true, "names", "names 50" or "schemas"'),
        ("names 15", "repair takes 16 to 1000 as the maximum length of names"),
        ("schemas 50", "repair takes 16 to 1000 as the maximum length of names"),
    ],
)
def test_a_wrong_repair_is_refused(value: Any, why: str) -> None:
    with pytest.raises(RuleError, match=why):
        read_rule(1, {"when": "method:tools/list", "repair": value})


def test_probability_and_counts_are_read() -> None:
    table = {"when": "", "name": "x", "probability": "20%", "seed": "s", "times": 3, "after": 0, "drop": True}
    rule = read_rule(1, table)

    assert (rule.label, rule.probability, rule.seed, rule.times, rule.after) == ("x", 0.2, "s", 3, 0)
    assert not rule.of_requests


@pytest.mark.parametrize(
    ("table", "path", "why"),
    [
        ({"dely": 1}, ("dely",), 'unknown "dely": did you mean delay?'),
        ({"zzz": 1}, ("zzz",), "one of when, name, probability"),
        ({"when": None}, ("when",), "when takes a query in quotes"),
        ({"when": "a tool:"}, ("when",), "expected a value after"),
        ({"when": "lint:x"}, ("when",), "findings are available only in"),
        ({"drop": True, "hold": True}, ("hold",), "exactly one action: this one has drop and hold"),
        ({}, (), "exactly one action: use one of delay"),
        ({"drop": False}, ("drop",), "drop takes only true: write drop = true"),
        ({"delay": "2 years"}, ("delay",), "2 years is not a time"),
        ({"error": 1}, ("error",), "error takes a text, or {"),
        ({"error": {"message": "m", "dat": 1}}, ("error", "dat"), "did you mean data"),
        ({"error": {"code": "x", "message": "m"}}, ("error", "code"), "code takes a whole number"),
        ({"error": {"code": 1}}, ("error",), "error needs a message"),
        ({"error": {"message": 1}}, ("error", "message"), "error needs a message"),
        (
            {"error": {"message": "m", "data": datetime.date(2026, 1, 1)}},
            ("error", "data"),
            "not a JSON value",
        ),
        ({"respond": "{"}, ("respond",), "this is not JSON: "),
        ({"respond": "[1]"}, ("respond",), "respond takes a table"),
        ({"respond": {"at": datetime.time(1)}}, ("respond",), "not a JSON value"),
        ({"replace": {}}, ("replace",), "replace is empty"),
        ({"replace": {"/a": 1, "b": 2}}, ("replace", "b"), "replace takes a merge patch, or pointers"),
        ({"replace": {"/a~": 1}}, ("replace", "/a~"), "write ~ as ~0"),
        ({"corrupt": "halfline"}, ("corrupt",), 'unknown corruption "halfline": did you mean half-line?'),
        ({"corrupt": "x"}, ("corrupt",), "one of bad-json, half-line"),
        ({"corrupt": 1}, ("corrupt",), "corrupt takes one of"),
        ({"corrupt": "bad-json 3mb"}, ("corrupt",), "bad-json takes no size"),
        ({"corrupt": "oversize 0"}, ("corrupt",), "0 is not a size"),
        ({"drop": True, "probability": 2}, ("probability",), "a number from 0 to 1"),
        ({"drop": True, "probability": "x%"}, ("probability",), "a number from 0 to 1"),
        ({"drop": True, "probability": True}, ("probability",), "a number from 0 to 1"),
        ({"drop": True, "seed": 1}, ("seed",), "a seed has no effect without a probability"),
        ({"drop": True, "probability": 0.5, "seed": 1.5}, ("seed",), "seed takes a whole number or a text"),
        ({"drop": True, "times": 0}, ("times",), "times must be at least 1"),
        ({"drop": True, "after": -1}, ("after",), "after must be at least 0"),
        ({"drop": True, "times": True}, ("times",), "times takes a whole number"),
        ({"drop": True, "name": "7"}, ("name",), "rules already have numbers"),
        ({"drop": True, "name": " "}, ("name",), "name takes a word"),
    ],
)
def test_a_mistake_names_the_key(table: dict[str, Any], path: tuple[str, ...], why: str) -> None:
    with pytest.raises(RuleError) as raised:
        read_rule(1, {"when": "a", **table})

    assert raised.value.path == path
    assert why in str(raised.value)


def test_a_rule_needs_a_query() -> None:
    with pytest.raises(RuleError, match='missing key "when"'):
        read_rule(1, {"drop": True})


def test_a_mistake_in_a_query_has_its_position() -> None:
    with pytest.raises(RuleError) as raised:
        read_rule(1, {"when": "echo (a", "drop": True})

    assert raised.value.offset == 5


def test_a_seed_for_all_rules_is_read_alike() -> None:
    assert seed({"seed": 7}) == 7
    assert seed({}) is None
    with pytest.raises(RuleError):
        seed({"seed": []})
