"""What the parts of a session's screen may ask of it."""

from __future__ import annotations

from mcpspy.ui.tui.session.base import SessionBase
from mcpspy.ui.tui.session.screen import SessionScreen


def test_the_screen_does_all_that_its_parts_ask() -> None:
    asked = {"accepts_screen", "flash_message", "go", "do", "compare", "resent"}

    assert asked <= vars(SessionBase).keys()
    assert asked <= vars(SessionScreen).keys()
