"""A rule on a command line."""

from __future__ import annotations

import pytest

from mcpspy.core.rules.model import (
    CorruptAction,
    DelayAction,
    DropAction,
    FailAction,
    HoldAction,
    ReplaceAction,
    RespondAction,
)
from mcpspy.core.rules.parser import read_flag, read_rule
from mcpspy.errors import UsageError
from tests.core.query.querying import Row


@pytest.mark.parametrize(
    ("text", "when", "action"),
    [
        ("tool:echo => delay 2s", "tool:echo", DelayAction(2)),
        ("=>drop", "", DropAction()),
        ('"" => drop', "", DropAction()),
        ("a => hold ", "a", HoldAction()),
        ("a => error boom => bang", "a", FailAction(-32000, "boom => bang")),
        ("a => error -32603 it broke", "a", FailAction(-32603, "it broke")),
        ('a => error {"code": 1, "message": "m", "data": []}', "a", FailAction(1, "m", [], has_data=True)),
        ('a => respond {"content": []}', "a", RespondAction({"content": []})),
        ('a => replace {"params": {"x": null}}', "a", ReplaceAction({"params": {"x": None}})),
        ("a => replace /params/x = [1]", "a", ReplaceAction(values=((("params", "x"), [1]),))),
        ("a => replace /params/x= no JSON", "a", ReplaceAction(values=((("params", "x"), "no JSON"),))),
        ("latency>=2s => corrupt oversize 1mb", "latency>=2s", CorruptAction("oversize", 1 << 20)),
    ],
)
def test_a_rule_is_a_query_and_an_action(text: str, when: str, action: object) -> None:
    rule = read_flag(text, 2)

    assert (rule.query.text, rule.action, rule.number) == (when, action, 2)


def test_settings_come_before_the_action() -> None:
    rule = read_flag("a => 12.5% seed=x7 times=3 after=2 name=flaky error 20% of it", 1)

    assert (rule.probability, rule.seed, rule.times, rule.after, rule.label) == (0.125, "x7", 3, 2, "flaky")
    assert rule.action == FailAction(-32000, "20% of it")
    assert read_flag("a => 5% seed=7 drop", 1).seed == 7


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a -> drop", "missing => between the query and the action"),
        ("a =>", "missing action after =>"),
        ("a => 20%", "missing action after =>"),
        ("a => droop", 'unknown "droop": did you mean drop?'),
        ("  echo (a => drop", "column 8: unclosed ("),
        ("a => drop it", "drop takes only true"),
        ("a => delay", "an empty value is not a time"),
        ("a => times=x drop", "times takes a whole number"),
        ("a => 200% drop", "probability takes a number from 0 to 1"),
        ("a => error {oops}", "not JSON"),
        ("a => when drop", 'unknown "when": '),
    ],
)
def test_a_mistake_is_reported_with_an_example(text: str, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_flag(text, 1)

    assert why in str(raised.value)
    assert "docs/rules.md" in str(raised.value)


def test_text_that_is_not_utf_8_is_rejected() -> None:
    with pytest.raises(UsageError, match=r"--rule 'ping => name=\\udcff drop': not UTF-8"):
        read_flag("ping => name=\udcff drop", 1)


@pytest.mark.parametrize("when", ['""', "", ' "" '])
def test_empty_quotes_match_every_message(when: str) -> None:
    rule = read_flag(f"{when} => drop", 1)

    assert rule.query.matches(Row(kind="request", method="ping"))
    assert rule.query.matches(Row(kind="result"))
    assert not rule.of_requests
    assert read_rule(1, {"when": when, "drop": True}).query.text == rule.query.text == ""


def test_a_regular_expression_that_re2_cannot_run_needs_a_permission() -> None:
    with pytest.raises(UsageError, match=r"column 4: look-ahead \(\?= is not supported .*--unsafe-regex"):
        read_flag("/id(?=7)/ => drop", 1)

    rule = read_flag("/id(?=7)/ => drop", 1, lambda _pattern, _construct: True)

    assert rule.query.matches(Row(data=b"id7"))
