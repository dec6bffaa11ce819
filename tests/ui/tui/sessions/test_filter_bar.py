"""The filter line of the session list."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from mcpspy.io.recording.reader import Summary
from mcpspy.io.recording.session_counts import CountCache
from mcpspy.ui.tui.sessions import screen as module
from mcpspy.ui.tui.sessions.screen import SessionFilterBar
from mcpspy.ui.tui.sessions.session_list import SessionList

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scan the folder more often than a user needs."""
    monkeypatch.setattr(module, "EVERY", 0.05)


@pytest.fixture
def three(make_recording: Make) -> None:
    """Record three sessions."""
    for name in ("alpha", "beta", "gamma"):
        make_recording(name=name)


def bar(screen: Any) -> SessionFilterBar:
    found = screen.app.screen.query_one(SessionFilterBar)
    assert isinstance(found, SessionFilterBar)
    return found


def chosen(screen: Any) -> str:
    summary = screen.app.screen.query_one(SessionList).chosen
    return summary.header.name if summary else ""


def listed(screen: Any) -> list[str]:
    rows = [line for line in screen.lines if "○" in line and not line.startswith(" /")]
    return [name for line in rows for name in ("alpha", "beta", "gamma") if f" {name} " in line]


@pytest.mark.usefixtures("three")
async def test_it_filters_while_typing(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        assert not bar(screen).display
        await screen.press("slash", *"bet")
        await screen.shows("1 of 3 sessions")
        assert listed(screen) == ["beta"]
        await screen.press("backspace", "backspace", "backspace")
        await screen.until(lambda: len(listed(screen)) == 3)


@pytest.mark.usefixtures("three")
async def test_enter_keeps_the_filter_and_escape_clears_it_but_keeps_the_selection(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *"-gamma", "enter")
        await screen.shows("2 of 3 sessions", "/ -gamma")
        assert screen.focused == "SessionList"
        await screen.press("G")
        name = chosen(screen)
        await screen.press("escape")
        await screen.until(lambda: len(listed(screen)) == 3)
        assert not bar(screen).display
        assert chosen(screen) == name


@pytest.mark.usefixtures("three")
async def test_escape_while_typing_clears_the_filter(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *"beta", "escape")
        await screen.until(lambda: len(listed(screen)) == 3)
        assert chosen(screen) == "beta"
        assert (screen.focused, bar(screen).display) == ("SessionList", False)


@pytest.mark.usefixtures("three")
async def test_an_invalid_filter_is_reported_and_the_matches_stay(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *'beta "')
        await screen.shows("unclosed quote")
        assert listed(screen) == ["beta"]
        await screen.press("backspace", *"state:x")
        await screen.shows('unknown state "x": use one of live, ended, died, failed')
        await screen.press("backspace", *"ended")
        await screen.until(lambda: "unknown state" not in screen.text)
        assert listed(screen) == ["beta"]


@pytest.mark.usefixtures("three")
async def test_an_unknown_field_is_an_error_with_a_suggestion(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *"beta")
        await screen.until(lambda: listed(screen) == ["beta"])
        bar(screen).query_one(Input).value = "beta eror>0"
        await screen.shows("unknown field eror: did you mean errors>?")
        assert listed(screen) == ["beta"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("name:alpha or name:gamma", ["alpha", "gamma"]),
        ("-(name:alpha or name:gamma)", ["beta"]),
        ("not alpha since:1h", ["beta", "gamma"]),
        ("name:*a until:2020-01-01", []),
        ("errors>0", ["beta"]),
        ("errors:0", ["alpha", "gamma"]),
        ("is:problem name:b*", ["beta"]),
        ("unanswered>0 | issues>0", []),
        ("size>10mb", []),
    ],
)
async def test_the_language_is_that_of_ls(
    opened: Any, make_recording: Make, text: str, names: list[str]
) -> None:
    asked = ("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    answers = {
        "beta": b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}',
        "alpha": b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
    }
    for name in ("alpha", "beta", "gamma"):
        make_recording([asked, ("server", answers.get(name, answers["alpha"]))], name=name)
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash")
        bar(screen).query_one(Input).value = text
        await screen.until(lambda: sorted(listed(screen)) == names)


async def test_sessions_appear_as_their_counts_decide_on_the_filter(
    opened: Any, make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_recording(name="beta")
    may_count = threading.Event()
    count = CountCache.work

    def work(self: CountCache, sessions: Iterable[Summary], seconds: float = 0.1) -> bool:
        return count(self, sessions, seconds) if may_count.wait(seconds) else False

    monkeypatch.setattr(CountCache, "work", work)
    async with opened() as screen:
        await screen.shows("1 session")
        await screen.press("slash", *"-(messages:0)", "enter")
        await screen.shows("0 of 1 session match.", "counting the messages of 1 session …")
        may_count.set()
        await screen.until(lambda: listed(screen) == ["beta"])
        await screen.until(lambda: "counting" not in screen.text)


@pytest.mark.usefixtures("three")
async def test_previous_filters_can_be_recalled(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        for word in ("alpha", "gamma"):
            await screen.press("slash", *word, "enter", "escape")
        await screen.press("slash", "up")
        await screen.until(lambda: listed(screen) == ["gamma"])
        await screen.press("up")
        await screen.until(lambda: listed(screen) == ["alpha"])


@pytest.mark.usefixtures("three")
async def test_a_filter_without_matches_shows_how_to_clear_it(opened: Any) -> None:
    async with opened(size=(80, 24)) as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *"zzz", "enter")
        await screen.shows(
            "0 of 3 sessions match. Press esc to clear the filter.",
            'Nothing contains "zzz". The names are gamma, beta, alpha.',
        )
        await screen.press("enter", "d", "C", "Y", "m", "escape")
        await screen.until(lambda: len(listed(screen)) == 3)


@pytest.mark.usefixtures("three")
async def test_a_new_session_is_filtered(opened: Any, make_recording: Make) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *"beta", "enter")
        await screen.shows("1 of 3 sessions")
        make_recording(name="beta two")
        make_recording(name="delta")
        await screen.shows("2 of 5 sessions")
        assert "delta" not in screen.text


@pytest.mark.usefixtures("three")
async def test_the_line_shows_how_a_filter_may_continue_and_right_takes_it(opened: Any) -> None:
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("slash", *"nam")
        await screen.shows("/ name:")
        assert bar(screen).query_one(Input).value == "nam"
        await screen.press("right", *"gam")
        await screen.shows("/ name:gamma")
        await screen.press("right")
        await screen.until(lambda: listed(screen) == ["gamma"])
        assert bar(screen).query_one(Input).value == "name:gamma"
