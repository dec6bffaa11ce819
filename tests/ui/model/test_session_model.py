"""Session model: rows from the index, messages from the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.analysis import rows
from mcpspy.core.protocol.message import Failure, Notification, Request, Result
from mcpspy.core.recording.decode import Damaged, Header, Note
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.exchange import State
from mcpspy.ui.model import session_model as module
from mcpspy.ui.model.session_model import GONE, SessionModel
from tests.ui.tui.panels.panels import RECORDINGS, recorded

Logged = Callable[..., SessionModel]

CALL = b'"client","msg":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}}'
FAILED = b'"server","msg":{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such thing"}}}'
PROGRESS = b'"server","msg":{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}}'
BATCH = b'"client","msg":[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]}'


class File:
    """Lines of a recording, and their session model."""

    def __init__(self) -> None:
        self.data = b""
        self.log = SessionModel(Header(mcpspy=1, id="ab", started="2026-01-01T00:00:00.000Z"), self.read)

    def read(self, part: int, offset: int, length: int) -> bytes:
        """Return bytes of the only part."""
        assert part == 0
        return self.data[offset : offset + length]

    def add(self, *lines: bytes) -> SessionModel:
        """Add lines; those of frames are given without their time."""
        whole = [line if line.startswith(b"{") else b'{"t":0.5,"from":' + line for line in lines]
        offset = len(self.data)
        self.data += b"".join(line + b"\n" for line in whole)
        assert self.log.add_lines(whole, offset) == len(self.data)
        return self.log


@pytest.fixture
def file() -> File:
    return File()


def test_a_row_has_its_message_and_its_outcome(file: File) -> None:
    log = file.add(CALL, PROGRESS, FAILED)
    asked, report, answer = (log.get(row) for row in range(3))
    assert asked is not None
    assert report is not None
    assert answer is not None
    assert isinstance(asked.what, Request)
    assert isinstance(report.what, Notification)
    assert isinstance(answer.what, Failure)
    for change in (asked, report, answer):
        assert change.exchange is not None
        assert (change.exchange.state, change.exchange.request.data) == (State.ERROR, asked.what.data)
        assert change.exchange.answer is not None
        assert [one.data for one in change.exchange.progress] == [report.what.data]
    assert [log.other(row) for row in range(4)] == [2, 0, 0, None]
    assert log.get(3) is None
    assert log.get(-1) is None


def test_each_message_of_a_batch_is_a_row(file: File) -> None:
    log = file.add(BATCH)
    methods = [log.message(row) for row in range(2)]
    assert [one.method for one in methods if isinstance(one, Notification)] == ["a", "b"]


def test_an_issue_is_reported_once(file: File) -> None:
    log = file.add(FAILED.replace(b'"2.0"', b'"1.0"'))
    change = log.get(0)
    assert change is not None
    assert isinstance(change.what, Failure)
    assert (change.what.flaws, change.flaw) == (('jsonrpc is not "2.0"',), "unsolicited response")


def test_notes_and_damaged_lines_are_rows_too(file: File) -> None:
    log = file.add(b'{"t":1,"note":"stderr","text":"a word"}', b"{broken")
    note, damaged = log.message(0), log.message(1)
    assert isinstance(note, Note)
    assert note.text == "a word"
    assert isinstance(damaged, Damaged)
    assert (damaged.data, log.index.kind(1)) == (b"{broken", RowKind.DAMAGED)


def test_a_large_message_is_drawn_without_being_read(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    large = b"x" * module.LARGE
    log = file.add(
        CALL.replace(b'"name":"x"', b'"name":"x","arguments":{"q":"%b"}' % large),
        b'"server","msg":{"jsonrpc":"2.0","id":2,"result":{"isError":true,"q":"%b"}}}' % large,
    )
    monkeypatch.setattr(log, "read", lambda *_: pytest.fail("it was read"))
    asked, answered = log.shown(0), log.shown(1)
    assert isinstance(asked.what, Request)
    assert (asked.what.method, asked.what.subject, asked.what.id) == ("tools/call", "x", "2")
    assert isinstance(answered.what, Result)
    assert rows.row(answered).status == "tool error"


def test_a_line_that_is_no_longer_in_the_file_is_reported(file: File) -> None:
    log = file.add(CALL, FAILED)
    file.data = file.data[:20]
    change = log.get(1)
    assert change is not None
    assert isinstance(change.what, Damaged)
    assert (change.what.why, change.flaw) == (GONE, GONE)


def test_another_line_in_its_place_is_damaged(file: File) -> None:
    log = file.add(BATCH)
    file.data = b'{"t":1,"note":"stderr"}'.ljust(len(file.data))
    assert isinstance(log.message(1), Damaged)


def test_a_file_that_begins_again_begins_a_new_log(file: File) -> None:
    log = file.add(CALL, FAILED)
    assert isinstance(log.message(0), Request)
    log.begin_again(log.header)
    file.data = b""
    file.add(b'{"t":1,"note":"stderr","text":"a word"}')
    assert (len(log), log.generation) == (1, 1)
    assert isinstance(log.message(0), Note), "the cache of the old file is cleared"
    assert "from its start" in log.restarted


def test_the_bytes_of_a_message_are_exact_whatever_the_form_of_its_line(file: File) -> None:
    log = file.add(
        CALL,
        BATCH,
        FAILED,
        b'{"t":1,"from":"client","msg":{"jsonrpc":"2.0","method":"a","params":{"x":1,"msg":{}}}}',
        b'{"t":1,"from":"server","raw":"no JSON, \\u00e9"}',
        b'{"t":1,"from":"server","b64":"/w=="}',
        b'{"t":1,"from":"client","msg":{"jsonrpc":"2.0","method":"b"},"more":1}',
        b'{"t":1,"from":"client","msg":{oops}}',
    )
    assert len(log) == 9
    for row in range(len(log)):
        what = log.message(row)
        assert not isinstance(what, Note)
        assert log.data(row) == what.data


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_row_shows_the_same_whether_its_message_was_read_or_not(path: Path) -> None:
    log = recorded(path.read_bytes()).log
    told = [row for row in range(len(log)) if log.index.is_listable(row)]
    assert told
    for row in told:
        shown, read = log.shown(row), log.get(row)
        assert read is not None
        assert not isinstance(shown.what, Note | Damaged)
        assert shown.what.data == b"", "it was read"
        unsized = {"size": ""}
        assert rows.row(shown)._replace(**unsized) == rows.row(read)._replace(**unsized)
        assert rows.exchange_row(shown, (1, 2), 9.0) == rows.exchange_row(read, (1, 2), 9.0)


def test_issues_and_injection_of_a_message_are_read_from_it() -> None:
    file = File()
    file.add(
        b'"client","by":"mcpspy","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}}',
        b'"client","msg":{"jsonrpc":"1.0","id":2,"method":"ping"}}',
        b'"client","msg":{"jsonrpc":"2.0","id":3,"method":"ping"}}',
        b'"server","msg":{"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t"}}}}',
        b'"client","msg":{"jsonrpc":"2.0","id":3,"method":"ping"}}',
    )
    assert [file.log.index.is_listable(row) for row in range(5)] == [False, False, True, False, False]
