"""The lines of a note about a server that was restarted."""

from __future__ import annotations

from typing import Any

from mcpspy.analysis.restarts import MOST, changes
from mcpspy.core.restart.listings import ServerHandshake, ServerInterface


def tool(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **members}


def interface(*tools: dict[str, Any], **handshake: Any) -> ServerInterface:
    declared = ServerHandshake(**{"capabilities": {"tools": {}}, "revision": "2025-11-25", **handshake})
    return ServerInterface(declared, {"tools/list": {each["name"]: each for each in tools}})


def test_each_difference_is_a_line_with_its_verdict() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    before = interface(tool("lost"), tool("forecast"), tool("kept", description="a"))
    after = interface(tool("forecast", inputSchema=schema), tool("kept", description="b"), tool("new"))
    found = changes(before, after)
    assert "lost the tool lost (breaking)" in found
    assert "gained the tool new" in found
    assert "tool kept: description changed" in found
    assert any(line.startswith("tool forecast: inputSchema/") and "(breaking)" in line for line in found)
    assert len(found) == len(set(found))


def test_a_changed_handshake_is_part_of_it() -> None:
    after = interface(capabilities={"tools": {}, "prompts": {}}, instructions="Hi", revision="2025-06-18")
    assert changes(interface(), after) == [
        "revision 2025-11-25 became 2025-06-18, and the client keeps the former",
        "gained instructions",
        "capabilities changed",
    ]


def test_a_list_that_one_server_did_not_have_is_not_compared() -> None:
    without = ServerInterface(ServerHandshake({"tools": {}}, revision="2025-11-25"), {})
    assert changes(without, interface(tool("new"))) == []
    assert changes(interface(tool("old")), without) == []


def test_the_number_of_lines_is_limited() -> None:
    after = interface(*(tool(f"t{number}") for number in range(MOST + 5)))
    found = changes(interface(), after)
    assert (len(found), found[-1]) == (MOST + 1, "and 5 other changes")
