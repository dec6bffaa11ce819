"""The cursor is visible with the focus, and the visible text stays in place."""

from __future__ import annotations

import json

from mcpspy.ui.tui.detail.document import Document, DocumentPart
from mcpspy.ui.tui.detail.viewer import Viewer
from tests.ui.tui.detail.test_pane import reading

LINES = {f"line{number}": "word " * 12 for number in range(60)}
LONG = Document([DocumentPart("message", [("head", None)], json.dumps(LINES).encode())])


async def test_the_cursor_is_visible_with_the_focus() -> None:
    async with reading() as screen:
        await screen.on("{")
        screen.app.set_focus(None)
        await screen.until(lambda: not any(line.startswith(">") for line in screen.lines))
        await screen.pilot.click("#detail", offset=(10, 5))
        await screen.on('"id": 7,')


async def test_another_width_leaves_the_cursor_where_it_was() -> None:
    async with reading(LONG, (100, 20)) as screen:
        await screen.press(*["j"] * 30)
        row = next(y for y, line in enumerate(screen.lines) if line.startswith(">"))
        await screen.pilot.resize_terminal(50, 20)
        await screen.until(lambda: any(line.startswith('>   "line29"') for line in screen.lines))
        assert abs(row - next(y for y, line in enumerate(screen.lines) if line.startswith(">"))) <= 1


async def test_the_wheel_scrolls_and_the_cursor_stays_behind() -> None:
    async with reading(LONG, (100, 20)) as screen:
        viewer = screen.detail.query_one(Viewer)
        viewer.scroll_to(y=30, animate=False)
        await screen.shows('"line35"')
        place = viewer.place
        screen.detail.show(Document([LONG.parts[0]._replace(head=[("head", None), ("more", None)])]), 1)
        await screen.pilot.pause()
        assert viewer.place == place
        assert '"line35"' in screen.text
        await screen.press("j")
        await screen.until(lambda: screen.cursor.startswith('"line0"'))
