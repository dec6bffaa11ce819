"""Envelopes of mcpsnoop; files/mcpsnoop.jsonl has examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.core.importers.mcpsnoop import sessions
from mcpspy.errors import UsageError
from tests.core.importers.reading import entries, frames, notes

SAMPLE = (Path(__file__).parent / "files" / "mcpsnoop.jsonl").read_bytes()


def test_each_session_of_a_file_has_its_own_command_and_streams() -> None:
    piped, http = sessions(SAMPLE)
    assert (piped.key, piped.name, piped.transport) == ("1f0c52aa9be4", "weather", "stdio")
    assert (piped.command, piped.cwd) == (["python", "weather.py"], "/srv")
    assert (http.key, http.transport, http.command) == ("77aa01c4d2ef", "http", None)
    assert [getattr(entry, "stream", "") for entry in entries(http)] == ["1", "2", "1", "2", ""]
    assert http.lacks != piped.lacks


def test_lines_that_are_not_messages_are_unchanged() -> None:
    piped, _ = sessions(SAMPLE)
    assert notes(piped, "stderr") == [{"text": "weather: ready"}]
    said = [said for _, _, said in frames(piped)]
    assert b"DEBUG: 3 stations in cache" in said
    assert said[-1].endswith(b'"big":12345678901234567890123}}')


def test_dropped_and_changed_messages_are_counted() -> None:
    envelope = '{"session_id":"s","seq":%d,"ts":"2026-11-21T08:00:00Z","direction":"c2s","raw":{},%s}\n'
    lines = [(1, '"truncated":true'), (2, '"redacted":true'), (5, '"batch":true'), (6, '"batch":true')]
    (session,) = sessions("".join(envelope % line for line in lines).encode())
    assert session.changed == [
        "dropped by mcpsnoop: 2 events",
        "truncated by mcpsnoop: 1 message",
        "already redacted in the file: 1 message",
        "split from batches: 2 messages",
    ]


def test_an_invalid_time_is_refused_with_its_line() -> None:
    with pytest.raises(UsageError, match=r"^invalid mcpsnoop line 1: 'soon' is not a date and time"):
        sessions(b'{"session_id":"s","seq":1,"ts":"soon","direction":"c2s"}')


def test_an_invalid_session_description_loses_only_the_command() -> None:
    (session,) = sessions(
        b'{"session_id":"s","seq":1,"ts":"2026-11-21T08:00:00Z","direction":"meta","raw":{"command":1}}\n'
        b'{"session_id":"s","seq":2,"ts":"2026-11-21T08:00:00Z","direction":"s2c","raw":[]}'
    )
    assert (session.command, session.messages) == (None, 1)


def test_details_of_a_session_that_are_not_utf8_are_ignored() -> None:
    envelope = (
        b'{"session_id":"s","seq":1,"ts":"2026-11-21T08:00:00Z","direction":"meta","raw":{"cwd":"\xff"}}\n'
    )
    (session,) = sessions(envelope)
    assert (session.command, session.cwd) == (None, None)
