"""The last line, lent to the answer of a key."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.session import labels
from mcpspy.ui.tui.session.labels import StatusBar


def test_an_answer_is_in_place_of_the_sentence_until_its_time_is_over(
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
    assert line.is_flashing, "somebody has to draw it anew"
    line.show_status(("ended", None), [("4/9", None)])
    assert (line.text, line.is_flashing) == ("ended  4/9", False)
