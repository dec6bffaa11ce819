"""Tests of the capabilities screen: folding, copying, and lists that arrive while it is open."""

from __future__ import annotations

import json

import pytest

from mcpspy.ui.tui.panels import capabilities_screen, panel_screen
from mcpspy.ui.tui.panels.capabilities_screen import CapabilitiesScreen
from tests.ui.model.test_interface import Session, tool
from tests.ui.tui.panels.panels import HEADER, alone, every_recording, recorded

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "where"}},
    "required": ["city"],
}


def listed() -> Session:
    session = Session()
    session.list(tool("forecast", inputSchema=SCHEMA, description="the weather"), tool("other"))
    return session


async def go_to(shown: object, screen: CapabilitiesScreen, text: str) -> None:
    rows = screen.listing.lines  # type: ignore[attr-defined]
    screen.listing.move_to(next(place for place, row in enumerate(rows) if text in row.name))


async def test_the_peers_are_first() -> None:
    log = recorded((next(p for p in every_recording() if p.stem == "everything-sdk-auto")).read_bytes()).log
    async with alone(CapabilitiesScreen(log), (120, 44)) as shown:
        await shown.shows("server   mcp-servers/everything 2.0.0", "client   sdk-client 1.0.0", "2025-11-25")
        await shown.shows("Tools (17, ", "Resource templates (2", "server   tools (listChanged)")


@pytest.mark.parametrize("key", ["space", "enter", "right", "l"])
async def test_a_tool_unfolds_and_folds_again(key: str) -> None:
    screen = CapabilitiesScreen(listed().log)
    async with alone(screen, (100, 30)) as shown:
        await shown.shows("▸ forecast", "1 required")
        assert "city" not in shown.text
        await go_to(shown, screen, "forecast")
        await shown.press(key)
        await shown.shows("▾ forecast", "city", "required", "where")
        await shown.press("j", "h" if key in ("right", "l") else key)
        await shown.until(lambda: "city" not in shown.text)
        assert "forecast" in shown.selected


async def test_a_whole_list_folds_and_unfolds() -> None:
    screen = CapabilitiesScreen(listed().log)
    async with alone(screen, (100, 30)) as shown:
        await shown.shows("▾ Tools (2")
        await go_to(shown, screen, "Tools (2")
        for key, folded in (("space", True), ("space", False), ("left", True), ("right", False)):
            await shown.press(key)
            await shown.until(lambda folded=folded: ("forecast" not in shown.text) == folded)  # type: ignore[misc]


async def test_all_unfold_and_fold() -> None:
    screen = CapabilitiesScreen(listed().log)
    async with alone(screen, (100, 30)) as shown:
        await shown.shows("▸ other")
        await shown.press("plus")
        await shown.shows("▾ forecast", "▾ other", "city")
        await shown.press("minus")
        await shown.shows("▸ forecast", "▸ other")


async def test_not_everything_unfolds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities_screen, "UNFOLDED", 4)
    async with alone(CapabilitiesScreen(listed().log), (100, 30)) as shown:
        await shown.shows("▸ other")
        await shown.press("plus")
        await shown.shows("▾ forecast", "▸ other", "unfolded the first 1")


async def test_y_copies_the_json_of_a_tool() -> None:
    screen = CapabilitiesScreen(listed().log)
    async with alone(screen, (100, 30)) as shown:
        await shown.shows("▸ forecast")
        await shown.press("y")
        await shown.shows("nothing to copy: ")
        await go_to(shown, screen, "forecast")
        await shown.press("y")
        await shown.shows("copied the JSON of forecast")
        (text,) = shown.app.copied
        assert json.loads(text)["inputSchema"] == SCHEMA


async def test_too_much_text_for_the_clipboard_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities_screen, "CLIPBOARD", 10)
    screen = CapabilitiesScreen(listed().log)
    async with alone(screen, (100, 30)) as shown:
        await shown.shows("▸ forecast")
        await go_to(shown, screen, "forecast")
        await shown.press("y")
        await shown.shows("not copied")
        assert shown.app.copied == []


async def test_new_listings_are_shown_with_their_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_screen, "TICK", 0.01)
    session = Session()
    async with alone(CapabilitiesScreen(session.log), (100, 30)) as shown:
        await shown.shows("no lists recorded", "Tools: not listed")
        session.list(tool("first"))
        await shown.shows("▸ first")
        session.list(tool("second"))
        await shown.shows("▸ second", "listed 2 times", "Tools at 0.200 s: added second; removed first")


async def test_a_replaced_file_clears_the_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_screen, "TICK", 0.01)
    session = listed()
    async with alone(CapabilitiesScreen(session.log), (100, 30)) as shown:
        await shown.shows("▸ forecast")
        session.data.clear()
        session.log.begin_again(HEADER)
        session.log.begin_part()
        await shown.shows("Tools: not listed")
        session.list(tool("after"))
        await shown.shows("▸ after")


async def test_keys_work_while_a_large_list_is_read() -> None:
    session = Session()
    session.list(*(tool(f"tool{number}", description="x" * 1000) for number in range(3000)))
    screen = CapabilitiesScreen(session.log)
    async with alone(screen, (100, 30)) as shown:
        await shown.press("j", "j")
        assert screen.listing.cursor == 2
        await shown.shows("Tools (3,000")


async def test_text_of_peers_is_sanitized() -> None:
    session = Session()
    session.list(tool("a\x1b[31m", description="b\x1b]0;t\x07"))
    async with alone(CapabilitiesScreen(session.log), (100, 30)) as shown:
        await shown.shows("a\\x1b[31m", "b\\x1b]0;t\\x07")
        await shown.press("plus")
        await shown.shows("▾ a\\x1b[31m")
        assert "\x1b" not in shown.text


@pytest.mark.parametrize("key", ["escape", "q"])
async def test_it_can_be_left(key: str) -> None:
    async with alone(CapabilitiesScreen(listed().log)) as shown:
        await shown.press(key)
        await shown.until(lambda: shown.app.results == [None])


@pytest.mark.parametrize("size", [(80, 24), (250, 80), (40, 10)])
async def test_every_recording_fits_every_size(size: tuple[int, int]) -> None:
    for path in list(every_recording())[:4]:
        async with alone(CapabilitiesScreen(recorded(path.read_bytes()).log), size) as shown:
            await shown.shows("Peers")
            await shown.press("plus", "G", "j")
            assert {len(line) for line in shown.lines} == {size[0]}
