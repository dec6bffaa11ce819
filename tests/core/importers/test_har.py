"""HTTP Archives of other tools and of mcpspy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.importers.har import sessions
from mcpspy.core.session.exchange import State
from mcpspy.core.session.session import Session
from mcpspy.errors import UsageError
from tests.core.importers.reading import entries, frames, notes

PING = '{"jsonrpc": "2.0","id":1.0,"method":"ping"}'


def entry(url: str = "http://h/mcp", text: str | None = PING, **fields: Any) -> dict[str, Any]:
    return {
        "startedDateTime": "2026-11-21T08:00:00.000Z",
        "time": 500,
        "request": {"method": "post", "url": url, "headers": [], "postData": {"text": text}},
        "response": {
            "status": 200,
            "headers": [{"name": "Content-Type", "value": "application/json"}],
            "content": {"size": 2, "text": "{}"},
        },
        "timings": {"receive": 100, "wait": 400, "comment": ""},
        **fields,
    }


def archive(*entries: dict[str, Any], creator: str = "browser", **log: Any) -> bytes:
    return json.dumps(
        {"log": {"version": "1.2", "creator": {"name": creator}, "entries": entries, **log}}
    ).encode()


def test_bodies_are_kept_byte_for_byte_with_the_times_of_head_and_end() -> None:
    (session,) = sessions(archive(entry()))
    assert frames(session) == [(0.0, "client", PING.encode()), (0.5, "server", b"{}")]
    assert (session.format, session.upstream) == ("har", "http://h/mcp")
    assert notes(session, "http")[0]["asked_at"] == 0


def test_a_base64_body_is_decoded_and_an_absent_body_is_counted_as_missing() -> None:
    content = {"size": 2, "text": "e30=", "encoding": "base64"}
    response = {"status": 200, "headers": [{"name": "content-type", "value": "application/json"}]}
    (session,) = sessions(archive(entry(response={**response, "content": content})))
    assert frames(session)[1][2] == b"{}"
    (session,) = sessions(archive(entry(response={**response, "content": {**content, "text": "e"}})))
    assert session.changed == ["bodies missing from the file: 1"]
    (session,) = sessions(archive(entry(response={**response, "content": {"size": 0}})))
    assert session.changed == [
        "responses with an empty body in the file: 1 (as mitmproxy writes it for streamed bodies)"
    ]
    assert [note["entries"] for note in notes(session, "lost")] == [1]
    (session,) = sessions(archive(entry(response={**response, "status": 202, "content": {"size": 0}})))
    assert session.changed == []
    (session,) = sessions(archive(entry(response={**response, "content": {"size": 9}})))
    assert session.changed == ["bodies missing from the file: 1"]


def test_members_that_browsers_omit_are_optional() -> None:
    post_data = {"mimeType": "application/json", "text": PING}
    request = {"method": "POST", "url": "http://h/mcp", "postData": post_data}
    bare = {"startedDateTime": "2026-11-21T08:00:00Z", "request": request}
    (session,) = sessions(archive(bare, entry(time=None, timings=None)))
    assert session.messages == 3
    assert [note["status"] for note in notes(session, "http")] == [None, 200]


def test_a_stdio_session_exported_by_mcpspy_is_a_stdio_session_again() -> None:
    ask = entry(
        "stdio://client/roots/list", pageref="p", _from="server", startedDateTime="2026-11-21T08:00:01Z"
    )
    pages = [{"id": "p", "title": "weather"}]
    (session,) = sessions(
        archive(entry("stdio://weather/ping", pageref="p"), ask, creator="mcpspy", pages=pages)
    )
    assert (session.transport, session.key, session.name) == ("stdio", "p", "weather")
    assert [(at, side) for at, side, _ in frames(session)] == [
        (0.0, "client"),
        (0.5, "server"),
        (1.0, "server"),
        (1.5, "client"),
    ]


def test_each_page_of_an_mcpspy_export_is_a_session_and_keeps_who_hung_up() -> None:
    left = entry(pageref="b", _error="client hung up")
    one, two = sessions(
        archive(entry(pageref="a"), left, creator="mcpspy", pages=[{"id": "a", "title": "x"}])
    )
    assert (one.key, one.name, two.key, two.name) == ("a", "x", "b", "h")
    assert notes(two, "http-end")[0]["hung_up"] == "client"
    assert "error" not in notes(two, "http")[0]
    (session,) = sessions(archive(entry(pageref="a", _error="no end was recorded"), creator="mcpspy"))
    assert (notes(session, "http-end"), "error" in notes(session, "http")[0]) == ([], False)


def test_pages_of_a_browser_are_not_sessions() -> None:
    (session,) = sessions(archive(entry(pageref="a"), entry(pageref="b"), pages=[{"id": "a", "title": "x"}]))
    assert (session.key, session.name, session.messages) == ("http://h/mcp", "h", 4)


def test_an_archive_without_mcp_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^HAR 1\.2: none of the 1 entries posts JSON-RPC"):
        sessions(archive(entry(text=None)))
    with pytest.raises(UsageError, match=r"^unsupported HAR '3' .mcpspy reads 1\.1 and 1\.2"):
        sessions(archive(version="3"))


def test_a_request_whose_response_has_an_empty_body_is_not_unanswered() -> None:
    """Mitmproxy writes such entries for bodies that it streamed: whether there was a response is not known."""
    headers = [{"name": "content-type", "value": "text/event-stream"}]
    response = {"status": 200, "headers": headers, "content": {"size": 0, "text": ""}}
    (imported,) = sessions(archive(entry(response=response)))

    session = Session()
    for line in entries(imported):
        session.add(line)

    assert [exchange.state for exchange in session.exchanges] == [State.UNKNOWN]
