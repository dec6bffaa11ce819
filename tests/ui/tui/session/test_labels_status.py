"""The last line, lent to the answer of a key."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.session import labels
from mcpspy.ui.tui.session.labels import StatusBar


def test_an_answer_stands_in_place_of_the_sentence_until_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("mcpspy.ui.tui.session.labels.time.monotonic", lambda: now[0])
    line = StatusBar()
    line.stand(("ended", None), [("3/9", None)])
    assert (line.text, line.is_lent) == ("ended  3/9", False)
    line.lend("copied")
    line.stand(("ended", None), [("4/9", None)])
    assert (line.text, line.is_lent) == ("copied  4/9", True)
    now[0] += labels.FLASH + 0.1
    assert line.is_lent, "somebody has to draw it anew"
    line.stand(("ended", None), [("4/9", None)])
    assert (line.text, line.is_lent) == ("ended  4/9", False)
