"""What there is to jump to and to count in a session."""

from __future__ import annotations

from mcpspy.core.record import Damaged, Entry, Frame, Header, Note
from mcpspy.io.store import BEGINS_AGAIN
from mcpspy.ui.tui.log import Log


def logged(*entries: Entry) -> Log:
    log = Log(Header(mcpspy=1, id="ab", started="2026-01-01T00:00:00.000Z"))
    for entry in entries:
        log.add(entry)
    return log


def client(data: bytes) -> Frame:
    return Frame(0.1, "client", data)


def server(data: bytes) -> Frame:
    return Frame(0.2, "server", data)


PING = client(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
PONG = server(b'{"jsonrpc":"2.0","id":1,"result":{}}')
NOISE = server(b"DEBUG: hello")
CALL = client(b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}')
REFUSED = server(b'{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}')
FAILED = server(b'{"jsonrpc":"2.0","id":2,"result":{"isError":true,"content":[]}}')
STDERR = Note(0.3, "stderr", {"text": "a word"})
EXIT = Note(0.4, "exit", {"code": 0, "signal": None})


def test_messages_errors_odd_ones_and_pending_requests_are_counted() -> None:
    log = logged(PING, PONG, NOISE, CALL, STDERR)
    assert (log.messages, log.failed, log.odd, log.pending) == (4, 0, 1, 1)

    log.add(REFUSED)
    assert (log.messages, log.failed, log.odd, log.pending) == (5, 1, 1, 0)


def test_an_answer_and_its_request_lead_to_each_other() -> None:
    log = logged(PING, CALL, FAILED, PONG, STDERR)

    assert [log.other(number) for number in range(5)] == [3, 2, 1, 0, None]
    assert log.other(5) is None


def test_progress_leads_to_its_request() -> None:
    call = client(b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":7}}}')
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}'
    )

    assert logged(PING, call, server(progress)).other(2) == 1


def test_errors_are_found_in_both_directions() -> None:
    log = logged(PING, NOISE, PONG, CALL, FAILED)

    assert [log.next_wrong(number, 1) for number in range(5)] == [1, 4, 4, 4, None]
    assert [log.next_wrong(number, -1) for number in range(5)] == [None, None, 1, 1, 1]


def test_a_request_that_the_end_left_unanswered_is_an_error() -> None:
    log = logged(CALL, PING, PONG, EXIT)
    assert (log.wrong, log.failed) == ([0], 1)

    log = logged(CALL, PING)
    log.end()
    assert (log.wrong, log.failed, log.pending) == ([0, 1], 2, 0)


def test_an_end_that_is_said_twice_counts_once() -> None:
    log = logged(CALL, EXIT)
    log.end()

    assert (log.wrong, log.failed) == ([0], 1)


def test_a_file_that_begins_again_begins_a_new_log() -> None:
    log = logged(PING, PONG, CALL)
    log.add(Damaged(b"", BEGINS_AGAIN))
    log.add(PING)

    assert (len(log), log.messages, log.generation) == (2, 1, 1)
    assert log.restarted.startswith(BEGINS_AGAIN)
    assert log.get(1) is not None
    assert log.get(2) is None


def test_an_empty_line_of_the_file_is_no_new_beginning() -> None:
    log = logged(PING, Damaged(b"", "not JSON"), PONG)

    assert (len(log), log.generation, log.odd) == (3, 0, 1)
