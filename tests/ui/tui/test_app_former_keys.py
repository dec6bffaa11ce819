"""The first press of a former key reports the new one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.ui.tui.app import McpspyApp, keyed
from mcpspy.ui.tui.bindings import MOVED, names
from tests.ui.tui.conftest import messages

Make = Callable[..., Path]


def test_each_former_key_has_an_action_with_another_key() -> None:
    known = names(node.BINDINGS for node in keyed())
    assert {which for keys in MOVED.values() for which in keys.values()} <= known


async def test_a_former_key_is_reported_once_and_then_free(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        await screen.until(lambda: screen.count)
        for key, text in (
            ("o", "toggle notifications: now V, then n"),
            ("a", "toggle stderr and events: now V, then e"),
            ("h", "toggle HTTP exchanges: now V, then h"),
            ("space", "page down: now pgdn"),
        ):
            for _ in range(2):
                await screen.press(key)
                assert messages(screen) == [text]
            screen.app.clear_notifications()


async def test_a_key_with_a_new_meaning_has_it_from_the_second_press(
    opened: Any, make_recording: Make
) -> None:
    async with opened(make_recording()) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("enter", "s")
        assert messages(screen) == [
            "switch between request and response: now p; s: cycle sort order: time, latency, size"
        ]
        await screen.press("s")
        await screen.shows("sorted by latency")


async def test_keys_of_the_focused_widget_and_typed_text_are_not_former_keys(
    opened: Any, make_recording: Make
) -> None:
    async with opened(make_recording()) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("enter", "o", "h", "space", "escape", "slash", *"oah")
        assert messages(screen) == []
        assert screen.session.filter.text == "oah"


async def test_former_keys_of_the_session_list(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened() as screen:
        await screen.shows("1 session")
        await screen.press("space", "r", "c", "y")
        assert messages(screen) == [
            "mark or unmark session: now m",
            "reload all sessions: now ctrl-r",
            "copy file path: now C",
            "copy mcpspy show command: now Y",
        ]
        assert "1 marked" not in screen.text


@pytest.mark.parametrize("chosen", [{"session.notifications": "N"}, {"session.time": "o"}])
async def test_nothing_is_reported_if_the_user_assigned_these_keys(
    make_recording: Make, opened: Any, monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str]
) -> None:
    path = make_recording()
    plain = McpspyApp.__init__
    monkeypatch.setattr(
        McpspyApp, "__init__", lambda self, folder, summaries: plain(self, folder, summaries, chosen)
    )
    async with opened(path) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("o")
        assert messages(screen) == []
        await screen.press(*chosen.values())
        await screen.shows("notifications hidden" if "N" in chosen.values() else "time: ")
