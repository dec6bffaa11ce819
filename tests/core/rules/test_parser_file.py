"""A file of rules, and the positions of mistakes."""

from __future__ import annotations

import pytest

from mcpspy.core.rules.model import DelayAction, FailAction, ReplaceAction
from mcpspy.core.rules.parser import read_file
from mcpspy.errors import UsageError

TEXT = """\
seed = 7

[[rule]]
when = "tool:echo"
delay = "2s"

[[rule]]   # the second
name = "chaos"
when = 'method:tools/call kind:request'
probability = 0.2
seed = "own"
[rule.error]
code = -32000
message = "boom {{params.name}}"
data.why = ["x"]

[[rule]]
when = "kind:result"
replace = { "/result/x" = 1 }
"""


@pytest.mark.parametrize("text", [TEXT, "\ufeff" + TEXT, TEXT.replace("\n", "\r\n")])
def test_rules_are_read_in_their_order(text: str) -> None:
    rules = read_file(text, "rules.toml", first=4)

    assert [rule.label for rule in rules] == ["4", "chaos", "6"]
    assert [rule.seed for rule in rules] == [7, "own", 7]
    assert [rule.action for rule in rules] == [
        DelayAction(2),
        FailAction(-32000, "boom {{params.name}}", {"why": ["x"]}, has_data=True),
        ReplaceAction(values=((("result", "x"), 1),)),
    ]


def test_a_file_may_have_no_rules() -> None:
    assert read_file("", "rules.toml") == []


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ('delay = "2s"', 'dely = "2s"', 'line 5, column 1: unknown "dely": did you mean delay?'),
        ('delay = "2s"', '  delay = "x"', "line 5, column 3: x is not a time"),
        ('delay = "2s"', "", "line 3, column 1: a rule needs exactly one action"),
        ('delay = "2s"', 'delay = "2s"\nhold = true', "line 6, column 1: a rule needs exactly one action"),
        ('"tool:echo"', '"tool:echo (kind:x"', "line 4, column 19: unclosed ("),
        ('"tool:echo"', r'"\u0074ool:echo ("', "line 4, column 1: unclosed ("),
        ("code = -32000", 'code = "x"', "line 13, column 1: code takes a whole number"),
        ("code = -32000", "cod = 1", 'line 13, column 1: unknown "cod": did you mean code?'),
        ('{ "/result/x" = 1 }', '{ "/result/x" = 1, y = 2 }', "line 19, column 30: replace takes a merge"),
        ('{ "/result/x" = 1 }', """'{"result/x":1,"/y":2}'""", "line 19, column 1: replace takes a merge"),
        ("seed = 7", "seed = 7.5", "line 1, column 1: seed takes a whole number or a text"),
        ("seed = 7", "sed = 7", 'line 1, column 1: unknown key "sed": use [[rule]] or seed'),
        ("seed = 7", "rule = 7", "rules.toml: not TOML"),
        ('name = "chaos"', "name = chaos", "rules.toml: not TOML: Invalid value (at line 8, column 8)"),
    ],
)
def test_a_mistake_is_reported_with_its_position(old: str, new: str, reported: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_file(TEXT.replace(old, new, 1), "rules.toml")

    assert str(raised.value).startswith("rules.toml: ")
    assert reported in str(raised.value)


@pytest.mark.parametrize("text", ["rule = 7", "rule = [1]", "[rule]\nwhen = ''"])
def test_rules_are_tables_in_an_array(text: str) -> None:
    with pytest.raises(UsageError, match=r"line 1, column 1: each rule must be a table under \[\[rule\]\]"):
        read_file(text, "rules.toml")


def test_each_rule_may_be_on_one_line() -> None:
    rules = read_file('rule = [\n  { when = "a", drop = true },\n  { when = "b", drop = true },\n]', "r")

    assert [rule.query.text for rule in rules] == ["a", "b"]
    with pytest.raises(UsageError, match="line 3, column 17: drop takes only true"):
        read_file('rule = [\n  { when = "a", drop = true },\n  { when = "b", drop = 1 },\n]', "r")
