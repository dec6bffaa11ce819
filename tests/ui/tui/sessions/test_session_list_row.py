"""The cells of the session list."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcpspy.analysis import rows
from mcpspy.core.session.outcome import SessionCounts
from mcpspy.io.recording.reader import Summary, read_header_of, summarize
from mcpspy.io.recording.session_counts import LARGEST
from mcpspy.ui.tui.sessions.session_list import session_row

Make = Callable[..., Path]

NOW = datetime(2026, 5, 20, 15, 0, tzinfo=timezone(timedelta(hours=2)))


def summary_of(path: Path) -> Summary:
    return summarize(path, read_header_of(path))


def test_a_row_has_peers_and_verdict(make_recording: Make) -> None:
    row = session_row(summary_of(make_recording(exit_code=3)), None, NOW)

    assert (row.state, row.name, row.verdict) == ("✗", "tested", "crashed, exit 3")
    assert (row.server, row.client, row.revision) == ("tested 2", "tested 2", "2025-11-25")
    assert row.tones["verdict"] == rows.BAD


def test_live_and_died_sessions_have_a_mark_and_a_verdict(live: Any, make_recording: Make) -> None:
    running = session_row(summary_of(live.path), None, NOW)
    killed = session_row(summary_of(make_recording(exit_code=None)), None, NOW)

    assert (running.state, running.verdict) == ("●", "live")
    assert (killed.state, killed.verdict) == ("✗", "mcpspy was killed")


@pytest.mark.parametrize(
    ("counts", "cells", "tones"),
    [
        (None, ("…", "…", "…"), (rows.QUIET, rows.QUIET, rows.QUIET)),
        (SessionCounts(12, 0, 0), ("12", "0", "0"), (None, rows.QUIET, rows.QUIET)),
        (SessionCounts(12, 3, 1), ("12", "3", "1"), (None, rows.BAD, rows.OPEN)),
    ],
)
def test_counts_are_shown_or_have_a_placeholder(
    make_recording: Make, counts: SessionCounts | None, cells: tuple[str, ...], tones: tuple[str | None, ...]
) -> None:
    row = session_row(summary_of(make_recording()), counts, NOW)

    assert (row.messages, row.errors, row.pending) == cells
    assert tuple(row.tones[name] for name in ("messages", "errors", "pending")) == tones


def test_a_session_too_large_to_count_shows_an_estimate(make_recording: Make) -> None:
    summary = msgspec.structs.replace(summary_of(make_recording()), size=LARGEST + 1)
    row = session_row(summary, None, NOW)

    assert (row.messages, row.errors, row.pending) == ("~6", "?", "?")


def test_hostile_names_are_sanitized(make_recording: Make) -> None:
    row = session_row(summary_of(make_recording(name="a\x1b]0;t\x07\u202e")), None, NOW)

    assert row.name == "a\\x1b]0;t\\x07\\u202e"
