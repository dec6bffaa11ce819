"""The rows of a session in the tables of the lake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspy.analysis.export.columns import of_session
from mcpspy.analysis.lake.schema import TABLES, StoredRecording
from mcpspy.analysis.lake.tables import SessionTables
from mcpspy.core.recording.decode import Entry
from mcpspy.core.session.session import Session
from mcpspy.io.recording.reader import Recording
from tests.analysis.export.sessions import (
    EVERY,
    HEADER,
    call,
    client,
    failure,
    note,
    recorded,
    result,
    server,
)
from tests.analysis.pages import of_pages

STORED = StoredRecording("key", "digest", "file://host/a.jsonl", 100, "ended", True)


def tables_of(session: Session) -> dict[str, list[dict[str, Any]]]:
    session.end()
    tables = SessionTables(session, [], STORED)
    return {
        table: [
            dict(zip((column.name for column in columns), row, strict=True)) for row in tables.rows(table)
        ]
        for table, columns in TABLES.items()
    }


def tables(*entries: Entry) -> dict[str, list[dict[str, Any]]]:
    return tables_of(Session(HEADER).add_all(entries))


def test_a_request_about_a_task_names_the_call_that_created_it() -> None:
    found = tables(
        *(call(0, 1), result(1, 1, b'"task":{"taskId":"t","status":"working"}')),
        client(2, b'{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"t"}}'),
        *(failure(3, 2), failure(4, 9)),
    )

    assert [(row["poll_of"], row["status"]) for row in found["exchanges"]] == [
        (None, "task not finished"),
        (0, "error"),
    ]
    assert [(row["errors"], row["unanswered"]) for row in found["sessions"]] == [(1, 1)]


def listing(at: float, number: int, *tools: dict[str, Any], cursor: str = "") -> Entry:
    members = {"tools": tools, **({"nextCursor": cursor} if cursor else {})}
    return result(at, number, json.dumps(members).encode()[1:-1])


def asked(at: float, number: int, cursor: str = "") -> Entry:
    params = {"cursor": cursor} if cursor else {}
    return client(
        at, json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": params}).encode()
    )


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_an_exchange_has_the_values_of_the_other_exports(path: Path) -> None:
    exported = recorded(path)
    columns = of_session(exported)
    found = tables_of(Recording(path).session())

    assert len(found["exchanges"]) == found["sessions"][0]["exchanges"] > 0
    for row, exchange in zip(found["exchanges"], exported.exchanges(), strict=True):
        line = columns.of_exchange(exchange)
        assert row["n"] == line["exchange"]
        assert [row[name] for name in ("side", "method", "target")] == [
            line[name] for name in ("from", "method", "about")
        ]
        for name in ("client", "status", "latency_ms", "request_bytes", "response_bytes"):
            assert row[name] == line[name]
        assert row["error"] == (line["error"]["message"][:1000] if "error" in line else None)
        assert row["request"].encode() == exchange.request.data
        assert row["response"] == (exchange.answer and exchange.answer.data.decode())


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_message_and_note_is_in_one_table(path: Path) -> None:
    session = Recording(path).session()
    found = tables_of(session)
    answers = sum(row["response"] is not None for row in found["exchanges"])

    assert (
        len(found["exchanges"]) + answers + len(found["messages"]) == found["sessions"][0]["total_messages"]
    )
    assert found["sessions"][0]["total_messages"] + len(found["notes"]) == len(session.changes)


def test_times_are_microseconds_in_utc() -> None:
    found = tables(call(0.25), result(0.5))

    assert found["exchanges"][0]["time"] == 1_795_248_783_995_000
    assert found["sessions"][0]["started"] == 1_795_248_783_745_000
    assert found["sessions"][0]["ended"] == 1_795_248_784_245_000


def test_a_session_counts_the_rows_of_the_other_tables() -> None:
    (session,) = tables(call(0.1), failure(0.2), note(0.3, "stderr", text="x"), note(0.4, "exit", code=3))[
        "sessions"
    ]

    assert [session[name] for name in ("exchanges", "messages", "tools", "findings", "notes")] == [
        1,
        0,
        0,
        0,
        2,
    ]
    assert (session["errors"], session["exit_code"], session["exit_signal"]) == (1, 3, None)


def test_a_message_that_is_not_utf_8_is_binary() -> None:
    data = b'{"jsonrpc":"2.0","method":"\xff"}'
    (row,) = tables(server(0.1, data))["messages"]

    assert row["message"] is None
    assert row["message_raw"] == data
    assert row["kind"] == "notification" or row["kind"] == "malformed"


@pytest.mark.parametrize(
    ("params", "is_compact"),
    [
        (r'{"a":{"b":[1,-2.5,1e+22,true,null]},"c":"\n\"\\","é":18446744073709551615}', True),
        ('{"a": 1}', False),
        ('{"a":1,"a":1}', False),
        (r'{"\u0061":1}', False),
        (r'{"a":"x\/y"}', False),
        ('{"a":1e2}', False),
        ('{"a":-0}', False),
        ('{"a":18446744073709551616}', False),
        ('{"a":NaN}', False),
        ('{"a":"\udcff"}', False),
    ],
)
def test_a_message_is_compact_if_all_parsers_read_the_same(params: str, is_compact: bool) -> None:
    data = params.encode("utf-8", "surrogateescape")
    (row,) = tables(client(0.1, b'{"jsonrpc":"2.0","method":"x","params":%b}' % data))["messages"]
    answer = server(0.3, b'{"jsonrpc":"2.0","id":1,"result":%b}' % data)
    unanswered, answered = tables(call(0.1, 2), call(0.2, 1), answer)["exchanges"]

    assert row["compact"] is answered["compact"] is is_compact
    assert unanswered["compact"] is True


def test_a_message_with_a_protocol_issue_is_not_compact() -> None:
    (row,) = tables(call(0.1), server(0.2, b'{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":{"code":1}}'))[
        "exchanges"
    ]

    assert row["issues"]
    assert row["compact"] is False


def test_values_that_no_column_can_store_are_made_storable() -> None:
    text = rb'{"jsonrpc":"2.0","id":1,"error":{"code":99999999999999999999,"message":"\ud800"}}'
    (row,) = tables(call(0.1), server(0.2, text))["exchanges"]

    assert row["code"] is None
    assert row["error"] == "\\ud800"
    assert row["response"] == text.decode()


def test_notifications_and_late_responses_name_their_exchange() -> None:
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}'
    )
    found = tables(call(0.1, 5), call(0.2, 7, more=b',"_meta":{"progressToken":"p"}'), server(0.3, progress))

    (row,) = found["messages"]
    assert (row["n"], row["kind"], row["method"]) == (1, "notification", "notifications/progress")
    assert found["exchanges"][1]["progress"] == 1


def test_a_damaged_line_is_a_note_without_a_time() -> None:
    session = Session(HEADER)
    from mcpspy.core.recording.decode import Damaged

    session.add(Damaged(b"{", "not JSON: x"))
    (row,) = tables_of(session)["notes"]

    assert (row["kind"], row["time"], row["text"]) == ("damaged", None, "not JSON: x")


def test_a_tool_has_a_row_when_it_appears_changes_and_disappears() -> None:
    one, two, changed = {"name": "one"}, {"name": "two"}, {"name": "one", "title": "One"}
    rows = tables(
        *(asked(0.1, 1), listing(0.2, 1, one, two)),
        *(asked(0.3, 2), listing(0.4, 2, one, two)),
        *(asked(0.5, 3), listing(0.6, 3, changed)),
    )["tools"]

    assert [(row["n"], row["name"], row["definition"]) for row in rows] == [
        (0, "one", '{"name":"one"}'),
        (0, "two", '{"name":"two"}'),
        (2, "one", '{"name":"one","title":"One"}'),
        (2, "two", None),
    ]


def test_items_of_a_list_that_are_not_tools_have_no_rows() -> None:
    items: list[Any] = ["text", {"name": 7}, {}, {"name": "one"}]
    rows = tables(asked(0.1, 1), listing(0.2, 1, *items))["tools"]

    assert [row["name"] for row in rows] == ["one"]


def test_a_line_without_a_message_has_a_row_of_its_kind() -> None:
    rows = tables(server(0.1, b"text"), server(0.2, b'{"jsonrpc":"2.0","id":9,"result":{}}'))["messages"]

    assert [row["kind"] for row in rows] == ["malformed", "result"]


def test_a_list_in_several_pages_loses_no_tool() -> None:
    rows = tables(
        *(asked(0.1, 1), listing(0.2, 1, {"name": "one"}, cursor="x")),
        *(asked(0.3, 2, "x"), listing(0.4, 2, {"name": "two"})),
    )["tools"]

    assert [(row["n"], row["name"], row["digest"] is not None) for row in rows] == [
        (0, "one", True),
        (1, "two", True),
    ]


def test_a_client_that_lists_twice_at_the_same_time_loses_no_tool() -> None:
    pages = ("s1", None, "ab", "2"), ("s2", None, "ab", "2"), ("s1", "2", "cd", None)
    rows = tables_of(of_pages(*pages))["tools"]

    assert [(row["name"], row["digest"] is not None) for row in rows] == [(name, True) for name in "abcd"]


def test_a_tool_that_the_last_page_of_a_server_without_sessions_lacks_is_gone() -> None:
    pages = ("1", None, "ab", "2"), ("2", "2", "cd", None), ("3", None, "ab", "2"), ("4", "2", "d", None)
    rows = tables_of(of_pages(*pages))["tools"]

    assert [row["name"] for row in rows if row["digest"] is None] == ["c"]


def test_a_server_without_a_name_is_unknown() -> None:
    session = Session(HEADER.__class__(mcpspy=1, id="a", started="2026-11-21T23:59:59.999Z")).add_all(
        [call(0.5)]
    )
    session.end()
    made = SessionTables(session, [], STORED)

    assert (made.server, made.day) == ("unknown", "2026-11-21")
