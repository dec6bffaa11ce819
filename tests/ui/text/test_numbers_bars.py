"""Bars have the length of their value."""

from __future__ import annotations

import pytest

from mcpspy.ui.text.numbers import GLYPHS, BarStyle


@pytest.mark.parametrize(
    ("share", "drawn"), [(0, ""), (1, "████"), (0.5, "██"), (0.53, "██▏"), (1e-9, "▏"), (7, "████"), (-1, "")]
)
def test_a_bar_is_as_long_as_its_share(share: float, drawn: str) -> None:
    assert BarStyle().bar(share, 4) == drawn
    assert set(drawn) <= set(GLYPHS)


def test_a_terminal_without_blocks_gets_ascii() -> None:
    bars = BarStyle(plain=True)

    assert bars.bar(0.5, 4) == "##"
    assert bars.bar(1e-9, 4) == "#"
    assert bars.profile([0, 1, 4, 8]).isascii()


def test_a_profile_has_a_visible_column_for_each_value() -> None:
    assert BarStyle().profile([0, 1, 4, 8]) == " ▁▄█"
    assert BarStyle().profile([1, 1000]) == "▁█"
    assert BarStyle().profile([]) == ""
    assert BarStyle().profile([0, 0]) == "  "
