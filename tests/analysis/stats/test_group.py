"""Merged groups have the same counts as a single group."""

from __future__ import annotations

from mcpspy.analysis.stats.group import GroupKind, MessageGroup, merged
from mcpspy.core.session.exchange import State


def test_merged_counts_are_sums() -> None:
    groups = [MessageGroup("client", GroupKind.REQUEST, "tools/call", name) for name in "ab"]
    for number, group in enumerate(groups, 1):
        group.count, group.sent, group.back, group.apart = number, 10 * number, 100 * number, 1
        group.states[State.ERROR] = number
        group.took.add(float(number))
        group.chains.whole.add(5.0)
        group.chains.requests, group.chains.served = 2, 1.5

    whole = merged(groups, "tools/call")

    assert (whole.side, whole.method, whole.subject) == ("client", "tools/call", None)
    assert (whole.count, whole.sent, whole.back, whole.errors, whole.apart) == (3, 30, 300, 3, 2)
    assert whole.states == {State.ERROR: 3}
    assert whole.took.times()[:3] == (2, 3.0, 1.0)
    assert (len(whole.chains), whole.chains.requests, whole.chains.served) == (2, 4, 3.0)
