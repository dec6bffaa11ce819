"""The form of a call: its texts, the JSON that they make, and what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.model.call_form import (
    CallForm,
    CallTarget,
    listed_targets,
    targets_of,
    words_of,
)
from mcpspy.ui.model.interface import last_listings
from tests.servers.forms import BOOK
from tests.ui.model.test_interface import Session, tool


def form(schema: Any = BOOK, **item: Any) -> CallForm:
    return CallForm(CallTarget("tools/list", "book", {"name": "book", "inputSchema": schema, **item}))


def test_texts_make_arguments_and_what_is_not_set_is_left_out() -> None:
    made = form()
    for pointer, text in (
        ("/city", "Oslo"),
        ("/nights", "3"),
        ("/breakfast", "false"),
        ("/room", '"double"'),
        ("/guests", '["Ada"]'),
        ("/address/street", "Main 1"),
    ):
        made.set(pointer, text)
    assert made.request() == (
        "tools/call",
        {
            "name": "book",
            "arguments": {
                "city": "Oslo",
                "nights": 3,
                "breakfast": False,
                "room": "double",
                "guests": ["Ada"],
                "address": {"street": "Main 1"},
            },
        },
    )
    assert made.problems().lines == []
    made.set("/nights", "")
    assert "nights" not in made.values()[0]


def test_each_problem_is_at_its_field() -> None:
    made = form()
    for pointer, text in (
        ("/city", "O"),
        ("/nights", "99"),
        ("/breakfast", "maybe"),
        ("/guests", "[1]"),
        ("/address/zip", "0150"),
    ):
        made.set(pointer, text)
    problems = made.problems()
    assert problems.at == {
        "/city": '"O" is shorter than 2 characters',
        "/nights": "99 is greater than the maximum of 14",
        "/breakfast": "maybe is not one of true, false",
        "/room": "required",
        "/guests": '0: 1 is not of type "string"',
        "/address/street": "required",
    }
    assert problems.others == []
    assert problems.has_no_value
    assert [line.partition(":")[0] for line in problems.lines] == [
        *("breakfast", "city", "nights", "room", "guests", "address.street")
    ], "what has no value comes first, then the order of the form"


def test_json_and_fields_are_one_form_and_what_no_field_shows_is_sent_too() -> None:
    made = form()
    arguments = {"city": "", "nights": 3, "colour": "red", "address": {"street": "A", "floor": 2}, "room": 7}
    made.read_json(json.dumps(arguments))
    assert made.texts == {"/nights": "3", "/address/street": "A"}
    assert made.rest == {"city": "", "colour": "red", "address": {"floor": 2}, "room": 7}
    assert made.values()[0] == arguments
    assert json.loads(made.json) == arguments
    made.set("/city", "Rome")
    assert made.values()[0]["city"] == "Rome"


def test_an_object_that_is_empty_without_its_fields_is_not_sent() -> None:
    made = form()
    made.read_json('{"address": {"street": "A"}}')
    made.set("/address/street", "")
    assert made.values()[0] == {}


def test_an_object_replaces_what_json_has_in_its_place() -> None:
    made = form()
    made.read_json('{"address": 5}')
    made.set("/address/street", "A")
    assert made.values()[0] == {"address": {"street": "A"}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON: line 1, column 2: Expecting property name enclosed in double quotes"),
        ("[]", "the arguments are not an object"),
        ('{"a": NaN}', "not JSON: NaN is not allowed"),
        ("[" * 100_000, "not JSON: nested too deeply"),
        ('{"a":' + "[" * 800 + "]" * 800 + "}", "the arguments are nested too deeply"),
    ],
    ids=lambda value: value[:10],
)
def test_json_other_than_an_object_is_refused_and_changes_nothing(text: str, why: str) -> None:
    made = form()
    made.set("/city", "Oslo")
    with pytest.raises(UsageError) as raised:
        made.read_json(text)
    assert str(raised.value).startswith(why)
    assert made.texts["/city"] == "Oslo"


def test_violations_elsewhere_are_listed_without_a_field() -> None:
    made = form({**BOOK, "additionalProperties": False})
    made.read_json('{"city": "Oslo", "room": "single", "colour": 1}')
    assert made.problems().at == {}
    assert made.problems().others == [
        "Additional properties are not allowed ('colour' was unexpected)",
    ]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "thing"}, "not checked: the schema of the tool is invalid: "),
        (None, "not checked: the schema of the tool is invalid: "),
        (
            {"$ref": "https://example.com/x"},
            "not checked: the schema is too large, or refers to other documents",
        ),
    ],
    ids=str,
)
def test_a_schema_that_cannot_be_used_is_reported_and_the_call_is_still_possible(
    schema: Any, why: str
) -> None:
    made = form(schema)
    made.read_json('{"a": 1}')
    (line,) = made.problems().others
    assert line.startswith(why)
    assert not made.problems().has_no_value


def test_a_long_message_is_cut() -> None:
    made = form({"properties": {"a": {"enum": ["x"]}}})
    made.read_json(json.dumps({"a": "y" * 10_000}))
    assert len(made.problems().at["/a"]) <= 200


def test_needed_fields_begin_with_their_default_or_only_value() -> None:
    made = form(
        {
            "properties": {
                "a": {"type": "integer", "default": 3},
                "b": {"const": "v1"},
                "c": {"type": "integer", "default": 4},
                "d": {"type": "string", "default": 5},
            },
            "required": ["a", "b", "d"],
        }
    )
    assert made.texts == {"/a": "3", "/b": '"v1"'}


def test_words_of_a_field_name_type_bounds_default_and_need() -> None:
    words = [words_of(field) for field in form().fields]
    assert words[:3] == [
        ["string", "at least 2 characters", "required"],
        ["integer", "1 to 14", "default 2"],
        ["boolean"],
    ]


def test_annotations_are_words_and_a_required_task_is_requested() -> None:
    hints = {"destructiveHint": True, "readOnlyHint": False, "idempotentHint": "yes"}
    made = form(annotations={**hints, "title": "Book it"}, execution={"taskSupport": "required"})
    assert made.target.hints == ["changes its environment", "destructive"]
    assert made.target.is_destructive
    assert made.target.title == "Book it"
    assert made.request()[1]["task"] == {"ttl": 3_600_000}


def test_prompts_resources_and_templates_have_forms_too() -> None:
    listed: dict[str, list[Any]] = {
        "prompts/list": [{"name": "greet", "arguments": [{"name": "who", "required": True}, {"name": 5}, 7]}],
        "resources/list": [{"uri": "note://1", "name": "first"}, {"name": "no uri"}, None],
        "resources/templates/list": [{"uriTemplate": "note://{name}{?part}"}],
        "tools/list": [{"name": "t"}, {"name": "t", "description": "again"}],
    }
    forms = {each.noun: CallForm(each) for each in targets_of(listed)}
    assert [*forms] == ["tool", "prompt", "resource", "resource template"]
    forms["prompt"].set("/who", "Ada")
    assert forms["prompt"].request() == ("prompts/get", {"name": "greet", "arguments": {"who": "Ada"}})
    assert forms["resource"].request() == ("resources/read", {"uri": "note://1"})
    assert forms["resource template"].problems().at == {"/name": "required"}
    forms["resource template"].set("/name", "a b")
    assert forms["resource template"].request() == ("resources/read", {"uri": "note://a%20b"})


async def test_the_last_listing_of_a_session_has_all_pages() -> None:
    session = Session()
    session.list(tool("old"))
    session.list(tool("one"), more="2")
    session.list(tool("two"), cursor="2")
    targets, notes = listed_targets(await last_listings(session.log))
    assert ([each.key for each in targets], notes) == (["one", "two"], [])


async def test_a_listing_without_its_last_page_is_reported() -> None:
    session = Session()
    session.list(tool("one"), more="2")
    _, notes = listed_targets(await last_listings(session.log))
    assert notes == ["tools/list is not complete: further pages were not requested"]
