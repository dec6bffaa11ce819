"""One message, whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Make = Callable[..., Path]


async def test_the_message_under_the_cursor_is_shown_whole(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("request initialize", "client → server", '"protocolVersion": "2025-11-25"')
        await screen.press("e", "e")
        await screen.shows("error response tools/call · echo", '"code": -32602')


async def test_the_message_scrolls_with_the_same_keys(opened: Any, make_recording: Make) -> None:
    lines = {f"line{number}": number for number in range(100)}
    body = json.dumps({"jsonrpc": "2.0", "method": "x", "params": lines}).encode()
    async with opened(make_recording([("client", body)]), size=(80, 24)) as screen:
        await screen.shows('"line0": 0')
        await screen.press("enter", "G")
        await screen.shows('"line99": 99')
        await screen.press("k", "pageup")
        await screen.until(lambda: '"line99": 99' not in screen.text)
        await screen.press("g", "j", "down", "pagedown", "up")
        await screen.until(lambda: "notification x" not in screen.text)
        await screen.press("home")
        await screen.shows("notification x")
        assert screen.cursor == 0
