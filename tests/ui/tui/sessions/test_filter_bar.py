"""The filter line of the session list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.ui.tui.sessions import screen as module
from mcpspy.ui.tui.sessions.filter import SessionFilterBar
from mcpspy.ui.tui.sessions.session_list import SessionList

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scan the folder more often than a user needs."""
    monkeypatch.setattr(module, "EVERY", 0.05)


@pytest.fixture
def three(make_recording: Make) -> None:
    """Record three sessions."""
    for name in ("alpha", "beta", "gamma"):
        make_recording(name=name)


def bar(screen: Any) -> SessionFilterBar:
    found = screen.app.screen.query_one(SessionFilterBar)
    assert isinstance(found, SessionFilterBar)
    return found


def chosen(screen: Any) -> str:
    summary = screen.app.screen.query_one(SessionList).chosen
    return summary.header.name if summary else ""


def listed(screen: Any) -> list[str]:
    rows = [line for line in screen.lines if "ended" in line and not line.startswith(" /")]
    return [name for line in rows for name in ("alpha", "beta", "gamma") if f" {name} " in line]


@pytest.mark.usefixtures("three")
async def test_it_filters_while_typing(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        assert not bar(screen).display
        await screen.press("slash", *"bet")
        await screen.shows("1 of 3 sessions")
        assert listed(screen) == ["beta"]
        await screen.press("backspace", "backspace", "backspace")
        await screen.until(lambda: len(listed(screen)) == 3)


@pytest.mark.usefixtures("three")
async def test_enter_keeps_the_filter_and_escape_clears_it_but_keeps_the_selection(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *"-gamma", "enter")
        await screen.shows("2 of 3 sessions", "/ -gamma")
        assert screen.focused == "SessionList"
        await screen.press("G")
        name = chosen(screen)
        await screen.press("escape")
        await screen.until(lambda: len(listed(screen)) == 3)
        assert not bar(screen).display
        assert chosen(screen) == name


@pytest.mark.usefixtures("three")
async def test_escape_while_typing_clears_the_filter(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *"beta", "escape")
        await screen.until(lambda: len(listed(screen)) == 3)
        assert chosen(screen) == "beta"
        assert (screen.focused, bar(screen).display) == ("SessionList", False)


@pytest.mark.usefixtures("three")
async def test_an_invalid_filter_is_reported_and_the_matches_stay(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *'beta "')
        await screen.shows("unclosed quote")
        assert listed(screen) == ["beta"]
        await screen.press("backspace", *"state:x")
        await screen.shows('unknown state "x": use one of live, ended, died')
        await screen.press("backspace", "e")
        await screen.until(lambda: "unknown state" not in screen.text)
        assert listed(screen) == ["beta"]


@pytest.mark.usefixtures("three")
async def test_previous_filters_can_be_recalled(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        for word in ("alpha", "gamma"):
            await screen.press("slash", *word, "enter", "escape")
        await screen.press("slash", "up")
        await screen.until(lambda: listed(screen) == ["gamma"])
        await screen.press("up")
        await screen.until(lambda: listed(screen) == ["alpha"])


@pytest.mark.usefixtures("three")
async def test_a_filter_without_matches_shows_how_to_clear_it(opened: Any) -> None:
    async with opened(size=(80, 24)) as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *"zzz", "enter")
        await screen.shows("0 of 3 sessions match. Press esc to clear the filter.")
        await screen.press("enter", "d", "C", "Y", "m", "escape")
        await screen.until(lambda: len(listed(screen)) == 3)


@pytest.mark.usefixtures("three")
async def test_a_new_session_is_filtered(opened: Any, make_recording: Make) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *"beta", "enter")
        await screen.shows("1 of 3 sessions")
        make_recording(name="beta two")
        make_recording(name="delta")
        await screen.shows("2 of 5 sessions")
        assert "delta" not in screen.text
