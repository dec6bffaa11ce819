"""Trees of spans, and changes by offsets."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from mcpspy.core.hostconfig import jsonc
from mcpspy.core.hostconfig.tree import TextEdit, eol, line_indent, plain, quoted, spliced, where


def test_changes_are_made_in_the_order_of_their_places() -> None:
    assert spliced("abcdef", [TextEdit(4, 5, "E"), TextEdit(0, 1, ""), TextEdit(2, 2, "-")]) == "b-cdEf"


def test_of_an_insertion_and_a_change_at_one_place_the_insertion_comes_first() -> None:
    assert spliced("abc", [TextEdit(1, 2, "B"), TextEdit(1, 1, "-")]) == "a-Bc"


def test_changes_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        spliced("abc", [TextEdit(0, 2, ""), TextEdit(1, 3, "")])


@given(st.text(st.characters(exclude_categories=["Cs", "Cn"])))
def test_a_literal_has_the_same_value_in_every_syntax(text: str) -> None:
    literal = quoted(text)

    assert json.loads(literal) == text
    assert tomllib.loads(f"x = {literal}")["x"] == text
    assert YAML(typ="safe", pure=True).load(f"- {literal}") == [text]


def test_a_lone_surrogate_goes_back_to_json_as_it_came() -> None:
    assert quoted(json.loads('"\\ud800"')) == '"\\ud800"'


def test_of_duplicate_members_the_last_is_found() -> None:
    node = jsonc.read('{"a": {"b": 1}, "a": {"b": 2}}').get("a", "b")

    assert node is not None
    assert node.text == "2"
    assert jsonc.read("[]").get("a", "b") is None


def test_the_value_of_a_node_does_not_depend_on_its_places() -> None:
    assert plain(jsonc.read('{"a":["b",1.0]}')) == plain(jsonc.read(' { "a" : [ "b" , 1.0 ] }'))
    assert plain(jsonc.read('"1"')) != plain(jsonc.read("1"))


def test_a_place_is_reported_by_line_and_column() -> None:
    assert where("a\nbc", 3) == "line 2, column 2"
    assert where("", 0) == "line 1, column 1"


def test_the_blanks_before_a_place_are_its_indent_if_nothing_else_is_there() -> None:
    assert line_indent("a\n \t b", 5) == " \t "
    assert line_indent("a b", 2) is None
    assert eol("a\r\nb") == "\r\n"
    assert eol("") == "\n"
