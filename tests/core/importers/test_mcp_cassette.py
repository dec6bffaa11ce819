"""Cassettes of mcp-cassette."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.importers.base import ImportedSession
from mcpspy.core.importers.mcp_cassette import sessions
from mcpspy.errors import UsageError
from tests.core.importers.reading import entries, frames


def cassette(*messages: dict[str, Any], **fields: Any) -> ImportedSession:
    document = {"format_version": 3, "recorded_at": "2026-11-21T08:00:10Z", **fields, "messages": messages}
    (session,) = sessions(json.dumps(document, indent=2).encode())
    return session


def said(at: int, sender: str, payload: Any, **more: Any) -> dict[str, Any]:
    return {"seq": 0, "t_offset_ms": at, "sender": sender, "kind": "request", "payload": payload, **more}


def test_messages_have_their_times_and_it_began_before_it_was_saved() -> None:
    session = cassette(said(500, "client", {"a": [1.0]}), said(2500, "server", "DEBUG \u00e9"))
    assert frames(session) == [
        (0.0, "client", b'{"a":[1.0]}'.replace(b" ", b"")),
        (2.0, "server", "DEBUG é".encode()),
    ]
    assert session.started == 1795248008.0
    assert (session.transport, session.upstream) == ("stdio", None)


def test_over_http_an_exchange_has_its_number_and_the_session_is_one_stream() -> None:
    session = cassette(
        said(0, "client", {}, exchange=0),
        said(1, "server", {}, exchange=0, channel="post"),
        transport="http",
        server_url="http://h/mcp",
        server_info={"name": "peer", "version": "1"},
    )
    frame, answer, _ = entries(session)
    assert [(getattr(each, "stream", 0), getattr(each, "http", 0)) for each in (frame, answer)] == [
        ("1", 1)
    ] * 2
    assert (session.transport, session.upstream, session.name) == ("http", "http://h/mcp", "peer")


def test_redacted_messages_are_counted() -> None:
    assert cassette(said(0, "client", {}, redacted=True)).changed == [
        "already redacted in the file: 1 message"
    ]


@pytest.mark.parametrize("version", [0, 4, "3", None, True])
def test_another_version_is_refused(version: Any) -> None:
    with pytest.raises(UsageError, match=r"^unsupported mcp-cassette format '.*' .mcpspy reads 1 to 3"):
        cassette(format_version=version)
