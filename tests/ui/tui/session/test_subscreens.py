"""Screens that open over a session, and the use of their results."""

from __future__ import annotations

from typing import Any

from mcpspy.ui.tui.bindings import SESSION_KEYS
from mcpspy.ui.tui.panels.capabilities_screen import CapabilitiesScreen
from mcpspy.ui.tui.panels.stats import StatsScreen
from mcpspy.ui.tui.panels.timeline import TimelineScreen
from mcpspy.ui.tui.session.subscreens import SUBSCREENS
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


async def test_an_unknown_file_format_is_not_saved(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording()) as screen:
        screen.session.action_show("export")
        await screen.until(lambda: isinstance(screen.app.screen, TextPrompt))
        screen.app.screen.dismiss("rows.txt")
        await screen.shows("not saved: the file name must end in .jsonl or .md")
