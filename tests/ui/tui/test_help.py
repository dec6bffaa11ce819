"""The help screen is generated from the bindings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding

from mcpspy.core.query.syntax import SESSION_SYNTAX, SYNTAX
from mcpspy.ui.tui.app import McpspyApp
from mcpspy.ui.tui.detail.pane import DetailPane
from mcpspy.ui.tui.help import Group, HelpScreen, grouped, lines, name, page
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


def test_groups_are_put_into_columns_if_they_fit() -> None:
    assert [line.split() for line in page(GROUPS, 100).plain.split("\n")] == [
        ["one", "two"],
        ["a", *["first"] * 6, "c", "third"],
        ["b", "second"],
    ]
    assert len(page(GROUPS, 50).plain.split("\n")) == 6


def test_keys_are_coloured_and_headings_bold() -> None:
    assert {str(span.style) for span in page(GROUPS, 50, "blue").spans} == {"blue", "bold"}


def test_bindings_are_divided_where_a_group_begins() -> None:
    ids = ["session.swap", "session.follow", "session.filter"]
    bindings = [Binding("a", "x", id=each) for each in ids]
    assert grouped("session", bindings) == [("move", bindings[:2]), ("find", bindings[2:])]
    assert grouped("own", [Binding("a", "x", "other")])[0][0] == "own"


@pytest.mark.parametrize("room", [24, 30, 38, 51, 52, 53, 91, 92, 200])
def test_no_line_exceeds_the_width_and_no_word_is_lost(room: int) -> None:
    shown = page(GROUPS, room).plain
    assert max(map(len, shown.split("\n"))) <= room
    assert sorted(shown.split()) == sorted(page(GROUPS, 500).plain.split())


async def test_the_syntax_of_filters_is_one_page_at_80_by_24(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.press("question_mark", "slash")
        await screen.shows("Filter syntax", "/: keys", "esc: close")
        assert not screen.app.screen.query_one("#help").max_scroll_y
        for example, _ in SYNTAX:
            assert f" {example} " in screen.text
        await screen.press("slash")
        await screen.shows("switch between list", "/: filter syntax")


async def test_f1_shows_the_syntax_while_a_filter_is_typed(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.press("slash")
        await screen.shows("f1 help")
        await screen.press("f1")
        await screen.shows("Filter syntax")


async def test_the_list_of_sessions_has_the_syntax_of_its_filter(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened(size=(80, 24)) as screen:
        await screen.shows("1 session")
        await screen.press("question_mark")
        await screen.shows("Keys", "open session", "/: filter syntax")
        await screen.press("slash")
        await screen.shows("Filter syntax", *(example for example, _ in SESSION_SYNTAX))
        assert not screen.app.screen.query_one("#help").max_scroll_y
        await screen.press("escape", "slash", "f1")
        await screen.shows("Filter syntax", "is:problem")


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
    async with opened(make_recording(), size=(80, 90)) as screen:
        await screen.press("question_mark")
        await screen.shows("held messages")
        keys = screen.lines[next(n for n, line in enumerate(screen.lines) if "held messages" in line) + 1 :]
        assert [line.split("│")[1].split()[:1] for line in keys[:7]] == [
            [key] for key in "enter a A X ! H".split()
        ] + [[]]


async def test_it_is_laid_out_again_when_the_window_changes(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.press("question_mark")
        await screen.shows("switch between list")
        assert "search message" not in screen.text
        await screen.pilot.resize_terminal(200, 50)
        await screen.shows("search message", "everywhere", "light and dark")
        assert not screen.app.screen.query_one("#help").max_scroll_y, "three columns fit"
        assert isinstance(screen.app.screen, HelpScreen)


async def test_end_scrolls_to_the_last_line_on_a_low_terminal(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.press("question_mark")
        await screen.shows("switch between list")
        assert "everywhere" not in screen.text
        await screen.press("end")
        await screen.shows("everywhere", "light and dark")
        await screen.press("escape")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))
