"""Messages as rows."""

from __future__ import annotations

import pytest

from mcpspy.analysis import rows
from mcpspy.analysis.rows import Row, duration, exchange_row, row, size
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Note, read_entry
from mcpspy.core.session.session import Session


def frame(side: str, data: bytes, at: float = 0.5) -> Frame:
    return Frame(at, side, data)


def last_row(*entries: Entry) -> Row:
    return row(Session().add_all(entries).changes[-1])


CALL = frame("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}', 0.25)


def test_a_request_row_has_its_subject_and_is_pending() -> None:
    assert last_row(CALL) == Row("0.250", "→", "tools/call", "echo", "1", "", "71", "pending", rows.OPEN)


def test_a_response_carries_its_requests_method_and_the_latency() -> None:
    answer = frame("server", b'{"jsonrpc":"2.0","id":1,"result":{}}')

    assert last_row(CALL, answer) == Row(
        "0.500", "←", "tools/call", "echo", "1", "250.0 ms", "36", "ok", rows.OK
    )


def test_a_member_of_a_batch_has_its_place() -> None:
    ping, pong = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}', b'{"jsonrpc":"2.0","id":%d,"result":{}}'
    session = Session()
    session.add(frame("client", b"[%b,%b,%b]" % (ping % 1, ping % 2, b'{"jsonrpc":"2.0","method":"n"}')))
    assert [row(change).status for change in session.changes] == [
        "[1/3] pending",
        "[2/3] pending",
        "batch [3/3]",
    ]

    session.add(frame("server", b"[%b]" % (pong % 2)))
    assert [row(change).status for change in session.changes[1:]] == [
        "batch [2/3]",
        "batch [3/3]",
        "[1/1] ok",
    ]
    assert row(session.changes[-1]).tone == rows.OK
    assert exchange_row(session.changes[1], (1, 1), 1.0).status == "[2/3] ok"


@pytest.mark.parametrize(
    ("answer", "status", "tone"),
    [
        (b'"result":{"isError":true}', "tool error", rows.BAD),
        (
            b'"result":{"isError":true,"content":[{"type":"text","text":"no disk:\\n /x\\u001b[2J"},{"text":"full"}]}',
            "tool error: no disk: /x\\x1b[2J full",
            rows.BAD,
        ),
        (b'"error":{"code":-32601,"message":"no"}', "error -32601 method not found: no", rows.BAD),
        (b'"error":{"code":7,"message":"\\u001b[2Jno"}', "error 7: \\x1b[2Jno", rows.BAD),
        (b'"error":{"message":"no code"}', "error: no code", rows.BAD),
        (b'"result":{"resultType":"input_required","requestState":"s"}', "input required", rows.OPEN),
        (b'"result":{"task":{"taskId":"t","status":"working"}}', "a task", rows.OPEN),
    ],
)
def test_a_response_row_has_its_outcome_in_words(answer: bytes, status: str, tone: str) -> None:
    shown = last_row(CALL, frame("server", b'{"jsonrpc":"2.0","id":1,' + answer + b"}"))

    assert (shown.status, shown.tone) == (status, tone)


def test_an_unsolicited_response_is_a_protocol_issue() -> None:
    shown = last_row(frame("server", b'{"jsonrpc":"2.0","id":9,"result":{}}'))

    assert (shown.status, shown.tone, shown.id) == ("unsolicited response", rows.ISSUE, "9")


def test_a_malformed_line_shows_its_text() -> None:
    shown = last_row(frame("server", b"DEBUG: \x1b[31mhello"))

    assert (shown.method, shown.subject, shown.tone) == (
        "(not JSON)",
        "DEBUG: \\x1b[31mhello",
        rows.ISSUE,
    )


def test_progress_is_shown_as_far_as_it_is() -> None:
    call = frame("client", b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":"p"}}}')
    body = b'{"progressToken":"p","progress":2,"total":3,"message":"asked icon"}'
    shown = last_row(
        call, frame("server", b'{"jsonrpc":"2.0","method":"notifications/progress","params":' + body + b"}")
    )

    assert shown.subject == "2/3 asked icon"


def exchange(*entries: Entry, sizes: tuple[int, int | None] = (71, None), now: float = 1.25) -> Row:
    """Return the row of the first message with its outcome."""
    return exchange_row(Session().add_all(entries).changes[0], sizes, now)


def test_an_exchange_row_has_both_sizes_the_latency_and_the_outcome() -> None:
    answer = frame("server", b'{"jsonrpc":"2.0","id":1,"result":{}}')

    assert exchange(CALL, answer, sizes=(71, 5_700_000)) == Row(
        "0.250", "→", "tools/call", "echo", "1", "250.0 ms", "    71   5.7M", "ok", rows.OK
    )


def test_an_open_exchange_row_has_waiting_time_and_progress() -> None:
    call = frame(
        "client", b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":"p"}}}', 0.25
    )
    body = b'{"progressToken":"p","progress":%d,"total":3,"message":"\\u001b[2Jicon"}'
    reports = [
        frame(
            "server", b'{"jsonrpc":"2.0","method":"notifications/progress","params":' + body % number + b"}"
        )
        for number in (1, 2)
    ]
    waits, goes_on = exchange(call), exchange(call, *reports)

    assert (waits.latency, waits.size.rstrip(), waits.status) == ("1.00 s…", "    71", "pending")
    assert waits.tone == goes_on.tone == rows.OPEN
    assert goes_on.status == "pending: 2/3 \\x1b[2Jicon"
    assert exchange(call, now=0.1).latency == "0 µs…", "clocks may differ"


def test_an_exchange_row_has_the_flaws_of_both_messages() -> None:
    answer = frame("server", b'{"id":1,"result":{}}')
    shown = exchange(CALL, answer)

    assert (shown.status, shown.tone) == ('ok; jsonrpc is not "2.0"', rows.ISSUE)
    failed = exchange(CALL, frame("server", b'{"id":1,"error":{"code":7,"message":"no"}}'))
    assert (failed.status, failed.tone) == ('error 7: no; jsonrpc is not "2.0"', rows.BAD)


def test_an_exchange_that_ended_without_an_answer_has_no_latency() -> None:
    session = Session().add_all([CALL, Note(1.0, "exit", {"code": 0})])
    session.end()
    shown = exchange_row(session.changes[0], (71, None), 2.0)

    assert (shown.latency, shown.status, shown.tone) == ("", "no answer", rows.BAD)


def test_a_message_outside_exchanges_has_its_own_row() -> None:
    note = Note(1.0, "stderr", {"text": "up"})

    assert exchange(note) == last_row(note)


@pytest.mark.parametrize(
    ("note", "method", "subject", "tone"),
    [
        (Note(1.0, "stderr", {"text": "up\x1b[2J"}), "stderr", "up\\x1b[2J", rows.QUIET),
        (Note(1.0, "stderr", {"b64": "/w=="}), "stderr", "\\xff", rows.QUIET),
        (Note(1.0, "exit", {"code": 0, "signal": None}), "exit", "0", rows.OK),
        (Note(1.0, "exit", {"code": None, "signal": "SIGSEGV"}), "exit", "killed by SIGSEGV", rows.BAD),
        (Note(1.0, "eof", {"from": "client"}), "eof", "the client closed stdin", rows.QUIET),
        (Note(1.0, "signal", {"signal": "SIGTERM"}), "signal", "SIGTERM from the host", rows.ISSUE),
        (
            Note(1.0, "redirect", {"to": "http://a.example", "location": "http://a.example/mcp/"}),
            "redirect",
            "past mcpspy, to http://a.example/mcp/",
            rows.ISSUE,
        ),
        (
            Note(1.0, "oversized", {"from": "server", "size": 9, "sha256": "00"}),
            "oversized",
            "server: 9 bytes above --max-body were not recorded",
            rows.ISSUE,
        ),
        (
            Note(6.0, "unread", {"pipe": "stdin", "size": 162, "since": 1.0}),
            "unread",
            "the server has not read 162 bytes of its stdin",
            rows.ISSUE,
        ),
        (
            Note(1.0, "unfinished", {"from": "server", "size": 1, "since": 0.5}),
            "unfinished",
            "the server has not finished a line of 1 byte",
            rows.ISSUE,
        ),
        (
            Note(0.0, "placeholders", {"variables": ["KEY", "T\x1b"], "arguments": ["--root"]}),
            "placeholders",
            "placeholders instead of values: KEY, T\\x1b (environment); --root (command)",
            rows.ISSUE,
        ),
        (
            Note(1.0, "lost", {"entries": 3, "why": "full"}),
            "lost",
            "3 entries were not recorded: full",
            rows.BAD,
        ),
        (
            Note(1.0, "http", {"method": "GET", "path": "/x\x1b", "status": 200}),
            "http",
            "GET /x\\x1b",
            rows.QUIET,
        ),
        (Note(1.0, "http", {"method": "POST", "path": "/", "status": 404}), "http", "POST /", rows.BAD),
        (
            Note(1.0, "http-end", {"http": 3, "hung_up": None}),
            "http-end",
            "HTTP exchange 3 ended",
            rows.QUIET,
        ),
        (
            Note(1.0, "http-end", {"http": 3, "hung_up": "server"}),
            "http-end",
            "HTTP exchange 3 ended: the server disconnected",
            rows.BAD,
        ),
        (Note(1.0, "sse", {"id": "7", "retry": 5, "data": ""}), "sse", "id 7, retry in ms 5", rows.QUIET),
        (Note(1.0, "unheard", {"of": 1}), "unheard", "of 1", rows.QUIET),
    ],
)
def test_a_note_row_is_in_words(note: Note, method: str, subject: str, tone: str) -> None:
    shown = last_row(note)

    assert (shown.arrow, shown.method, shown.subject, shown.tone) == (
        "·",
        method,
        subject,
        tone,
    )


def test_bytes_that_did_not_arrive_are_counted() -> None:
    shown = last_row(Note(1.0, "closed", {"by": "client", "pipe": "stdout", "undelivered": 12}))

    assert (shown.subject, shown.status) == (
        "the client stopped reading stdout",
        "12 bytes undelivered",
    )


def test_a_damaged_line_of_the_file_is_a_row() -> None:
    assert last_row(Damaged(b"\x00oops", "not JSON")).subject == "\\x00oops"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0000621, "62 µs"), (0.0121, "12.1 ms"), (1.254, "1.25 s"), (125, "2m05s"), (7260, "2h01m")],
)
def test_a_duration_has_a_unit_that_fits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (999, "999"), (12_345, "12.3k"), (999_960, "1.0M"), (5_700_000, "5.7M")]
)
def test_a_size_is_short(count: int, text: str) -> None:
    assert size(count) == text


def test_a_row_has_what_mcpspy_did() -> None:
    lines = [
        b'{"t":1,"from":"client","to":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}}',
        b'{"t":1,"note":"rule","action":"error","rule":"2","from":"client","id":"1","method":"tools/call","subject":"echo"}',
        b'{"t":1,"from":"server","by":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"boom"}}}',
        b'{"t":2,"note":"rules","seed":1,"rules":[{"rule":"2","when":"","action":"error","probability":0.2},7]}',
    ]
    session = Session().add_all(map(read_entry, lines))
    shown = [row(change) for change in session.changes]

    assert [each.status for each in shown] == [
        "answered with an error (rule 2)",
        "answered with an error (rule 2)",
        "error -32000 server error: boom; by mcpspy",
        "",
    ]
    assert shown[1].subject == "tools/call echo, id 1"
    assert shown[3].subject == "2: (all) => 20% error; 7"
    both = exchange_row(session.changes[0], (1, 2), 3.0)
    assert both.status == "error -32000 server error: boom; answered with an error (rule 2)"


@pytest.mark.parametrize(
    ("notes", "status"),
    [
        ([{"action": "drop", "rule": "flaky"}], "dropped (rule flaky)"),
        (
            [
                {"action": "hold", "viewer": "tui", "ticket": 1},
                {"action": "release", "why": "dropped", "seconds": 3, "viewer": "tui", "ticket": 1},
            ],
            "dropped after 3 s (tui); held (tui)",
        ),
        (
            [
                {"action": "hold", "viewer": "tui", "ticket": 1},
                {"action": "release", "why": "connection closed", "seconds": 3, "ticket": 1},
            ],
            "abandoned; held (tui); sender disconnected after 3 s",
        ),
    ],
)
def test_the_status_of_a_request_that_was_not_forwarded_begins_with_its_state(
    notes: list[dict[str, object]], status: str
) -> None:
    about = {"from": "client", "id": "1", "method": "tools/call", "subject": "echo"}
    session = Session().add_all([CALL, *(Note(1.0, "rule", {**about, **fields}) for fields in notes)])

    assert row(session.changes[0]).status == status
    shown = exchange_row(session.changes[0], (71, None), 60.0)
    assert (shown.status, shown.latency) == (status, ""), "its clock has stopped"
