"""Comparison of a server's lists by name."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from mcpspy.analysis.diff.listings import by_name, compare_listed
from mcpspy.analysis.diff.model import ChangeSeverity
from mcpspy.analysis.diff.volatile import Tolerance
from mcpspy.core.protocol.listing import LISTINGS

BREAKING, DIFFERENT, NOTE = ChangeSeverity

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}

TOOL = {
    "name": "x",
    "description": "d",
    "inputSchema": SCHEMA,
    "annotations": {"readOnlyHint": True},
    "execution": {"taskSupport": "optional"},
}
PROMPT = {"name": "x", "arguments": [{"name": "a", "required": True}, {"name": "b"}]}
RESOURCE = {"uri": "x", "name": "n", "mimeType": "text/plain"}


def weights(method: str, old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, ChangeSeverity]]:
    found = compare_listed(LISTINGS[method], {"x": old}, {"x": new}, tolerance=Tolerance.NONE)
    return [("/".join(judged.tokens[1:]), judged.severity) for judged in found]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"description": "other"}, [("description", NOTE)]),
        ({"title": "T"}, [("title", NOTE)]),
        ({"icons": []}, [("icons", NOTE)]),
        ({"annotations": {"readOnlyHint": False}}, [("annotations/readOnlyHint", DIFFERENT)]),
        ({"annotations": {"readOnlyHint": True, "title": "T"}}, [("annotations/title", NOTE)]),
        ({"execution": {"taskSupport": "required"}}, [("execution/taskSupport", BREAKING)]),
        ({"execution": {"taskSupport": "forbidden"}}, [("execution/taskSupport", DIFFERENT)]),
        ({"inputSchema": {**SCHEMA, "required": ["a"]}}, [("inputSchema/required", BREAKING)]),
        ({"outputSchema": SCHEMA}, [("outputSchema", NOTE)]),
        ({"_meta": {"v": 2}}, [("_meta", NOTE)]),
        ({"odd": 1}, [("odd", DIFFERENT)]),
    ],
    ids=str,
)
def test_a_change_of_a_tool_has_a_severity(
    change: dict[str, Any], expected: list[tuple[str, ChangeSeverity]]
) -> None:
    assert weights("tools/list", TOOL, {**TOOL, **change}) == expected


REFUSED = "a call that is not a task is refused now"
NO_TASKS = "a call as a task is refused now"


@pytest.mark.parametrize(
    ("old", "new", "severity", "why"),
    [
        (None, {"taskSupport": "required"}, BREAKING, REFUSED),
        ({}, {"taskSupport": "required"}, BREAKING, REFUSED),
        ({"taskSupport": "forbidden"}, {"taskSupport": "required"}, BREAKING, REFUSED),
        ({"taskSupport": "optional"}, {"taskSupport": "required"}, BREAKING, REFUSED),
        ({"taskSupport": "required"}, None, DIFFERENT, NO_TASKS),
        ({"taskSupport": "required"}, {}, DIFFERENT, NO_TASKS),
        ({"taskSupport": "optional"}, None, DIFFERENT, NO_TASKS),
        ({"taskSupport": "required"}, {"taskSupport": "optional"}, DIFFERENT, ""),
        (None, {"taskSupport": "optional"}, DIFFERENT, 'absent means "forbidden"'),
        (None, "odd", DIFFERENT, ""),
        ({"taskSupport": []}, {"taskSupport": {}}, DIFFERENT, ""),
    ],
    ids=str,
)
def test_a_change_of_the_task_support_has_a_severity_and_a_reason(
    old: Any, new: Any, severity: ChangeSeverity, why: str
) -> None:
    tools = [{"name": "x"} | ({} if each is None else {"execution": each}) for each in (old, new)]

    (found,) = compare_listed(
        LISTINGS["tools/list"], {"x": tools[0]}, {"x": tools[1]}, tolerance=Tolerance.NONE
    )

    assert (found.severity, found.why) == (severity, why)


def test_the_severity_of_a_removed_schema_depends_on_its_reader() -> None:
    bare = {"name": "x"}

    assert weights("tools/list", {**bare, "outputSchema": SCHEMA}, bare) == [("outputSchema", BREAKING)]
    assert weights("tools/list", {**bare, "inputSchema": SCHEMA}, bare) == [("inputSchema", NOTE)]
    assert weights("tools/list", bare, {**bare, "inputSchema": SCHEMA}) == [("inputSchema", BREAKING)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([{"name": "b"}, {"name": "a", "required": True}], []),
        ([{"name": "b"}], [("arguments/a", BREAKING)]),
        ([*PROMPT["arguments"], {"name": "c"}], [("arguments/c", NOTE)]),
        ([*PROMPT["arguments"], {"name": "c", "required": True}], [("arguments/c", BREAKING)]),
        (
            [{"name": "a"}, {"name": "b", "required": True, "description": "d"}],
            [
                ("arguments/a/required", NOTE),
                ("arguments/b/description", NOTE),
                ("arguments/b/required", BREAKING),
            ],
        ),
        ("odd", [("arguments", DIFFERENT)]),
    ],
    ids=str,
)
def test_a_change_of_the_arguments_of_a_prompt_has_a_severity(
    arguments: Any, expected: list[tuple[str, ChangeSeverity]]
) -> None:
    assert weights("prompts/list", PROMPT, {**PROMPT, "arguments": arguments}) == expected


def test_a_resource_is_identified_by_its_uri_and_not_its_name() -> None:
    assert weights("resources/list", RESOURCE, {**RESOURCE, "name": "m"}) == [("name", NOTE)]
    assert weights("resources/list", RESOURCE, {**RESOURCE, "mimeType": "text/html"}) == [
        ("mimeType", DIFFERENT)
    ]


@pytest.mark.parametrize("method", sorted(LISTINGS))
def test_a_removed_item_is_breaking_and_an_added_item_is_a_note(method: str) -> None:
    listing = LISTINGS[method]

    (lost,) = compare_listed(listing, {"x": {}}, {}, tolerance=Tolerance.NONE)
    (gained,) = compare_listed(listing, {}, {"x": {}}, tolerance=Tolerance.NONE)

    assert (lost.severity, lost.why) == (BREAKING, f"lost the {listing.noun} x")
    assert (gained.severity, gained.why) == (NOTE, f"gained the {listing.noun} x")


def test_items_without_names_are_not_compared_by_name() -> None:
    assert by_name([{"name": "a"}, {"name": "a"}], "name") == {"a": {"name": "a"}, "a'": {"name": "a"}}
    assert by_name([{"name": 1}], "name") is None
    assert by_name([1], "name") is None
    assert by_name({"a": 1}, "name") is None
    assert by_name([], "name") == {}


def test_an_item_that_is_ignored_in_one_session_is_not_compared() -> None:
    old: dict[str, Any] = {"x": None}

    assert [*compare_listed(LISTINGS["tools/list"], old, {"x": TOOL}, tolerance=Tolerance.NONE)] == []


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("execution", {"taskSupport": "forbidden"}),
        ("execution", {}),
        ("annotations", {"readOnlyHint": False, "destructiveHint": True}),
    ],
)
def test_writing_a_default_down_changes_nothing(member: str, value: object) -> None:
    assert weights("tools/list", {"name": "x"}, {"name": "x", member: value}) == []
    assert weights("tools/list", {"name": "x", member: value}, {"name": "x"}) == []


@pytest.mark.parametrize(("old", "new"), [({}, {"openWorldHint": False}), ({"openWorldHint": False}, {})])
def test_a_default_is_named_and_is_not_a_value_of_the_listing(old: object, new: object) -> None:
    (found,) = compare_listed(
        LISTINGS["tools/list"],
        {"x": {"name": "x", "annotations": old}},
        {"x": {"name": "x", "annotations": new}},
        tolerance=Tolerance.NONE,
    )

    assert (found.severity, found.why) == (DIFFERENT, "absent means true")
    assert (found.old, found.new) == ((UNSET, False) if old == {} else (False, UNSET))
