"""The detail pane in every view, with keys and mouse."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.pilot import Pilot

from mcpspy.ui.tui import theme
from mcpspy.ui.tui.detail.document import Document, DocumentPart
from mcpspy.ui.tui.detail.pane import DetailPane
from mcpspy.ui.tui.widgets.base import CLIPBOARD

PARAMS = {"name": "echo", "arguments": {"q": "one\ntwo", "deep": {"a": [1, 2]}}}
REQUEST = DocumentPart(
    "request",
    [("request tools/call", "title"), ("", None)],
    json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": PARAMS}).encode(),
)
RESPONSE = DocumentPart(
    "response",
    [("response tools/call", "title"), ("", None)],
    b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"# Title\\nneedle \\u001b[2J"}]}}',
)
BOTH = Document([REQUEST, RESPONSE], [("POST /mcp HTTP/1.1", None)])


class Reader(App[None]):
    """An application with only the detail pane."""

    CSS = theme.CSS
    COMPONENT_CLASSES: ClassVar[set[str]] = theme.COMPONENTS

    BINDINGS = [Binding("escape", "leave", "leave")]  # noqa: RUF012 - typed so by App.

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.detail = DetailPane(id="detail")
        self._document = document
        self.has_left = False

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(theme.DARK.variables)

    def compose(self) -> ComposeResult:
        yield self.detail

    def on_mount(self) -> None:
        self.register_theme(theme.DARK)
        self.theme = theme.DARK.name
        self.detail.focus()
        self.detail.show(self._document, 1)

    def action_leave(self) -> None:
        self.has_left = True


class Screen:
    """The application and its screen."""

    def __init__(self, app: Reader, pilot: Pilot[None]) -> None:
        self.app, self.pilot, self.press = app, pilot, pilot.press
        self.detail = app.detail

    @property
    def lines(self) -> list[str]:
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def cursor(self) -> str:
        """The text of the line under the cursor, in its column."""
        return next(part for line in self.lines for part in line.split("│") if part.startswith(">"))[
            2:
        ].strip()

    async def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, self.text
            await self.pilot.pause(0.01)

    async def shows(self, *texts: str) -> None:
        for text in texts:
            await self.until(lambda text=text: text in self.text)  # type: ignore[misc]

    async def on(self, text: str) -> None:
        """Wait until the cursor is on a line."""
        await self.until(lambda: self.cursor == text)


@asynccontextmanager
async def reading(document: Document = BOTH, size: tuple[int, int] = (80, 40)) -> AsyncIterator[Screen]:
    app = Reader(document)
    async with app.run_test(size=size) as pilot:
        yield Screen(app, pilot)


async def test_request_and_response_are_stacked() -> None:
    async with reading() as screen:
        await screen.shows(
            "request tools/call", '"method": "tools/call"', "response tools/call", '"result": {'
        )
        await screen.on("{")
        await screen.shows("(root)", "1/17")


async def test_the_cursor_moves_and_its_path_is_reported() -> None:
    async with reading() as screen:
        await screen.press("j", "down")
        await screen.on('"id": 7,')
        await screen.shows("/id")
        await screen.press("k")
        await screen.on('"jsonrpc": "2.0",')
        await screen.press("up", *["j"] * 9)
        await screen.shows("/params/arguments/deep")
        await screen.press("G")
        await screen.on("}")
        await screen.press("g")
        await screen.on("request tools/call")
        await screen.press("end", "home")
        await screen.on("request tools/call")


async def test_pages_turn() -> None:
    lines = {f"line{number}": number for number in range(100)}
    document = Document([DocumentPart("message", [("head", None)], json.dumps(lines).encode())])
    async with reading(document, (60, 20)) as screen:
        await screen.press("pagedown", "pagedown")
        await screen.shows('"line33"')
        await screen.until(lambda: '"line5"' not in screen.text)
        await screen.press("pageup", "pageup")
        await screen.shows("head")
        await screen.press("G")
        await screen.shows('"line99"')
        await screen.press("pageup")
        await screen.until(lambda: '"line99"' not in screen.text)


async def test_a_line_higher_than_the_pane_scrolls_row_by_row() -> None:
    document = Document([DocumentPart("message", [], json.dumps({"a": "word " * 200, "b": 1}).encode())])
    async with reading(document, (40, 12)) as screen:
        await screen.press("j", *["j"] * 40)
        await screen.shows('"b": 1')
        await screen.press("k", *["k"] * 40)
        await screen.shows('"a": "word')


async def test_four_views() -> None:
    async with reading() as screen:
        await screen.press("2")
        await screen.shows("[2 text]", "name: echo", "# Title", "needle \\x1b[2J")
        await screen.until(lambda: '"jsonrpc"' not in screen.text)
        await screen.press("3")
        await screen.shows("[3 raw]", '{"jsonrpc":"2.0","id":7,"result"')
        await screen.press("4")
        await screen.shows("[4 headers]", "POST /mcp HTTP/1.1")
        await screen.press("1")
        await screen.shows("[1 pretty]", '"jsonrpc": "2.0"')
    async with reading(Document([REQUEST])) as screen:
        await screen.press("4")
        await screen.shows("no HTTP headers")


async def test_a_view_keeps_its_place_and_the_next_message_its_view() -> None:
    async with reading() as screen:
        await screen.press("j", "j", "2", "1")
        await screen.on('"id": 7,')
        await screen.press("3")
        screen.detail.show(Document([RESPONSE]), 2)
        await screen.shows("[3 raw]", '{"jsonrpc":"2.0","id":7,"result"')


async def test_a_click_on_a_name_changes_the_view() -> None:
    async with reading() as screen:
        await screen.pilot.click("#detail-view", offset=(15, 0))
        await screen.shows("[2 text]")


async def test_folding_by_keys() -> None:
    async with reading() as screen:
        await screen.press(*["j"] * 5, "h")
        await screen.shows('"params": { … 2 members }')
        await screen.press("l")
        await screen.shows('"name": "echo"')
        await screen.press("right", "j", "j", "space")
        await screen.shows('"arguments": { … 2 members }')
        await screen.on('"arguments": { … 2 members }')
        await screen.press("left")
        await screen.on('"params": {')
        await screen.press("j", "j", "space")
        await screen.shows('"deep": {')
        await screen.press("-")
        await screen.shows('"params": { … 2 members }', '"result": { … 1 member }')
        await screen.on('"params": { … 2 members }')
        await screen.press("+")
        await screen.shows('"deep": {', '"content": [')


async def test_folding_by_mouse() -> None:
    async with reading() as screen:
        row = next(y for y, line in enumerate(screen.lines) if '"params"' in line)
        await screen.pilot.click("#detail", offset=(1, row))
        await screen.shows('"params": { … 2 members }')
        await screen.pilot.click("#detail", offset=(8, row), times=2)
        await screen.shows('"name": "echo"')
        await screen.pilot.click("#detail", offset=(8, row - 2))
        await screen.on('"id": 7,')


async def test_a_string_is_opened_and_closed() -> None:
    async with reading() as screen:
        await screen.press(*["j"] * 7, "o")
        await screen.shows("[string]", "/params/arguments/q", "one", "two")
        await screen.press("escape")
        await screen.on('"q": "one\\ntwo",')
        assert not screen.app.has_left
        await screen.press("k", "o")
        await screen.shows("not a string")
        await screen.press("escape")
        await screen.until(lambda: screen.app.has_left)


async def test_searching() -> None:
    async with reading() as screen:
        await screen.press("ctrl+f", *"tools", "enter")
        await screen.shows("tools 1/1")
        await screen.press("ctrl+f", *"/[a-z]ext/", "enter")
        await screen.shows("/[a-z]ext/ 1/2")
        await screen.press("n")
        await screen.shows("2/2")
        await screen.press("n")
        await screen.shows("1/2", "search wrapped to the start")
        await screen.press("N")
        await screen.shows("2/2", "search wrapped to the end")
        await screen.press("escape")
        await screen.until(lambda: "2/2" not in screen.text)
        assert not screen.app.has_left


async def test_a_search_finds_folded_text_and_reports_errors() -> None:
    async with reading() as screen:
        await screen.press("-", "n")
        await screen.until(lambda: type(screen.app.focused).__name__ == "SearchBox")
        await screen.press(*"needle", "enter")
        await screen.until(lambda: "needle" in screen.cursor)
        await screen.press("ctrl+f", *"nowhere", "enter")
        await screen.shows("not found", "nowhere 0/0")
        await screen.press("ctrl+f", *"/(/", "enter")
        await screen.shows("invalid regular expression")
        await screen.press("escape")
        await screen.until(lambda: screen.detail.has_focus)


async def test_values_and_paths_are_copied() -> None:
    async with reading() as screen:
        await screen.press(*["j"] * 7, "c")
        await screen.shows("copied value, 7 bytes")
        assert screen.app.clipboard == "one\ntwo"
        await screen.press("C")
        await screen.shows("copied /params/arguments/q")
        assert screen.app.clipboard == "/params/arguments/q"
        await screen.press("j", "c")
        await screen.until(lambda: screen.app.clipboard == '{"a":[1,2]}')
        await screen.press("g", "C")
        await screen.shows("the path of the root is empty")


async def test_a_value_too_large_for_the_clipboard_is_not_copied() -> None:
    document = Document([DocumentPart("message", [], json.dumps({"a": "x" * CLIPBOARD + "x"}).encode())])
    async with reading(document) as screen:
        await screen.press("j", "c")
        await screen.shows("256.0k is too large for the clipboard")
        assert screen.app.clipboard == ""


async def test_side_by_side_and_switching_between_messages() -> None:
    async with reading(size=(120, 30)) as screen:
        await screen.press("j", "p")
        await screen.on("{")
        await screen.press("j", "\\")
        await screen.until(lambda: any("request tools" in x and "response tools" in x for x in screen.lines))
        await screen.on('"jsonrpc": "2.0",')
        await screen.press("j", "p", "j", "j")
        await screen.on('"params": {')
        await screen.press("\\", "p", "p")
        await screen.on("{")
        await screen.until(lambda: "│" not in screen.text)


async def test_side_by_side_needs_width_and_two_messages() -> None:
    async with reading() as screen:
        await screen.press("\\")
        await screen.shows("side by side needs 100 columns")
    async with reading(Document([REQUEST])) as screen:
        await screen.press("\\")
        await screen.shows("only one message")
        await screen.press("p")
        await screen.shows("only one message")


async def test_a_click_reaches_the_other_column_and_a_resize_puts_them_together() -> None:
    async with reading(size=(120, 30)) as screen:
        await screen.press("\\")
        await screen.shows("│")
        row = next(y for y, line in enumerate(screen.lines) if '"result"' in line)
        await screen.pilot.click("#detail", offset=(80, row))
        await screen.on('"result": {')
        await screen.pilot.resize_terminal(80, 30)
        await screen.until(lambda: "│" not in screen.text)
        await screen.on('"result": {')


async def test_a_new_response_does_not_move_the_cursor() -> None:
    async with reading(Document([REQUEST])) as screen:
        await screen.press(*["j"] * 8, "h", "k")
        before = screen.cursor
        longer = [("request tools/call", "title"), ("response: ok", "ok"), ("", None)]
        screen.detail.show(Document([REQUEST._replace(head=longer), RESPONSE]), 1)
        await screen.shows("response: ok", "response tools/call", '"deep": { … 1 member }')
        await screen.on(before)


async def test_a_new_response_keeps_the_current_match() -> None:
    async with reading(Document([REQUEST])) as screen:
        screen.detail.mark_filter("text:o")
        await screen.shows("filter 1/")
        await screen.press("n")
        await screen.shows("filter 2/")
        screen.detail.show(BOTH, 1)
        await screen.shows("response tools/call", "filter 2/")
        await screen.press("n")
        await screen.shows("filter 3/")


async def test_text_of_a_peer_is_sanitized() -> None:
    evil = "\x1b]0;title\x07[bold red]x[/bold red]\u202e\u200b\x9b2J"
    raw = b'{"a":"' + evil.encode() + b'"} \xff\x00'
    document = Document(
        [DocumentPart("message", [], json.dumps({"a": evil}).encode()), DocumentPart("message", [], raw)]
    )
    async with reading(document) as screen:
        for key in ("1", "2", "3"):
            await screen.press(key)
            await screen.shows("[bold red]x[/bold red]", "\\xff\\x00")
            assert not set("\x1b\x07\u202e\u200b\x9b\x00") & set(screen.text)
        await screen.press("1", "j", "o")
        await screen.shows("\\x1b]0;title\\x07[bold red]")


@pytest.mark.parametrize("size", [(12, 5), (30, 8), (60, 20), (250, 80)])
async def test_it_fits_every_terminal(size: tuple[int, int]) -> None:
    async with reading(size=size) as screen:
        keys = ["j", "h", "2", "G", "3", "g", "4", "1", "\\", "s", "ctrl+f", "x", "enter", "escape", "o"]
        await screen.press(*keys)
        assert {cell_len(line) for line in screen.lines} == {size[0]}
        assert len(screen.lines) == size[1]


async def test_a_large_message_opens_at_once_and_stays_responsive() -> None:
    rows = [{"id": n, "name": f"row {n}", "tags": ["a", "b"], "ok": True} for n in range(80_000)]
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"rows": rows}}).encode()
    async with reading() as screen:
        began = time.process_time()
        screen.detail.show(Document([DocumentPart("message", [], data)]), 2)
        await screen.shows('"name": "row 1"')
        await screen.press("G", "k", "k", "k")
        await screen.shows("720,005/720,008", "/result/rows/79999")
        assert time.process_time() - began < 3
        await screen.press("-", "+", "1")
