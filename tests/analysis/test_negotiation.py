"""The extensions of a session."""

from __future__ import annotations

from typing import Any

from mcpspy.analysis.negotiation import negotiated

TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
SKILLS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/skills": {}, "com.example/x": {}}}


def test_each_extension_has_the_sides_that_declared_it_and_its_methods() -> None:
    skills, unknown, tasks = negotiated(TASKS, SKILLS, ["skills/list", "tools/list", "tasks/get"])

    assert (skills.title, skills.by_client, skills.by_server) == ("Skills", False, True)
    assert skills.used == ("skills/list",)
    assert skills.status == "declared by server, used"
    assert (unknown.title, unknown.state, unknown.status) == (
        "com.example/x",
        "unknown",
        "declared by server",
    )
    assert tasks.status == "declared by client, but used"


def test_an_extension_that_is_used_without_a_declaration_is_listed() -> None:
    (skills,) = negotiated({}, None, ["skills/get"])

    assert skills.status == "declared by neither side, but used"


def test_the_tasks_of_the_core_are_not_listed() -> None:
    assert negotiated({}, {"tasks": {}}, ["tasks/get", "tasks/cancel"]) == []
