"""Which lines go the short way; that it counts as the long one does is held by test_fold."""

from __future__ import annotations

import pytest

from mcpspy.analysis.stats import StatsCollector, collector_fast
from mcpspy.core.query.parser import parse
from tests.analysis.stats.talking import Talk


def after_hello(query: str | None = None) -> StatsCollector:
    stats = StatsCollector(query=None if query is None else parse(query), top=0)
    stats.add_lines(Talk().hello().lines)
    return stats


def test_calls_and_their_answers_go_it() -> None:
    lines = Talk().call(1, 1.0, 2.0).ask(2, 3.0, "ping").lines

    assert collector_fast.take(after_hello(), lines, 0) == 3


@pytest.mark.parametrize(
    "odd",
    [
        Talk().ask("1", 1.0, "ping"),
        Talk().ask(-1, 1.0, "ping"),
        Talk().answer(7, 1.0),
        Talk().answer(7, 1.0, code=-32603),
        Talk().note(1.0, "stderr", text="x"),
        Talk().say(1.0, "client", []),
    ],
    ids=["an id in quotes", "an id below 0", "nobody asked", "an error", "a note", "a batch"],
)
def test_what_is_odd_is_left_untouched(odd: Talk) -> None:
    stats = after_hello()
    before = (stats.lines, stats.last_at, dict(stats.kinds), len(stats.pairing.waiting()))

    assert collector_fast.take(stats, odd.lines, 0) == 0
    assert (stats.lines, stats.last_at, dict(stats.kinds), len(stats.pairing.waiting())) == before


def test_nothing_goes_it_before_both_have_introduced_themselves() -> None:
    assert collector_fast.take(StatsCollector(), Talk().call(1, 1.0, 2.0).lines, 0) == 0


def test_a_filter_is_asked_for_a_notification_the_long_way() -> None:
    lines = Talk().say(1.0, "server", {"jsonrpc": "2.0", "method": "notifications/message"}).lines

    assert collector_fast.take(after_hello(), lines, 0) == 1
    assert collector_fast.take(after_hello("tool:a"), lines, 0) == 0


@pytest.mark.parametrize("place", [0, 1], ids=["asked", "answered"])
def test_zero_and_minus_zero_are_two_ids(place: int) -> None:
    lines = Talk().ask(0, 1.0, "ping").answer(0, 2.0).lines
    lines[place] = lines[place].replace(b'"id": 0', b'"id": -0')
    stats = after_hello()
    stats.add_lines(lines)

    assert (stats.strays, len(stats.pairing.waiting())) == (1, 1)
