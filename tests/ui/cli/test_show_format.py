"""Lines of `show`: how wide what is."""

from __future__ import annotations

import pytest

from mcpspy.ui.cli.show_format import widths


@pytest.mark.parametrize("terminal", [60, 80, 100, 120, 200])
def test_the_status_is_still_seen_on_a_narrow_terminal(terminal: int) -> None:
    shown = widths(terminal)

    assert sum(map(abs, shown)) + 2 * 7 + 10 <= max(terminal, 78)
