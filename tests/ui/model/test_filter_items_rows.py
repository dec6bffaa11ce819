"""Rows of the index match filters like their messages and exchanges."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mcpspy.analysis.rows import row as listed
from mcpspy.analysis.stats import StatsCollector
from mcpspy.core.intercept.held import LiveItem
from mcpspy.core.intercept.requests import AwaitedRequest
from mcpspy.core.protocol.message import Failure, Request, Result
from mcpspy.core.query.item import FilterItem, SessionEnd
from mcpspy.core.query.parser import Query, parse
from mcpspy.core.recording.decode import Damaged, Note, read_entry, read_header
from mcpspy.core.session.session import Session
from mcpspy.ui.model.filter_items import ChangeItem, RowItem, exchange_item
from mcpspy.ui.model.session_model import SessionModel
from tests.ui.model.test_session_model import CALL, FAILED, PROGRESS, File
from tests.ui.tui.panels.panels import RECORDINGS, recorded

FIELDS = (
    *("side", "kind", "method", "subject", "id", "status", "size", "stream", "has_issue", "is_batch"),
    "error_code",
)


def found(log: SessionModel, text: str, *, exchanges: bool) -> list[int]:
    """Return the rows that match a filter, tested with one item."""
    item, rows = RowItem(log, exchanges=exchanges), []
    for row in range(len(log)):
        item.row = row
        if parse(text).matches(item):
            rows.append(row)
    return rows


def of_row(log: SessionModel, row: int, *, exchanges: bool = False) -> RowItem:
    item = RowItem(log, exchanges=exchanges)
    item.row = row
    return item


@pytest.fixture
def file() -> File:
    file = File()
    file.add(CALL, PROGRESS, FAILED, b'{"t":1,"note":"stderr","text":"a word"}', b"{broken")
    return file


def test_every_member_of_a_batch_is_found_and_listed_with_its_place() -> None:
    file = File()
    ping, pong = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}', b'{"jsonrpc":"2.0","id":%d,"result":{}}'
    head = b'{"t":1,"from":"%b","msg":'
    file.add(head % b"client" + ping % 1 + b"}", head % b"client" + b"[%b,%b]}" % (ping % 2, ping % 3))
    file.add(head % b"server" + pong % 1 + b"}", head % b"server" + b"[%b]}" % (pong % 2))

    for query in ("kind:batch", "is:batch"):
        assert found(file.log, query, exchanges=False) == [1, 2, 4]
        assert found(file.log, f"{query} kind:request", exchanges=True) == [1, 2]
    assert [listed(file.log.shown(place)).status for place in range(5)] == [
        "",
        "batch [1/2]",
        "[2/2] pending",
        "ok",
        "[1/1] ok",
    ]


def recordings() -> Iterable[str]:
    return sorted(path.stem for path in RECORDINGS.glob("peer-*.jsonl"))


@pytest.mark.parametrize("name", recordings())
def test_a_row_item_agrees_with_the_change_item(name: str) -> None:
    data = (RECORDINGS / f"{name}.jsonl").read_bytes()
    log = recorded(data).log
    session = folded(name)
    assert len(session.changes) == len(log)
    for row, change in enumerate(session.changes):
        item, other = of_row(log, row), ChangeItem(change)
        said = {field: getattr(item, field) for field in FIELDS}
        assert said == {field: getattr(other, field) for field in FIELDS}, (row, change.what)
        assert item.at == pytest.approx(other.at)
        assert item.latency == pytest.approx(other.latency)
        assert item.text() == other.text()
        for member in ("params", "result", "error"):
            assert item.message(member) == other.message(member), (row, member)


def test_a_request_has_the_fields_of_its_response_if_both_are_one_row(file: File) -> None:
    alone, both = of_row(file.log, 0), of_row(file.log, 0, exchanges=True)
    answer = of_row(file.log, 2)

    assert (alone.status, alone.error_code, alone.latency) == ("", None, None)
    assert (both.status, both.error_code, both.latency) == ("error", -32602, 0.0)
    assert both.size == alone.size + answer.size
    assert both.text() == alone.text() + b"\n" + answer.text()


def test_an_issue_of_a_response_is_an_issue_of_the_exchange() -> None:
    file = File()
    log = file.add(CALL, FAILED.replace(b'"2.0"', b'"1.0"'))

    assert (found(log, "is:issue", exchanges=True), found(log, "is:issue", exchanges=False)) == ([0, 1], [1])


def test_a_note_and_a_damaged_line_are_found_by_their_kind_and_text(file: File) -> None:
    assert found(file.log, "note:stderr", exchanges=True) == [3]
    assert found(file.log, "kind:damaged", exchanges=True) == [4]
    assert found(file.log, "text:word", exchanges=True) == [3]
    assert found(file.log, "text:broken", exchanges=True) == [4]


def test_a_path_leads_into_the_messages_of_the_row(file: File) -> None:
    log = file.log

    assert found(log, "params.name:*", exchanges=False) == [0, 2]
    assert found(log, "params.progress:*", exchanges=False) == [1]
    assert found(log, "error.code<0", exchanges=False) == [2]
    assert found(log, "error.code<0 params.name:*", exchanges=True) == [0, 2]
    assert found(log, "result:*", exchanges=True) == []


def test_only_text_reads_the_file(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file.log, "read", lambda *_: pytest.fail("it was read"))
    for text in "tool:x status:err size>10 latency>1ms is:issue id:2 kind:note time>1s".split():
        found(file.log, text, exchanges=True)


@pytest.mark.parametrize("name", recordings())
def test_a_message_in_transit_matches_as_in_the_session(name: str) -> None:
    """All fields except the status of a request, and issues that only the session detects."""
    for change in folded(name).changes:
        what, exchange = change.what, change.exchange
        if isinstance(what, Note | Damaged):
            continue
        asked = None if exchange is None else AwaitedRequest(exchange.request, None, keep=True)
        live, other = LiveItem(what, asked), ChangeItem(change)
        fields = set(FIELDS) - ({"status"} if not isinstance(what, Result | Failure) else set())
        fields -= {"has_issue"} if change.flaw is not None else set()
        if exchange is None or (exchange.answer is not what and not isinstance(what, Request)):
            fields -= {"status"}
        assert answers(live, fields) == answers(other, fields), what


@pytest.mark.parametrize("name", recordings())
def test_an_exchange_matches_alike_as_a_row_in_the_session_and_in_stats(name: str) -> None:
    data = (RECORDINGS / f"{name}.jsonl").read_bytes()
    log, session = recorded(data).log, folded(name)
    counted: dict[tuple[str, str, str, float], FilterItem] = {}

    def count(item: FilterItem) -> bool:
        if item.kind == "request":
            counted[item.stream, item.side, item.id, item.at] = item
        return True

    stats = StatsCollector(session.header, Query("", count, True, SessionEnd(), False))
    stats.add_lines(data.split(b"\n")[1:-1])
    stats.finish(is_over=True)
    rows = [row for row, change in enumerate(session.changes) if isinstance(change.what, Request)]
    assert len(rows) == len(session.exchanges) == len(counted)
    for row, exchange in zip(rows, session.exchanges, strict=True):
        item = exchange_item(exchange, "request")
        said = answers(item, FIELDS)
        assert said == answers(of_row(log, row, exchanges=True), FIELDS)
        assert said == answers(counted[item.stream, item.side, item.id, item.at], FIELDS)


def folded(name: str) -> Session:
    lines = (RECORDINGS / f"{name}.jsonl").read_bytes().split(b"\n")
    session = Session(read_header(lines[0]))
    session.add_all(read_entry(line) for line in lines[1:-1])
    session.end()
    return session


def answers(item: FilterItem, fields: Iterable[str]) -> dict[str, object]:
    """Return all fields of an item."""
    latency = item.latency
    return {
        **{field: getattr(item, field) for field in fields},
        "at": pytest.approx(item.at),
        "latency": latency if latency is None else pytest.approx(latency),
        "text": item.text(),
        **{member: item.message(member) for member in ("params", "result", "error")},
    }


@pytest.mark.parametrize("name", recordings())
def test_rows_have_the_problems_of_the_session(name: str) -> None:
    log, changes = recorded((RECORDINGS / f"{name}.jsonl").read_bytes()).log, folded(name).changes
    wants = parse("is:problem").matches

    found_in_session = [change.number for change in changes if wants(ChangeItem(change, changes=changes))]

    assert found(log, "is:problem", exchanges=False) == found_in_session
