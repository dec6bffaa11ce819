"""The status line, which shows temporary messages."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.session import labels
from mcpspy.ui.tui.session.labels import StatusBar


def test_a_message_replaces_the_status_until_it_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("mcpspy.ui.tui.session.labels.time.monotonic", lambda: now[0])
    line = StatusBar()
    line.show_status(("ended", None), [("3/9", None)])
    assert (line.text, line.is_flashing) == ("ended  3/9", False)
    line.flash("copied")
    line.show_status(("ended", None), [("4/9", None)])
    assert (line.text, line.is_flashing) == ("copied  4/9", True)
    now[0] += labels.FLASH + 0.1
    assert line.is_flashing, "it needs to be redrawn"
    line.show_status(("ended", None), [("4/9", None)])
    assert (line.text, line.is_flashing) == ("ended  4/9", False)
