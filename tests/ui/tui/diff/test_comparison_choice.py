"""Tests of the choice of the two exchanges to compare."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.diff import comparison
from mcpspy.ui.tui.diff.comparison import choose_exchanges
from tests.ui.tui.panels.panels import Lines


def log_of_calls() -> Lines:
    """Return rows: echo 0 and its response 1, other 2 and 3, echo 4 and 5, the server's echo 6, a note 7."""
    lines = Lines()
    lines.call(1, 0.1, 0.2)
    lines.call(2, 0.3, 0.4, name="oth\\u001ber")
    lines.call(3, 0.5, 0.6)
    lines.say(0.7, "server", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}')
    lines.add(b'{"t":0.8,"note":"stderr","text":"a word"}')
    return lines


@pytest.mark.parametrize(
    ("row", "marked", "found"),
    [
        (4, [], (0, 4)),
        (5, [], (0, 4)),
        (4, [4], (0, 4)),
        (4, [2], (2, 4)),
        (0, [3], (0, 2)),
        (0, [4], (0, 4)),
        (7, [4, 1], (0, 4)),
        (None, [2, 4], (2, 4)),
        (4, [2, 99], (2, 4)),
        (2, [], "no earlier tools/call oth\\x1ber: mark another exchange (m), then press d"),
        (6, [], "no earlier tools/call echo: mark another exchange (m), then press d"),
        (7, [4], "nothing to compare: this row belongs to no request"),
        (None, [], "nothing to compare: this row belongs to no request"),
        (0, [0, 2, 4], "3 exchanges are marked: mark two to compare (m removes a mark)"),
    ],
)
async def test_marked_exchanges_come_before_the_previous_one(
    monkeypatch: pytest.MonkeyPatch, row: int | None, marked: list[int], found: tuple[int, int] | str
) -> None:
    monkeypatch.setattr(comparison, "CHOICE_SLICE", 3)
    assert await choose_exchanges(log_of_calls().log, row, marked) == found
