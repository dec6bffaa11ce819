"""The keys in the last line: which of them, in which order, and which of them fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.binding import ActiveBinding, Binding

from mcpspy.ui.tui.app import keyed
from mcpspy.ui.tui.bindings import FOOTERS, names
from mcpspy.ui.tui.widgets.footer import BETWEEN, NARROW, FooterKey, KeyFooter, fitting, footer_keys

Make = Callable[..., Path]

KEYS = st.lists(
    st.builds(FooterKey, st.just("x"), st.text("xyz", min_size=1, max_size=3), st.text("ab", max_size=9))
)


def active(*bindings: Binding) -> dict[str, ActiveBinding]:
    """Return active bindings, all of them enabled."""
    return {binding.key: ActiveBinding(None, binding, True) for binding in bindings}  # type: ignore[arg-type]


def footer(screen: Any) -> str:
    """Return the last line, without the blanks between its keys."""
    return "  ".join(screen.app.screen.query_one(KeyFooter).text.split("  "))


def test_the_first_state_has_the_most_important_keys_and_their_labels() -> None:
    keys = active(
        Binding("slash", "filter", "f", id="session.filter"),
        Binding("tab", "swap", id="session.swap"),
        Binding("enter", "swap", id="session.swap"),
        Binding("x", "other", "not in the table", id="session.other"),
    )
    shown, _ = footer_keys(keys, ("failed", "session"))
    assert [(key.shown, key.label) for key in shown] == [("enter", "why"), ("/", "filter")]


def test_keys_of_one_meaning_share_a_label() -> None:
    keys = active(
        Binding("r", "resend", id="session.resend"), Binding("R", "resend", id="session.resend-edited")
    )
    shown, _ = footer_keys(keys, ("request",))
    assert [(key.key, key.shown, key.label) for key in shown] == [("r", "r R", "resend")]


def test_without_a_state_the_labelled_bindings_are_shown_in_their_order() -> None:
    keys = active(
        Binding("s", "sort", "sort", id="a"),
        Binding("j", "down", "down", show=False, id="b"),
        Binding("question_mark", "app.help", "help", id="c"),
        Binding("enter", "open", "open", id="d"),
    )
    shown, always = footer_keys(keys, ())
    assert [key.shown for key in shown] == ["s", "enter"]
    assert [(key.shown, key.label) for key in always] == [("?", "help")]


def test_every_id_of_the_tables_is_a_binding() -> None:
    known = names(node.BINDINGS for node in keyed())
    assert {which for table in FOOTERS.values() for ids in table for which in ids.split()} <= known


@given(KEYS, KEYS, st.integers(0, 200))
def test_the_keys_never_exceed_the_line(keys: list[FooterKey], always: list[FooterKey], width: int) -> None:
    left, right = fitting(keys, always, width)
    needed = sum(key.width + BETWEEN for key in [*left, *right]) - BETWEEN
    assert not left or needed <= width
    assert len(right) == len(always)
    assert all(not key.label for key in right) or width >= NARROW


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
async def test_help_and_palette_are_at_its_end_at_every_width(
    opened: Any, make_recording: Make, width: int
) -> None:
    async with opened(make_recording(), size=(width, 24)) as screen:
        await screen.until(lambda: "?" in screen.lines[-1])
        line = screen.lines[-1]
        assert cell_len(line) == width
        assert line.rstrip().endswith("? help  : more" if width >= 60 else "?  :")


async def test_it_changes_with_the_row_and_the_focus(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.shows("1/4", "enter open", "e error", "P problems", "s sort", "I tools")
        await screen.press("e")
        await screen.shows("enter why")
        await screen.press("enter")
        await screen.shows("enter list", "ctrl-f search", "space fold")
        await screen.press("escape", "slash")
        await screen.shows("enter apply", "esc clear filter")
        assert "problems" not in screen.lines[-1]


async def test_a_click_presses_the_key(opened: Any, make_recording: Make) -> None:
    async with opened(make_recording(), size=(80, 24)) as screen:
        await screen.shows("s sort")
        await screen.pilot.click(KeyFooter, offset=(screen.lines[-1].index("s sort"), 0))
        await screen.shows("sorted by latency")
