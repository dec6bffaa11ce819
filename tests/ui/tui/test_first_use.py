"""Questions of a first use, answered at 80x24 with the keys that the screen shows at that moment."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from mcpspy.ui.tui.help import name
from mcpspy.ui.tui.sessions.screen import SessionsScreen

SIZE = (80, 24)
RECORDING = Path(__file__).resolve().parents[3] / "recordings" / "peer-sdk-modern.jsonl"


async def press(screen: Any, key: str) -> None:
    """Press a key as soon as the last line of the screen, or an open list of keys, shows it."""
    label = re.escape(name(key))
    in_footer = rf"(?<!\S){label}(?= )"
    in_list = rf"│ +{label} +\S"

    def shown() -> bool:
        lines = screen.lines
        return bool(re.search(in_footer, lines[-1])) or any(re.search(in_list, line) for line in lines)

    await screen.until(shown, f"the key {name(key)} on the screen")
    await screen.press(key)


async def open_session(screen: Any) -> None:
    await screen.until(lambda: isinstance(screen.app.screen, SessionsScreen))
    await screen.shows("enter open")
    await screen.until(lambda: "exit 0" in screen.text or "●" in screen.text, "the state of the session")
    await press(screen, "enter")
    await screen.shows("request ")


async def test_the_first_failed_call_and_its_reason_are_found(opened: Any, tmp_path: Path) -> None:
    shutil.copy(RECORDING, tmp_path)
    async with opened(size=SIZE) as screen:
        await open_session(screen)
        await press(screen, "e")
        await screen.until(lambda: "fail" in screen.selected)
        assert re.search(r"tools/call fail .* ✗ it was asked to fail", screen.selected)
        await press(screen, "enter")
        await screen.until(
            lambda: re.search(r"tool error in .*: Error executing tool fail: it was", screen.text)
        )
        await press(screen, "enter")
        await press(screen, "P")
        await screen.shows("6 problems: 6 errors", "Unknown tool: no-such-tool", "P all rows")
        await press(screen, "P")
        await screen.shows("66 messages")


async def test_the_three_slowest_calls_are_found_from_any_row(opened: Any, tmp_path: Path) -> None:
    shutil.copy(RECORDING, tmp_path)
    async with opened(size=SIZE) as screen:
        await open_session(screen)
        index = screen.session.loader.model.index
        latencies = sorted({index.latency(row) or 0.0 for row in range(len(index))}, reverse=True)
        for _ in range(6):  # To the last error, which is not among the first rows of the other order.
            await press(screen, "e")
        await press(screen, "s")
        await screen.shows("latency↓")
        await screen.processed()
        first = screen.lines[2:5]
        slowest = [f"{seconds * 1e3:.1f} ms" for seconds in latencies[:3]]
        assert [text for text, line in zip(slowest, first, strict=True) if text not in line] == []
        assert "tools/list" in first[0]
        assert re.search(r"tools/call +slow ", first[1])


async def test_the_tools_of_the_server_are_found(opened: Any, tmp_path: Path) -> None:
    shutil.copy(RECORDING, tmp_path)
    lines = map(json.loads, RECORDING.read_text(encoding="utf-8").splitlines())
    answers = (line.get("msg", {}).get("result") or {} for line in lines)
    tools = [tool["name"] for answer in answers for tool in answer.get("tools", ())]
    async with opened(size=SIZE) as screen:
        await open_session(screen)
        await press(screen, "I")
        await screen.shows(f"Tools ({len(tools)}")
        seen = screen.text
        await press(screen, "question_mark")
        await screen.shows("page down")
        assert "pgdn" in screen.text
        await press(screen, "escape")
        await screen.press("pagedown")
        await screen.until(lambda: screen.text != seen)
        seen += screen.text
        assert tools
        assert [tool for tool in tools if tool not in seen] == []


async def test_the_lines_on_stderr_are_found(opened: Any, tmp_path: Path) -> None:
    shutil.copy(RECORDING, tmp_path)
    async with opened(size=SIZE) as screen:
        await open_session(screen)
        await press(screen, "colon")
        await screen.press(*"stderr")
        await screen.shows("choose rows: notifications, stderr and events, HTTP")
        await screen.press("escape")
        await press(screen, "slash")
        await screen.press(*"stderr")
        await screen.shows("1/1 matches in ")
        await press(screen, "enter")
        assert re.search(r"· stderr +sdk-peer: ready", screen.selected)
