"""The session screen: navigation, copying, following, and reported problems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.ui.model import session_loader as loader
from mcpspy.ui.tui.session.screen import SessionScreen

Make = Callable[..., Path]

REQUEST = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}'
ERROR = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no"}}'


async def test_a_missing_navigation_target_is_reported(opened: Any, make_recording: Make, live: Any) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("E")
        await screen.shows("no error or protocol issue above")
        await screen.press("G", "e")
        await screen.shows("no error or protocol issue below")
        await screen.press("p")
        await screen.shows("no matching request")
    live.say("client", REQUEST % 1)
    async with opened(live.path) as screen:
        await screen.shows("pending")
        await screen.press("p")
        await screen.shows("no response")


async def test_y_copies_the_message_as_it_was_sent(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        await screen.wire()
        await screen.press("e", "e", "y")
        await screen.shows("copied 63 bytes")
        assert screen.app.clipboard == (ERROR % 2).decode()


async def test_a_message_too_large_for_the_clipboard_is_not_copied(opened: Any, make_recording: Make) -> None:
    body = b'{"jsonrpc":"2.0","method":"x","params":{"blob":"' + b"A" * 300_000 + b'"}}'
    async with opened(make_recording([("client", body)]), size=(140, 24)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("y")
        await screen.shows("300.1k is too large for the clipboard")
        assert screen.app.clipboard == ""


async def test_a_live_session_is_followed(opened: Any, live: Any) -> None:
    async with opened(live.path, size=(100, 24)) as screen:
        await screen.shows("waiting for the first message", "● LIVE")
        await screen.wire()
        live.calls(1, 40)
        await screen.until(lambda: screen.cursor == 79)
        await screen.shows("following", "80/80", "80 messages")
        live.say("client", REQUEST % 41)
        await screen.shows("81/81", "1 pending", "response: pending")
        live.say("server", ERROR % 41)
        await screen.shows("82/82", "1 error", "error response")
        live.end()
        await screen.shows("ended: exit 0", "○ ended exit 0")
        await screen.until(lambda: "following" not in screen.text)


async def test_a_live_session_is_followed_by_its_exchanges(opened: Any, live: Any) -> None:
    async with opened(live.path, size=(160, 24)) as screen:
        await screen.shows("waiting for the first message", "● LIVE")
        live.calls(1, 40)
        await screen.shows("40/40  following", "80 messages")
        live.say("client", REQUEST % 41)
        await screen.shows("41/41", "1 pending", "response: pending")
        await screen.until(lambda: screen.selected[:90].rstrip().endswith("pending"))
        live.say("server", ERROR % 41)
        await screen.shows("response: error -32602", "1 error", "error response")
        await screen.until(lambda: "-32602 invalid params: no" in screen.selected[:95])
        live.end()
        await screen.shows("42/42", "ended: exit 0")
        await screen.until(lambda: "following" not in screen.text)


@pytest.mark.parametrize("key", ["k", "pageup", "g"])
async def test_new_exchanges_do_not_move_the_selection(opened: Any, live: Any, key: str) -> None:
    live.calls(1, 60)
    async with opened(live.path, size=(100, 24)) as screen:
        await screen.shows("60/60  following")
        await screen.press(key)
        await screen.shows("paused")
        row, before = screen.session.listing.row, screen.lines[1:10]
        live.calls(61, 97)
        await screen.shows("paused, +37 new (End)")
        await screen.until(lambda: screen.count == 97)
        assert screen.session.listing.row == row
        assert [line[:95] for line in screen.lines[1:10]] == [line[:95] for line in before]
        await screen.press("end")
        await screen.shows("97/97  following")


async def test_unanswered_requests_are_counted_and_found(opened: Any, live: Any) -> None:
    live.calls(1, 3)
    live.say("client", REQUEST % 50, REQUEST % 51)
    live.end()
    async with opened(live.path, size=(160, 24)) as screen:
        await screen.shows("2 unanswered requests", " 2 unanswered ")
        await screen.press("e")
        assert screen.cursor == 3
        await screen.shows("response: ")
        await screen.press("slash", *"status:noanswer", "enter")
        await screen.shows("1/2 matches in 6 rows")


async def test_keys_work_after_a_file_is_truncated(opened: Any, live: Any) -> None:
    live.calls(1, 30)
    async with opened(live.path, size=(100, 24)) as screen:
        await screen.shows("30/30  following")
        await screen.press("k", "k", "m", "enter")
        head = live.path.read_bytes().split(b"\n")[0]
        live.path.write_bytes(head + b"\n")
        await screen.shows("the file was truncated or replaced")
        await screen.until(lambda: screen.count == 0)
        keys = "j k p e E y Y m u U M M s S s s v v o a h t 2 1 [ ] . , n N F G g"
        names = {"[": "left_square_bracket", "]": "right_square_bracket", ".": "full_stop", ",": "comma"}
        await screen.press("escape", *[names.get(key, key) for key in keys.split()])
        live.calls(30, 31)
        await screen.until(lambda: "tools/call" in screen.text)


async def test_a_died_session_reports_its_incomplete_last_line(opened: Any, make_recording: Make) -> None:
    path = make_recording(exit_code=None, torn=b'{"t":1.0,"from')
    async with opened(path, size=(140, 30)) as screen:
        await screen.shows("died: mcpspy was killed", "incomplete last line skipped (14 bytes", "✗ died")


async def test_a_file_truncated_while_open_is_read_again(opened: Any, live: Any) -> None:
    live.calls(1, 20)
    async with opened(live.path, size=(140, 30)) as screen:
        await screen.wire()
        await screen.until(lambda: screen.cursor == 39)
        head = live.path.read_bytes().split(b"\n")[0]
        live.path.write_bytes(head + b"\n")
        await screen.shows("the file was truncated or replaced")
        await screen.until(lambda: screen.count == 0)
        await screen.press("j", "k", "p", "e", "E", "y", "G")
        live.calls(30, 31)
        await screen.until(lambda: screen.count == 4)


async def test_another_session_with_the_same_file_name_is_shown(
    opened: Any, live: Any, make_recording: Make, tmp_path: Path
) -> None:
    live.calls(1, 20)
    async with opened(live.path, size=(160, 30)) as screen:
        await screen.wire()
        await screen.until(lambda: screen.cursor == 39)
        (tmp_path / "other").mkdir()
        make_recording(name="another", folder=tmp_path / "other").replace(live.path)
        await screen.shows("another · tested 2", "truncated or replaced while open", "ended: exit 0")


async def test_a_file_deleted_while_open_is_still_read(
    opened: Any, live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "NAME_EVERY", 0.05)
    live.calls(1, 2)
    async with opened(live.path) as screen:
        await screen.wire()
        await screen.shows("4/4")
        live.path.unlink()
        await screen.shows("the file was deleted while open")
        live.calls(3, 3)
        await screen.shows("6/6")


async def test_a_session_whose_file_vanished_is_reported_in_one_line(
    opened: Any, make_recording: Make
) -> None:
    path = make_recording()
    summary = summarize(path, read_header_of(path))
    async with opened(size=(200, 20)) as screen:
        await screen.shows("1 session")
        path.unlink()
        screen.app.push_screen(SessionScreen(summary))
        await screen.shows("no such file")


async def test_the_status_is_not_updated_while_idle(
    opened: Any, live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.calls(1, 3)
    async with opened(live.path) as screen:
        await screen.until(lambda: screen.count == 3)
        beats, updates = 0, 0
        snapshot, update = screen.session._snapshot, screen.session._update_status

        def counted_snapshot() -> object:
            nonlocal beats
            beats += 1
            return snapshot()

        def counted_update() -> None:
            nonlocal updates
            updates += 1
            update()

        monkeypatch.setattr(screen.session, "_snapshot", counted_snapshot)
        monkeypatch.setattr(screen.session, "_update_status", counted_update)
        await screen.until(lambda: beats > 5)
        before, quiet = updates, beats
        await screen.until(lambda: beats > quiet + 3)
        assert updates == before
        live.calls(4, 4)
        await screen.until(lambda: screen.count == 4)
        assert updates > before


async def test_escape_asks_before_it_leaves_a_live_session_and_q_does_not(opened: Any, live: Any) -> None:
    live.calls(1, 2)
    async with opened(live.path) as screen:
        await screen.until(lambda: screen.count)
        session = screen.session
        await screen.press("escape")
        await screen.shows("Leave this live session? It is still recorded.")
        await screen.press("n")
        await screen.until(lambda: screen.app.screen is session)
        await screen.press("slash", *"echo", "enter", "escape")
        assert screen.app.screen is session, "it cleared the filter"
        await screen.press("escape", "y")
        await screen.shows("1 session")
        await screen.press("enter")
        await screen.until(lambda: screen.app.screen is not session and screen.count)
        await screen.press("q")
        await screen.shows("1 session")


async def test_escape_leaves_an_ended_session_at_once(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("escape")
        await screen.shows("1 session")


async def test_enter_on_a_failed_exchange_shows_its_response(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("e", "enter")
        await screen.shows("error -32602")
        viewer = screen.session.panes.detail._viewer
        assert (screen.focused, viewer.place.section) == ("DetailPane", 1)
        await screen.press("enter")
        assert screen.focused == "MessageList"


async def test_a_covered_screen_neither_leaves_nor_closes_the_one_above_it(
    opened: Any, make_recording: Any
) -> None:
    async with opened(make_recording()) as screen:
        await screen.until(lambda: screen.count)
        session = screen.session
        await screen.press("question_mark")
        stack = screen.app.screen_stack
        assert len(stack) == 3
        await session.action_back()
        assert screen.app.screen_stack == stack


async def test_a_closed_screen_shows_no_late_message(opened: Any, make_recording: Any) -> None:
    async with opened(make_recording()) as screen:
        await screen.until(lambda: screen.count)
        session = screen.session
        await screen.press("q")
        await screen.until(lambda: not session._keys.is_attached)
        session._footer = ()
        session.flash_message("too late")
