"""The cause of a row in the status line, and the window that explains a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.tui.panels import explanation_screen as module
from mcpspy.ui.tui.panels.explanation_screen import ExplanationScreen, cause_of_row, explained
from tests.ui.conftest import Make
from tests.ui.report.test_last_good import good, lines, save

FAULTS = Path(__file__).parents[2] / "report" / "faults"
CRASH = FAULTS / "crash.jsonl"
CAUSE = "the server ended during tools/call work, with exit code 1: KeyError: 'missing'"


def text_of(screen: Any) -> str:
    return str(screen.app.screen.query_one(Static).render())


async def test_the_key_names_the_cause_of_a_failing_row(opened: Any) -> None:
    async with opened(CRASH, size=(160, 30)) as screen:
        await screen.processed()
        await screen.press("e")
        await screen.shows("b cause")
        await screen.press("b")
        await screen.shows(CAUSE)


async def test_a_row_that_is_fine_has_no_cause(opened: Any) -> None:
    async with opened(CRASH, size=(160, 30)) as screen:
        await screen.processed()
        await screen.press("g", "b")
        await screen.shows("nothing wrong found with line 2")


async def test_the_window_explains_the_session_and_escape_closes_it(opened: Any) -> None:
    async with opened(CRASH, size=(70, 24)) as screen:
        await screen.processed()
        await screen.press("B")
        await screen.until(lambda: isinstance(screen.app.screen, ExplanationScreen), "the window")
        await screen.until(lambda: "next: correct what this error names" in text_of(screen), "the next step")
        text = text_of(screen)
        assert text.startswith("1. the server ended during tools/call work")
        assert max(map(len, text.splitlines())) <= 70 - module.EDGE
        await screen.press("escape")
        await screen.until(lambda: screen.app.screen is screen.session, "the session")


async def test_the_window_of_a_recording_that_is_gone_shows_the_reason(
    opened: Any, make_recording: Make
) -> None:
    path = make_recording()
    async with opened(path) as screen:
        await screen.processed()
        path.unlink()
        await screen.press("B")
        await screen.until(lambda: path.name in text_of(screen), "the reason")


async def test_each_row_is_explained_by_its_own_line() -> None:
    rows = {
        change.number: change.exchange
        for change in Recording(CRASH).session().changes
        if change.exchange is not None
    }
    failed = [number for number, exchange in rows.items() if str(exchange.state) == "no answer"]

    assert [await cause_of_row(CRASH, number) for number in failed] == [f"{CAUSE} (server.py line 85)"]
    with pytest.raises(UsageError, match="row 1,001: the session has only"):
        await cause_of_row(CRASH, 1_000)


async def test_a_large_session_is_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 1_000)
    with pytest.raises(CannotStart, match="too large to explain here"):
        await explained(CRASH)


async def test_the_window_shows_what_changed_since_the_last_good_session(opened: Any, tmp_path: Path) -> None:
    good(tmp_path, 1)
    failed = save(tmp_path, 2, lines())
    async with opened(failed, size=(100, 40)) as screen:
        await screen.processed()
        await screen.press("B")
        await screen.until(lambda: "worked in session 00000001" in text_of(screen), "the last good session")
        assert '"string" → "integer"' in text_of(screen)

    row = next(
        row for row, change in enumerate(Recording(failed).session().changes) if change.exchange is not None
    )
    assert (await explained(failed, row)).last_good is None
