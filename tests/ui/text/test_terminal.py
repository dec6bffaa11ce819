"""Output on a terminal and in a pipe."""

from __future__ import annotations

import io
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis import rows
from mcpspy.ui.text.terminal import Output, columns
from mcpspy.ui.text.width import cells, cut


class Terminal(io.StringIO):
    """A stdout that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replace stdout by a terminal. Call it in the test: pytest replaces stdout between set-up and test."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return screen


def test_a_terminal_gets_colour_and_its_own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)

    Output().line("x" * 30, rows.BAD)

    assert terminal.getvalue() == "\x1b[31m" + "x" * 19 + "…\x1b[0m\n"


def test_placeholders_of_secrets_are_in_reverse_video(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "40")

    Output().line("a [redacted:00c0ffee] b [redacted:x]", rows.BAD)

    assert terminal.getvalue() == "\x1b[31ma \x1b[7m[redacted:00c0ffee]\x1b[27m b [redacted:x]\x1b[0m\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_color_disables_colours(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setenv(name, value)

    Output().line("gone", rows.BAD)

    assert terminal.getvalue() == "gone\n"


def test_a_pipe_gets_whole_lines_without_colour(capsys: pytest.CaptureFixture[str]) -> None:
    os.environ.pop("NO_COLOR", None)

    Output().line("x" * 500, rows.BAD)

    assert capsys.readouterr().out == "x" * 500 + "\n"


@pytest.mark.parametrize(
    ("encoding", "whole", "cut_off"), [("ascii", "> \\xe9 ~", "> \\xe~"), ("cp1252", "> é ~", "> é ~")]
)
def test_characters_that_the_encoding_of_stdout_lacks_are_replaced(
    monkeypatch: pytest.MonkeyPatch, encoding: str, whole: str, cut_off: str
) -> None:
    screen = io.TextIOWrapper(io.BytesIO(), encoding, newline="")
    monkeypatch.setattr(sys, "stdout", screen)

    Output().line("→ é …")
    Output().pieces([("→ é ", None), ("…", None)])
    Output(width=6).line("→ é …")
    Output(width=6).pieces([("→ é …", None)])
    screen.seek(0)

    assert screen.read().splitlines() == [whole, whole, cut_off, cut_off]


def test_pieces_have_colours_of_text_and_background(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)

    Output().pieces([("▀", "#ff0000 on #00ff10"), ("x", "#010203"), ("y", "key"), ("z", None)])

    assert terminal.getvalue() == (
        "\x1b[38;2;255;0;0;48;2;0;255;16m▀\x1b[0m\x1b[38;2;1;2;3mx\x1b[0m\x1b[36my\x1b[0mz\n"
    )


def test_columns_are_aligned_left_or_right_or_unchanged() -> None:
    assert columns(["a", "b", "c"], [3, -3, 0]) == "a      b  c"


@given(st.text(), st.integers(1, 40))
def test_a_cut_text_is_never_wider_than_its_limit(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= max(width, 1)


def test_wide_characters_take_two_columns() -> None:
    assert cells("雨") == 2
    assert cut("雨雨雨", 5) == "雨雨…"
    assert cut("雨雨雨", 4) == "雨…"
