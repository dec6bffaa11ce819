"""Results of a load test: latency histograms, errors by kind, throughput over time, and the gate.

Memory is bounded: a histogram has logarithmic buckets, and the timeline merges its intervals. The latency of a
request counts from the time at which it was due, so a delayed run adds its delay to each of its requests.
Otherwise a slow server would hide its slowness by receiving fewer requests (coordinated omission).
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import ceil, frexp, ldexp

from msgspec import Struct

from mcpspy.core.protocol.message import Failure
from mcpspy.core.replay.player import SentRequest
from mcpspy.core.rules.model import seconds
from mcpspy.core.session.exchange import event_of

STEPS = 128
"""Buckets per power of two: a percentile is at most 0.8 % above the exact value."""

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}

INTERVALS = 120
"""Maximum number of intervals of the timeline."""

OVERHEAD = 0.05
"""Share of a latency from which on mcpspy's own part of it is reported."""

KINDS = 50
"""Maximum number of kinds of errors; the rest is counted together."""


class Histogram:
    """Counts of latencies, in seconds, by logarithmic buckets."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.most = 0.0
        self._buckets: Counter[int] = Counter()

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.most = max(self.most, value)
        mantissa, exponent = frexp(max(value, 1e-6))
        self._buckets[exponent * STEPS + int((mantissa - 0.5) * 2 * STEPS)] += 1

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def buckets(self) -> Iterator[tuple[float, int]]:
        """Yield the upper bound of each bucket that is not empty, and its count; the last bound is the maximum."""
        for bucket, count in sorted(self._buckets.items()):
            exponent, step = divmod(bucket, STEPS)
            yield min(ldexp(0.5 + (step + 1) / (2 * STEPS), exponent), self.most), count

    def quantile(self, share: float) -> float:
        """Return the upper bound of the bucket with this quantile by nearest rank; 0 without values."""
        rank, seen = max(ceil(share * self.count), 1), 0
        for bound, count in self.buckets():
            seen += count
            if seen >= rank:
                return bound
        return 0.0


class RequestLoad(Struct):
    """The requests of one method and subject."""

    latencies: Histogram
    recorded: Histogram
    sent: int = 0
    errors: int = 0


class LoadInterval(Struct):
    answers: int = 0
    errors: int = 0
    most: float = 0.0
    """Maximum latency in seconds."""


class LoadResult:
    def __init__(self) -> None:
        self.latencies = Histogram()
        self.lateness = Histogram()
        """Seconds between an event and its notice by mcpspy; latencies contain them."""
        self.cpu = 0.0
        """Seconds of CPU time that mcpspy used for all requests; latencies contain most of it."""
        self.requests: dict[str, RequestLoad] = {}
        self.kinds: Counter[str] = Counter()
        """Number of errors by kind."""
        self.width = 1.0
        """Seconds of an interval."""
        self.timeline: list[LoadInterval] = []
        """By the time of the response, or of the failed request."""
        self.runs = 0
        self.failed_runs = 0
        """Runs with an error."""
        self.different = 0
        """Runs with an error or, as far as they were compared completely, with a difference."""
        self.unstarted = 0
        """Runs that were due and did not start."""
        self.sent = 0
        self.unsent = 0
        self.seconds = 0.0

    @property
    def errors(self) -> int:
        """Number of failed requests, and of those that were not sent because their run ended."""
        return self.kinds.total()

    @property
    def error_share(self) -> float:
        return self.errors / total if (total := self.sent + self.unsent) else 0.0

    @property
    def rate(self) -> float:
        """Completed runs per second."""
        return self.runs / self.seconds if self.seconds else 0.0

    def overhead(self, share: float) -> float:
        """Return mcpspy's own part of the latency at a quantile, in seconds: its work on a request, and its lateness."""
        return self.lateness.quantile(share) + (self.cpu / self.sent if self.sent else 0.0)

    @property
    def distorted(self) -> str | None:
        """The first percentile of which mcpspy's own part is more than a small share; None if none is."""
        shares = {name: PERCENTILES[name] for name in ("p50", "p95", "p99")}
        distorted = (
            name
            for name, share in shares.items()
            if self.overhead(share) > OVERHEAD * self.latencies.quantile(share)
        )
        return next(distorted, None)

    def add_run(
        self, sent: Sequence[SentRequest], unsent: int, stopped: str | None, *, started: float, delay: float
    ) -> bool:
        """Add a run. `started`: start of the load; `delay`: seconds from its due time. Return whether it has errors."""
        before = self.errors
        for request in sent:
            self._add(request, started, delay)
        self.runs += 1
        self.sent += len(sent)
        self.unsent += unsent
        if unsent or (stopped is not None and self.errors == before):
            self._count_error(f"not sent: {stopped}" if stopped else "not sent", max(unsent, 1))
        is_failed = self.errors > before
        self.failed_runs += is_failed
        return is_failed

    def _add(self, request: SentRequest, started: float, delay: float) -> None:
        kind = self.requests.setdefault(request.about, RequestLoad(Histogram(), Histogram()))
        kind.sent += 1
        latency = None
        if request.answered_at is not None:
            latency = max(0.0, request.answered_at - request.at) + delay
            kind.latencies.add(latency)
            self.latencies.add(latency)
        recorded = request.step.exchange.latency if request.step.exchange is not None else None
        if recorded is not None:
            kind.recorded.add(recorded)
        at = request.at if request.answered_at is None else request.answered_at
        interval = self._interval(max(0.0, at - started))
        if latency is not None:
            interval.answers += 1
            interval.most = max(interval.most, latency)
        if (why := error_of(request)) is not None:
            kind.errors += 1
            interval.errors += 1
            self._count_error(why, 1)

    def _count_error(self, kind: str, count: int) -> None:
        self.kinds[kind if kind in self.kinds or len(self.kinds) < KINDS else "other errors"] += count

    def _interval(self, at: float) -> LoadInterval:
        while at >= self.width * INTERVALS:
            self.width *= 2
            self.timeline = merged(self.timeline)
        while len(self.timeline) <= at // self.width:
            self.timeline.append(LoadInterval())
        return self.timeline[int(at // self.width)]


def merged(timeline: Sequence[LoadInterval]) -> list[LoadInterval]:
    """Return intervals of twice the width."""
    pairs = (timeline[place : place + 2] for place in range(0, len(timeline), 2))
    return [
        LoadInterval(
            sum(each.answers for each in pair),
            sum(each.errors for each in pair),
            max(each.most for each in pair),
        )
        for pair in pairs
    ]


def error_of(request: SentRequest) -> str | None:
    """Return the kind of error if a request got no response, or one of another kind than the recorded one."""
    recorded = request.step.exchange.answer if request.step.exchange is not None else None
    if recorded is None or (request.answer is not None and event_of(recorded) is event_of(request.answer)):
        return None
    if request.answer is None:
        return (request.failed or "no response").replace(f"no response to {request.about}", "no response")
    if isinstance(request.answer, Failure):
        return f"JSON-RPC error {request.answer.code}"
    return f"{event_of(request.answer)} instead of {event_of(recorded)}"


OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}

METRICS = (*PERCENTILES, "mean", "errors", "rate", "different")

_TERM = re.compile(r"\s*([a-z]\w*)\s*(>=|<=|>|<)\s*(\d*\.?\d+)\s*([a-z%]*)\s*", re.ASCII | re.IGNORECASE)


class GateTerm(Struct, frozen=True):
    text: str
    metric: str
    operator: str
    limit: float
    """Seconds for a latency, a share for a percentage, or a number."""
    is_share: bool = False

    def value(self, result: LoadResult) -> float:
        if self.metric == "mean":
            return result.latencies.mean
        if self.metric == "errors":
            return result.error_share if self.is_share else result.errors
        if self.metric in PERCENTILES:
            return result.latencies.quantile(PERCENTILES[self.metric])
        return result.rate if self.metric == "rate" else result.different

    @property
    def is_latency(self) -> bool:
        return self.metric in PERCENTILES or self.metric == "mean"

    def is_met(self, result: LoadResult) -> bool:
        if self.is_latency and not result.latencies.count:
            return False
        return OPERATORS[self.operator](self.value(result), self.limit)


class LoadGate(Struct, frozen=True):
    """A condition under which a load test fails: alternatives (`or`) of terms that hold together (`and`)."""

    text: str
    alternatives: tuple[tuple[GateTerm, ...], ...]

    def met(self, result: LoadResult) -> list[GateTerm]:
        """Return the terms of each alternative that is met; an empty list if the load test passes."""
        met = (terms for terms in self.alternatives if all(term.is_met(result) for term in terms))
        return list(dict.fromkeys(term for terms in met for term in terms))

    @property
    def terms(self) -> list[GateTerm]:
        return [term for terms in self.alternatives for term in terms]


def gate(text: str) -> LoadGate:
    """Read `p95>200ms or errors>1% and rate<50`; `and` binds tighter than `or`. Raise ValueError."""
    alternatives = re.split(r"\s+or\s+", text.strip(), flags=re.IGNORECASE)
    return LoadGate(
        text.strip(),
        tuple(
            tuple(_term(term) for term in re.split(r"\s+and\s+", terms, flags=re.IGNORECASE))
            for terms in alternatives
        ),
    )


def _term(text: str) -> GateTerm:
    if (found := _TERM.fullmatch(text)) is None:
        raise ValueError(f"{text.strip() or 'empty'}: not a term (METRIC, then > >= < or <=, then VALUE)")
    metric, sign, number, unit = (group.lower() for group in found.groups())
    name = f"{metric}{sign}{number}{unit}"
    if metric not in METRICS:
        raise ValueError(f"{metric}: not a metric (use {', '.join(METRICS)})")
    if metric in PERCENTILES or metric == "mean":
        if not unit:
            raise ValueError(f"{name}: no unit of time (use {metric}{sign}{number}ms)")
        try:
            return GateTerm(name, metric, sign, seconds(number + unit))
        except ValueError:
            raise ValueError(f"{name}: not a unit of time: {unit} (use ms, s or min)") from None
    if unit == "%" and metric == "errors":
        return GateTerm(name, metric, sign, float(number) / 100, is_share=True)
    if unit:
        raise ValueError(f"{name}: {metric} has no unit {unit}")
    return GateTerm(name, metric, sign, float(number))
