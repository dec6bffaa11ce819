"""Rows, bodies and facts, as passed to the page's script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpspy.analysis.export import RecordedSession
from mcpspy.analysis.export.html import rows as entries_module
from mcpspy.analysis.export.html.rows import HtmlRows, PageRow
from mcpspy.core.recording.decode import Damaged, Header
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
    session_of,
)


class Read:
    """Entries, as the page decodes them."""

    def __init__(self, session: RecordedSession) -> None:
        self.entries = HtmlRows(session)
        self.blocks = list(self.entries.blocks())
        self.bodies = [body for block in self.blocks for body in block]
        self.rows = [dict(zip(PageRow._fields, row, strict=True)) for row in self.entries.rows]

    def row(self, **members: object) -> dict[str, Any]:
        (found,) = [row for row in self.rows if members.items() <= row.items()]
        return found


def test_a_request_and_its_response_are_one_row() -> None:
    read = Read(session_of(call(1.0, 1), result(1.25, 1, b'"ok":true')))

    (row,) = read.rows
    assert (row["number"], row["at"], row["end"], row["kind"], row["side"]) == (
        1,
        1.0,
        1.25,
        "request",
        "client",
    )
    assert (row["method"], row["subject"], row["status"], row["tone"]) == (
        "tools/call",
        "forecast",
        "ok",
        "ok",
    )
    assert read.bodies[row["body"]] == call(1.0, 1).data.decode()
    assert read.bodies[row["answer"]] == '{"jsonrpc":"2.0","id":1,"result":{"ok":true}}'
    assert (row["size"], row["answerSize"]) == tuple(map(len, read.bodies))


def test_bodies_keep_every_digit() -> None:
    text = (
        '{"jsonrpc":"2.0","id":1,"method":"ping","n":123456789012345678901234567890,"n":1.0,"n":"\\u00fc ü "}'
    )

    assert Read(session_of(client(0, text.encode()))).bodies == [text]


def test_bytes_that_are_not_text_are_shown_as_escapes() -> None:
    read = Read(session_of(server(0, b"\xff\xfe{")))

    assert read.bodies == ["\\xff\\xfe{"]
    assert read.row(kind="malformed")["flaws"] == ["not JSON", "not UTF-8"]


@pytest.mark.parametrize(
    ("entry", "kind", "body"),
    [
        (note(0, "stderr", text="boom \ud800"), "stderr", "boom \\ud800"),
        (note(0, "exit", code=1, signal=None), "note", '{"code":1,"signal":null}'),
        (
            note(0, "http", http=1 << 70, status=200),
            "http",
            '{"http": 1180591620717411303424, "status": 200}',
        ),
        (Damaged(b"\xffnone", "not JSON: x"), "damaged", "\\xffnone"),
        (server(0, b'{"jsonrpc":"2.0","id":9,"result":{}}'), "result", None),
        (client(0, b'{"jsonrpc":"2.0","method":"notifications/initialized"}'), "notification", None),
    ],
    ids=["stderr", "exit", "http", "damaged", "answer", "notification"],
)
def test_other_messages_have_their_own_rows(entry: Any, kind: str, body: str | None) -> None:
    read = Read(session_of(entry))

    assert [row["kind"] for row in read.rows] == [kind]
    assert read.bodies == [entry.data.decode() if body is None else body]
    assert read.rows[0]["http"] is None


def test_progress_and_an_answered_input_request_refer_to_their_request() -> None:
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}'
    )
    read = Read(
        session_of(
            call(0, 1, more=b',"_meta":{"progressToken":7}'),
            server(1, progress),
            result(2, 1, b'"resultType":"input_required","requestState":"s"'),
            call(3, 2, more=b',"requestState":"s"'),
            failure(4, 2),
        )
    )

    first, moved, second = read.rows
    assert moved["exchange"] == first["exchange"]
    assert second["continues"] == first["exchange"]
    assert second["tone"] == "bad"


def test_a_cancelled_call_ends_at_its_cancellation() -> None:
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    read = Read(session_of(call(0, 1), client(2.5, cancel)))

    assert (read.row(kind="request")["state"], read.row(kind="request")["end"]) == ("cancelled", 2.5)


def test_flaws_of_both_messages_are_listed_once() -> None:
    read = Read(session_of(client(0, b'{"id":1,"method":"ping"}'), server(1, b'{"id":1,"result":{}}')))

    assert read.rows[0]["flaws"] == ['jsonrpc is not "2.0"']


def test_a_row_contains_no_bidirectional_controls() -> None:
    read = Read(session_of(call(0, name="a\u202eb".encode())))

    assert read.rows[0]["subject"] == "a\\u202eb"


def test_only_what_a_filter_keeps_is_in_the_page() -> None:
    session = session_of(call(0, 1), result(1, 1), call(2, 2, name=b"other"), result(3, 2))
    read = Read(
        session._replace(keep=lambda change: change.exchange is not None and change.exchange.number == 1)
    )

    assert [row["subject"] for row in read.rows] == ["other"]
    assert len(read.bodies) == 2
    assert read.entries.facts()["counts"] == {
        "all": 4,
        "messages": 4,
        "requests": 2,
        "errors": 0,
        "unanswered": 0,
        "pending": 0,
    }


def test_a_body_is_found_in_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries_module, "BLOCK", 100)
    read = Read(session_of(*(call(number, number) for number in range(1, 8))))

    assert len(read.blocks) > 2
    assert read.entries.starts == [
        sum(map(len, read.blocks[:place])) for place in range(len(read.blocks) + 1)
    ]
    assert [row["body"] for row in read.rows] == list(range(7))


def test_the_facts_have_the_peers_and_the_exit() -> None:
    initialize = b"""{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
        "capabilities":{},"clientInfo":{"name":"host","version":"2"}}}"""
    read = Read(
        session_of(
            client(0, initialize),
            result(1, 1, b'"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"weather"}'),
            call(2, 2),
            failure(3, 2),
            call(4, 3),
            note(5, "exit", code=None, signal="SIGTERM"),
        )
    )
    facts = read.entries.facts()

    assert (facts["client"], facts["server"], facts["revision"]) == ("host 2", "weather", "2025-06-18")
    assert (facts["ending"], facts["endingTone"], facts["lasted"]) == ("killed by SIGTERM", "quiet", 5)
    assert facts["counts"] == {
        "all": 6,
        "messages": 5,
        "requests": 3,
        "errors": 1,
        "unanswered": 1,
        "pending": 0,
    }


def test_a_session_without_an_end_is_marked() -> None:
    facts = Read(session_of(call(0), is_over=False)).entries.facts()

    assert (facts["ending"], facts["endingTone"]) == ("", "issue")


def test_a_command_can_be_pasted_and_nothing_in_a_header_is_interpreted() -> None:
    header = Header(mcpspy=1, id="i", started="s\x1b", command=["a b", "c\u202e"], cwd="\x07", redacted=True)
    facts = Read(session_of(header=header)).entries.facts()

    assert (facts["target"], facts["started"], facts["cwd"]) == ("'a b' 'c\\u202e'", "s\\x1b", "\\x07")
    assert facts["redacted"] is True
    assert Read(session_of(header=HEADER)).entries.facts()["redacted"] is None


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_entry_of_a_real_session_is_in_the_page(path: Path) -> None:
    session = recorded(path)
    read = Read(session)

    answers = sum(row["answer"] >= 0 for row in read.rows)
    assert len(read.rows) + answers == len(list(session.changes)) > 0
    assert len(read.bodies) == len(read.rows) + answers
