"""The output of VS Code's MCP servers; files/vscode.log has an example."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.core.importers.vscode import sessions
from mcpspy.errors import UsageError
from tests.core.importers.reading import entries, frames, notes

SAMPLE = (Path(__file__).parent / "files" / "vscode.log").read_bytes()
LINE = b"2026-11-21 09:00:00.%03d [info] %b\n"


def test_each_start_of_the_server_is_a_session() -> None:
    first, second = sessions(SAMPLE)
    assert (first.key, first.name, first.command) == (
        "weather-1",
        "weather",
        ["python3", "/srv/weather.py", "--verbose"],
    )
    assert (first.messages, second.messages, second.command) == (6, 1, None)
    assert first.started == pytest.approx(1795251600.09)
    assert len(notes(first, "exit")) == len(notes(second, "exit")) == 1


def test_a_line_that_vs_code_could_not_parse_is_a_line_of_the_server() -> None:
    first, _ = sessions(SAMPLE)
    assert (frames(first)[1][1], frames(first)[1][2]) == ("server", b'DEBUG: "3" stations')
    assert first.changed == [
        "not JSON in the log, kept as it is: 1 message",
        "left out, because they are not messages: 7 records of the host",
    ]


def test_stderr_continues_on_lines_without_a_time() -> None:
    _, second = sessions(SAMPLE)
    assert [note["text"] for note in notes(second, "stderr")] == [
        "Traceback (most recent call last):",
        '  File "/srv/weather.py", line 3, in <module>',
    ]


def test_the_first_releases_named_the_sides_otherwise() -> None:
    (session,) = sessions(LINE % (1, b"[Client Says] {}") + LINE % (2, b"[Server Says] []") + b"more\n")
    assert [entry.side for entry in entries(session) if hasattr(entry, "side")] == ["client", "server"]
    assert session.changed == [
        "left out, because they belong to no record: 1 line",
        "the session may begin in an earlier file",
        "the end of the session is not in the log: open requests may have been answered later",
    ]


def test_a_message_that_the_log_cuts_is_kept_as_it_is() -> None:
    (session,) = sessions(
        LINE % (1, b'[editor -> server] {"id":') + LINE % (2, b'Failed to parse message: "DEB')
    )
    assert [data for _, _, data in frames(session)] == [b'{"id":', b'"DEB']


def test_a_log_without_messages_is_refused_with_advice() -> None:
    with pytest.raises(UsageError, match="log without messages") as refused:
        sessions(LINE % (1, b"Connection state: Running") + LINE % (2, b"[server stderr] ready"))
    assert "Trace" in str(refused.value.hint)
