"""A filter limits the tables, and only the tables."""

from __future__ import annotations

from mcpspy.analysis.stats.tables import StatsAnswer, StatsCall, StatsTables
from mcpspy.core.query.parser import parse
from mcpspy.core.session.exchange import State


def call(tables: StatsTables, tool: str, at: float, state: State = State.OK) -> StatsCall:
    group = tables.groups.requests("client", "tools/call", tool)
    made = StatsCall(at, 10, 0, "1", "tools/call", group, tool)
    made.state = state
    return made


def test_a_call_that_the_filter_does_not_find_is_in_no_table() -> None:
    tables = StatsTables(parse("tool:a"), 5)
    tables.settled(call(tables, "a", 1.0), StatsAnswer(1.5, 20, 1))
    tables.settled(call(tables, "b", 2.0), StatsAnswer(2.5, 30, 3))

    (group,) = tables.groups.all
    assert (group.subject, group.count, group.sent, group.back) == ("a", 1, 10, 20)
    assert [large.size for large in tables.groups.largest] == [20, 10]


def test_a_call_without_an_answer_has_a_state_and_no_time() -> None:
    tables = StatsTables(None, 0)
    tables.settled(call(tables, "a", 1.0, State.UNANSWERED), None)

    (group,) = tables.groups.all
    assert (group.states, group.states[State.OK], len(group.took)) == ({State.UNANSWERED: 1}, 0, 0)


def test_an_answer_before_its_request_took_no_time_and_a_late_error_is_an_error() -> None:
    tables = StatsTables(None, 0)
    tables.settled(call(tables, "a", 2.0, State.LATE_ERROR), StatsAnswer(1.0, 20, 1, is_error=True))

    (group,) = tables.groups.all
    assert (group.took.most, group.errors) == (0.0, 1)
