"""HTTP exchanges in HAR."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from mcpspy.analysis.export.har import export
from mcpspy.core.protocol.message import Message, Request
from mcpspy.core.recording.decode import Entry, Frame, Note
from mcpspy.core.session.session import Change
from mcpspy.io.recording.reader import Recording
from tests.analysis.export.sessions import HEADER, HTTP, call, note, recorded, result, server, session_of
from tests.analysis.export.test_har_entry import valid

OURS = replace(HEADER, transport="http", command=None, upstream="https://example.test:8443/mcp?x=1")

EVENTS = {"content-type": "text/event-stream", "mcp-session-id": "s"}


def head(at: float, http: int, **more: Any) -> Note:
    fields = {"stream": "1", "method": "POST", "path": "/mcp?x=1", "status": 200, "asked_at": at - 0.05}
    headers = {"request": {"authorization": "[redacted]"}, "response": {"content-type": "application/json"}}
    return note(at, "http", http=http, **{**fields, **headers, **more})


def end(at: float, http: int, hung_up: str | None = None, **more: Any) -> Note:
    return note(at, "http-end", http=http, stream="1", hung_up=hung_up, **more)


def archived(*entries: Entry, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = valid("".join(export([session_of(*entries, header=OURS, **more)])))["log"][
        "entries"
    ]
    return found


def test_an_exchange_has_its_heads_its_bodies_and_its_times() -> None:
    (entry,) = archived(call(0.11, http=1), head(0.15, 1), result(0.2, http=1), end(0.25, 1))
    request, response = entry["request"], entry["response"]

    assert (request["method"], request["url"]) == ("POST", "https://example.test:8443/mcp?x=1")
    assert request["headers"] == [{"name": "authorization", "value": "[redacted]"}]
    assert json.loads(request["postData"]["text"])["method"] == "tools/call"
    assert (response["status"], response["statusText"]) == (200, "OK")
    assert json.loads(response["content"]["text"]) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert entry["startedDateTime"] == "2026-11-21T08:13:03.845000Z"
    assert (entry["timings"]["wait"], entry["timings"]["receive"], entry["time"]) == (50, 100, 150)
    assert entry["comment"] == "tools/call forecast: ok"
    assert "_error" not in entry


@pytest.mark.parametrize(
    ("upstream", "path", "url"),
    [
        ("http://h:1/mcp", "/messages/?a=%20b&c=[d]", "http://h:1/messages/?a=%20b&c=%5Bd%5D"),
        ("http://[::1]:1/mcp", "/100%", "http://[::1]:1/100%25"),
        ("http://h/mcp", None, "http://h/mcp"),
        ("http://user:pw@h/mcp", "/mcp", "http://h/mcp"),
        ("http://[no", "x", "http://unknown/x"),
        (None, None, "http://unknown/"),
    ],
)
def test_any_address_makes_a_url(upstream: str | None, path: str | None, url: str) -> None:
    text = "".join(export([session_of(head(0.2, 1, path=path), header=replace(OURS, upstream=upstream))]))
    (entry,) = valid(text)["log"]["entries"]

    assert entry["request"]["url"] == url


def test_a_stream_is_written_out_event_by_event() -> None:
    (entry,) = archived(
        call(0.11, http=1),
        head(0.15, 1, response=EVENTS),
        note(0.16, "sse", http=1, stream="1", id="a", retry=500, data=""),
        server(0.17, b'{"jsonrpc":"2.0",\n"method":"m"}', 1, "b"),
        result(0.2, http=1),
        end(0.25, 1),
    )

    assert entry["response"]["content"]["text"] == (
        "id: a\nretry: 500\ndata: \n\n"
        'id: b\ndata: {"jsonrpc":"2.0",\ndata: "method":"m"}\n\n'
        'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
    )
    assert entry["response"]["bodySize"] == -1


def test_a_batch_is_one_body() -> None:
    data = b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]'
    (entry,) = archived(Frame(0.1, "client", data, "1", 1), head(0.2, 1), end(0.3, 1))

    assert entry["request"]["postData"]["text"].encode() == data


@pytest.mark.parametrize(
    ("entries", "status", "error"),
    [
        ([head(0.1, 1, status=None), end(0.3, 1, "client")], 0, "client hung up"),
        (
            [head(0.1, 1, status=502, error="mcpspy: cannot reach it"), end(0.2, 1)],
            502,
            "mcpspy: cannot reach it",
        ),
        ([head(0.1, 1)], 200, "no end was recorded"),
        ([call(0.1, http=1)], 0, "no end was recorded"),
        ([note(0.1, "http", http=1, status=403, error="refused", asked_at="?", request=7)], 403, "refused"),
    ],
)
def test_an_error_below_http_is_exported(entries: list[Entry], status: int, error: str) -> None:
    (entry,) = archived(*entries)

    assert (entry["response"]["status"], entry["_error"]) == (status, error)


def test_entries_are_in_the_order_of_the_requests() -> None:
    found = archived(head(0.9, 1, asked_at=0.2), head(0.3, 2, asked_at=0.1), end(1.0, 1), end(1.0, 2))

    assert [entry["_http"] for entry in found] == [2, 1]


def test_a_filter_tests_the_messages_of_an_exchange_or_else_its_head() -> None:
    entries = (
        *(call(0.11, 1, b"a", http=1), head(0.15, 1), result(0.2, 1, http=1), end(0.25, 1)),
        *(call(0.31, 2, b"b", http=2), head(0.35, 2), result(0.4, 2, http=2), end(0.45, 2)),
        *(head(0.5, 3, method="DELETE"), end(0.6, 3)),
    )

    def only_b(change: Change) -> bool:
        return change.exchange is not None and change.exchange.request.subject == "b"

    def not_b(change: Change) -> bool:
        return not only_b(change)

    assert [entry["_http"] for entry in archived(*entries, keep=only_b)] == [2]
    assert [entry["_http"] for entry in archived(*entries, keep=not_b)] == [1, 3]


@pytest.mark.parametrize("path", HTTP, ids=lambda path: path.stem)
def test_every_http_exchange_and_every_message_of_a_real_session_is_there(path: Any) -> None:
    session = recorded(path)
    entries = valid("".join(export([session])))["log"]["entries"]
    heads = [each for each in Recording(path) if isinstance(each, Note) and each.kind == "http"]
    bodies = "\n".join(
        part
        for each in entries
        for part in (
            each["request"].get("postData", {}).get("text", ""),
            each["response"]["content"].get("text", ""),
        )
    )

    assert sorted(each["_http"] for each in entries) == sorted(head.fields["http"] for head in heads)
    assert {each["response"]["status"] for each in entries} == {head.fields["status"] or 0 for head in heads}
    messages = [change.what for change in session.changes if isinstance(change.what, Message)]
    assert any(isinstance(each, Request) for each in messages)
    assert all(each.data.decode() in bodies for each in messages)


def test_a_refusal_has_its_text_as_content() -> None:
    refused = {"status": 502, "response": {"content-type": "text/html"}}
    short, long = archived(
        *(call(0.11, http=1), head(0.15, 1, **refused), end(0.25, 1, body="<h1>No</h1>", size=11)),
        *(call(0.31, http=2), head(0.35, 2, **refused), end(0.45, 2, body="<h1>", size=9000, cut=True)),
    )
    assert short["response"]["content"] == {"size": 11, "mimeType": "text/html", "text": "<h1>No</h1>"}
    assert short["comment"] == "tools/call forecast: refused, HTTP 502: No"
    assert long["response"]["content"] == {
        "size": 9000,
        "mimeType": "text/html",
        "text": "<h1>",
        "comment": "only the beginning was recorded",
    }
