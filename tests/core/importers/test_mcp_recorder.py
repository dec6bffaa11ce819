"""Cassettes of mcp-recorder."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.importers.base import ImportedSession
from mcpspy.core.importers.mcp_recorder import sessions
from mcpspy.errors import UsageError
from tests.core.importers.reading import entries, frames


def cassette(*interactions: dict[str, Any], version: Any = "1.0", **metadata: Any) -> ImportedSession:
    about = {"recorded_at": "2026-11-21T08:00:00+00:00", "server_info": None, **metadata}
    document = {"version": version, "metadata": about, "interactions": interactions}
    (session,) = sessions(json.dumps(document, indent=2).encode())
    return session


def request(id: int, latency: int, **more: Any) -> dict[str, Any]:  # noqa: A002 - it is one.
    return {"type": "jsonrpc_request", "request": {"id": id}, "latency_ms": latency, **more}


def test_exchanges_follow_one_another_and_keep_their_duration() -> None:
    session = cassette(request(1, 250, response={"id": 1, "result": {}}), request(2, 1000, response=None))
    assert frames(session) == [
        (0.0, "client", b'{"id": 1}'.replace(b" ", b"")),
        (0.25, "server", b'{"id":1,"result":{}}'),
        (0.25, "client", b'{"id":2}'),
    ]
    assert [getattr(entry, "http", None) for entry in entries(session)] == [1, 1, 2, None]
    assert session.changed == ["without a response in the file: 1 request"]
    assert any("one after the other" in lack for lack in session.lacks)


def test_a_notification_in_place_of_a_response_is_not_a_response() -> None:
    session = cassette(
        request(1, 1, response={"method": "notifications/progress"}), request(2, 1, response=[])
    )
    assert session.messages == 4
    assert session.changed == ["without a response in the file: 2 requests"]


def test_exchanges_without_a_message_and_refused_requests_are_counted() -> None:
    lifecycle = {"type": "lifecycle", "http_method": "DELETE", "http_path": "/mcp", "response_status": 405}
    session = cassette(lifecycle, request(1, 1, response={"id": 1}))
    assert session.messages == 2
    assert session.changed == [
        "left out: 1 exchange without a message (GET, DELETE)",
        "left out: HTTP status 400 or above, 1 time",
    ]


@pytest.mark.parametrize(
    ("url", "command"),
    [
        ("stdio://python -m 'my server'", ["python", "-m", "my server"]),
        ("stdio://python 'x", ["python 'x"]),
        ("stdio:/[REDACTED]", None),
    ],
)
def test_a_stdio_server_has_a_command(url: str, command: list[str] | None) -> None:
    session = cassette(request(1, 1), transport_type="stdio", server_url=url, server_info={"name": "peer"})
    assert (session.transport, session.command, session.upstream, session.name) == (
        "stdio",
        command,
        None,
        "peer",
    )
    assert (session.changed[-1].startswith("left out: the server's command")) == (command is None)


def test_an_http_server_has_an_address() -> None:
    session = cassette(request(1, 1), transport_type="http", server_url="http://h:1")
    assert (session.transport, session.command, session.upstream) == ("http", None, "http://h:1")


@pytest.mark.parametrize("version", ["2.0", None, 11, "01"])
def test_another_version_is_refused(version: Any) -> None:
    with pytest.raises(UsageError, match=r"^unsupported mcp-recorder format .* .mcpspy reads 1"):
        cassette(version=version)


def test_a_message_whose_method_is_not_utf8_counts_as_unanswered() -> None:
    recorded = b'{"version":"1.0","metadata":{"recorded_at":"2026-11-21T08:00:00+00:00"},"interactions":[%b]}'
    pair = b'{"type":"jsonrpc_request","request":{"id":1},"response":{"method":"\xff"},"latency_ms":1}'
    (session,) = sessions(recorded % pair)
    assert session.changed == ["without a response in the file: 1 request"]
