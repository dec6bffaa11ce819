"""Requests that are recognised as MCP, and requests that are not."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from mcpspy.core.protocol.endpoint_detection import DetectionVerdict, by_body, by_head

BOTH = "application/json, text/event-stream"


@pytest.mark.parametrize(
    ("method", "target", "headers", "verdict"),
    [
        ("POST", "/mcp", {"content-type": "application/json", "accept": BOTH}, DetectionVerdict.BODY),
        ("POST", "/mcp", {"content-type": "Application/JSON; charset=utf-8"}, DetectionVerdict.BODY),
        ("POST", "/mcp", {"content-type": "application/json", "mcp-session-id": "7"}, DetectionVerdict.MCP),
        (
            "POST",
            "/mcp",
            {"content-type": "application/json", "Mcp-Method": "tools/list"},
            DetectionVerdict.MCP,
        ),
        (
            "GET",
            "/mcp",
            {"accept": "text/event-stream", "MCP-Protocol-Version": "2025-06-18"},
            DetectionVerdict.MCP,
        ),
        ("GET", "/mcp", {"accept": "text/event-stream", "Mcp-Session-Id": "7"}, DetectionVerdict.MCP),
        ("DELETE", "/mcp", {"Mcp-Session-Id": "7"}, DetectionVerdict.MCP),
        ("GET", "/sse", {"accept": "text/event-stream"}, DetectionVerdict.ANSWER),
        # From an MCP client, but not MCP messages: its registration contains secrets.
        (
            "POST",
            "/register",
            {"content-type": "application/json", "MCP-Protocol-Version": "x"},
            DetectionVerdict.BODY,
        ),
        ("POST", "/token", {"content-type": "application/x-www-form-urlencoded"}, DetectionVerdict.OTHER),
        (
            "GET",
            "/.well-known/oauth-protected-resource/mcp",
            {"MCP-Protocol-Version": "x"},
            DetectionVerdict.OTHER,
        ),
        ("GET", "/", {"accept": "text/html,text/event-stream"}, DetectionVerdict.OTHER),
        ("GET", "/", {}, DetectionVerdict.OTHER),
        ("POST", "/", {}, DetectionVerdict.OTHER),
        ("PUT", "/mcp", {"content-type": "application/json"}, DetectionVerdict.OTHER),
    ],
)
def test_mcp_is_detected_by_the_request_head(
    method: str, target: str, headers: dict[str, str], verdict: DetectionVerdict
) -> None:
    assert by_head(method, target, CIMultiDict(headers)) is verdict


@pytest.mark.parametrize(
    ("body", "is_mcp"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', True),
        (b'{"method":"notifications/initialized","jsonrpc":"2.0"}', True),
        (b'[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]', True),
        (b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}', False),
        (b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}', False),
        (b'{"id":1,"method":"initialize"}', False),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', False),
        (b'{"client_name":"x","redirect_uris":[]}', False),
        (b'{"prompt":"{\\"jsonrpc\\":\\"2.0\\",\\"method\\":\\"ping\\"}"}', False),
        (b'{"jsonrpc"', False),
        (b"", False),
        (b"\xff", False),
    ],
)
def test_mcp_is_detected_by_a_method_in_the_body(body: bytes, is_mcp: bool) -> None:
    assert by_body(body) is is_mcp
