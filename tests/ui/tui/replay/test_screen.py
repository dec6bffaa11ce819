"""Replay in the terminal UI: from a session to the results, with the keys of a user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from mcpspy.ui.model.replay_run import Phase, StepState
from mcpspy.ui.tui.replay.dialog import ReplayDialog
from mcpspy.ui.tui.replay.load import LoadScreen
from mcpspy.ui.tui.replay.screen import ReplayScreen
from mcpspy.ui.tui.widgets.choice import Choice
from tests.ui.model.replaying import SERVER, echoes, record
from tests.ui.tui.conftest import Opened, Screen


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "MCPSPY_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


async def recorded(tmp_path: Path) -> Path:
    return await record(tmp_path / "recorded.jsonl", *echoes("one", "two", "three"))


async def dialog(screen: Screen) -> ReplayDialog:
    await screen.processed()
    await screen.press("greater_than_sign")
    await screen.shows("enter: start")
    found = screen.app.screen
    assert isinstance(found, ReplayDialog)
    await screen.until(
        lambda: "replayed.py" in found.query_one("#server", Input).value, "the recorded command"
    )
    return found


async def start(screen: Screen, how: str = "same", **choices: str) -> ReplayScreen:
    asked = await dialog(screen)
    server = asked.query_one("#server", Input)
    server.value = server.value.replace(f"{SERVER.name} same", f"{SERVER.name} {how}")
    for name, value in choices.items():
        asked.query_one(f"#{name}", Choice).choose(value)
    await screen.press("enter")
    await screen.until(lambda: isinstance(screen.app.screen, ReplayScreen))
    replay = screen.app.screen
    assert isinstance(replay, ReplayScreen)
    return replay


def states(replay: ReplayScreen) -> list[str]:
    return [StepState(state).name for state in replay.model.states]


@pytest.mark.parametrize("size", [(80, 24), (120, 32), (200, 50)])
async def test_a_breaking_change_stands_out(size: Any, opened: Opened, tmp_path: Path) -> None:
    async with opened(await recorded(tmp_path), size=size) as screen:
        replay = await start(screen, "breaking")
        await screen.shows("ended", "BREAKING", "5/5", "3 BREAKING", "recorded response")
        assert replay.listing.cursor == 2  # The first difference.
        await screen.shows('!  "result"')
        await screen.press("q")
        await screen.until(lambda: screen.app.screen is not replay)


async def test_steps_edits_and_skips(opened: Opened, tmp_path: Path) -> None:
    async with opened(await recorded(tmp_path)) as screen:
        replay = await start(screen, "same", pause="start")
        await screen.shows("PAUSED", "next")
        for place in (1, 2):
            await screen.press("s")
            await screen.until(lambda place=place: replay.model.next == place)
        await screen.press("S")
        await screen.until(lambda: replay.model.next == 3)
        await screen.press("e")
        await screen.shows("edit and send", "required")  # With the schema of the tool.
        await screen.press("ctrl+s")
        await screen.until(lambda: replay.model.next == 4)
        await screen.press("space")
        await screen.shows("ended")
        assert states(replay) == ["SAME", "SAME", "UNSENT", "SAME", "SAME"]


async def test_an_ignored_difference_is_kept_and_the_command_is_copied(
    opened: Opened, tmp_path: Path
) -> None:
    async with opened(await recorded(tmp_path)) as screen:
        replay = await start(screen, "different")
        await screen.until(lambda: replay.model.phase is Phase.ENDED)
        await screen.until(lambda: replay.listing.cursor == 2)
        await screen.press("i")
        await screen.shows("ignored from here on: tools/call echo /result/content/0/text")
        await screen.until(lambda: states(replay) == ["SAME"] * 5)
        await screen.press("K")
        await screen.shows("kept 1 in")
        await screen.press("Y")
        assert "--ignore-path=tools/call echo /result" in screen.app.clipboard
        await screen.press("u")
        await screen.until(lambda: states(replay)[2:] == ["DIFFERENT"] * 3)
        await screen.press("w")
        await screen.shows("saved to")
        assert replay.model.saved is not None


async def test_a_server_that_cannot_start_leaves_the_mode_usable(opened: Opened, tmp_path: Path) -> None:
    async with opened(await recorded(tmp_path)) as screen:
        asked = await dialog(screen)
        asked.query_one("#server", Input).value = "no-such-server-here"
        await screen.press("enter")
        await screen.shows("FAILED", "no-such-server-here")
        await screen.press("R")
        await screen.shows("enter: start")
        assert isinstance(screen.app.screen, ReplayDialog)
        assert screen.app.screen.query_one("#server", Input).value == "no-such-server-here"
        await screen.press("escape")


async def test_a_running_replay_asks_before_it_is_left_and_its_process_ends(
    opened: Opened, tmp_path: Path
) -> None:
    async with opened(await recorded(tmp_path)) as screen:
        replay = await start(screen, "slow")
        await screen.until(lambda: "SENT" in states(replay))
        await screen.press("q")
        await screen.shows("Stop this replay?")
        await screen.press("y")
        await screen.until(lambda: screen.app.screen is not replay)
        await screen.until(lambda: replay._engine.pid is None)


async def test_mistakes_in_the_dialog_are_shown_there(opened: Opened, tmp_path: Path) -> None:
    async with opened(await recorded(tmp_path)) as screen:
        asked = await dialog(screen)
        asked.query_one("#ignored", Input).value = "result"
        await screen.press("enter")
        await screen.shows("a pointer must begin with")
        await screen.press("down", "escape")
        assert screen.app.screen is screen.session


@pytest.mark.parametrize("size", [(80, 24), (120, 32), (200, 50)])
async def test_a_load_test_runs_many_clients(size: Any, opened: Opened, tmp_path: Path) -> None:
    async with opened(await recorded(tmp_path), size=size) as screen:
        asked = await dialog(screen)
        mode = asked.query_one("#mode", Choice)
        assert not asked.query_one("#clients", Input).is_on_screen
        mode.focus()
        await screen.press("right")
        await screen.shows("clients", "ramp", "fail if")
        for name, text in (("clients", "2"), ("repeat", "3"), ("fail_if", "errors>0")):
            asked.query_one(f"#{name}", Input).value = text
        await screen.press("enter")
        await screen.until(lambda: isinstance(screen.app.screen, LoadScreen))
        await screen.shows("Load test", "passed", "tools/call echo", "6 runs", "0 of 6 runs are different")
        await screen.press("Y")
        assert "--clients=2 --repeat=3 '--fail-if=errors>0'" in screen.app.clipboard
        await screen.press("x", "enter")
        await screen.shows("saved")
        assert b"<html" in (tmp_path / "load-replayed.html").read_bytes()
        await screen.press("R")
        await screen.shows("enter: start")
        assert screen.app.screen.query_one("#clients", Input).value == "2"


async def test_the_keys_of_the_help_choose_the_part_that_is_replayed(opened: Opened, tmp_path: Path) -> None:
    async with opened(await recorded(tmp_path)) as screen:
        await screen.shows("tools/call", "exit")
        await screen.press("end", "up", "up", "up")  # A call.
        await dialog(screen)
        await screen.press("c")
        await screen.shows("< this call >")
        await screen.press("s")
        await screen.shows("< this session >")
        await screen.press("c", "enter")
        await screen.shows("ended", "2/2")  # Its handshake, and the call.
