"""Headers of changed and injected requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.intercept.http import headers_for_changed_body, headers_for_injected
from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
from mcpspy.core.protocol.message import Result, read_frame
from mcpspy.core.recording.decode import Frame

META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}

NONE = ToolParamHeaders()


def listed(**headers: str) -> ToolParamHeaders:
    """Return the headers after `tools/list` returned `echo`, whose schema maps these arguments to these names."""
    properties = {key: {"type": "string", "x-mcp-header": name} for key, name in headers.items()}
    tool = {"name": "echo", "inputSchema": {"type": "object", "properties": properties}}
    (message,) = read_frame(Frame(0.0, "server", json.dumps({"id": 1, "result": {"tools": [tool]}}).encode()))
    assert isinstance(message, Result)
    tools = ToolParamHeaders()
    tools.learn(message)
    return tools


def body(method: str = "tools/call", name: str = "echo", **arguments: Any) -> bytes:
    params = {"name": name, "arguments": arguments, **META}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def modern(**more: str) -> list[tuple[str, str]]:
    given = {"Mcp-Method": "tools/call", "mcp-name": "echo", "MCP-Protocol-Version": "2026-07-28"}
    return [("Content-Length", "999"), *given.items(), *((k.replace("_", "-"), v) for k, v in more.items())]


def test_the_content_length_is_removed_and_other_headers_stay() -> None:
    headers = [
        ("Host", "x"),
        ("content-LENGTH", "5"),
        ("Mcp-Session-Id", "s"),
        ("MCP-Protocol-Version", "2025-11-25"),
    ]

    assert headers_for_changed_body(headers, body(), b'{"id":1,"method":"x"}', NONE) == [
        headers[0],
        *headers[2:],
    ]
    assert headers_for_changed_body(headers, b"[]", b"[1]", NONE) == [headers[0], *headers[2:]]


def test_headers_that_repeat_the_body_follow_its_changes() -> None:
    after = json.loads(body(name="é"))
    after["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2027"}

    assert headers_for_changed_body(modern(), body(), json.dumps(after).encode(), NONE) == [
        ("Mcp-Method", "tools/call"),
        ("mcp-name", "=?base64?w6k=?="),
        ("MCP-Protocol-Version", "2027"),
    ]
    assert ("Mcp-Name", "echo") in headers_for_changed_body(
        modern()[:2], body(method="tools/list"), body(), NONE
    )
    assert (
        dict(headers_for_changed_body(modern(), body(), body(method="tools/list"), NONE)).get("mcp-name")
        is None
    )


@pytest.mark.parametrize(
    ("value", "before", "after", "said"),
    [
        ("eu", {"region": "eu"}, {"region": "us"}, "us"),
        (
            "eu",
            {"where": {"re_gion": "eu"}, "other": "eu"},
            {"where": {"re_gion": "us"}, "other": "eu"},
            "us",
        ),
        ("eu", {"place": "eu"}, {"place": "us"}, "us"),
        ("eu", {"a": "eu", "b": "eu"}, {"a": "us", "b": "eu"}, "eu"),
        ("7", {"region": 7}, {"region": 8}, "8"),
        ("true", {"region": True}, {"region": False}, "false"),
        ("=?base64?w6k=?=", {"region": "é"}, {"region": "è"}, "=?base64?w6g=?="),
        ("=?base64?ZXU=?=", {"region": "eu"}, {"region": "eu", "x": 1}, "=?base64?ZXU=?="),
        ("eu", {"region": "eu"}, {"x": 1}, None),
        ("eu", {"region": "eu"}, {"region": None}, None),
        ("eu", {"region": "eu"}, {"region": "us\n"}, "=?base64?dXMK?="),
    ],
)
def test_an_argument_that_a_header_repeats_is_repeated_as_it_is_now(
    value: str, before: dict[str, Any], after: dict[str, Any], said: str | None
) -> None:
    headers = headers_for_changed_body(modern(Mcp_Param_Region=value), body(**before), body(**after), NONE)

    assert dict(headers).get("Mcp-Param-Region") == said


@pytest.mark.parametrize(
    ("name", "before", "after", "said"),
    [
        ("echo", {"a": "eu", "b": "eu"}, {"a": "us", "b": "eu"}, ["us"]),
        ("echo", {"region": "eu"}, {"region": "eu", "a": "é"}, ["=?base64?w6k=?="]),
        ("echo", {"a": "eu", "region": "eu"}, {"region": "eu"}, []),
        ("other", {"a": "eu"}, {"a": "eu"}, []),
    ],
)
def test_headers_of_a_listed_tool_follow_its_schema(
    name: str, before: dict[str, Any], after: dict[str, Any], said: list[str]
) -> None:
    given = modern(**({"Mcp_Param_Region": "eu"} if "a" in before else {}))
    headers = headers_for_changed_body(given, body(**before), body(name=name, **after), listed(a="Region"))

    assert [value for key, value in headers if key == "Mcp-Param-Region"] == said


def test_an_injected_request_has_the_clients_headers_and_its_own_mcp_headers() -> None:
    client = modern(Mcp_Param_Region="eu", Authorization="token", Last_Event_ID="7")

    assert headers_for_injected(client, body(method="prompts/get", name="p"), NONE) == [
        ("Authorization", "token"),
        ("Mcp-Method", "prompts/get"),
        ("Mcp-Name", "p"),
        ("MCP-Protocol-Version", "2026-07-28"),
    ]
    assert headers_for_injected(client, body(a="é"), listed(a="Region"))[1:] == [
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "echo"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Param-Region", "=?base64?w6k=?="),
    ]
    legacy = [("Mcp-Session-Id", "s"), ("mcp-protocol-version", "2025-11-25")]
    assert headers_for_injected(legacy, b'{"jsonrpc":"2.0","id":1,"method":"ping"}', NONE) == legacy
    assert headers_for_injected(legacy, b'{"jsonrpc":"2.0","method":"notifications/x"}', NONE) == legacy
