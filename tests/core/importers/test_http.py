"""MCP exchanges among saved HTTP exchanges, with their servers and streams."""

from __future__ import annotations

from typing import Any

from mcpspy.core.importers.base import ImportedSession
from mcpspy.core.importers.http import ImportedExchange, mcp_sessions
from tests.core.importers.reading import entries, frames, notes

ASKED = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'
JSON = ("Content-Type", "application/json; charset=utf-8")
EVENTS = ("content-type", "text/event-stream")


def exchange(at: float, url: str = "http://h:1/mcp", **fields: Any) -> ImportedExchange:
    given = {
        "at": at,
        "head_at": at + 0.25,
        "end_at": at + 0.5,
        "method": "POST",
        "url": url,
        "request": [],
        "request_body": ASKED,
        "status": 200,
        "response": [JSON],
        "response_body": ANSWER,
    }
    return ImportedExchange(**{**given, **fields})


def only(*exchanges: ImportedExchange, whole: bool = False) -> ImportedSession:
    (session,) = mcp_sessions(list(exchanges), whole=whole, format="har", lacks=["x"])
    return session


def streams(session: ImportedSession) -> list[str | None]:
    return [note["stream"] for note in notes(session, "http")]


def test_an_exchange_is_its_messages_between_its_notes() -> None:
    session = only(
        exchange(10.0, "http://h:1/mcp?k=v#x", request=[("Authorization", "Bearer x"), ("Mcp-A", "b")])
    )
    assert (session.upstream, session.name, session.started) == ("http://h:1/mcp", "h:1", 10.0)
    kinds = [getattr(entry, "kind", None) or getattr(entry, "data", b"")[:9] for entry in entries(session)]
    assert kinds == [b'{"jsonrpc', "http", b'{"jsonrpc', "http-end", "exit"]
    assert [entry.at for entry in entries(session)] == [0.0, 0.25, 0.5, 0.5, 0.5]
    assert notes(session, "http") == [
        {
            "stream": "1",
            "http": 1,
            "method": "POST",
            "path": "/mcp?k=v",
            "status": 200,
            "asked_at": 0.0,
            "request": {"authorization": "[redacted]", "mcp-a": "b"},
            "response": {"content-type": "application/json; charset=utf-8"},
        }
    ]


def test_exchanges_of_one_session_are_one_stream_and_each_without_is_its_own() -> None:
    opened, named = [JSON, ("Mcp-Session-Id", "s")], [("mcp-session-id", "s")]
    together = (exchange(1, response=opened), exchange(3, request=named), exchange(2))
    assert streams(only(*together)) == ["1", "2", "1"]


def test_addresses_that_a_stream_named_belong_to_it() -> None:
    told = b"event: endpoint\r\ndata: /messages?id=7\r\n\r\ndata: " + ANSWER + b"\r\n\r\n"
    get = exchange(
        1, "http://h/sse", method="GET", request_body=None, response=[EVENTS], response_body=told, end_at=9.0
    )
    post = exchange(2, "http://h/messages?id=7", response=[], status=202, response_body=b"Accepted")
    session = only(get, post)
    assert session.upstream == "http://h/sse"
    assert streams(session) == ["1", "1"]
    assert frames(session) == [(1.0, "client", ASKED), (1.5, "server", ANSWER)]
    assert notes(session, "sse")[0]["data"] == "/messages?id=7"


def test_two_servers_are_two_sessions_and_other_traffic_is_skipped() -> None:
    page = exchange(0, "http://h:1/index.html", method="GET", request_body=None, response_body=b"<p>")
    rest = exchange(0, "http://h:1/api", request_body=b'{"a":1}')
    one, two = mcp_sessions([page, rest, exchange(1), exchange(2, "http://h:2/mcp")], format="har", lacks=[])
    assert (one.key, two.key) == ("http://h:1/mcp", "http://h:2/mcp")
    assert one.changed == ["left out: 2 exchanges with other URLs"]
    assert one.messages == 2


def test_a_file_exported_by_mcpspy_keeps_requests_that_are_not_mcp() -> None:
    metadata = exchange(0, "http://h:1/.well-known/x", method="GET", request_body=None, response_body=b"")
    session = only(metadata, exchange(1), whole=True)
    assert [note["path"] for note in notes(session, "http")] == ["/.well-known/x", "/mcp"]
    assert session.changed == []


def test_bodies_that_are_missing_are_counted_and_an_open_stream_has_no_end() -> None:
    silent = exchange(1, response_body=None, request_body=ASKED)
    unasked = exchange(2, request_body=None, response_body=None, response=[])
    stream = exchange(3, method="GET", request_body=None, response_body=b"", response=[EVENTS], is_open=True)
    session = only(silent, unasked, stream)
    assert session.changed == ["bodies missing from the file: 2"]
    assert [note["http"] for note in notes(session, "http-end")] == [1, 2]


def test_the_peer_that_hung_up_and_the_error_are_noted() -> None:
    session = only(exchange(1, status=None, response_body=b"", error="reset", hung_up="client"))
    assert notes(session, "http")[0]["error"] == "reset"
    assert notes(session, "http-end")[0]["hung_up"] == "client"
