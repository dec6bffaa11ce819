"""The list and the message share the room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

Make = Callable[..., Path]

REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}'
ERROR = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no"}}'


async def test_enter_and_tab_move_between_the_list_and_the_message(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.shows("ended: exit 0")
        for key in ("enter", "tab", "shift+tab"):
            await screen.press(key)
            assert screen.focused == "Detail"
            await screen.press(key)
            assert screen.focused == "MessageList"


async def test_z_gives_a_pane_all_the_room_and_takes_it_back(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("request initialize", "latency")
        await screen.press("z")
        await screen.until(lambda: "request initialize" not in screen.text)
        await screen.press("enter")
        await screen.until(lambda: "latency" not in screen.text and "request initialize" in screen.text)
        await screen.press("z")
        await screen.shows("request initialize", "latency")


async def test_escape_leaves_the_zoom_then_the_message_then_the_session(
    opened: Any, make_recording: Make
) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("request initialize")
        await screen.press("enter", "z")
        await screen.until(lambda: "latency" not in screen.text)
        await screen.press("escape")
        await screen.shows("latency")
        assert screen.focused == "Detail"
        await screen.press("escape")
        assert screen.focused == "MessageList"
        await screen.press("escape")
        await screen.shows("mcpspy · sessions")


async def test_an_answer_changes_the_row_and_the_message_of_its_request(opened: Any, live: Any) -> None:
    live.say("client", REQUEST % 1)
    async with opened(live.path) as screen:
        await screen.shows("answer: pending")
        await screen.press("k")
        live.say("server", ERROR % 1)
        await screen.shows("answer: error -32602", "1 error")
        await screen.until(lambda: "pending" not in screen.text)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (110, 30), (160, 45), (250, 80)])
async def test_it_fits_every_terminal(opened: Any, make_recording: Make, size: tuple[int, int]) -> None:
    async with opened(make_recording(), size=size) as screen:
        await screen.shows("▸", "initialize", "exit 0", "request initialize")
        assert len(screen.lines) == size[1]
        assert {cell_len(line) for line in screen.lines} == {size[0]}
        detail, listing = screen.session.panes.detail.region, screen.session.listing.region
        beside = detail.x >= listing.right
        assert beside is (size[0] >= 110)
        assert beside or detail.y >= listing.bottom


async def test_a_tiny_terminal_is_no_crash(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(12, 5)) as screen:
        await screen.shows("tested")
        await screen.press("j", "enter", "j", "z", "escape")
