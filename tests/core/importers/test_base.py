"""Lines that importers build."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.importers.base import RecordingLines, read_lines
from mcpspy.core.recording.decode import Frame, Note, read_entry
from mcpspy.errors import UsageError

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def entries(lines: RecordingLines, start: float | None = None) -> list[object]:
    return [read_entry(line.removesuffix(b"\n")) for line in lines.done(start)[1]]


def test_a_message_is_spliced_in_as_it_is_and_time_counts_from_the_first() -> None:
    lines = RecordingLines()
    lines.message(1000.5, "client", b'{"id":1.0,"big":123456789012345678901234567890,"a":1,"a":"\\u00e9"}')
    lines.message(1001.75, "server", b"[1]", stream="7%", http=3)
    started, made = lines.done()
    assert started == 1000.5
    assert made == [
        b'{"t":0.000000,"from":"client","msg":{"id":1.0,"big":123456789012345678901234567890,"a":1,"a":"\\u00e9"}}\n',
        b'{"t":1.250000,"from":"server","stream":"7%","http":3,"msg":[1]}\n',
    ]
    assert lines.messages == 2


def test_a_line_that_is_not_a_message_is_kept_with_the_reason() -> None:
    lines = RecordingLines()
    lines.message(0, "server", b"DEBUG\n{}")
    lines.message(0, "server", b"\xff")
    lines.message(0, "server", b" \n ")
    assert [line.partition(b'"why":')[2] for line in lines.done()[1]] == [
        b'"several lines","raw":"DEBUG\\n{}"}\n',
        b'"not UTF-8","b64":"/w=="}\n',
    ]


def test_a_line_that_is_nested_too_deeply_is_named() -> None:
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    with pytest.raises(UsageError, match="invalid log line 3: nested too deeply"):
        list(read_lines(b'{"a":1}\n\n' + deep + b"\n", dict[str, Any], "log"))


def test_ordered_messages_keep_their_order_when_the_clock_goes_back() -> None:
    lines = RecordingLines()
    for at in (5.0, 4.0, 6.0):
        lines.message(at, "client", b"[%d]" % at)
    assert [(entry.at, entry.data) for entry in entries(lines) if isinstance(entry, Frame)] == [
        (0.0, b"[5]"),
        (0.0, b"[4]"),
        (1.0, b"[6]"),
    ]


def test_unordered_entries_are_sorted_by_time() -> None:
    lines = RecordingLines(by_time=True)
    lines.message(5.0, "client", b"[1]")
    lines.note(6.0, "http-end", http=1)
    lines.message(5.5, "server", b"[2]")
    lines.session(format="test", lacks=[])
    kinds = [
        entry.data if isinstance(entry, Frame) else getattr(entry, "kind", "")
        for entry in entries(lines, 4.0)
    ]
    assert kinds == [b"[1]", b"[2]", "http-end", "exit"]
    assert [getattr(entry, "at", None) for entry in entries(lines, 4.0)] == [1.0, 1.5, 2.0, 2.0]


def test_the_exit_note_has_neither_a_code_nor_a_signal() -> None:
    lines = RecordingLines()
    lines.session(format="test", lacks=[])
    (end,) = entries(lines)
    assert end == Note(0.0, "exit", {"code": None, "signal": None})


def test_events_are_messages_or_what_primes_a_stream() -> None:
    lines = RecordingLines()
    lines.events(
        [2.0, 2.5, 3.0],
        b"id: 1\r\nretry: 5\r\n\r\nevent: message\r\nid: 2\r\ndata: " + PING + b"\r\n\r\ndata: {",
        http=1,
    )
    assert lines.messages == 2
    note, frame, torn = entries(lines)
    assert note == Note(0.0, "sse", {"http": 1, "id": "1", "retry": 5, "event_end": "\r\n\r\n"})
    assert isinstance(frame, Frame)
    assert (frame.data, frame.http, frame.event_id) == (PING, 1, "2")
    assert isinstance(torn, Frame)
    assert torn.eol == ""


def test_stderr_is_a_line_whatever_is_in_it() -> None:
    lines = RecordingLines()
    lines.stderr(0, 'a "quoted"\nline \ud800')
    (note,) = entries(lines)
    assert isinstance(note, Note)
    assert note.text == 'a "quoted"\nline ?'
    assert lines.messages == 0


@pytest.mark.parametrize("at", [float("inf"), float("nan"), 1e300, -1e12])
def test_an_impossible_time_is_refused(at: float) -> None:
    with pytest.raises(UsageError, match="is not a valid time"):
        RecordingLines().message(at, "client", PING)
