"""The session list and its actions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io.control import client
from mcpspy.io.control.client import LiveSession
from mcpspy.io.recording.catalog import CACHE
from mcpspy.io.recording.reader import Summary
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.tui.session.screen import SessionScreen
from mcpspy.ui.tui.sessions import screen as module
from mcpspy.ui.tui.sessions.session_list import SessionList
from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt
from tests.io.files import frame, note, write
from tests.ui.tui.conftest import ERROR, REQUEST, Opened

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scan the folder more often than a user needs."""
    monkeypatch.setattr(module, "EVERY", 0.05)


@pytest.fixture
def clipboard(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect copied texts."""
    copied: list[str] = []
    monkeypatch.setattr("textual.app.App.copy_to_clipboard", lambda _, text: copied.append(text))
    return copied


def chosen(screen: Any) -> Summary:
    summary = screen.app.screen.query_one(SessionList).chosen
    assert isinstance(summary, Summary)
    return summary


def is_asking(screen: Any) -> bool:
    return isinstance(screen.app.screen, ConfirmPrompt)


async def test_an_empty_folder_names_another_one_with_a_live_session(
    opened: Any, tmp_path: Path, make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = ["/else where", str(tmp_path), "/else where", ""]
    found = [LiveSession("x.sock", {"folder": folder}) for folder in folders]
    monkeypatch.setattr(client, "live_sessions", lambda: found)
    async with opened(size=(80, 24)) as screen:
        await screen.shows("Sessions of another folder are live:", "mcpspy tui --dir '/else where'")
        assert "--dir" not in screen.text.replace("--dir '/else where'", "", 1)
        path = make_recording()
        await screen.shows("1 session")
        path.unlink()
        await screen.shows("No sessions yet")


async def test_keys_that_need_a_session_are_shown_only_if_there_is_one(
    opened: Any, make_recording: Make
) -> None:
    async with opened() as screen:
        await screen.until(
            lambda: screen.lines[-1].split()[:6] == ["D", "demo", "ctrl-r", "reload", "q", "quit"]
        )
        make_recording()
        await screen.until(lambda: screen.lines[-1].startswith(" enter open  / filter  e error  I tools"))


async def test_an_empty_folder_shows_instructions(opened: Any, tmp_path: Path) -> None:
    async with opened(size=(80, 24)) as screen:
        await screen.shows("mcpspy run -- npx", "mcpspy demo", f"watching {tmp_path}"[:70], "0 sessions")
        await screen.press("enter", "j", "k", "G", "g", "e", "d", "C", "Y", "m", "escape")
        assert not isinstance(screen.app.screen, SessionScreen)


async def test_sessions_appear_change_and_vanish_automatically(
    opened: Any, tmp_path: Path, live: Any
) -> None:
    async with opened() as screen:
        await screen.shows("● ", " live", "1 session · 1 live")
        live.calls(1, 3)
        await screen.until(lambda: " 6 " in screen.lines[2], "the number of messages")
        live.end(3)
        await screen.shows("✗ ", "crashed, exit 3")
        assert f"{live.path.name[-14:-6]} · " in screen.text
        live.path.unlink()
        await screen.shows("No sessions yet")


async def test_a_died_session_has_a_label_and_a_glyph(opened: Any, make_recording: Make) -> None:
    make_recording(exit_code=None)
    async with opened() as screen:
        await screen.shows("✗ ", "mcpspy was killed")


async def test_enter_opens_q_or_escape_return_and_q_quits(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened() as screen:
        await screen.shows("1 session")
        for key in ("q", "escape"):
            await screen.press("enter")
            await screen.shows("ended: exit 0")
            assert isinstance(screen.app.screen, SessionScreen)
            await screen.press(key)
            await screen.shows("1 session")
        await screen.press("q")
        await screen.until(lambda: screen.app._exit)


async def test_a_second_click_opens(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened() as screen:
        await screen.shows("1 session")
        await screen.pilot.click(SessionList, offset=(5, 1), times=2)
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("e", "error -32602 invalid params: no"),
        ("P", "problems"),
        ("L", "peak concurrency"),
        ("number_sign", "all requests"),
        ("I", "Tools: not listed"),
    ],
)
async def test_keys_of_a_session_open_it_from_the_list(
    opened: Any, make_recording: Make, key: str, shown: str
) -> None:
    make_recording()
    async with opened() as screen:
        await screen.shows("failures")
        await screen.press(key)
        await screen.shows(shown)
        assert isinstance(screen.app.screen_stack[1], SessionScreen)


@pytest.mark.parametrize("count", [0, 3])
async def test_e_goes_to_the_first_error_of_a_live_session(opened: Any, live: Any, count: int) -> None:
    for number in range(count):
        live.say("client", REQUEST % number)
        live.say("server", ERROR % number)
    live.calls(10, 90)
    async with opened() as screen:
        await screen.shows("● ", " live")
        await screen.press("e")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))
        if count:
            await screen.until(lambda: screen.cursor == 0 and not screen.session.listing.follow)
        else:
            await screen.shows("no error or protocol issue below")
            assert screen.session.listing.follow


async def test_enter_opens_all_marked_sessions_as_one(opened: Any, make_recording: Make) -> None:
    for name in "abc":
        make_recording(name=name)
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("m", "m", "enter")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))
        assert len(screen.session.loader.paths) == 2


async def test_a_session_of_the_command_line_opens_above_the_list(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("q")
        await screen.shows("1 session")


async def test_a_folder_that_cannot_be_read_is_reported(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    async with opened(folder=tmp_path / "file", size=(200, 20)) as screen:
        await screen.shows("Not a directory")


@pytest.mark.parametrize("key", ["backspace", "delete"])
async def test_a_session_is_deleted_after_confirmation(opened: Any, make_recording: Make, key: str) -> None:
    kept = make_recording(name="kept")
    gone = make_recording(name="gone")
    async with opened() as screen:
        await screen.shows("2 sessions")
        if chosen(screen).path != gone:
            await screen.press("j")
        for no in ("n", "escape"):
            await screen.press(key)
            await screen.shows("Delete gone (", "B)?", "y: delete for good   n or esc: keep")
            await screen.press(no)
            await screen.until(lambda: not is_asking(screen))
            assert gone.exists()
        await screen.press(key)
        await screen.until(lambda: is_asking(screen))
        await screen.press("y")
        await screen.shows("deleted gone", "1 session")
        assert (kept.exists(), gone.exists()) == (True, False)


async def test_all_parts_of_a_session_are_deleted(opened: Any, tmp_path: Path) -> None:
    write_in_parts(tmp_path)
    files = len(os.listdir(tmp_path))
    assert files > 1
    async with opened() as screen:
        await screen.shows("1 session")
        await screen.press("delete")
        await screen.shows(f", {files} parts)?")
        await screen.press("y")
        await screen.shows("No sessions yet")
        assert {*os.listdir(tmp_path)} <= {CACHE}  # The cache is written if the files took long to read.


async def test_marked_sessions_are_deleted_except_live_ones(
    opened: Any, make_recording: Make, live: Any
) -> None:
    marked = [make_recording(name="a"), make_recording(name="b")]
    async with opened(size=(140, 30)) as screen:
        await screen.shows("3 sessions · 1 live")
        await screen.press("m", "m", "m", "delete")
        await screen.shows("Delete 2 sessions (", "(1 live session will be kept.)")
        await screen.press("y")
        await screen.shows("deleted 2 sessions", "1 session · 1 live")
        assert not any(path.exists() for path in marked)
        assert live.path.exists()


async def test_a_live_session_is_not_deleted(opened: Any, live: Any) -> None:
    async with opened() as screen:
        await screen.shows("1 live")
        await screen.press("delete")
        await screen.shows("cannot delete live: it is live; stop its server first")
        assert not is_asking(screen)
        assert live.path.exists()


async def test_a_session_of_another_machine_is_not_deleted(opened: Any, make_recording: Make) -> None:
    path = make_recording()
    async with opened() as screen:
        await screen.shows("1 session")
        screen.app.is_remote = True
        await screen.press("delete")
        await screen.shows("cannot delete sessions of another machine")
        assert not is_asking(screen)
        assert path.exists()


async def test_a_failed_deletion_is_reported(
    opened: Any, make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_recording()

    def refuse(self: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    async with opened(size=(200, 20)) as screen:
        await screen.shows("1 session")
        monkeypatch.setattr(Path, "unlink", refuse)
        await screen.press("delete")
        await screen.until(lambda: is_asking(screen))
        await screen.press("y")
        await screen.shows(f"cannot delete {path}: Permission denied")
        assert path.exists()


async def test_a_session_deleted_during_the_confirmation_is_not_an_error(
    opened: Any, make_recording: Make
) -> None:
    path = make_recording()
    async with opened() as screen:
        await screen.shows("1 session")
        await screen.press("delete")
        await screen.until(lambda: is_asking(screen))
        path.unlink()
        await screen.press("y")
        await screen.shows("deleted tested", "No sessions yet")


async def test_shift_c_copies_the_path_and_shift_y_the_command(
    opened: Any, make_recording: Make, clipboard: list[str], tmp_path: Path
) -> None:
    path = make_recording()
    async with opened(size=(200, 20)) as screen:
        await screen.shows("1 session")
        await screen.press("C")
        await screen.shows(f"copied {path}")
        await screen.press("Y")
        await screen.shows("copied mcpspy show")
        assert clipboard == [str(path), f"mcpspy show {chosen(screen).header.id} --dir {tmp_path}"]


async def test_r_reloads_at_once(opened: Any, make_recording: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 3600.0)
    make_recording()
    async with opened() as screen:
        await screen.shows("1 session")
        make_recording()
        await screen.press("ctrl+r")
        await screen.shows("2 sessions")


async def test_the_demo_is_recorded_once_and_shown_in_the_status_line(
    opened: Any, make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, runs = asyncio.Event(), []

    async def record(folder: str) -> str:
        runs.append(folder)
        await may_end.wait()
        make_recording(name="weather")
        return ""

    monkeypatch.setattr(module, "record", record)
    async with opened() as screen:
        await screen.shows("press D")
        await screen.press("D", "D")
        await screen.shows("recording a demo session …")
        may_end.set()
        await screen.shows("weather", "1 session", "watching")
        assert len(runs) == 1


async def test_a_demo_that_fails_is_reported(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def record(folder: str) -> str:
        return "no python"

    monkeypatch.setattr(module, "record", record)
    async with opened() as screen:
        await screen.press("D")
        await screen.shows("demo failed: no python")


async def test_the_real_demo_appears(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("press D")
        await screen.press("D")
        await screen.shows("weather", "○ ", "watching")


async def test_a_demo_ends_with_the_screen(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    became = []

    async def record(folder: str) -> str:
        became.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(500):  # A process takes a while to end.
                await asyncio.sleep(0)
            became.append("stopped")
        return ""

    monkeypatch.setattr(module, "record", record)
    async with opened() as screen:
        await screen.press("D")
        await screen.until(lambda: became)
    assert became == ["begun", "stopped"]


async def test_the_help_screen_has_all_keys(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened(size=(100, 60)) as screen:
        await screen.shows("1 session")
        await screen.press("question_mark")
        await screen.shows("filter sessions", "next row", "asks first", "mark or unmark", "record a demo")


async def test_a_click_selects_and_the_wheel_scrolls(opened: Any, make_recording: Make) -> None:
    for number in range(30):
        make_recording([], name=f"s{number}")
    async with opened(size=(80, 12)) as screen:
        await screen.shows("30 sessions")
        before = chosen(screen).path
        await screen.pilot.click(SessionList, offset=(5, 3))
        await screen.until(lambda: chosen(screen).path != before)
        found = screen.app.screen.query_one(SessionList)
        screen.app.screen.query_one(SessionList).scroll_down(animate=False)
        await screen.until(lambda: found.scroll_offset.y > 0)


def write_in_parts(folder: Path) -> None:
    """Record one session in several files."""
    writer = Writer(str(folder), None, {"name": "parts"}, say=pytest.fail, max_size=200)
    for number in range(6):
        writer.note(float(number), "stderr", text="x" * 80)
    writer.note(9.0, "exit", code=0)
    writer.close()


async def test_the_run_of_a_session_opens_with_all_its_servers(opened: Opened, tmp_path: Path) -> None:
    host = {"pid": 7, "program": "claude", "started": "2026-01-01T00:00:00.000Z"}
    ask, answer = {"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 1, "result": {}}
    for number, name in enumerate(("files", "weather")):
        lines = frame(0.5, "client", ask), frame(0.75, "server", answer), note(1, "exit", code=0)
        started = f"2026-01-01T00:00:0{number}.000Z"
        write(tmp_path / f"{name}.jsonl", *lines, name=name, id=name, started=started, parent=host)
    write(tmp_path / "alone.jsonl", note(1, "exit", code=0), name="alone", started="2026-01-02T00:00:00.000Z")
    async with opened(folder=tmp_path, size=(80, 24)) as screen:
        await screen.shows("3 sessions", "O run")
        await screen.press("g", "O")
        await screen.shows("this session is in no run")
        await screen.press("j", "O")
        await screen.shows("of claude · 2 sessions", "files", "weather")
        assert ["files" in screen.places[0], "weather" in screen.places[2]] == [True, True]
        await screen.press("slash", *"server:weather", "enter")
        await screen.until(lambda: all("weather" in place for place in screen.places))
        await screen.press("g", "O")
        await screen.until(lambda: screen.session.loader.model.header.name == "weather")
        assert "weather" in screen.lines[0]
