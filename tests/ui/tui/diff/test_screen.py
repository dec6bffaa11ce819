"""Tests of the diff screen: every key and every state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.analysis.diff import ChangePosition, ComparedCase, DiffOptions, SessionDiff
from mcpspy.errors import CannotStart
from mcpspy.io.recording.reader import Summary
from mcpspy.ui.tui.diff import screen
from mcpspy.ui.tui.diff.comparison import ComparisonRun
from mcpspy.ui.tui.diff.screen import DiffScreen
from mcpspy.ui.tui.session.screen import SessionScreen
from tests.ui.tui.diff.pairs import NEW, OLD, call
from tests.ui.tui.diff.test_rows import DIFFERENCE, LONG
from tests.ui.tui.panels.panels import alone

Make = Callable[..., Path]


class Fixed:
    """A pair with a known diff."""

    summaries: tuple[Summary, Summary] | None = None

    def __init__(
        self, *found: SessionDiff | Exception, titles: tuple[str, str] = ("the old", "the new")
    ) -> None:
        self._found = list(found)
        self.titles = titles
        self.progress = ""
        self.asked: list[DiffOptions] = []
        self.was_left = False
        self.may_continue = asyncio.Event()
        self.may_continue.set()

    @property
    def reversed(self) -> Fixed:
        pair = Fixed(*self._found, titles=self.titles[::-1])
        pair.asked = self.asked
        return pair

    async def compare(self, options: DiffOptions) -> ComparisonRun:
        self.asked.append(options)
        try:
            await self.may_continue.wait()
        except asyncio.CancelledError:
            self.was_left = True
            raise
        found = self._found.pop(0) if len(self._found) > 1 else self._found[0]
        if isinstance(found, Exception):
            raise found
        olds = {case.old: case.old.line for case in found.cases if case.old}
        news = {case.new: case.new.line * 10 for case in found.cases if case.new}
        return ComparisonRun(found, olds, news)


def shown_of(pair: Fixed) -> DiffScreen:
    return DiffScreen(pair)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_changes_are_below_their_case_and_keys_move_between_them(
    size: tuple[int, int],
) -> None:
    async with alone(shown_of(Fixed(DIFFERENCE)), size) as shown:
        await shown.shows(
            "1 breaking · 2 different · 1 note · 1 of 3 unchanged",
            "- the old   + the new",
            "breaking  tools/call forecast  · exchange 2 → 3, line 5 → 6",
            "  12 → 15",
            "\\x1b[2J",
        )
        assert "/result/wind" in shown.selected
        for key, what in (("n", "/error"), ("n", "/result/text"), ("n", "/end"), ("N", "/result/text")):
            await shown.press(key)
            await shown.until(lambda what=what: what in shown.selected)  # type: ignore[misc]
            assert what in shown.lines[-2], "the whole pointer is below"
        await shown.press("g", "N")
        await shown.shows("no change above")
        await shown.press("G", "n")
        await shown.shows("no change below")
        if size[0] == 80:
            assert sum("…" in line for line in shown.lines) >= 3
        assert all(line.isprintable() for line in shown.lines)


async def test_a_line_is_copied_and_a_value_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    async with alone(shown_of(Fixed(DIFFERENCE))) as shown:
        await shown.shows("12 → 15")
        await shown.press("y", "G", "k")
        await shown.shows("copied")
        await shown.press("y")
        await shown.until(lambda: len(shown.app.copied) == 2)
        assert shown.app.copied[1] == f'"{LONG}a"'
        monkeypatch.setattr(screen, "CLIPBOARD", 10)
        await shown.press("y")
        await shown.shows("not copied: 203B is too large for the clipboard")
        assert len(shown.app.copied) == 2


async def test_a_filter_is_typed_kept_and_cleared() -> None:
    async with alone(shown_of(Fixed(DIFFERENCE))) as shown:
        await shown.shows("12 → 15")
        await shown.press("slash", *"nothing")
        await shown.shows("0 of 4 changes: esc clears the filter")
        await shown.press(*["backspace"] * 7, *"wind", "enter")
        await shown.until(lambda: "/error" not in shown.text)
        await shown.shows("1 of 4 changes  2/2")
        await shown.press("escape")
        await shown.shows("/error", "2/12")
        await shown.press("slash", "n", "escape")
        await shown.until(lambda: "/result/wind" in shown.selected)
        assert not shown.app.results
        await shown.press("escape")
        await shown.until(lambda: shown.app.results == [None])


@pytest.mark.parametrize(
    ("keys", "row"),
    [(["enter"], 60), (["o"], 5), (["G", "o"], 90), (["G", "enter"], 90), (["q"], None)],
)
async def test_enter_and_o_return_the_row_to_go_to(keys: list[str], row: int | None) -> None:
    async with alone(shown_of(Fixed(DIFFERENCE))) as shown:
        await shown.shows("12 → 15")
        await shown.press(*keys)
        await shown.until(lambda: shown.app.results == [row])


async def test_a_change_without_a_position_has_no_target() -> None:
    placeless = SessionDiff((ComparedCase(method="handshake", changes=DIFFERENCE.cases[1].changes[:1]),))
    async with alone(shown_of(Fixed(placeless))) as shown:
        await shown.shows("12 → 15", "1 different")
        await shown.press("enter")
        await shown.shows("this change concerns the whole session")


async def test_equal_sessions_have_no_differences() -> None:
    same = SessionDiff(
        (
            ComparedCase(method="ping", old=ChangePosition(2, 0), new=ChangePosition(2, 0)),
            ComparedCase(method="exit"),
        )
    )
    async with alone(shown_of(Fixed(same))) as shown:
        await shown.shows("No differences.", "2 of 2 unchanged")
        await shown.press("enter", "o", "y", "n", "j", "G")
        await shown.shows("no change below")


async def test_progress_is_shown_and_keys_work_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "TICK", 0.01)
    pair = Fixed(DIFFERENCE)
    pair.may_continue.clear()
    async with alone(shown_of(pair)) as shown:
        pair.progress = "reading weather, 12MB … 40 %"
        await shown.shows("reading weather, 12MB … 40 %")
        await shown.press("n", "enter", "y", "o", "j")
        await shown.shows("no change below")
        pair.may_continue.set()
        await shown.shows("12 → 15")


async def test_leaving_while_reading_does_not_wait() -> None:
    pair = Fixed(DIFFERENCE)
    pair.may_continue.clear()
    async with alone(shown_of(pair)) as shown:
        await shown.until(lambda: pair.asked)
        await shown.press("q")
        await shown.until(lambda: shown.app.results == [None] and pair.was_left)


async def test_unreadable_files_are_reported_and_can_be_reloaded() -> None:
    trouble = CannotStart("a\x1b.jsonl: No such file or directory", "look again with r")
    pair = Fixed(trouble, CannotStart("b.jsonl: Input/output error"), DIFFERENCE)
    async with alone(shown_of(pair)) as shown:
        await shown.shows("a\\x1b.jsonl: No such file", "look again with r", "r reloads both")
        await shown.press("enter", "n", "y", "ctrl+r")
        await shown.shows("b.jsonl: Input/output error")
        await shown.press("ctrl+r")
        await shown.shows("12 → 15")


async def test_capital_s_swaps_the_sides_and_t_ignores_dates() -> None:
    pair = Fixed(DIFFERENCE)
    async with alone(shown_of(pair)) as shown:
        await shown.shows("- the old   + the new")
        await shown.press("S")
        await shown.shows("- the new   + the old", "12 → 15")
        await shown.press("t")
        await shown.shows("dates and times are ignored", "· dates ignored")
        await shown.press("t")
        await shown.until(lambda: len(pair.asked) == 4)
        assert [options.dates for options in pair.asked] == [False, False, True, False]


async def test_v_ignores_values_that_change_from_run_to_run() -> None:
    pair = Fixed(DIFFERENCE)
    async with alone(shown_of(pair)) as shown:
        await shown.shows("- the old   + the new")
        await shown.press("v")
        await shown.shows("ids, times and ports are ignored", "· volatile ignored")
        await shown.press("v")
        await shown.until(lambda: len(pair.asked) == 3)
        assert [options.volatile for options in pair.asked] == [False, True, False]


async def test_lines_are_built_again_when_the_window_is_resized() -> None:
    async with alone(shown_of(Fixed(DIFFERENCE)), (200, 24)) as shown:
        await shown.shows('xa"')
        await shown.until(
            lambda: all(line.index('xa"') > 60 for line in shown.lines if 'xa"' in line),
            "it would be cut at 60",
        )
        await shown.pilot.resize_terminal(60, 24)
        await shown.shows('xa"', "▸   result        /result/wind")


async def test_d_on_two_sessions_compares_them(opened: Any, make_recording: Make) -> None:
    make_recording(OLD, name="weather")
    make_recording(NEW, name="weather")
    same = make_recording(OLD, name="weather")
    async with opened(size=(80, 24)) as screen:
        await screen.shows("3 sessions")
        listed = screen.app.screen
        await screen.press("d")
        await screen.shows(
            "±", "diff weather with … (d on another session, esc to cancel)", "esc cancel diff"
        )
        await screen.press("escape")
        await screen.shows("watching")
        assert not any(word in screen.text for word in ("±", "esc cancel"))
        await screen.press("d", "d")
        await screen.shows("watching")
        chosen = {one.path: place for place, one in enumerate(listed._list._sessions)}
        old = min(chosen, key=lambda path: (path != same, chosen[path]))
        listed._list.move_to(chosen[old])
        await screen.press("d")
        listed._list.move_to((chosen[old] + 1) % 3)
        await screen.press("d")
        await screen.until(lambda: isinstance(screen.app.screen, DiffScreen))
        await screen.press("q")
        await screen.shows("3 sessions", "watching")
        await screen.press("g", "m", "m", "d")
        await screen.until(lambda: isinstance(screen.app.screen, DiffScreen))
        await screen.press("escape")
        await screen.shows("2 marked")
        await screen.press("G", "m", "d")
        await screen.shows("3 sessions marked; a diff needs two")
        await screen.press("escape", "d")
        await screen.shows("diff weather with …")
        listed._list.chosen.path.unlink()
        await screen.press("ctrl+r")
        await screen.shows("2 sessions", "watching")
        assert "esc cancel" not in screen.text


async def test_enter_opens_the_newer_session_at_the_change(opened: Any, make_recording: Make) -> None:
    old = make_recording(OLD, name="old")
    new = make_recording([*NEW[:2], *call(9, "more", "x"), *NEW[2:]], name="new")
    async with opened(size=(120, 30)) as screen:
        await screen.shows("2 sessions")
        await screen.press("m", "G" if screen.app.screen._list.cursor == 0 else "g", "d")
        await screen.shows("- old", "+ new", "1 breaking · 3 different", "12 → 15", "tools/call more")
        screen.app.screen.query_one("#diff").move_to(
            next(n for n, row in enumerate(screen.app.screen._list.rows) if "wind" in row.text)
        )
        await screen.press("enter")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))
        await screen.until(lambda: any(line.startswith("▸") and "forecast" in line for line in screen.lines))
        assert screen.session.loader.path == new
        await screen.press("q")
        await screen.until(lambda: isinstance(screen.app.screen, DiffScreen))
        await screen.press("o")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))
        await screen.until(lambda: any(line.startswith("▸") and "forecast" in line for line in screen.lines))
        assert screen.session.loader.path == old
        await screen.press("q")
        old.unlink()
        await screen.press("ctrl+r")
        await screen.shows(old.name, "r reloads both")


async def test_d_in_a_session_compares_with_the_previous_exchange(opened: Any, make_recording: Make) -> None:
    said = [*OLD, *call(20, "forecast", "calm", city="Rome")]
    async with opened(make_recording(said), size=(100, 30)) as screen:
        await screen.shows("ended: exit 0")
        await screen.press("d")
        await screen.shows("no earlier initialize: mark another exchange (m), then press d")
        await screen.press("j", "j", "j", "j", "d")
        await screen.shows("· two exchanges", '"Oslo" → "Rome"', "calm", "id 10", "id 20")
        await screen.press("o")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen))
        await screen.until(lambda: screen.cursor == 1)
        await screen.press("m", "G", "k", "k", "d")
        await screen.shows("id 10", "id 12")
        await screen.press("enter")
        await screen.until(lambda: isinstance(screen.app.screen, SessionScreen) and screen.cursor == 3)


async def test_the_help_page_contains_the_keys_of_the_diff() -> None:
    from mcpspy.ui.tui.help import lines

    words = {what for _, what in lines([("", DiffScreen.BINDINGS)])}
    assert {"next change", "previous change", "reload both"} <= words
