"""Messages are counted in the right group, and the number of groups is limited."""

from __future__ import annotations

import pytest

from mcpspy.analysis.stats import tables as module
from mcpspy.analysis.stats.group import GroupKind
from mcpspy.analysis.stats.tables import LargeMessage, MessageGroups


def test_calls_are_counted_by_their_tool_and_lists_are_not_by_their_cursor() -> None:
    groups = MessageGroups(0)

    assert groups.requests("client", "tools/call", "a") is not groups.requests("client", "tools/call", "b")
    assert groups.requests("client", "tools/list", "a") is groups.requests("client", "tools/list", "b")
    assert groups.requests("client", "ping", "") is not groups.requests("server", "ping", "")


def test_groups_beyond_the_limit_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    groups = MessageGroups(0)
    for number in range(10):
        groups.requests("client", "resources/read", f"file:///{number}").count += 1
    for number in range(4):
        groups.requests("client", f"x/{number}", "").count += 1

    counts = {(each.method, each.subject): each.count for each in groups.of("client", GroupKind.REQUEST)}

    assert counts == {
        ("resources/read", "file:///0"): 1,
        ("resources/read", "file:///1"): 1,
        ("resources/read", "file:///2"): 1,
        ("resources/read", None): 7,
        ("", None): 4,
    }
    assert groups.total("client").count == 14
    assert groups.total("server").count == 0


def test_the_largest_are_kept_the_first_of_two_that_are_alike() -> None:
    groups = MessageGroups(2)
    for line, size in enumerate((5, 9, 7, 9, 1)):
        if size > groups.least:
            groups.add_large(LargeMessage(size, -line, line, 0.0, "client", "request"))

    assert [(large.size, large.line) for large in groups.largest] == [(9, 1), (9, 3)]
