"""Themes and exit of the application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.style import Style

from mcpspy.ui.tui.app import McpspyApp
from mcpspy.ui.tui.session.message_list import MessageList
from mcpspy.ui.tui.theme import DARK, LIGHT

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _own_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)


def styles(screen: Any) -> list[Style]:
    strips = screen.app.screen._compositor.render_strips()
    return [segment.style for strip in strips for segment in strip if segment.style and segment.text.strip()]


async def test_shift_t_changes_between_dark_and_light(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened() as screen:
        await screen.shows("1 session")
        assert screen.app.theme == DARK.name
        await screen.press("T")
        assert screen.app.theme == LIGHT.name
        await screen.press("T")
        assert screen.app.theme == DARK.name


async def test_textual_themes_work(
    opened: Any, make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTUAL_THEME", "nord")
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        assert screen.app.theme == "nord"


async def test_no_color_shows_no_colour(
    opened: Any, make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        colours = {
            colour.name
            for style in styles(screen)
            for colour in (style.color, style.bgcolor)
            if colour is not None
        }
        assert colours <= {"default"}
        assert any(style.reverse for style in styles(screen))


@pytest.mark.parametrize("key", ["Q", "ctrl+c", "ctrl+q"])
async def test_it_quits_from_any_screen(opened: Any, make_recording: Make, key: str) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("question_mark", key)
        await screen.until(lambda: screen.app._exit)


async def test_an_internal_error_ends_it_and_prints_nothing(
    make_recording: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        secret = "token-of-a-user"  # noqa: F841 - a local that must not be printed.
        raise ZeroDivisionError("broken [red]")

    monkeypatch.setattr(MessageList, "cells", broken)
    make_recording()
    app = McpspyApp(str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        await _press_enter_until_it_ends(app)
    assert isinstance(app.fault, ZeroDivisionError)
    shown = capsys.readouterr()
    assert "token-of-a-user" not in shown.out + shown.err


async def _press_enter_until_it_ends(app: McpspyApp) -> None:
    async with app.run_test() as pilot:
        while app.fault is None:
            await pilot.press("enter")
            await pilot.pause(0.01)


async def test_a_text_from_another_thread_is_shown_without_its_control_characters(
    opened: Any, make_recording: Make
) -> None:
    async with opened(make_recording()) as screen:
        await asyncio.to_thread(screen.app.report, "a view\x1b[2J failed [/]")
        await screen.until(lambda: screen.app._notifications)
        assert [each.message for each in screen.app._notifications] == ["a view\\x1b[2J failed [/]"]
    screen.app.report("too late")
