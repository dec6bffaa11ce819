"""The help screen is generated from the bindings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding

from mcpspy.ui.tui.app import McpspyApp
from mcpspy.ui.tui.detail.pane import DetailPane
from mcpspy.ui.tui.help import Group, HelpScreen, lines, name, page
from mcpspy.ui.tui.session.filter_bar import FilterInput
from mcpspy.ui.tui.session.message_list import MessageList
from mcpspy.ui.tui.session.screen import SessionScreen
from mcpspy.ui.tui.sessions.screen import SessionsScreen

Make = Callable[..., Path]


def test_lines_have_headings_keys_and_descriptions() -> None:
    assert lines(
        [("one", [Binding("down,j", "x", "next")]), ("two", [Binding("q", "x", "a", tooltip="b")])]
    ) == [
        ("", "one"),
        ("↓ j", "next"),
        ("", ""),
        ("", "two"),
        ("q", "b"),
    ]


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("slash", "/"),
        ("full_stop", "."),
        ("left_square_bracket", "["),
        ("ctrl+f", "ctrl-f"),
        ("shift+tab", "shift-tab"),
        ("shift+left", "shift-←"),
        ("\\", "\\"),
        ("+", "+"),
        ("G", "G"),
    ],
)
def test_a_key_is_labelled_as_on_a_keyboard(key: str, written: str) -> None:
    assert name(key) == written


def test_no_key_of_any_screen_has_its_textual_name() -> None:
    owners = (SessionScreen, SessionsScreen, MessageList, DetailPane, FilterInput, McpspyApp)
    for keys, _ in lines([("", owner.BINDINGS) for owner in owners]):
        for key in keys.split():
            assert len(key) == 1 or "_" not in key, key
            assert len(key) == 1 or "+" not in key, key


GROUPS: list[Group] = [
    ("one", [Binding("a", "x", "first " * 6), Binding("b", "x", "second")]),
    ("two", [Binding("c", "x", "third")]),
]


def test_two_columns_are_used_if_they_fit() -> None:
    assert [line.split() for line in page(GROUPS, 60).plain.split("\n")] == [
        ["one", "two"],
        ["a", *["first"] * 6, "c", "third"],
        ["b", "second"],
    ]
    assert len(page(GROUPS, 50).plain.split("\n")) == 6


@pytest.mark.parametrize("room", [24, 30, 38, 51, 52, 53, 200])
def test_no_line_exceeds_the_width_and_no_word_is_lost(room: int) -> None:
    shown = page(GROUPS, room).plain
    assert max(map(len, shown.split("\n"))) <= room
    assert sorted(shown.split()) == sorted(page(GROUPS, 500).plain.split())


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (110, 30), (200, 50)])
async def test_every_binding_can_be_read_by_scrolling(
    opened: Any, make_recording: Make, size: tuple[int, int]
) -> None:
    async with opened(make_recording(), size=size) as screen:
        await screen.press("question_mark")
        await screen.shows("switch between list")
        seen = screen.text
        box = screen.app.screen.query_one("#help")
        await screen.until(lambda: box.max_scroll_y or size == (200, 50))
        while box.scroll_target_y < box.max_scroll_y:
            await screen.press("pagedown")
            await screen.until(lambda: box.scroll_y == box.scroll_target_y)
            seen += screen.text
        words = set(seen.replace("│", " ").split())
        for owner in (SessionScreen, MessageList, DetailPane, McpspyApp):
            for keys, description in lines([("", owner.BINDINGS)])[1:]:
                assert f"{keys} " in seen
                assert words >= set(description.split())
        await screen.press("q")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))


async def test_keys_of_held_messages_have_their_own_group(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 80)) as screen:
        await screen.press("question_mark")
        await screen.shows("held messages")
        keys = screen.lines[next(n for n, line in enumerate(screen.lines) if "held messages" in line) + 1 :]
        assert [line.split()[1] for line in keys[:7]] == ["enter", "a", "A", "d", "e", "H", "│"]


async def test_it_is_laid_out_again_when_the_window_changes(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.press("question_mark")
        await screen.shows("switch between list")
        assert "search message" not in screen.text
        await screen.pilot.resize_terminal(200, 50)
        await screen.shows("search message", "global", "light and dark")
        assert len([line for line in screen.lines if "next error" in line and "│" in line]) == 1
        assert isinstance(screen.app.screen, HelpScreen)


async def test_end_scrolls_to_the_last_line_on_a_low_terminal(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.press("question_mark")
        await screen.shows("switch between list")
        assert "global" not in screen.text
        await screen.press("end")
        await screen.shows("global", "light and dark")
        await screen.press("escape")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))
