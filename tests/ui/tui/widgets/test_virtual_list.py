"""Tests of the virtual list: cursor, following, and mouse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.ui.tui.session import screen as session_screen
from mcpspy.ui.tui.session.message_list import MessageList

Make = Callable[..., Path]

REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}'


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (("j", "down"), 2),
        (("j", "j", "k"), 1),
        (("j", "j", "up"), 1),
        (("k",), 0),
        (("G",), 5),
        (("end",), 5),
        (("G", "j"), 5),
        (("G", "g"), 0),
        (("G", "home"), 0),
        (("pagedown",), 5),
        (("G", "pageup"), 0),
        (("e",), 3),
        (("e", "e"), 4),
        (("e", "e", "e"), 4),
        (("G", "E"), 4),
        (("E",), 0),
        (("p",), 1),
        (("p", "p"), 0),
        (("G", "p"), 5),
        (("f",), 5),
    ],
)
async def test_keys_move_the_cursor(
    opened: Any, make_recording: Make, keys: tuple[str, ...], place: int
) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        await screen.wire()
        assert screen.cursor == 0
        await screen.press(*keys)
        assert screen.cursor == place
        await screen.until(lambda: f"{place + 1}/6" in screen.text)


@pytest.mark.parametrize("key", ["k", "up", "pageup", "g"])
async def test_moving_up_pauses_and_nothing_moves_the_selection(opened: Any, live: Any, key: str) -> None:
    live.calls(1, 40)
    async with opened(live.path, size=(100, 24)) as screen:
        await screen.wire()
        await screen.until(lambda: screen.cursor == 79)
        await screen.press(key)
        await screen.shows("paused")
        place, row, before = screen.cursor, screen.selected, screen.lines[1:10]
        live.calls(41, 57)
        live.say("client", REQUEST % 58, REQUEST % 59, REQUEST % 60)
        await screen.shows("paused, +37 new (End)")
        await screen.until(lambda: screen.count == 117)
        assert (screen.cursor, screen.selected) == (place, row)
        assert [line[:95] for line in screen.lines[1:10]] == [line[:95] for line in before]


@pytest.mark.parametrize("key", ["end", "G", "f"])
async def test_the_end_resumes_following(opened: Any, live: Any, key: str) -> None:
    live.calls(1, 40)
    async with opened(live.path) as screen:
        await screen.wire()
        await screen.until(lambda: screen.cursor == 79)
        await screen.press("g")
        live.calls(41, 42)
        await screen.shows("+4 new")
        await screen.press(key)
        await screen.until(lambda: screen.cursor == 83)
        await screen.shows("following")
        live.calls(43, 43)
        await screen.until(lambda: screen.cursor == 85)


async def test_a_click_selects_and_pauses_and_two_open(opened: Any, live: Any) -> None:
    live.calls(1, 4)
    async with opened(live.path) as screen:
        await screen.wire()
        await screen.until(lambda: screen.cursor == 7)
        await screen.pilot.click(MessageList, offset=(20, 3))
        assert screen.cursor == 2
        await screen.shows("paused")
        await screen.pilot.click(MessageList, offset=(20, 4), times=2)
        assert screen.cursor == 3
        await screen.until(lambda: screen.focused == "DetailPane")
        await screen.pilot.click(MessageList, offset=(20, 0))
        await screen.pilot.click(MessageList, offset=(20, 15))
        assert screen.cursor == 3


async def test_the_wheel_scrolls_and_pauses(opened: Any, live: Any) -> None:
    live.calls(1, 100)
    async with opened(live.path) as screen:
        await screen.wire()
        await screen.until(lambda: screen.cursor == 199)
        listing = screen.session.listing
        await screen.until(lambda: listing.allow_vertical_scroll)
        listing._on_mouse_scroll_up(_wheel())
        await screen.shows("paused")
        assert screen.cursor == 199
        top = listing.scroll_offset.y
        live.calls(101, 110)
        await screen.shows("+20 new")
        assert listing.scroll_offset.y == top


def _wheel() -> Any:
    from textual.events import MouseScrollUp

    return MouseScrollUp(None, 1, 1, 0, -1, 0, False, False, False)


@pytest.mark.parametrize("size", [(160, 60), (90, 14)])
async def test_resizing_does_not_pause(opened: Any, live: Any, size: tuple[int, int]) -> None:
    live.calls(1, 100)
    async with opened(live.path, size=(100, 20)) as screen:
        await screen.wire()
        await screen.until(lambda: screen.cursor == 199)
        await screen.pilot.resize_terminal(*size)
        await screen.shows("following", "▸")
        live.calls(101, 101)
        await screen.until(lambda: screen.cursor == 201)


async def test_a_hundred_thousand_rows_scroll_like_ten(
    opened: Any, live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_screen, "TICK", 0.02)
    frame = b'{"t":0.1,"from":"client","msg":{"jsonrpc":"2.0","method":"notifications/x"}}\n'
    with live.path.open("ab") as file:
        file.write(frame * 100_000)
    live.end()
    async with opened(live.path) as screen:
        await screen.until(lambda: screen.count == 100_001)
        await screen.press("G", "k", "pageup", "g", "j")
        assert screen.cursor == 1
