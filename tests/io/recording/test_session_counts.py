"""Counting of a session from the position of the last count."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.session.index import Index
from mcpspy.core.session.outcome import SessionCounts
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.io.recording.session_counts import PORTION, SessionCounter, count
from mcpspy.io.recording.writer import Writer
from tests.io.files import EXIT, frame, note, write


def call(number: int) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "x"}}
    return frame(number, "client", message)


def result(number: int, text: str = "") -> bytes:
    return frame(number + 0.5, "server", {"jsonrpc": "2.0", "id": number, "result": {"text": text}})


def failure(number: int) -> bytes:
    error = {"code": -32602, "message": "no"}
    return frame(number + 0.5, "server", {"jsonrpc": "2.0", "id": number, "error": error})


def append(path: Path, *lines: bytes) -> None:
    with path.open("ab") as file:
        file.writelines(lines)


def counted(path: Path) -> SessionCounts:
    return count(summarize(path, read_header_of(path)))


def test_messages_errors_and_pending_requests_are_counted(tmp_path: Path) -> None:
    counter = SessionCounter(
        write(
            tmp_path / "a.jsonl",
            call(1),
            result(1),
            call(2),
            failure(2),
            call(3),
            note(4, "stderr", text="x"),
        )
    )
    assert counter.read()
    assert counter.counts == SessionCounts(messages=5, errors=1, pending=1)


def test_after_the_end_what_has_no_answer_is_unanswered_and_no_error(tmp_path: Path) -> None:
    assert counted(write(tmp_path / "a.jsonl", call(1), call(2), EXIT)) == SessionCounts(
        2, 0, 0, unanswered=2
    )
    assert counted(write(tmp_path / "b.jsonl", call(1), result(1), call(2))) == SessionCounts(
        3, 0, 0, unanswered=1
    )


def test_a_live_session_still_waits(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path), None, {"name": "x"}, say=pytest.fail)
    writer.write(call(1))
    assert counted(Path(writer.path)) == SessionCounts(1, 0, 1)
    writer.close()


def test_lines_already_counted_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.jsonl", call(1), result(1))
    counter = SessionCounter(path)
    assert counter.read()
    append(path, call(2), b'{"t":3,"from":"ser')
    taken: list[bytes] = []
    take = Index.add_lines

    def spy(self: Index, lines: Sequence[bytes], offset: int) -> int:
        taken.extend(lines)
        return take(self, lines, offset)

    monkeypatch.setattr(Index, "add_lines", spy)
    assert counter.read()
    assert len(taken) == 1
    append(path, b'ver","msg":{"jsonrpc":"2.0","id":2,"result":{}}}\n')
    assert counter.read()
    assert (len(taken), counter.counts) == (2, SessionCounts(4, 0, 0))


def test_a_long_session_is_counted_in_portions(tmp_path: Path) -> None:
    lines = [line for number in range(1, 5) for line in (call(number), result(number, "y" * PORTION))]
    counter = SessionCounter(write(tmp_path / "a.jsonl", *lines, EXIT))
    steps = 1
    while not counter.read(0):
        steps += 1
    assert steps > 4
    assert counter.counts == SessionCounts(8, 0, 0)


def test_all_parts_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    writer = Writer(None, str(path), {"name": "x"}, say=pytest.fail, max_size=300)
    for number in range(1, 9):
        writer.write(call(number))
        writer.write(result(number))
    writer.note(9.0, "exit", code=0)
    writer.close()
    assert len(list(tmp_path.iterdir())) > 2
    assert counted(path) == SessionCounts(16, 0, 0)


def test_a_part_that_comes_later_is_counted_on(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", call(1), note(1, "part", next="a.part2.jsonl"))
    counter = SessionCounter(path)
    assert counter.read()
    write(tmp_path / "a.part2.jsonl", result(1), call(2), part=2)
    assert counter.read()
    assert counter.counts == SessionCounts(3, 0, 1)


def test_parts_that_name_each_other_are_counted_once(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", call(1), note(1, "part", next="b.jsonl"))
    write(tmp_path / "b.jsonl", call(2), note(2, "part", next="a.jsonl"), part=2)
    counter = SessionCounter(tmp_path / "a.jsonl")
    assert counter.read()
    assert counter.counts.messages == 2


@pytest.mark.parametrize("how", ["cut", "replaced"])
def test_a_file_that_begins_again_is_counted_again(tmp_path: Path, how: str) -> None:
    path = write(tmp_path / "a.jsonl", call(1), result(1), call(2))
    counter = SessionCounter(path)
    assert counter.read()
    if how == "cut":
        write(path, call(7))
    else:
        write(tmp_path / "new", call(7), result(7), call(8), result(8), call(9))
        os.replace(tmp_path / "new", path)
    assert any(counter.read() for _ in range(9))
    assert counter.counts == (SessionCounts(1, 0, 1) if how == "cut" else SessionCounts(5, 0, 1))


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        SessionCounter(tmp_path / "gone.jsonl").read()


def test_damaged_lines_are_not_counted_as_messages(tmp_path: Path) -> None:
    counter: Any = SessionCounter(write(tmp_path / "a.jsonl", b"noise\n", call(1), b"\n"))
    assert counter.read()
    assert counter.counts == SessionCounts(1, 0, 1, issues=2)
