"""The texts around the session list, and the confirmation of a deletion."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from mcpspy.core.recording.decode import Note
from mcpspy.io.recording.reader import RecordingState
from mcpspy.io.recording.session_counts import LARGEST
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.tui.sessions.session_list import (
    EMPTY,
    about,
    command,
    nothing,
    question,
    refusal,
    title,
    undecided,
)
from mcpspy.ui.tui.widgets.columns import Piece
from tests.ui.tui.sessions.summaries import SESSIONS, session

LIVE, ENDED, DIED = SESSIONS


def said(pieces: list[Piece]) -> str:
    return "".join(text for text, _ in pieces)


def test_a_title_counts() -> None:
    assert said(title(3, SESSIONS, 0)[1]) == "3 sessions · 1 live"
    assert said(title(1, SESSIONS, 2)[1]) == "1 of 3 sessions · 1 live · 2 marked"
    assert said(title(0, [], 0)[1]) == "0 sessions"


def test_an_empty_list_shows_instructions() -> None:
    assert nothing(0) is EMPTY
    assert said(nothing(12)) == "0 of 12 sessions match. Press esc to clear the filter."
    assert max(len(text) for text, _ in EMPTY) <= 77


def test_an_empty_list_shows_why_no_session_matches() -> None:
    assert said(nothing(12, hint="No name matches \x1b.")).endswith("the filter.No name matches \\x1b.")


def test_the_status_counts_the_sessions_that_the_filter_cannot_decide_on() -> None:
    large = msgspec.structs.replace(ENDED, size=LARGEST + 1)

    assert undecided([LIVE]) == "counting the messages of 1 session …"
    assert undecided([large]) == "1 session too large to count here: mcpspy ls -q counts them"
    assert undecided([LIVE, ENDED, large]).startswith("counting the messages of 2 sessions … · 1 session too")


def test_details_without_a_column_are_in_the_status_line() -> None:
    assert about(None) == []
    assert said(about(LIVE)) == "weather01 · 1B"
    ended = msgspec.structs.replace(
        ENDED, exit=Note(1.0, "exit", {"code": 3, "signal": None}), size=LARGEST + 1
    )
    assert said(about(ended)) == "too large to count · memory01 · 67.1MB · exit 3"


def test_the_confirmation_names_a_session_its_size_and_parts() -> None:
    assert question([ENDED], 1, 0) == "Delete memory (memory01, 1B)?"
    assert question([ENDED], 3, 0) == "Delete memory (memory01, 1B, 3 parts)?"
    assert question([ENDED], 1, 2) == "Delete memory (memory01, 1B)? (2 live sessions will be kept.)"


def test_the_confirmation_names_some_of_several_sessions() -> None:
    assert question([ENDED, DIED], 3, 1) == (
        "Delete 2 sessions (memory, old one; 2B, 3 files)? (1 live session will be kept.)"
    )
    assert "memory, memory, memory, memory, memory, …; 7B" in question([ENDED] * 7, 7, 0)


def test_live_sessions_are_refused_with_a_reason() -> None:
    assert refusal([LIVE]) == "cannot delete weather: it is live; stop its server first"
    assert refusal([LIVE, LIVE]) == "cannot delete 2 live sessions: stop their servers first"


def test_a_command_shows_the_session_from_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path))
    assert command(ENDED, SESSIONS, sessions_folder()) == "mcpspy show memory01"
    assert command(ENDED, SESSIONS, "/else where") == "mcpspy show memory01 --dir '/else where'"


def test_a_command_names_the_file_if_the_id_is_ambiguous() -> None:
    copy = msgspec.structs.replace(ENDED, path=Path("copy.jsonl"))
    assert command(copy, [*SESSIONS, copy], sessions_folder()) == "mcpspy show copy.jsonl"


def test_hostile_names_are_sanitized_and_cannot_reach_a_shell() -> None:
    hostile = session("\x1b[31m", RecordingState.ENDED, "", "", id="$(rm -rf .)\n")
    assert question([hostile], 1, 0) == "Delete \\x1b[31m ($(rm -rf .)\\n, 1B)?"
    assert command(hostile, [hostile], sessions_folder()) == "mcpspy show '$(rm -rf .)\\n'"
