"""The list of sessions goes on by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.ui.tui import sessions_screen as module
from mcpspy.ui.tui.session_screen import SessionScreen
from mcpspy.ui.tui.sessions import SessionList

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the folder more often than a person needs."""
    monkeypatch.setattr(module, "EVERY", 0.05)


async def test_an_empty_folder_says_what_to_do(opened: Any, tmp_path: Path) -> None:
    async with opened(size=(80, 24)) as screen:
        await screen.shows("mcpspy run -- npx", "mcpspy demo", f"watching {tmp_path}"[:70], "0 sessions")
        await screen.press("enter", "j", "k", "G", "g", "e")
        assert not isinstance(screen.app.screen, SessionScreen)


async def test_sessions_appear_change_and_go_by_themselves(opened: Any, tmp_path: Path, live: Any) -> None:
    async with opened() as screen:
        await screen.shows("● live", "1 session · 1 live")
        live.calls(1, 3)
        await screen.until(lambda: " 6 " in screen.lines[2], "the number of entries")
        live.end(3)
        await screen.shows("○ ended", "exit 3")
        live.path.unlink()
        await screen.shows("No session yet")


async def test_a_dead_session_has_a_word_and_a_glyph(opened: Any, make_recording: Make) -> None:
    make_recording(exit_code=None)
    async with opened() as screen:
        await screen.shows("✗ died")


async def test_enter_opens_and_q_or_escape_come_back_and_q_quits(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened() as screen:
        await screen.shows("1 session")
        for key in ("q", "escape"):
            await screen.press("enter")
            await screen.shows("ended: exit 0")
            assert isinstance(screen.app.screen, SessionScreen)
            await screen.press(key)
            await screen.shows("1 session")
        await screen.press("q")
        await screen.until(lambda: screen.app._exit)


async def test_a_second_click_opens(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened() as screen:
        await screen.shows("1 session")
        await screen.pilot.click(SessionList, offset=(5, 1), times=2)
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))


async def test_a_session_named_on_the_command_line_lies_above_the_list(
    opened: Any, make_recording: Make
) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("q")
        await screen.shows("1 session")


async def test_a_folder_that_cannot_be_read_is_said(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    async with opened(folder=tmp_path / "file", size=(200, 20)) as screen:
        await screen.shows("Not a directory")
