"""The rows of a session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.cells import cell_len

Make = Callable[..., Path]


async def test_messages_stand_in_the_order_of_the_wire(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(100, 30)) as screen:
        await screen.shows("ended: exit 0")
        assert [" ".join(line[3:].split()[1:4]) for line in screen.lines[2:8]] == [
            "→ initialize 1",
            "← initialize 1",
            "→ tools/call echo",
            "← (not JSON)",
            "← tools/call echo",
            "· exit exit",
        ]
        assert "5 messages · 1 error · 1 odd" in screen.lines[0]
        assert "○ ended exit 0" in screen.lines[0]


async def test_the_pair_of_what_is_selected_is_marked(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        assert [line[0] for line in screen.lines[2:6]] == ["▸", "▹", " ", " "]
        await screen.press("j")
        assert [line[0] for line in screen.lines[2:6]] == ["▹", "▸", " ", " "]


HOSTILE = [
    "[red]x[/red]",
    "a[/b]c",
    "[@click=app.quit]x[/]",
    "\x1b]0;owned\x07",
    "\x9b2J",
    "\u202egnp.exe",
    "a\nb\rc",
    "漢字漢字",
    "👩\u200d👩\u200d👧",
    "\U000e0041hidden",
]


async def test_hostile_text_is_shown_literally_and_keeps_the_columns(
    opened: Any, make_recording: Make
) -> None:
    said = []
    for number, name in enumerate(HOSTILE):
        call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name}}
        said.append(("client", json.dumps(call, ensure_ascii=False).encode()))
        error = {"jsonrpc": "2.0", "id": number, "error": {"code": 1, "message": name}}
        said.append(("server", json.dumps(error, ensure_ascii=False).encode()))
    said.append(("server", b"not json \x1b[2J [red]\xff"))
    async with opened(make_recording(said), size=(250, 40)) as screen:
        await screen.shows("ended: exit 0")
        shown = ["[red]x[/red]", "a[/b]c", "[@click=app.quit]x[/]", "\\x1b]0;owned\\x07", "\\x9b2J"]
        await screen.shows(*shown, "\\u202egnp.exe", "a\\nb\\rc", "漢字漢字", "\\u200d", "\\U000e0041hidden")
        await screen.shows("not json \\x1b[2J [red]\\xff")
        assert {cell_len(line) for line in screen.lines} == {250}
        statuses = {_column(line, "error 1: ") for line in screen.lines[2:22] if "error 1: " in line}
        assert len(statuses) == 1
        for _ in range(len(said)):
            await screen.press("j")
        assert not any(character in screen.text for character in "\x1b\x9b\x07\u202e\u200d")


def _column(line: str, text: str) -> int:
    return cell_len(line[: line.index(text)])
