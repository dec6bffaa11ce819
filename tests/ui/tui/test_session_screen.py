"""One session on the screen: jumps, copies, follows, and says what is amiss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.ui.tui import feed

Make = Callable[..., Path]

REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}'
ERROR = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no"}}'


async def test_what_cannot_be_jumped_to_is_said(opened: Any, make_recording: Make, live: Any) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("E")
        await screen.shows("no error above")
        await screen.press("G", "e")
        await screen.shows("no error below")
        await screen.press("p")
        await screen.shows("it belongs to no request")
    live.say("client", REQUEST % 1)
    async with opened(live.path) as screen:
        await screen.shows("pending")
        await screen.press("p")
        await screen.shows("it has no answer")


async def test_y_copies_the_message_as_it_was_sent(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("e", "e", "y")
        await screen.shows("copied 63 bytes")
        assert screen.app.clipboard == (ERROR % 2).decode()


async def test_what_no_clipboard_takes_is_not_copied(opened: Any, make_recording: Make) -> None:
    body = b'{"jsonrpc":"2.0","method":"x","params":{"blob":"' + b"A" * 300_000 + b'"}}'
    async with opened(make_recording([("client", body)]), size=(140, 24)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("y")
        await screen.shows("300.1k is more than a clipboard takes")
        assert screen.app.clipboard == ""


async def test_a_live_session_is_followed(opened: Any, live: Any) -> None:
    async with opened(live.path, size=(100, 24)) as screen:
        await screen.shows("waiting for the first message", "● LIVE")
        live.calls(1, 40)
        await screen.until(lambda: screen.cursor == 79)
        await screen.shows("following", "80/80", "80 messages")
        live.say("client", REQUEST % 41)
        await screen.shows("81/81", "1 pending", "answer: pending")
        live.say("server", ERROR % 41)
        await screen.shows("82/82", "1 error", "error response")
        live.end()
        await screen.shows("ended: exit 0", "○ ended exit 0")
        await screen.until(lambda: "following" not in screen.text)


async def test_a_dead_session_says_so_and_what_is_torn(opened: Any, make_recording: Make) -> None:
    path = make_recording(exit_code=None, torn=b'{"t":1.0,"from')
    async with opened(path, size=(140, 30)) as screen:
        await screen.shows("died: mcpspy was stopped", "torn (14 bytes", "✗ died")


async def test_a_file_that_is_cut_while_it_is_open_is_read_again(opened: Any, live: Any) -> None:
    live.calls(1, 20)
    async with opened(live.path, size=(140, 30)) as screen:
        await screen.until(lambda: screen.cursor == 39)
        head = live.path.read_bytes().split(b"\n")[0]
        live.path.write_bytes(head + b"\n")
        await screen.shows("the file was cut or replaced")
        await screen.until(lambda: screen.count == 1)
        await screen.press("j", "k", "p", "e", "E", "y", "G")
        live.calls(30, 31)
        await screen.until(lambda: screen.count == 5)


async def test_another_session_of_the_same_name_is_shown_as_what_it_is(
    opened: Any, live: Any, make_recording: Make, tmp_path: Path
) -> None:
    live.calls(1, 20)
    async with opened(live.path, size=(160, 30)) as screen:
        await screen.until(lambda: screen.cursor == 39)
        (tmp_path / "aside").mkdir()
        make_recording(name="another", folder=tmp_path / "aside").replace(live.path)
        await screen.shows("another · tested 2", "cut or replaced while it was open", "ended: exit 0")


async def test_a_file_that_is_deleted_while_it_is_open_is_read_on(
    opened: Any, live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "NAME_EVERY", 0.05)
    live.calls(1, 2)
    async with opened(live.path) as screen:
        await screen.shows("4/4")
        live.path.unlink()
        await screen.shows("the file was deleted while it was open")
        live.calls(3, 3)
        await screen.shows("6/6")


async def test_a_session_that_vanished_from_the_list_is_trouble_in_one_line(
    opened: Any, make_recording: Make
) -> None:
    path = make_recording()
    async with opened(size=(200, 20)) as screen:
        await screen.shows("1 session")
        path.unlink()
        await screen.press("enter")
        await screen.shows("no such file")
