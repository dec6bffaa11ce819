"""Filter items of changes: each field has the value that the row shows."""

from __future__ import annotations

from collections.abc import Iterable

from mcpspy.core.query.parser import FilterItem, parse
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Note
from mcpspy.core.session.session import Session
from mcpspy.ui.model.filter_items import ChangeItem


def said(side: str, data: bytes, at: float = 0.5) -> Frame:
    return Frame(at, side, data, "s1")


def last(*entries: Entry) -> FilterItem:
    return ChangeItem(Session().add_all(entries).changes[-1])


def found(query: str, entries: Iterable[Entry]) -> list[int]:
    wants = parse(query).matches
    return [change.number for change in Session().add_all(entries).changes if wants(ChangeItem(change))]


CALL = said("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}', 0.25)
FAILURE = said("server", b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}')


def test_a_pending_request_has_its_state_and_no_latency() -> None:
    item = last(CALL)

    assert (item.side, item.kind, item.method, item.subject, item.id) == (
        "client",
        "request",
        "tools/call",
        "echo",
        "1",
    )
    assert (item.at, item.status, item.latency, item.size, item.stream) == (0.25, "pending", None, 71, "s1")
    assert (item.has_issue, item.error_code, item.text()) == (False, None, CALL.data)


def test_a_response_has_the_method_of_its_request_and_the_outcome() -> None:
    item = last(CALL, FAILURE)

    assert (item.side, item.kind, item.method, item.subject, item.id) == (
        "server",
        "error",
        "tools/call",
        "echo",
        "1",
    )
    assert (item.at, item.status, item.latency, item.size) == (0.5, "error", 0.25, len(FAILURE.data))
    assert (item.has_issue, item.error_code) == (False, -32602)


def test_a_failure_is_found_once_and_not_at_its_request_too() -> None:
    assert found("status:err", [CALL, FAILURE]) == [1]
    assert found("tool:echo", [CALL, FAILURE]) == [0, 1]


def test_an_unsolicited_response_is_a_protocol_issue_without_method() -> None:
    item = last(FAILURE)

    assert (item.method, item.subject, item.status, item.latency, item.has_issue) == (
        "",
        "",
        "error",
        None,
        True,
    )


def test_a_response_has_the_params_of_its_request() -> None:
    assert found("params.name=echo", [CALL, FAILURE]) == [0, 1]
    assert found("error.message:no", [CALL, FAILURE]) == [1]
    assert found("result:*", [CALL, FAILURE]) == []
    assert found("params:*", [FAILURE, Note(1.0, "stderr", {"text": "params"})]) == []


def test_a_flawed_message_has_an_issue() -> None:
    assert last(said("client", b'{"id":1,"method":"ping"}')).has_issue
    assert last(said("server", b"oops")).has_issue


def test_a_malformed_message_is_found_by_its_bytes() -> None:
    item = last(said("server", b"DEBUG: hello"))

    assert (item.kind, item.method, item.side, item.size) == ("malformed", "", "server", 12)
    assert item.text() == b"DEBUG: hello"


def test_a_damaged_line_has_only_its_bytes() -> None:
    item = last(Damaged(b'{"t":', "not JSON"))

    assert (item.kind, item.side, item.stream, item.at, item.has_issue) == ("damaged", "", "", 0.0, True)
    assert item.text() == b'{"t":'


def test_a_note_has_its_kind_and_the_words_of_its_row() -> None:
    stderr = last(Note(1.0, "stderr", {"text": "\x1b[31mwarm"}))
    refused = last(Note(1.0, "http", {"method": "POST", "path": "/mcp", "status": 404, "stream": "s1"}))

    assert (stderr.kind, stderr.side, stderr.method, stderr.size) == ("stderr", "", "", 0)
    assert not stderr.has_issue
    assert stderr.text() == b"\x1b[31mwarm"
    assert (refused.stream, refused.text()) == ("s1", b"POST /mcp HTTP 404")


def test_a_notification_has_its_subject_and_no_status() -> None:
    item = last(
        said("server", b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}')
    )

    assert (item.kind, item.subject, item.status, item.id) == ("notification", "info", "", "")


def test_stderr_next_to_a_failure_is_a_problem_if_no_message_is_in_between() -> None:
    def stderr(text: str) -> Note:
        return Note(0.4, "stderr", {"text": text})

    ping = said("client", b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
    crash = Note(1.0, "exit", {"code": 1, "signal": None})
    closed = Note(0.9, "eof", {"from": "server"})
    entries: list[Entry] = [
        stderr("start"),
        CALL,
        stderr("traceback"),
        FAILURE,
        stderr("after"),
        ping,
        stderr("boom"),
        closed,
    ]

    changes = Session().add_all([*entries, crash]).changes
    wants = parse("is:problem").matches

    found = [change.number for change in changes if wants(ChangeItem(change, changes=changes))]
    assert found == [2, 3, 4, 5, 6, 8]
    assert [change.number for change in changes if wants(ChangeItem(change))] == [3, 5, 8]


def test_only_the_last_lines_of_stderr_before_a_failure_are_a_problem() -> None:
    lines = [Note(0.4, "stderr", {"text": str(number)}) for number in range(100)]
    for code, signal, near in ((1, None, 20), (0, None, 0), (None, "SIGTERM", 0), (None, "SIGSEGV", 20)):
        changes = Session().add_all([*lines, Note(1.0, "exit", {"code": code, "signal": signal})]).changes
        item = [ChangeItem(change, changes=changes) for change in changes[:-1]]
        assert sum(map(parse("is:problem").matches, item)) == near
