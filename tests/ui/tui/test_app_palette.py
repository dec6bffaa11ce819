"""The command palette finds every action."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.style import Style
from textual.command import CommandList
from textual.events import Click
from textual.widgets import LoadingIndicator

from mcpspy.ui.tui.app import Palette, keyed
from mcpspy.ui.tui.bindings import SYNONYMS, names

Make = Callable[..., Path]


async def test_an_action_is_found_and_run(opened: Any, make_recording: Make) -> None:
    path = make_recording()
    async with opened(path) as screen:
        await screen.until(lambda: screen.count)
        session = screen.session
        await screen.press("colon")
        await screen.shows("switch between list and message")
        await screen.press(*"wire")
        await screen.shows("switch between exchanges and messages")
        await screen.press("enter")
        await screen.press("enter")
        await screen.until(lambda: not session.view.options.exchanges)


async def test_the_palette_lists_each_action_once(opened: Any, make_recording: Make) -> None:
    path = make_recording()
    async with opened(path) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("ctrl+p")
        await screen.press(*"filter r")
        await screen.shows("filter rows")
        assert sum("filter rows" in line for line in screen.lines) == 1


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("stats", ["#  statistics"]),
        ("search", ["/  filter rows", "ctrl-f  search message"]),
        ("slow", ["P  problems", "s  cycle sort order", "#  statistics", "L  timeline"]),
        ("resend", ["r  resend request", "R  edit and resend"]),
        ("stderr", ["V  choose rows", "V e  toggle stderr", "P  problems"]),
        ("capabilities", ["I  server info and capabilities"]),
        ("tools", ["I  server info and capabilities"]),
        ("errors", ["e  next error", "E  previous error", "P  problems"]),
        ("export", ["x  export"]),
        ("theme", ["T  toggle light", "ctrl-t  select theme"]),
        ("filter", ["/  filter rows", "F  toggle filter"]),
        ("problems", ["P  problems"]),
    ],
)
async def test_words_that_a_user_types_find_what_they_mean(
    opened: Any, make_recording: Make, typed: str, found: list[str]
) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("colon", *typed)
        wanted = [" ".join(each.split()) for each in found]
        await screen.until(
            lambda: all(any(each in " ".join(line.split()) for line in screen.lines[3:]) for each in wanted),
            str(wanted),
        )


async def test_an_action_of_the_message_can_be_run_from_the_list(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("colon", *"search message")
        await screen.shows("ctrl-f")
        await screen.press("enter")
        await screen.until(lambda: screen.focused == "SearchBox", screen.focused)


async def test_a_click_on_an_action_that_is_no_longer_found_does_nothing(
    opened: Any, make_recording: Make
) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("colon")
        await screen.shows("toggle filter")
        found = screen.app.screen.query_one(CommandList)
        style = Style(meta={"option": found.option_count})
        x, y = found.region.offset
        found.post_message(Click(found, 1, 1, 0, 0, 1, False, False, False, x + 1, y + 1, style))
        await screen.pilot.pause()
        assert isinstance(screen.app.screen, Palette)
        await screen.pilot.click(CommandList, offset=(5, 2))
        await screen.until(lambda: not isinstance(screen.app.screen, Palette))


def test_synonyms_belong_to_bindings() -> None:
    assert set(SYNONYMS) <= names(node.BINDINGS for node in keyed())


async def test_the_palette_opens_again_while_the_one_before_is_still_being_removed(
    opened: Any, make_recording: Make
) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("colon")
        await screen.shows("toggle filter")
        screen.app.pop_screen()
        screen.app.action_command_palette()
        await screen.until(lambda: isinstance(screen.app.screen, Palette))
        await screen.shows("toggle filter")


async def test_a_search_that_ends_after_the_widgets_of_its_palette_does_nothing(
    opened: Any, make_recording: Make
) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.until(lambda: screen.count)
        await screen.press("colon")
        await screen.shows("toggle filter")
        palette = screen.app.screen
        await palette.query(LoadingIndicator).remove()
        palette._show_busy = not palette._show_busy
        await screen.pilot.pause()
        screen.app.pop_screen()
        await screen.until(lambda: not isinstance(screen.app.screen, Palette))
