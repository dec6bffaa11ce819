"""Exports of the Inspector's Network tab."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.importers.inspector_network import sessions
from mcpspy.errors import UsageError
from tests.core.importers.reading import entries, frames, notes


def entry(**fields: Any) -> dict[str, Any]:
    return {
        "timestamp": "2026-11-21T08:00:00.000Z",
        "method": "POST",
        "url": "http://h/mcp",
        "requestHeaders": {"content-type": "application/json"},
        "requestBody": '{"jsonrpc":"2.0","method":"x"}',
        "responseStatus": 202,
        "responseHeaders": {},
        "responseBody": "",
        "duration": 20,
        "category": "transport",
        **fields,
    }


def stream(**fields: Any) -> dict[str, Any]:
    told = {"content-type": "text/event-stream"}
    return entry(method="GET", requestBody=None, responseBody=None, responseHeaders=told, stream=fields)


def test_a_request_is_its_message_and_its_head() -> None:
    (session,) = sessions(json.dumps([entry()]).encode())
    assert frames(session) == [(0.0, "client", b'{"jsonrpc":"2.0","method":"x"}')]
    assert notes(session, "http")[0]["status"] == 202
    assert session.changed == []


def test_an_open_stream_has_no_end_and_counted_events_are_reported() -> None:
    closed = stream(eventCount=0, closedAt="2026-11-21T08:00:09.000Z")
    (session,) = sessions(json.dumps([entry(), stream(eventCount=2), closed]).encode())
    assert [note["http"] for note in notes(session, "http-end")] == [1, 3]
    assert entries(session)[-1].at == 9.0
    assert session.changed == ["left out: 2 events that the Inspector only counted"]


def test_a_failed_request_keeps_its_error() -> None:
    (session,) = sessions(json.dumps([entry(responseStatus=None, error="fetch failed")]).encode())
    assert notes(session, "http")[0]["error"] == "fetch failed"


def test_an_export_without_mcp_requests_is_refused() -> None:
    with pytest.raises(UsageError, match="Network export: none of the 1 requests posts JSON-RPC"):
        sessions(json.dumps([entry(requestBody="grant_type=code")]).encode())
