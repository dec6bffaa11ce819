"""Methods, ids and statuses in few columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mcpspy.ui.text.width import elide, shorten_status, tail


@pytest.mark.parametrize(
    ("method", "width", "short"),
    [
        ("tools/call", 10, "tools/call"),
        ("notifications/tools/list_changed", 32, "notifications/tools/list_changed"),
        ("notifications/tools/list_changed", 31, "notificatio…/tools/list_changed"),
        ("notifications/tools/list_changed", 14, "…/list_changed"),
        ("notifications/tools/list_changed", 13, "…list_changed"),
        ("notifications/tools/list_changed", 8, "…changed"),
        ("com.example.listEverything", 12, "com…erything"),
        ("(not JSON)", 8, "(not JS…"),
        ("a/雨雨雨雨", 6, "…雨雨"),
    ],
)
def test_the_end_of_a_method_stays(method: str, width: int, short: str) -> None:
    assert elide(method, width) == short


@pytest.mark.parametrize(
    ("status", "width", "short"),
    [
        ("ok", 9, "ok"),
        ("tool error", 9, "tool error"),
        ("tool error: no disk", 9, "✗ no disk"),
        ("tool error: Error executing tool save: no disk", 9, "✗ no disk"),
        ("tool error: Error executing tool save", 9, "✗ Error executing tool save"),
        ("error -32602 invalid params: no path", 30, "-32602 invalid params: no path"),
        ("error -32602 invalid params: no path", 29, "invalid params: no path"),
        ("tool error: MCP error -32602: no disk", 9, "✗ no disk"),
        ("error -32602 invalid params: MCP error -32602: no path", 29, "invalid params: no path"),
        ("error -1: no path", 9, "-1: no path"),
        ("error: no path", 9, "error: no path"),
    ],
)
def test_a_narrow_status_is_the_reason_of_an_error(status: str, width: int, short: str) -> None:
    assert shorten_status(status, width) == short


@given(st.text(), st.integers(4, 40))
def test_a_shortened_text_fits(text: str, width: int) -> None:
    assert cell_len(elide(text, width)) <= width
    assert cell_len(tail(text, width)) <= width
