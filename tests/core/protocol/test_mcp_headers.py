"""Headers that repeat parts of a request's body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.protocol.mcp_headers import decoded, encoded, headers, mismatch
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame


def request(method: str = "tools/call", **params: Any) -> Request:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    (message,) = read_frame(Frame(0.0, "client", json.dumps(body).encode()))
    assert isinstance(message, Request)
    return message


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "echo"}, "echo"),
        ("prompts/get", {"name": "greet"}, "greet"),
        ("resources/read", {"uri": "file:///a"}, "file:///a"),
        ("tasks/get", {"taskId": "t1"}, "t1"),
        ("tools/list", {"cursor": "2"}, None),
    ],
)
def test_headers_have_method_name_and_revision(method: str, params: dict[str, str], name: str | None) -> None:
    expected_headers = {"Mcp-Method": method, "MCP-Protocol-Version": "2026-07-28"}
    if name is not None:
        expected_headers["Mcp-Name"] = name
    assert headers(request(method, **params)) == expected_headers


def test_text_that_is_not_ascii_is_encoded_as_in_the_specification() -> None:
    assert headers(request(name="héllo"))["Mcp-Name"] == "=?base64?aMOpbGxv?="


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_value_survives_a_header(value: str) -> None:
    sent = encoded(value)
    assert sent.isascii()
    assert sent.isprintable()
    assert sent == sent.strip()
    assert decoded(sent) == value


@pytest.mark.parametrize("value", ["=?base64?%%%?=", "=?base64?/w==?=", "=?base64?a?=", "plain"])
def test_a_value_that_only_looks_encoded_is_unchanged(value: str) -> None:
    assert decoded(f" {value} ") == value


def test_equivalent_headers_do_not_mismatch() -> None:
    call = request(name="héllo")
    assert mismatch(headers(call), call) is None
    assert mismatch({**headers(call), "Mcp-Name": " =?base64?aMOpbGxv?= "}, call) is None


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"])
def test_a_missing_or_different_header_is_reported(name: str) -> None:
    call = request(name="echo")
    given = headers(call)
    del given[name]
    assert mismatch(given, call) == f"{name} is missing"
    value = headers(call)[name]
    assert mismatch({**given, name: "x"}, call) == f"{name} is x, but the body has {value}"
