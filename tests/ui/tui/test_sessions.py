"""The rows of the list of sessions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.ui.tui import sessions_screen as module
from mcpspy.ui.tui.sessions import SessionList

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the folder more often than a person needs."""
    monkeypatch.setattr(module, "EVERY", 0.05)


def chosen(screen: Any) -> str:
    summary = screen.app.screen.query_one(SessionList).chosen
    return "" if summary is None else str(summary.path)


async def test_who_spoke_what_is_listed(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened(size=(140, 20)) as screen:
        await screen.shows("○ ended", "tested 2", "2025-11-25", "exit 0")
        assert screen.lines[1].split() == [
            "state", "name", "server", "client", "revision", "started", "entries", "exit",
        ]  # fmt: skip


async def test_the_cursor_stays_on_its_session(opened: Any, make_recording: Make) -> None:
    first = make_recording(name="first")
    second = make_recording(name="second")
    async with opened() as screen:
        await screen.shows("2 sessions")
        await screen.press("j")
        path = chosen(screen)
        assert path in (str(first), str(second))
        make_recording(name="third")
        await screen.shows("third", "3 sessions")
        assert chosen(screen) == path


async def test_a_hostile_name_is_text(opened: Any, make_recording: Make) -> None:
    make_recording(name="[red]x[/red]a[/b]\x1b]0;t\x07\u202e")
    async with opened(size=(200, 20)) as screen:
        await screen.shows("[red]x[/red]a[/b]\\x1b]0;t\\x0")
