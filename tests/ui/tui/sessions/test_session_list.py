"""The rows of the session list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io.recording import session_counts
from mcpspy.io.recording.catalog import Sessions
from mcpspy.ui.tui.sessions import screen as module
from mcpspy.ui.tui.sessions.session_list import SessionList

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scan the folder more often than a user needs."""
    monkeypatch.setattr(module, "EVERY", 0.05)


def the_list(screen: Any) -> SessionList:
    found = screen.app.screen.query_one(SessionList)
    assert isinstance(found, SessionList)
    return found


def chosen(screen: Any) -> str:
    summary = the_list(screen).chosen
    return "" if summary is None else str(summary.path)


async def test_the_columns_show_peers_counts_and_verdict(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened(size=(160, 20)) as screen:
        await screen.shows("○ ", "tested 2", "2025-11-25", "failures")
        assert " ".join(screen.lines[1].split()) == (
            "name server client revision started messages errors unans issues verdict"
        )
        await screen.until(lambda: screen.lines[2].split()[-5:] == ["5", "1", "0", "1", "failures"])


async def test_numbers_align_with_their_headings_in_80_columns(opened: Any, make_recording: Make) -> None:
    make_recording()
    async with opened(size=(80, 24)) as screen:
        await screen.until(lambda: screen.lines[2].split()[-5:] == ["5", "1", "0", "1", "failures"])
        head, line = screen.lines[1:3]
        assert head.index("messages") + len("messages") == line.index(" 5 ") + 2
        assert head.index("issues") + len("issues") == line.index(" 1 failures") + 2


async def test_unknown_counts_have_a_placeholder(
    opened: Any, make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_recording()
    monkeypatch.setattr(session_counts.CountCache, "work", lambda *_: True)
    async with opened() as screen:
        await screen.until(lambda: screen.lines[2].split()[-5:-2] == ["…"] * 3)


async def test_the_cursor_stays_on_its_session(opened: Any, make_recording: Make) -> None:
    first = make_recording(name="first")
    second = make_recording(name="second")
    async with opened() as screen:
        await screen.shows("2 sessions")
        await screen.press("j")
        path = chosen(screen)
        assert path in (str(first), str(second))
        make_recording(name="third")
        await screen.shows("third", "3 sessions")
        assert chosen(screen) == path
        for other in {first, second} - {Path(path)}:
            other.unlink()
        await screen.shows("2 sessions")
        assert chosen(screen) == path


async def test_the_cursor_follows_a_live_session_that_ends(
    opened: Any, make_recording: Make, live: Any
) -> None:
    make_recording(name="late")
    async with opened() as screen:
        await screen.shows("2 sessions · 1 live")
        assert chosen(screen) == str(live.path)
        live.end()
        await screen.until(lambda: "1 live" not in screen.text)
        assert chosen(screen) == str(live.path)


async def test_the_session_under_the_cursor_and_those_in_view_are_counted_first(
    opened: Any, make_recording: Make
) -> None:
    for number in range(30):
        make_recording([], name=f"s{number}")
    async with opened(size=(80, 12)) as screen:
        await screen.shows("30 sessions")
        await screen.press("G")
        await screen.until(lambda: the_list(screen).scroll_offset.y == 22)
        order = list(the_list(screen).by_interest())
        shown = the_list(screen)._sessions
        assert isinstance(shown, Sessions)
        assert order[0] is shown[29]
        assert order[1:] == shown[22:]
        await screen.until(lambda: not any(shown.uncounted()))  # The others follow.


async def test_m_marks_and_moves_down(opened: Any, make_recording: Make) -> None:
    for name in ("a", "b", "c"):
        make_recording(name=name)
    async with opened() as screen:
        await screen.shows("3 sessions")
        await screen.press("m", "m")
        await screen.shows("2 marked")
        assert [line[:2] for line in screen.lines[2:5]] == [" *", " *", "▸ "]
        assert len(the_list(screen).wanted) == 2
        await screen.press("k", "m")
        await screen.shows("1 marked")
        await screen.press("escape")
        await screen.until(lambda: "marked" not in screen.text)


async def test_a_mark_vanishes_with_its_session(opened: Any, make_recording: Make) -> None:
    path = make_recording(name="a")
    make_recording(name="b")
    async with opened() as screen:
        await screen.shows("2 sessions")
        await screen.press("j" if chosen(screen) != str(path) else "k", "m")
        await screen.shows("1 marked")
        path.unlink()
        await screen.shows("1 session")
        await screen.until(lambda: "marked" not in screen.text)


async def test_a_hostile_name_is_text(opened: Any, make_recording: Make) -> None:
    make_recording(name="[red]x[/red]a[/b]\x1b]0;t\x07\u202e")
    async with opened(size=(200, 20)) as screen:
        await screen.shows("[red]x[/red]a[/b]\\x1b]0;t\\x0")
