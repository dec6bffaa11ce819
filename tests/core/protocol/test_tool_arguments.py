"""Arguments of a tool from words."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.protocol.tool_arguments import arguments_of, missing_arguments
from mcpspy.errors import UsageError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "ratio": {"type": "number"},
        "exact": {"type": "boolean"},
        "unit": {"enum": ["C", "F", 1]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "note": {"type": ["string", "null"]},
        "place": {"$ref": "#/$defs/Place"},
        "any": {},
        "a.b": {"type": "integer"},
        "version": {"const": "2"},
    },
    "required": ["city", "place"],
    "$defs": {
        "Place": {
            "type": "object",
            "description": "Where.",
            "properties": {"lat": {"type": "number"}, "name": {"type": "string"}},
        }
    },
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["city=01234"], {"city": "01234"}),
        (["city=5", "days=5"], {"city": "5", "days": 5}),
        (["city="], {"city": ""}),
        (["city=a=b"], {"city": "a=b"}),
        (["ratio=1", "exact=true"], {"ratio": 1, "exact": True}),
        (["unit=F"], {"unit": "F"}),
        (["unit=1"], {"unit": 1}),
        (["tags=a", "tags=5"], {"tags": ["a", "5"]}),
        (['tags=["a","b"]', "tags=c"], {"tags": ["a", "b", "c"]}),
        (["sizes=1", "sizes=2"], {"sizes": [1, 2]}),
        (["limit=3"], {"limit": 3}),
        (["limit=null", "note=null"], {"limit": None, "note": None}),
        (["note=5"], {"note": "5"}),
        (["place.lat=1.5", "place.name=3"], {"place": {"lat": 1.5, "name": "3"}}),
        (['place={"lat":1}'], {"place": {"lat": 1}}),
        (["any=3"], {"any": 3}),
        (["any=text"], {"any": "text"}),
        (["any=[1]"], {"any": [1]}),
        (["a.b=1"], {"a.b": 1}),
        (["version=2"], {"version": "2"}),
        (['{"cty": 1, "days": "x"}', "city=a"], {"cty": 1, "days": "x", "city": "a"}),
    ],
    ids=str,
)
def test_words_get_the_types_of_the_schema(words: list[str], expected: dict[str, Any]) -> None:
    assert arguments_of(SCHEMA, words) == expected


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("days=x", "days=x: not an integer"),
        ("days=1.5", "days=1.5: not an integer"),
        ("ratio=NaN", "ratio=NaN: not a number"),
        ("exact=yes", "exact=yes: not a boolean (use true or false)"),
        ("unit=K", 'unit=K: not one of "C" | "F" | 1'),
        ("sizes=a", "sizes=a: not an integer"),
        ("limit=x", "limit=x: not an integer or null"),
        ("place=x", "place=x: not an object"),
        ("cty=Rome", "cty: no such argument (did you mean city?"),
        ("place.lt=1", "place.lt: no such argument (did you mean lat?"),
        ("city", "city: not an argument"),
        ("{city", "not JSON: "),
    ],
)
def test_a_word_that_the_schema_refuses_is_an_error(word: str, problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        arguments_of(SCHEMA, [word])
    assert str(raised.value).startswith(problem)


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        {},
        {"type": "object"},
        {"properties": {"a": {}}, "additionalProperties": True},
        {"properties": {"a": {}}, "additionalProperties": {}},
        {"properties": {"a": {}}, "patternProperties": {"^x": {}}},
    ],
    ids=str,
)
def test_other_arguments_are_sent_if_the_schema_allows_them(schema: Any) -> None:
    assert arguments_of(schema, ["x=1"]) == {"x": 1}


def test_the_value_of_other_arguments_has_the_type_that_the_schema_gives_them() -> None:
    assert arguments_of({"additionalProperties": {"type": "string"}}, ["x=1"]) == {"x": "1"}


def test_a_schema_that_refers_to_itself_is_read() -> None:
    schema = {"properties": {"a": {"$ref": "#/properties/a"}}, "anyOf": [{"$ref": "#"}]}

    assert arguments_of(schema, ["a=1"]) == {"a": 1}


def test_missing_arguments_have_their_type_and_description() -> None:
    assert missing_arguments(SCHEMA, {"city": "Rome"}) == [("place", "object", "Where.")]
    assert not missing_arguments(None, {})
