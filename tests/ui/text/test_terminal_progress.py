"""Progress bar on the last line of a terminal."""

from __future__ import annotations

import sys

import pytest

from mcpspy.ui.text import terminal as module
from mcpspy.ui.text.terminal import ProgressBar
from tests.ui.text.test_terminal_status import terminal


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_appears_after_a_delay_is_updated_at_intervals_and_is_cleared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown, clock = terminal(monkeypatch), Clock()
    monkeypatch.setattr(module, "BAR_WIDTH", 4)
    with ProgressBar("a\x1b[31m.jsonl", clock) as progress:
        for clock.now, done in ((0.0, 0), (0.4, 10), (0.6, 50), (0.65, 60), (0.8, 150)):
            progress.show(done, 100)

    assert shown.getvalue().split("\r\x1b[K") == ["", "[##..]  50% a\\x1b[…", "[####] 100% a\\x1b[…", ""]


def test_it_shows_the_expected_time(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, clock = terminal(monkeypatch), Clock()
    monkeypatch.setattr(module, "BAR_WIDTH", 0)
    with ProgressBar("a", clock) as progress:
        for clock.now, done in ((10.0, 0), (20.0, 25), (79.0, 99)):
            progress.show(done, 100)

    assert shown.getvalue().split("\r\x1b[K")[1:-1] == ["[]   0% a", "[]  25% 60 s left a", "[]  99% a"]


def test_a_quick_scan_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    with ProgressBar("a", Clock()) as progress:
        progress.show(1, 0)

    assert shown.getvalue() == ""


@pytest.mark.parametrize("which", ["pipe", "dumb"])
def test_it_is_shown_on_terminals_only(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, clock = terminal(monkeypatch), Clock()
    if which == "pipe":
        monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    else:
        monkeypatch.setenv("TERM", "dumb")
    with ProgressBar("a", clock) as progress:
        clock.now = 9.0
        progress.show(1, 2)

    assert shown.getvalue() == ""
