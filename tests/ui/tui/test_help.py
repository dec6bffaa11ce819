"""The page of keys is made from the bindings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.binding import Binding

from mcpspy.ui.tui.app import Inspector
from mcpspy.ui.tui.detail import Detail
from mcpspy.ui.tui.help import lines
from mcpspy.ui.tui.messages import MessageList
from mcpspy.ui.tui.session_screen import SessionScreen

Make = Callable[..., Path]


def test_keys_have_their_names() -> None:
    assert lines(
        [("one", [Binding("down,j", "x", "go on")]), ("two", [Binding("q", "x", "a", tooltip="b")])]
    ) == [
        ("", "one"),
        ("↓ j", "go on"),
        ("", ""),
        ("", "two"),
        ("q", "b"),
    ]


async def test_every_binding_of_the_screen_is_on_it(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(100, 60)) as screen:
        await screen.press("question_mark")
        await screen.shows("the session", "everywhere")
        for owner in (SessionScreen, MessageList, Detail, Inspector):
            for keys, what in lines([("", owner.BINDINGS)])[1:]:
                assert f"{keys} " in screen.text
                assert what in screen.text
        await screen.press("q")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))


async def test_it_scrolls_on_a_low_terminal(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.press("question_mark")
        await screen.shows("the session")
        assert "everywhere" not in screen.text
        await screen.press("end")
        await screen.shows("everywhere", "light or dark")
        await screen.press("escape")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))
