"""Status line on the last line of a terminal."""

from __future__ import annotations

import io
import os
import sys

import pytest

from mcpspy.ui.text.terminal import StatusLine


class Terminal(io.StringIO):
    """A stderr that is a terminal of twenty columns."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replace stderr by a terminal; not a fixture, since pytest replaces stderr again when the test begins."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((20, 5)))
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def test_it_is_one_line_that_fits_and_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    status = StatusLine()
    with status:
        status.show("tools/call \x1b[31mforecast", 12.4)

    assert shown.getvalue().split("\r\x1b[K") == ["", "waiting for tools/…", ""]


def test_a_status_line_that_was_never_shown_is_not_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    with StatusLine():
        pass

    assert shown.getvalue() == ""


def test_without_a_terminal_there_is_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    status = StatusLine()
    with status:
        status.show("x", 1.0)

    assert capsys.readouterr().err == ""


def test_a_dumb_terminal_gets_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    StatusLine().show("x", 1.0)

    assert shown.getvalue() == ""
