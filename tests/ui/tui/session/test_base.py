"""The interface of the session screen for its parts."""

from __future__ import annotations

from mcpspy.ui.tui.session.base import SessionBase
from mcpspy.ui.tui.session.screen import SessionScreen


def test_the_screen_implements_the_interface() -> None:
    members = {"accepts_screen", "flash_message", "go", "do", "compare", "resent"}

    assert members <= vars(SessionBase).keys()
    assert members <= vars(SessionScreen).keys()
