"""The rows of an index equal the changes of a session."""

from __future__ import annotations

import json
from binascii import b2a_base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.protocol.message import Failure, Malformed, Notification, Request, Result
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Note, read_entry
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.correlation import REPEATED_EVENT
from mcpspy.core.session.exchange import State
from mcpspy.core.session.index import Index
from mcpspy.core.session.session import Change, Session

RECORDINGS = sorted((Path(__file__).parents[3] / "recordings").glob("*.jsonl"))

KINDS = {
    Request: RowKind.REQUEST,
    Notification: RowKind.NOTIFICATION,
    Result: RowKind.RESULT,
    Failure: RowKind.FAILURE,
    Malformed: RowKind.MALFORMED,
    Note: RowKind.NOTE,
    Damaged: RowKind.DAMAGED,
}


def both(entries: list[Entry]) -> tuple[Session, Index]:
    """Return session and index of the same entries, both ended."""
    session, index = Session(), Index()
    lines = [line_of(entry) for entry in entries]
    session.add_all(map(read_entry, lines))
    assert index.add_lines(lines, 10) == 10 + sum(map(len, lines)) + len(lines)
    session.end()
    index.end()
    return session, index


def line_of(entry: Entry) -> bytes:
    """Return the line of a recording for an entry."""
    if isinstance(entry, Damaged):
        return entry.data
    if isinstance(entry, Note):
        return json.dumps({"t": entry.at, "note": entry.kind, **entry.fields}).encode()
    data = entry.data
    head = {
        "t": entry.at,
        "from": entry.side,
        "stream": entry.stream,
        "http": entry.http,
        "id": entry.event_id,
        "by": entry.by,
        "to": entry.to,
    }
    start = json.dumps({key: value for key, value in head.items() if value is not None})[:-1].encode()
    if data[:1] + data[-1:] in (b"{}", b"[]"):
        return start + b',"msg":' + data + b"}"
    return start + b',"b64":"' + b2a_base64(data, newline=False) + b'"}'


def flaws_of(change: Change, session: Session) -> set[str]:
    """Return all protocol issues of a row."""
    what, exchange = change.what, change.exchange
    found: list[str | None] = [change.flaw]
    if isinstance(what, Damaged):
        found.append(what.why)
    elif not isinstance(what, Note):
        found += what.flaws
    if isinstance(what, Malformed):
        found.append(what.why)
    if isinstance(what, Request) and exchange is not None:
        found += exchange.flaws
    return {part for flaw in found if flaw for part in flaw.split("; ")}


def same(session: Session, index: Index) -> None:
    """Compare every row with its change."""
    assert len(index) == len(session.changes)
    rows = {
        id(change.exchange): change.number
        for change in session.changes
        if change.exchange is not None and change.what is change.exchange.request
    }
    answers = {
        id(change.exchange): change.number
        for change in session.changes
        if change.exchange is not None and change.what is change.exchange.answer
    }
    for change in session.changes:
        row, what, exchange = change.number, change.what, change.exchange
        assert index.kind(row) is KINDS[type(what)]
        assert index.at[row] == what.at
        assert index.effects.get(row) == change.effect
        assert set(filter(None, index.flaws.get(row, "").split("; "))) == flaws_of(change, session)
        assert index.request(row) == (rows[id(exchange)] if exchange else None)
        assert index.answer(row) == (answers.get(id(exchange)) if exchange else None)
        assert index.state(row) == (exchange.state if exchange else None)
        if isinstance(what, Note):
            assert index.texts[index.method[row]] == what.kind
            assert index.side(row) == ""
        elif not isinstance(what, Damaged):
            assert index.size[row] == len(what.data)
            assert index.side(row) == what.side
            assert (index.texts[index.stream[row]] or None) == what.frame.stream
            assert index.http(row) == what.frame.http
            assert index.where(row).item == (what.index or 0)
        if isinstance(what, Request | Result | Failure):
            assert index.id(row) == what.id
        assert index.filter_status(row, exchanges=False) == change.filter_status
        if isinstance(what, Result | Failure):
            assert index.latency(row) == (exchange.latency_at(what.at) if exchange else None)
        about = what if isinstance(what, Request | Notification) else exchange and exchange.request
        if not isinstance(what, Note):
            assert index.texts[index.method[row]] == (about.method if about else "")
            assert index.texts[index.subject[row]] == ((about.subject or "") if about else "")
        if exchange is not None:
            request_row = rows[id(exchange)]
            assert index.why.get(request_row, "") == exchange.why
            assert index.redirects.get(request_row, "") == exchange.redirect
            assert index.ended.get(request_row) == exchange.ended_at
        if exchange is not None and what is exchange.request:
            assert index.latency(row) == exchange.latency
            earlier, later = exchange.continues, exchange.continued_by
            assert index.continues.get(row) == (rows[id(earlier)] if earlier else None)
            assert index.continued_by.get(row) == (rows[id(later)] if later else None)
        first = isinstance(what, Failure) and change.flaw != REPEATED_EVENT
        assert index.codes.get(row) == (what.code if first and isinstance(what, Failure) else None)
    assert index.messages == sum(not isinstance(c.what, Note | Damaged) for c in session.changes)
    assert index.counts == session.counts
    assert index.clients == session.clients
    assert (index.client, index.server, index.revision) == (session.client, session.server, session.revision)
    assert list(index.wrong) == sorted(set(index.wrong))
    assert set(index.wrong) >= set(index.flaws)
    assert (index.exit, index.last_at) == (session.exit, session.last_at)


ID = st.sampled_from([1, 2, "1", 1.0, None, 123456789012345678901, "é", 0])
SIDE = st.sampled_from(["client", "server"])
METHOD = st.sampled_from(
    [
        "tools/call",
        "tools/list",
        "initialize",
        "server/discover",
        "subscriptions/listen",
        "resources/read",
        "x",
    ]
)
SUBJECT = st.sampled_from(["echo", "a\\b", "é", "", 5, None, {"name": "n"}])
META = st.fixed_dictionaries(
    {},
    optional={
        "progressToken": st.sampled_from([1, "1"]),
        "io.modelcontextprotocol/protocolVersion": st.sampled_from(["2026-07-28", "2025-11-25"]),
        "io.modelcontextprotocol/clientInfo": st.just({"name": "c", "version": "1"}),
        "io.modelcontextprotocol/subscriptionId": ID,
    },
)
PARAMS = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "name": SUBJECT,
            "uri": SUBJECT,
            "_meta": META,
            "requestState": st.sampled_from(["s", "t"]),
            "inputResponses": st.just({"a": 1}),
            "progressToken": st.sampled_from([1, "1"]),
            "requestId": ID,
            "protocolVersion": st.just("2025-11-25"),
            "clientInfo": st.just({"name": "c", "version": "1"}),
        },
    ),
    st.just([1]),
    st.none(),
)
RESULT = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "isError": st.sampled_from([True, False, "true"]),
            "resultType": st.sampled_from(["complete", "input_required", "task"]),
            "inputRequests": st.just({"a": {}}),
            "requestState": st.sampled_from(["s", "t"]),
            "task": st.just({}),
            "serverInfo": st.just({"name": "s", "version": "2"}),
            "protocolVersion": st.just("2025-11-25"),
        },
    ),
    st.just("text"),
)
VERSION = st.sampled_from(["2.0", "2.0", "2.0", "1.0"])
MESSAGE: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries({"jsonrpc": VERSION, "id": ID, "method": METHOD}, optional={"params": PARAMS}),
    st.fixed_dictionaries({"jsonrpc": VERSION, "id": ID, "result": RESULT}),
    st.fixed_dictionaries(
        {"jsonrpc": VERSION, "id": ID, "error": st.just({"code": -32602, "message": "no"})}
    ),
    st.fixed_dictionaries(
        {
            "jsonrpc": VERSION,
            "method": st.sampled_from(
                ["notifications/progress", "notifications/cancelled", "notifications/message", "initialize"]
            ),
        },
        optional={"params": PARAMS},
    ),
)
DATA = st.one_of(
    MESSAGE.map(lambda value: json.dumps(value).encode()),
    st.lists(MESSAGE, max_size=3).map(lambda value: json.dumps(value).encode()),
    st.sampled_from([b"DEBUG", b"{oops}", b"", b'{"jsonrpc":"2.0","id":1,"result":"\xff"}']),
)
STREAM = st.sampled_from([None, "1", "2"])
HTTP = st.sampled_from([None, 1, 2])
ENTRY: st.SearchStrategy[Entry] = st.one_of(
    st.builds(
        Frame,
        st.floats(0, 100),
        SIDE,
        DATA,
        STREAM,
        HTTP,
        st.just("\n"),
        st.sampled_from([None, None, None, "e1"]),
        st.sampled_from([None, None, "mcpspy"]),
        st.sampled_from([None, None, "mcpspy"]),
    ),
    st.builds(
        Note,
        st.floats(0, 100),
        st.just("rule"),
        st.fixed_dictionaries(
            {"action": st.sampled_from(["drop", "delay", "hold", "release"])},
            optional={
                "from": SIDE,
                "method": METHOD,
                "id": ID.map(json.dumps),
                "ticket": st.integers(1, 3) | st.just({}),
                "seconds": st.just(2.0),
            },
        ),
    ),
    st.builds(
        Note,
        st.floats(0, 100),
        st.sampled_from(["stderr", "http", "http-end", "lost"]),
        st.fixed_dictionaries(
            {
                "http": HTTP,
                "status": st.sampled_from([200, 404]),
                "hung_up": st.sampled_from([None, "client"]),
            }
        ),
    ),
    st.just(Damaged(b"x", "not JSON")),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(ENTRY, max_size=30))
def test_rows_equal_changes_for_any_entries(entries: list[Entry]) -> None:
    same(*both(entries))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_real_sessions_have_the_same_rows_as_changes(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")[1:-1]
    session, index = Session().add_all(map(read_entry, lines)), Index()
    index.add_lines(lines, 0)
    session.end()
    index.end()
    same(session, index)
    assert index.messages > 1


def test_a_new_handshake_replaces_the_peers() -> None:
    entries: list[Entry] = []
    for number, (server, revision) in enumerate((("old", "2025-06-18"), ("new", "2025-11-25"))):
        asked = (
            b'{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
            % number
        )
        asked += b'"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
        said = b'{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"%b","serverInfo":{"name":"%b","version":"1"}}}'
        entries.append(Frame(2.0 * number, "client", asked))
        entries.append(Frame(2.0 * number + 1, "server", said % (number, revision.encode(), server.encode())))
    session, index = both(entries)
    assert str(session.server) == str(index.server) == "new 1"
    assert session.revision == index.revision == "2025-11-25"


def test_errors_and_protocol_issues_are_counted_separately_and_in_order() -> None:
    index = Index()
    for number, data in enumerate(
        [
            b'{"jsonrpc":"2.0","id":1,"method":"a"}',
            b'{"jsonrpc":"2.0","id":2,"method":"b"}',
            b"DEBUG",
            b'{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}',
        ]
    ):
        index.add(Frame(float(number), "client" if number < 2 else "server", data), 0, 0)
    assert (list(index.wrong), index.errors, index.issues) == ([2, 3], 1, 1)
    index.end()
    assert (list(index.wrong), index.errors, index.issues, index.unanswered) == ([0, 2, 3], 1, 1, 1)


def test_a_row_has_the_position_of_its_line_and_its_part() -> None:
    index = Index()
    entry = Frame(0.0, "client", b'[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]')
    index.begin_part(0)
    index.add(entry, 120, 80)
    index.begin_part(1)
    index.add(entry, 7, 80)
    assert [tuple(index.where(row)) for row in range(4)] == [
        (0, 120, 80, 0),
        (0, 120, 80, 1),
        (1, 7, 80, 0),
        (1, 7, 80, 1),
    ]


def test_more_rows_than_a_block_keep_their_values() -> None:
    index = Index()
    for number in range(10_000):
        index.add(
            Frame(number * 1.0, "client", b'{"jsonrpc":"2.0","id":%d,"method":"m"}' % number), number, 1
        )
    assert len(index) == index.pending == 10_000
    assert (index.id(9_999), index.where(9_999).offset, index.at[9_999]) == ("9999", 9_999, 9_999.0)


NOTED = {"from": "client", "id": "1", "method": "tools/call"}
CALL = Frame(0.0, "client", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}')


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"action": "drop", "rule": "1"}, State.DROPPED),
        ({"action": "disconnect", "rule": "1"}, State.DROPPED),
        ({"action": "release", "why": "dropped", "seconds": 2.0}, State.DROPPED),
        ({"action": "release", "why": "connection closed", "seconds": 2.0}, State.ABANDONED),
        ({"action": "release", "why": "accepted", "seconds": 2.0}, State.UNANSWERED),
        ({"action": "drop", "from": "server"}, State.UNANSWERED),
        ({"action": "drop", "method": "ping"}, State.UNANSWERED),
    ],
)
def test_a_request_that_was_not_forwarded_is_neither_pending_nor_unanswered(
    fields: dict[str, Any], state: State
) -> None:
    session, index = both([CALL, Note(1.0, "rule", NOTED | fields), Frame(9.0, "client", b"{}")])

    assert (index.state(0), session.exchanges[0].state) == (state, state)
    assert index.unanswered == len(session.unanswered) == (state is State.UNANSWERED)


def test_a_dropped_request_is_not_pending_in_a_live_session() -> None:
    index = Index()
    index.add_lines([line_of(CALL)], 0)
    assert index.pending == 1
    index.add_lines([line_of(Note(1.0, "rule", NOTED | {"action": "drop"}))], 200)
    assert (index.pending, index.pair(1)) == (0, 0)


def stderr(at: float, text: str) -> Note:
    return Note(at, "stderr", {"text": text})


@pytest.mark.parametrize(
    ("end", "crashes"),
    [
        ({"code": 1, "signal": None}, [1, 3]),
        ({"code": None, "signal": "SIGSEGV"}, [1, 3]),
        ({"code": 0, "signal": None}, []),
        ({"code": None, "signal": None}, []),
        (None, [1]),
    ],
)
def test_the_lines_on_stderr_of_the_last_seconds_explain_a_crash(
    end: dict[str, Any] | None, crashes: list[int]
) -> None:
    notes = [stderr(0.0, "started"), stderr(9.0, "Traceback"), stderr(9.1, "KeyError: 'x'")]
    _, index = both([*notes, *([Note(9.5, "exit", end)] if end else [])])

    assert index.crashes == crashes
    assert index.last_stderr == ([1, 2] if crashes else [])


def test_lines_on_stderr_directly_before_an_error_are_known() -> None:
    failure = Frame(1.0, "server", b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}')
    _, index = both([stderr(0.0, "a"), CALL, stderr(0.5, "b"), stderr(0.6, "c"), failure, stderr(2.0, "d")])

    assert [index.is_before_error(row) for row in (0, 2, 3, 5)] == [False, True, True, False]


def test_the_latency_of_a_request_that_is_answered_at_its_release_is_not_negative() -> None:
    lines = [  # A hold of 0.3000006 s, from 1.0000004 to 1.3000010: each of the three is rounded.
        b'{"t":1.000000,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}',
        b'{"t":1.000000,"note":"rule","action":"hold","from":"client","method":"ping","id":"1","ticket":9}',
        b'{"t":1.300000,"note":"rule","action":"release","from":"client","method":"ping","id":"1","ticket":9,"seconds":0.300001}',
        b'{"t":1.300000,"from":"server","by":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"result":{}}}',
    ]
    session, index = both([*map(read_entry, lines)])
    (exchange,) = session.exchanges
    assert (exchange.latency, index.latency(0)) == (0.0, 0.0)
