"""The headers of a request that has another body than it came with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.intercept.heads import for_body, of_ours

META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def body(method: str = "tools/call", name: str = "echo", **arguments: Any) -> bytes:
    params = {"name": name, "arguments": arguments, **META}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def modern(**more: str) -> list[tuple[str, str]]:
    given = {"Mcp-Method": "tools/call", "mcp-name": "echo", "MCP-Protocol-Version": "2026-07-28"}
    return [("Content-Length", "999"), *given.items(), *((k.replace("_", "-"), v) for k, v in more.items())]


def test_the_length_is_left_to_whoever_sends_it_and_the_rest_stays() -> None:
    headers = [
        ("Host", "x"),
        ("content-LENGTH", "5"),
        ("Mcp-Session-Id", "s"),
        ("MCP-Protocol-Version", "2025-11-25"),
    ]

    assert for_body(headers, body(), b'{"id":1,"method":"x"}') == [headers[0], *headers[2:]]
    assert for_body(headers, b"[]", b"[1]") == [headers[0], *headers[2:]]


def test_what_is_said_twice_is_said_alike() -> None:
    after = json.loads(body(name="é"))
    after["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2027"}

    assert for_body(modern(), body(), json.dumps(after).encode()) == [
        ("Mcp-Method", "tools/call"),
        ("mcp-name", "=?base64?w6k=?="),
        ("MCP-Protocol-Version", "2027"),
    ]
    assert ("Mcp-Name", "echo") in for_body(modern()[:2], body(method="tools/list"), body())
    assert dict(for_body(modern(), body(), body(method="tools/list"))).get("mcp-name") is None


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
    headers = for_body(modern(Mcp_Param_Region=value), body(**before), body(**after))

    assert dict(headers).get("Mcp-Param-Region") == said


def test_a_request_of_ours_comes_as_the_client_does_and_says_what_it_is() -> None:
    client = modern(Mcp_Param_Region="eu", Authorization="token", Last_Event_ID="7")

    assert of_ours(client, body(method="prompts/get", name="p")) == [
        ("Authorization", "token"),
        ("Mcp-Method", "prompts/get"),
        ("Mcp-Name", "p"),
        ("MCP-Protocol-Version", "2026-07-28"),
    ]
    legacy = [("Mcp-Session-Id", "s"), ("mcp-protocol-version", "2025-11-25")]
    assert of_ours(legacy, b'{"jsonrpc":"2.0","id":1,"method":"ping"}') == legacy
    assert of_ours(legacy, b'{"jsonrpc":"2.0","method":"notifications/x"}') == legacy
