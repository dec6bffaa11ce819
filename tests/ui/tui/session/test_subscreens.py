"""Screens that open over a session, and the use of their results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, Static

from mcpspy.ui.tui.bindings import SESSION_KEYS
from mcpspy.ui.tui.panels.capabilities_screen import CapabilitiesScreen
from mcpspy.ui.tui.panels.stats import StatsScreen
from mcpspy.ui.tui.panels.timeline import TimelineScreen
from mcpspy.ui.tui.session.subscreens import SUBSCREENS, free_name
from mcpspy.ui.tui.widgets.prompts import TextPrompt
from tests.ui.conftest import Make


def test_each_has_a_key() -> None:
    actions = {getattr(binding, "action", "") for binding in SESSION_KEYS}
    assert {f"show('{what}')" for what in SUBSCREENS} <= actions


async def test_each_opens_over_the_session_and_returns_its_result(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        await screen.processed()
        session = screen.session
        for what, kind, choice in (
            ("timeline", TimelineScreen, 0),
            ("numbers", StatsScreen, "tool:echo"),
            ("server", CapabilitiesScreen, None),
            ("note", TextPrompt, "look here"),
            ("export", TextPrompt, None),
        ):
            session.action_show(what)
            await screen.until(lambda kind=kind: isinstance(screen.app.screen, kind), what)
            screen.app.screen.dismiss(choice)
            await screen.until(lambda: screen.app.screen is session, "the session again")
        await screen.until(lambda: session.filter.text == "tool:echo", "the filter")
        await screen.until(lambda: list(session.listing.notes.values()) == ["look here"], "the note")
        assert session.listing.marked == set(session.listing.notes)


async def test_the_export_proposes_a_free_name_and_stays_open_until_it_has_saved(
    opened: Any, make_recording: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    async with opened(make_recording(), size=(160, 30)) as screen:
        name = free_name("x", "jsonl")
        (folder / name).write_text("", encoding="utf-8")
        assert (name, free_name("x", "jsonl")) == ("x.jsonl", "x-2.jsonl")
        await screen.press("x")
        await screen.shows("enter: save   esc: cancel", "│ in")
        field = screen.app.screen.query_one(Input)
        assert not (folder / field.value).exists()
        for typed, why in (
            ("rows.txt", "rows.txt: the file name must end in .jsonl or .md"),
            ("x.jsonl", "x.jsonl: file exists"),
            ("~nobody-at-all/x.jsonl", "No such file or directory"),
        ):
            field.value = typed
            await screen.press("enter")
            line = screen.app.screen.query_one("#about", Static)
            await screen.until(lambda line=line, why=why: why in str(line.render()), why)
        field.value = "rows.jsonl"
        await screen.press("enter")
        await screen.shows("saved ")
        assert (folder / "rows.jsonl").read_bytes().startswith(b'{"mcpspy":1')
