"""The list and the detail pane share the screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from mcpspy.ui.tui.detail.document import Document
from mcpspy.ui.tui.session.panes import document
from tests.ui.model.test_session_model import CALL, FAILED, PROGRESS, File

Make = Callable[..., Path]

HTTP = (
    b'{"t":0.1,"from":"client","http":1,"msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}\n'
    b'{"t":0.2,"note":"http","http":1,"status":200,"method":"POST","path":"/mcp",'
    b'"request":{"accept":"text/\\u001b[2J"},"response":{"x-made-by":"a server"}}\n'
    b'{"t":0.3,"from":"server","http":1,"msg":{"jsonrpc":"2.0","id":1,"result":{}}}\n'
)
REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}'
ERROR = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no"}}'


async def test_enter_and_tab_move_between_the_list_and_the_message(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.shows("ended: exit 0")
        for key in ("enter", "tab", "shift+tab"):
            await screen.press(key)
            assert screen.focused == "DetailPane"
            await screen.press(key)
            assert screen.focused == "MessageList"


async def test_z_toggles_the_zoom_of_a_pane(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(160, 30)) as screen:
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
        assert screen.focused == "DetailPane"
        await screen.press("escape")
        assert screen.focused == "MessageList"
        await screen.press("escape")
        await screen.shows("mcpspy · sessions")


async def test_a_response_updates_the_row_and_the_detail_pane(opened: Any, live: Any) -> None:
    live.say("client", REQUEST % 1)
    async with opened(live.path) as screen:
        await screen.shows("response: pending")
        await screen.press("k")
        live.say("server", ERROR % 1)
        await screen.shows("response: error -32602", "1 error")
        await screen.until(lambda: "pending" not in screen.text)


async def test_an_exchange_shows_both_messages_and_a_message_only_itself(
    opened: Any, make_recording: Make
) -> None:
    async with opened(make_recording(), size=(160, 45)) as screen:
        await screen.shows("ended: exit 0", "request initialize", "response initialize")
        await screen.wire()
        await screen.until(lambda: "response initialize" not in screen.text)
        await screen.press("j")
        await screen.until(lambda: "response initialize" in screen.text and "request ini" not in screen.text)


async def test_the_http_headers_are_the_fourth_view(opened: Any, live: Any) -> None:
    with live.path.open("ab") as file:
        file.write(HTTP)
    async with opened(live.path, size=(160, 45)) as screen:
        await screen.press("4")
        await screen.shows("POST /mcp", "accept: text/\\x1b[2J", "HTTP 200", "x-made-by: a server")


def heading(document: Document) -> list[str]:
    return [f"{part.name} {part.head[0][0]}" for part in document.parts]


def test_the_document_of_a_row_depends_on_its_kind() -> None:
    file = File()
    file.add(CALL, PROGRESS, FAILED, b'{"t":1,"note":"stderr","text":"a word"}', b"{broken")
    shown = [heading(document(file.log, row, exchanges=True)) for row in range(5)]
    assert shown == [
        ["request request tools/call · x", "response error response tools/call · x"],
        ["message notification notifications/progress · 1"],
        ["response error response tools/call · x"],
        ["note event: stderr"],
        ["message damaged line in the recording"],
    ]
    assert heading(document(file.log, 0, exchanges=False)) == ["request request tools/call · x"]


def test_the_headers_of_one_http_exchange_appear_once() -> None:
    file = File()
    file.add(*HTTP.splitlines())
    headers = [text for text, _ in document(file.log, 0, exchanges=True).headers]
    assert headers.count("POST /mcp") == 1
    assert "x-made-by: a server" in headers


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


async def test_a_tiny_terminal_does_not_crash(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(12, 5)) as screen:
        await screen.shows("tested")
        await screen.press("j", "enter", "j", "z", "escape")
