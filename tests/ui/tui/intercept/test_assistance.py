"""Tests of the schema, the violations and the completions for the text of a request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.ui.model.interface import Capabilities, ListPage, SchemaField, read
from mcpspy.ui.tui.intercept.assistance import ABOUT, Assistance, JsonPosition, position_at, schema_lines

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["city"],
    "$defs": {
        "unit": {"enum": ["celsius", "kelvin"]},
        "loop": {"anyOf": [{"$ref": "#/$defs/loop"}, {"$ref": "#"}]},
    },
    "properties": {
        "city": {"type": "string", "description": "where"},
        "days": {"type": "integer", "default": 3},
        "unit": {"$ref": "#/$defs/unit"},
        "hourly": {"type": "boolean"},
        "parts": {"type": "array", "items": {"anyOf": [{"const": "rain"}, {"properties": {"wind": {}}}]}},
        "loop": {"$ref": "#/$defs/loop"},
    },
}
LISTED = {
    "tools/list": [{"name": "forecast", "inputSchema": SCHEMA}, {"name": "broken", "inputSchema": 5}],
    "prompts/list": [{"name": "greet", "arguments": [{"name": "who", "required": True}, 5, {"name": []}]}],
    "resources/list": [{"uri": "file:///a", "name": "a"}],
}


def assistance() -> Assistance:
    listings = Capabilities()
    for row, (method, items) in enumerate(LISTED.items()):
        message = {"jsonrpc": "2.0", "id": row, "result": {LISTINGS[method].member: items}}
        line = json.dumps({"t": 1.0, "from": "server", "msg": message}).encode()
        listings.take(ListPage(row, 1.0, method, "", None), read(line, 0, method))
    return Assistance(listings.last)


HELP = assistance()


def call(arguments: str, name: str = "forecast", method: str = "tools/call") -> str:
    return f'{{"method": "{method}", "params": {{"name": "{name}", "arguments": {arguments}}}}}'


def offered(marked: str) -> list[str]:
    """Return the completions at the mark `|`."""
    offset = marked.index("|")
    text = marked.replace("|", "")
    return HELP.completions(text, position_at(text, offset))


@pytest.mark.parametrize(
    ("marked", "completions"),
    [
        (call("{|}"), ['"city"', '"days"', '"unit"', '"hourly"', '"parts"', '"loop"']),
        (call('{"ci|", "days": 1, "hourly": true}'), ['"city"', '"unit"', '"parts"', '"loop"']),
        (call('{"u|"city": 1, "days": 1}'), ['"unit"', '"hourly"', '"parts"', '"loop"']),
        (call('{"unit": |'), ['"celsius"', '"kelvin"']),
        (call('{"unit": "c|"}'), ['"celsius"', '"kelvin"']),
        (call('{"hourly": |, "city": 1}'), ["true", "false"]),
        (call('{"days": |}'), ["3"]),
        (call('{"parts": [1, |]}'), ['"rain"']),
        (call('{"parts": [{|}]}'), ['"wind"']),
        (call('{"city": |}'), []),
        (call("{|}", "broken"), []),
        (call('{"loop": {|}}'), ['"city"', '"days"', '"unit"', '"hourly"', '"parts"', '"loop"']),
        (call("{}", "fore|"), ['"forecast"', '"broken"']),
        (call("{|}", "greet", "prompts/get"), ['"who"']),
        ('{"method": "resources/read", "params": {"uri": "|"}}', ['"file:///a"']),
        ('{"method": "tools/call", "params": {"|"}}', ['"name"', '"arguments"', '"_meta"']),
        ("{|}", ['"jsonrpc"', '"method"', '"params"']),
        ("|", []),
    ],
)
def test_names_and_values_are_offered_where_they_fit(marked: str, completions: list[str]) -> None:
    assert offered(marked) == completions


def test_methods_of_the_client_are_offered() -> None:
    methods = offered('{"method": "|"}')
    assert '"tools/call"' in methods
    assert '"sampling/createMessage"' not in methods


def test_the_token_at_the_cursor_is_replaced() -> None:
    def token(marked: str) -> str:
        text = marked.replace("|", "")
        position = position_at(text, marked.index("|"))
        return text[position.start : position.end]

    assert token('{"ci|ty": 1}') == '"city"'
    assert token('{"ci|: 1, "b": 2}') == '"ci'
    assert token('{"ci|"city": 1}') == '"ci'
    assert token('{"a": nul|l}') == "null"
    assert token('{"a": | 1}') == ""
    assert position_at('{"a": [1, {"b": 2}]}', 13) == JsonPosition(("a", "1"), True, frozenset(), 11, 14)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (call('{"city": "Oslo"}'), []),
        (call("{}"), ['arguments: "city" is a required property']),
        (call('{"city": 5}'), ['arguments/city: 5 is not of type "string"']),
        (call('{"city": "x", "unit": "f"}'), ['arguments/unit: "f" is not one of "celsius" or "kelvin"']),
        (call("{}", "unknown"), ["params/name: the server has not listed 'unknown'"]),
        (call("{}", "broken"), []),
        (call("{}", "greet", "prompts/get"), ['arguments: "who" is a required property']),
        ('{"method": "resources/read", "params": {"uri": "file:///b"}}', []),
        ('{"method": "ping"}', []),
        ("[]", []),
    ],
)
def test_violations_have_a_pointer(text: str, problems: list[str]) -> None:
    assert HELP.problems(text) == problems


def test_a_target_after_its_arguments_is_found() -> None:
    text = '{"params": {"arguments": {"name": "broken"}, "name": "forecast"}, "method": "tools/call"}'
    heading, fields = HELP.heading_and_fields(text)
    assert heading == "arguments of forecast"
    assert [(field.name, field.type, field.required) for field in fields][:3] == [
        ("city", "string", True),
        ("days", "integer", False),
        ("unit", "unit", False),
    ]
    assert HELP.heading_and_fields('{"method": "ping"}') == ("", [])


@given(st.text('{}[],:" \\\n1ap'), st.integers(0, 50))
def test_no_text_breaks_it(text: str, offset: int) -> None:
    position = position_at(text, min(offset, len(text)))
    HELP.completions(text, position)
    HELP.problems(text)
    assert 0 <= position.start <= position.end <= len(text)


def test_a_long_description_is_wrapped_below_its_field_or_cut() -> None:
    fields = [
        SchemaField("city", "string", True, "the name of a city " * 9),
        SchemaField("n", "integer", False, ""),
    ]
    wide, narrow = (schema_lines("arguments", fields, 40, is_wide=is_wide) for is_wide in (True, False))
    texts = ["".join(text for text, _ in line) for line in wide]
    assert texts[:2] == ["arguments", "city  string  required"]
    assert 1 < sum(text.startswith("  ") for text in texts) <= ABOUT
    assert all(len(text) <= 40 for text in texts)
    assert len(narrow) == 3
