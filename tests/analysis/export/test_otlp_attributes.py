"""Span attributes in the names of the semantic conventions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcpspy.analysis.export.otlp_spans import (
    StreamAttributes,
    error_attributes,
    message_attributes,
    span_name,
    transport_attributes,
)
from mcpspy.core.protocol.message import Notification, Request, read_frame
from tests.analysis.export.sessions import HEADER, call, client, result, server, session_of

VERSION = b'"io.modelcontextprotocol/protocolVersion"'

OF = StreamAttributes("2025-11-25", "s1")


def message(text: bytes) -> Request | Notification:
    (found,) = read_frame(client(0.1, b'{"jsonrpc":"2.0",%b}' % text))
    assert isinstance(found, Request | Notification)
    return found


@pytest.mark.parametrize(
    ("text", "name", "more"),
    [
        (
            b'"id":"a","method":"prompts/get","params":{"name":"greet"}',
            "prompts/get greet",
            {"gen_ai.prompt.name": "greet", "jsonrpc.request.id": "a"},
        ),
        (
            b'"id":7,"method":"resources/read","params":{"uri":"file:///x"}',
            "resources/read",
            {"mcp.resource.uri": "file:///x", "jsonrpc.request.id": "7"},
        ),
        (
            b'"method":"notifications/resources/updated","params":{"uri":"file:///x"}',
            "notifications/resources/updated",
            {"mcp.resource.uri": "file:///x"},
        ),
        (b'"id":null,"method":"ping"', "ping", {}),
        (
            b'"id":1.0,"method":"tools/call","params":{"name":"t","_meta":{%b:"2026-07-28"}}' % VERSION,
            "tools/call t",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "t",
                "jsonrpc.request.id": "1.0",
                "mcp.protocol.version": "2026-07-28",
            },
        ),
    ],
)
def test_a_message_has_the_attributes_of_the_conventions(
    text: bytes, name: str, more: dict[str, str]
) -> None:
    found = message(text)
    values = {key: value for key, value in message_attributes(found, OF).items() if value is not None}

    assert span_name(found) == name
    assert values == {
        "mcp.method.name": found.method,
        "mcp.protocol.version": "2025-11-25",
        "mcp.session.id": "s1",
        **more,
    }


def test_only_spans_of_the_client_have_the_address() -> None:
    header = replace(HEADER, transport="http", upstream="https://example.test/mcp")

    assert transport_attributes(HEADER, "client") == {"network.transport": "pipe"}
    assert transport_attributes(header, "client") == {
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "server.address": "example.test",
        "server.port": 443,
    }
    assert transport_attributes(header, "server")["server.address"] is None
    assert transport_attributes(replace(header, upstream="http://[no"), "client")["server.address"] is None


def test_an_error_without_a_code_has_the_type_other() -> None:
    (exchange,) = session_of(call(0.1), server(0.2, b'{"jsonrpc":"2.0","id":1,"error":"no"}')).exchanges()
    (good,) = session_of(call(0.1), result(0.2)).exchanges()

    assert error_attributes(exchange) == ({"error.type": "_OTHER", "rpc.response.status_code": None}, "no")
    assert error_attributes(good) == ({}, None)
