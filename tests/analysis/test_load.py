"""Results of a load test: percentiles, errors, the timeline, and the condition under which it fails."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.load import INTERVALS, KINDS, STEPS, Histogram, LoadResult, gate
from mcpspy.core.replay.player import SentRequest
from tests.core.replay.playing import Stage, Talk

START = 100.0
"""Start of a load test: the clock of a stage."""


def sent(*seconds: float | None, why: str = "HTTP 500", at: float = 0.0) -> list[SentRequest]:
    """Return calls that took these times; None means a refused call."""
    talk = Talk()
    for number in range(len(seconds)):
        talk.call(number, "echo")
    stage = Stage(talk.session)
    stage.now += at
    stage.takes()
    for number, took in enumerate(seconds, start=1):
        if took is None:
            stage.player.refused(str(number), why, stage.now)
        else:
            stage.now += took
            stage.player.received(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number, stage.now)
        stage.takes()
    return list(stage.player.sent.values())


def result(*runs: list[SentRequest], delay: float = 0.0) -> LoadResult:
    found = LoadResult()
    for run in runs:
        found.add_run(run, 0, None, started=START, delay=delay)
    found.seconds = 4.0
    return found


@given(st.lists(st.floats(1e-6, 1e5), min_size=1), st.floats(0.0, 1.0))
def test_a_quantile_is_the_exact_one_or_at_most_a_bucket_above(values: list[float], share: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    exact = sorted(values)[max(ceil(share * len(values)), 1) - 1]

    assert exact <= histogram.quantile(share) <= exact * (1 + 1 / STEPS)
    assert histogram.quantile(1.0) == max(values)
    assert sum(count for _, count in histogram.buckets()) == len(values)


def test_the_buckets_do_not_grow_with_the_number_of_values() -> None:
    histogram = Histogram()
    for number in range(10_000):
        histogram.add(0.1 + number * 1e-5)

    assert len(list(histogram.buckets())) <= 2 * STEPS


def test_the_delay_of_a_run_is_a_part_of_the_latency_of_its_requests() -> None:
    assert result(sent(0.5), delay=2.0).latencies.most == pytest.approx(2.5)


def test_errors_are_counted_by_kind_and_a_request_that_was_not_sent_is_one() -> None:
    found = result(sent(0.1, None))
    found.add_run([], 3, "the server ended", started=START, delay=0.0)

    assert found.kinds == {"HTTP 500": 1, "not sent: the server ended": 3}
    assert (found.errors, found.error_share, found.failed_runs) == (4, 4 / 5, 2)


def test_a_timeout_is_one_kind_whatever_the_request_and_there_are_not_endless_kinds() -> None:
    found = result(sent(None, why="no response to tools/call echo within 3 s"))
    for number in range(2 * KINDS):
        found.add_run([], 1, f"reason {number}", started=START, delay=0.0)

    assert found.kinds["no response within 3 s"] == 1
    assert len(found.kinds) == KINDS + 1
    assert found.errors == 2 * KINDS + 1


def test_the_timeline_doubles_its_intervals_and_keeps_its_counts() -> None:
    found = LoadResult()
    for second in range(3 * INTERVALS):
        found.add_run(sent(0.0, None, at=second), 0, None, started=START, delay=0.0)

    assert found.width == 4.0
    assert len(found.timeline) <= INTERVALS
    assert sum(each.answers for each in found.timeline) == sum(each.errors for each in found.timeline) == 360


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("p95>200ms", ["p95>200ms"]),
        ("p50 > 0.2s", ["p50>0.2s"]),
        ("p95 <= 200ms", []),
        ("errors>49%", ["errors>49%"]),
        ("errors > 50%", []),
        ("errors>=1", ["errors>=1"]),
        ("rate<0.5 or mean<1s", ["rate<0.5", "mean<1s"]),
        ("p99>1min or errors>=1 and max>100ms", ["errors>=1", "max>100ms"]),
        ("p99>1min and errors>=1 or max>1h", []),
        ("different>0 or P90>1ms", ["p90>1ms"]),
    ],
)
def test_a_condition_is_met_by_these_terms(text: str, met: list[str]) -> None:
    assert [term.text for term in gate(text).met(result(sent(0.3, None)))] == met


def test_without_any_response_no_latency_is_below_a_limit() -> None:
    assert gate("p95<1s").met(result(sent(None))) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty: not a term"),
        ("p95", "p95: not a term"),
        ("p95>200ms or", "p95>200ms or: not a term"),
        ("p42>1s", "p42: not a metric (use p50, p90"),
        ("p95>200", "p95>200: no unit of time (use p95>200ms)"),
        ("p95>2%", "p95>2%: not a unit of time: %"),
        ("rate>2%", "rate>2%: rate has no unit %"),
        ("errors>2ms", "errors>2ms: errors has no unit ms"),
        ("different==1", "different==1: not a term"),
    ],
)
def test_an_invalid_condition_names_the_term(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        gate(text)

    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("lateness", "cpu", "name"),
    [
        ([0.0] * 100, 0.0, None),
        ([0.001] * 99 + [0.4], 0.0, None),
        ([0.001] * 97 + [0.4] * 3, 0.0, "p99"),
        ([0.02] * 100, 0.0, "p50"),
        ([0.0] * 100, 0.4, None),
        ([0.0] * 100, 0.6, "p50"),
        ([0.002] * 100, 0.4, "p50"),
    ],
)
def test_own_work_and_lateness_are_named_where_they_are_a_twentieth_of_a_latency(
    lateness: list[float], cpu: float, name: str | None
) -> None:
    found = result(sent(*[0.1] * 100))
    found.cpu = cpu
    for each in lateness:
        found.lateness.add(each)

    assert found.distorted == name
