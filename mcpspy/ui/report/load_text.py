"""Load report as text lines, JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import orjson

from mcpspy.analysis.export.csv import cell
from mcpspy.analysis.load import PERCENTILES, GateTerm, Histogram, LoadGate, LoadInterval, LoadResult, merged
from mcpspy.analysis.rows import duration
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.text.terminal import columns

WIDTHS = (34, -7, -7, *(-8,) * 5, -9)

ROWS = 10
"""Maximum rows of the timeline in the text report."""


def lines(result: LoadResult) -> Iterator[str]:
    """Yield the table, with the slowest request first, the errors, the throughput over time and a summary."""
    yield columns(("request", "sent", "failed", *PERCENTILES, "recorded"), WIDTHS)
    for about, each in slowest_first(result):
        recorded = duration(each.recorded.quantile(0.5)) if each.recorded.count else ""
        counts = str(each.sent), str(each.errors or "")
        yield columns((sanitize(about), *counts, *_times(each.latencies), recorded), WIDTHS)
    if len(result.requests) > 1:
        counts = str(result.sent), str(result.errors or "")
        yield columns(("all", *counts, *_times(result.latencies), ""), WIDTHS)
    for kind, count in result.kinds.most_common():
        yield f"{count:6}  {sanitize(kind)}"
    timeline, width = result.timeline, result.width
    while len(timeline) > ROWS:
        timeline, width = merged(timeline), width * 2
    if len(timeline) > 1:
        yield columns(("seconds", "answers", "errors", "max"), (14, -10, -7, -9))
        for place, interval in enumerate(timeline):
            span = f"{place * width:g} to {(place + 1) * width:g}"
            row = span, str(interval.answers), str(interval.errors or ""), duration(interval.most)
            yield columns(row, (14, -10, -7, -9))
    yield summary(result)


def summary(result: LoadResult) -> str:
    rates = (
        f" · {result.sent / result.seconds:.0f} requests/s · {result.rate:.3g} runs/s"
        if result.seconds
        else ""
    )
    runs = "1 run" if result.runs == 1 else f"{result.runs} runs"
    return f"{runs} · {result.sent} requests in {result.seconds:.2f} s{rates}"


def measured(term: GateTerm, result: LoadResult) -> str:
    """Return a term with the measured value: `p95>200ms (312.0 ms)`."""
    value = term.value(result)
    if term.is_latency:
        return f"{term.text} ({duration(value)})"
    return f"{term.text} ({value:.2%})" if term.is_share else f"{term.text} ({value:.4g})"


def document(result: LoadResult, gate: LoadGate | None) -> bytes:
    """Return the report as one JSON document; times are in milliseconds."""
    terms = {} if gate is None else {term: term.is_met(result) for term in gate.terms}
    report: dict[str, Any] = {
        "runs": result.runs,
        "different": result.different,
        "unstarted": result.unstarted,
        "requests": result.sent,
        "errors": result.errors,
        "seconds": round(result.seconds, 3),
        "runs_per_second": round(result.rate, 3),
        "latency_ms": _summary(result.latencies),
        "by_request": [
            {
                "request": sanitize(about),
                "sent": each.sent,
                "errors": each.errors,
                "latency_ms": _summary(each.latencies),
            }
            for about, each in slowest_first(result)
        ],
        "by_error": {sanitize(kind): count for kind, count in result.kinds.most_common()},
        "timeline": [_interval(place, each, result) for place, each in enumerate(result.timeline)],
        "histogram": [
            {"latency_ms": round(bound * 1e3, 3), "count": count}
            for bound, count in result.latencies.buckets()
        ],
        "fail_if": None
        if gate is None
        else {
            "condition": gate.text,
            "met": bool(gate.met(result)),
            "terms": [
                {"term": term.text, "value": _value(term, result), "met": met} for term, met in terms.items()
            ],
        },
    }
    return orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def histogram_csv(result: LoadResult) -> bytes:
    """Return the latency histogram of each request and of all: upper bounds, counts and percentiles."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("request", "latency_ms", "count", "total_count", "percentile"))
    for about, histogram in [
        *((about, each.latencies) for about, each in slowest_first(result)),
        ("all", result.latencies),
    ]:
        total = 0
        for bound, count in histogram.buckets():
            total += count
            share = f"{100 * total / histogram.count:.4f}"
            table.writerow((cell(about), f"{bound * 1e3:.3f}", count, total, share))
    return text.getvalue().encode("utf-8", "backslashreplace")


def slowest_first(result: LoadResult) -> list[tuple[str, Any]]:
    return sorted(result.requests.items(), key=lambda each: -each[1].latencies.quantile(0.5))


def _times(histogram: Histogram) -> Iterator[str]:
    for share in PERCENTILES.values():
        yield duration(histogram.quantile(share)) if histogram.count else ""


def _summary(histogram: Histogram) -> dict[str, float]:
    times = {"mean": histogram.mean} | {
        name: histogram.quantile(share) for name, share in PERCENTILES.items()
    }
    return {"count": histogram.count} | {name: round(time * 1e3, 3) for name, time in times.items()}


def _value(term: GateTerm, result: LoadResult) -> float:
    value = term.value(result)
    return round(value * 1e3, 3) if term.is_latency else value


def _interval(place: int, each: LoadInterval, result: LoadResult) -> dict[str, float]:
    start = place * result.width
    return {
        "start": start,
        "end": start + result.width,
        "answers": each.answers,
        "errors": each.errors,
        "max_ms": round(each.most * 1e3, 3),
    }
