"""Drift of a server's tools over many sessions."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.analysis.diff import ChangeSeverity
from mcpspy.analysis.drift import CallOutcomes, ListedPage, ToolDefinition, ToolDrift, definitions, drift


def listed(
    session: str, name: str = "echo", schema: Any = None, *, client: str = "c 1", time: str = ""
) -> ToolDefinition:
    """Return a row; the version of the server is the schema's text, so that it changes with it."""
    if schema is None:
        return ToolDefinition(session, time or f"day {session}", client, "", name, None, None)
    text = json.dumps({"name": name, "inputSchema": schema})
    return ToolDefinition(session, time or f"day {session}", client, text[-3:], name, text, text)


OPEN = {"type": "object"}
STRICT = {"type": "object", "required": ["x"], "properties": {"x": {}}}


def summary(found: list[ToolDrift]) -> list[tuple[str, str, str]]:
    return [(each.tool, str(each.severity), each.time) for each in found]


def test_tools_that_stay_the_same_have_no_drift() -> None:
    assert drift([listed("1", schema=OPEN), listed("2", schema=OPEN)], {}) == []


def test_a_new_required_argument_is_breaking() -> None:
    (change,) = drift([listed("1", schema=OPEN), listed("2", schema=STRICT)], {})

    assert change.severity is ChangeSeverity.BREAKING
    assert (change.tool, change.time, change.session) == ("echo", "day 2", "2")
    assert change.changes[0].pointer.startswith("/inputSchema")


def test_a_lost_tool_is_breaking_and_a_new_one_is_a_note() -> None:
    rows = [listed("1", "a", OPEN), listed("1", "b", OPEN), listed("2", "a", OPEN), listed("2", "c", OPEN)]

    assert summary(drift(rows, {})) == [("b", "breaking", "day 2"), ("c", "note", "day 2")]


def test_the_same_change_met_by_two_clients_is_one_change() -> None:
    rows = [
        listed("1", schema=OPEN, client="a 1"),
        listed("2", schema=OPEN, client="b 1"),
        listed("3", schema=STRICT, client="a 1"),
        listed("4", schema=STRICT, client="b 1"),
    ]
    (change,) = drift(rows, {})

    assert change.clients == {"a 1": "day 3", "b 1": "day 4"}


def test_clients_that_are_shown_different_tools_make_no_drift() -> None:
    rows = [
        listed(str(number), name, OPEN, client=client)
        for number in range(2)
        for client, name in (("a 1", "x"), ("b 1", "y"))
    ]

    assert drift(rows, {}) == []


def test_a_change_within_a_session_is_found() -> None:
    rows = [listed("1", schema=OPEN, time="10:00"), listed("1", schema=STRICT, time="11:00")]

    assert summary(drift(rows, {})) == [("echo", "breaking", "11:00")]


def test_a_tool_that_disappears_within_a_session_is_lost() -> None:
    rows = [
        listed("1", "a", OPEN, time="10:00"),
        listed("1", "b", OPEN, time="10:00"),
        listed("1", "a", time="11:00"),
    ]

    assert [each.tool for each in drift(rows, {})] == ["a"]


def test_a_definition_with_a_lone_surrogate_or_a_long_integer_is_compared() -> None:
    texts = [
        '{"name":"echo","title":"\\ud800"}',
        '{"name":"echo","inputSchema":{"minimum":123456789012345678901}}',
    ]
    rows = [
        ToolDefinition(str(at), f"day {at}", "c", "", "echo", text, text) for at, text in enumerate(texts)
    ]

    assert [each.tool for each in drift(rows, {})] == ["echo"]


def test_calls_count_before_and_after_by_the_definition_of_their_session() -> None:
    rows = [listed("1", schema=OPEN), listed("2", schema=OPEN), listed("3", schema=STRICT)]
    calls = {
        ("1", "echo"): CallOutcomes(10, 1),
        ("2", "echo"): CallOutcomes(10, 0),
        ("3", "echo"): CallOutcomes(4, 3),
    }
    (change,) = drift(rows, calls)

    assert (change.before, change.after) == (CallOutcomes(20, 1), CallOutcomes(4, 3))


def page(
    session: str, *skills: dict[str, Any], cursor: str | None = None, following: str | None = None
) -> ListedPage:
    """Return a page of `skills/list`."""
    params = {} if cursor is None else {"cursor": cursor}
    result = {"skills": list(skills)} | ({} if following is None else {"nextCursor": following})
    request, response = json.dumps({"params": params}), json.dumps({"result": result})
    return ListedPage(session, f"day {session}", "c 1", "1.0", None, request, response)


def skill(uri: str, digest: str = "0") -> dict[str, Any]:
    return {
        "uri": uri,
        "frontmatter": {"name": "a"},
        "resources": [{"uri": uri, "digest": digest, "size": 1}],
    }


def test_a_changed_file_of_a_skill_is_a_drift_and_a_skill_that_is_gone_is_breaking() -> None:
    pages = [
        page("1", skill("skill://a"), following="2"),
        page("1", skill("skill://b"), cursor="2"),
        page("2", skill("skill://a", "1")),
    ]
    found = drift(definitions("skills/list", pages), {}, method="skills/list")

    assert summary(found) == [("skill://a", "different", "day 2"), ("skill://b", "breaking", "day 2")]
    assert [change.pointer for change in found[0].changes] == ["/resources/0/digest"]
    assert {each.noun for each in found} == {"skill"}


def test_a_page_without_the_ones_before_it_removes_no_skill() -> None:
    pages = [page("1", skill("skill://a")), page("1", skill("skill://b"), cursor="9")]
    assert [row.name for row in definitions("skills/list", pages)] == ["skill://a", "skill://b"]
