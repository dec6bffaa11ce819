"""The report of a load test as text, JSON, CSV and HTML.

The page has no scripts, makes no requests, and has two inline SVG charts.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from html import escape
from math import log10
from typing import Any

import orjson

from mcpspy.analysis.export.exchange_lines import cell
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


def remarks(result: LoadResult, compared: int) -> Iterator[str]:
    """Yield what limits a result, and the number of runs that differ; `compared` is that of the first runs."""
    if (name := result.distorted) is not None:
        yield distortion(name, result)
    if result.unstarted:
        yield f"{result.unstarted} runs were due and did not start: use more --clients, or a lower --rate"
    scope = (
        f" (the first {compared} compared, the others checked for errors)" if result.runs > compared else ""
    )
    yield f"{result.different} of {result.runs} runs are different{scope}"


def gate_words(gate: LoadGate, result: LoadResult) -> str:
    """Return whether the condition of `--fail-if` is met, with the measured values."""
    met = gate.met(result)
    terms = ", ".join(measured(term, result) for term in met or gate.terms)
    return f"--fail-if: {'met' if met else 'not met'}: {terms}"


def distortion(name: str, result: LoadResult) -> str:
    """Return a warning about latencies that are to a large part mcpspy's own; `name`: the percentile."""
    share = PERCENTILES[name]
    own, latency = duration(result.overhead(share)), duration(result.latencies.quantile(share))
    return (
        f"about {own} of the {name} latency of {latency} is the work of this process, not of the server: a lower "
        "--rate, fewer --clients or an idle machine reduce it"
    )


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
        "overhead_ms": {
            **{name: round(result.overhead(share) * 1e3, 3) for name, share in PERCENTILES.items()},
            "is_large": result.distorted is not None,
        },
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
    for about, each in (*slowest_first(result), ("all", result)):
        total = 0
        for bound, count in each.latencies.buckets():
            total += count
            share = f"{100 * total / each.latencies.count:.4f}"
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


CHART_WIDTH, CHART_HEIGHT, CHART_LEFT, CHART_BOTTOM, CHART_TOP = 880, 240, 76, 32, 12

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

STYLE = """
:root { color-scheme: light dark; }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; font: 14px/1.5 system-ui, sans-serif;
  background: light-dark(#fbfbf8, #15171c); color: light-dark(#23272e, #dadde3); }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid light-dark(#d9dad4, #313641); }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; } text { font-size: 12px; fill: light-dark(#565c66, #9aa2b1); }
.grid { stroke: light-dark(#d9dad4, #313641); } .end { text-anchor: end; } .middle { text-anchor: middle; }
.line { fill: none; stroke: light-dark(#1558b8, #7cafff); stroke-width: 2; }
.bar { fill: light-dark(#2f9a54, #62b577); } .failed { fill: light-dark(#d3394a, #ff7b7b); }
.bad { color: light-dark(#b3202f, #ff8a8a); } .ok { color: light-dark(#1a6832, #86cf95); }
"""


def page(result: LoadResult, title: str, gate: LoadGate | None) -> bytes:
    """Return the page. `title` names the recording and the server."""
    return "".join(_page(result, escape(sanitize(title)), gate)).encode("utf-8", "backslashreplace")


def page_head(title: str, more_style: str = "") -> Iterator[str]:
    """Yield a page up to its heading. `title` is escaped."""
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    yield '<meta name="viewport" content="width=device-width">\n'
    yield f"<style>{STYLE}{more_style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"


def _page(result: LoadResult, title: str, gate: LoadGate | None) -> Iterator[str]:
    yield from page_head(f"Load test: {title}")
    yield f"<p>{summary(result)}</p>\n"
    if gate is not None:
        met = gate.met(result)
        terms = escape(", ".join(measured(term, result) for term in met or gate.terms))
        yield f'<p class="{"bad" if met else "ok"}">{"Failed" if met else "Passed"}: {terms}</p>\n'
    yield f"<p>{result.different} of {result.runs} runs are different.</p>\n"
    if (name := result.distorted) is not None:
        yield f'<p class="bad">{escape(distortion(name, result))}.</p>\n'
    yield "<h2>Latency by percentile</h2>\n"
    yield from _percentiles(result.latencies)
    yield "<h2>Throughput over time</h2>\n"
    yield from _throughput(result)
    yield "<h2>Requests</h2>\n"
    rows = []
    for about, each in (*slowest_first(result), ("all", result)):
        mean = duration(each.latencies.mean) if each.latencies.count else ""
        rows.append((about, str(each.sent), str(each.errors), mean, *_times(each.latencies)))
    yield from _table(("request", "sent", "failed", "mean", *PERCENTILES), rows)
    if result.kinds:
        yield "<h2>Errors</h2>\n"
        kinds = [(kind, str(count)) for kind, count in result.kinds.most_common()]
        yield from _table(("error", "count"), kinds)
    yield "</body>\n</html>\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table>\n<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>\n"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(sanitize(cell))}</td>" for cell in row) + "</tr>\n"
    yield "</table>\n"


def _percentiles(histogram: Histogram) -> Iterator[str]:
    """Yield a chart of latency by percentile; each nine of the percentile has the same width."""
    nines = max(2.0, log10(max(histogram.count, 1)))

    def x(share: float) -> float:
        return CHART_LEFT + (CHART_WIDTH - CHART_LEFT - 10) * min(-log10(max(1 - share, 1e-12)) / nines, 1.0)

    points, seen, top = [], 0, histogram.most or 1.0
    for bound, count in histogram.buckets():
        shares = seen / histogram.count, (seen + count) / histogram.count
        points += [f"{x(share):.1f},{_y(bound, top):.1f}" for share in shares]
        seen += count
    yield from _chart(
        "Latency by percentile", [(share * top, duration(share * top)) for share in (0, 0.5, 1)], top
    )
    for share in (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999):
        if x(share) < CHART_WIDTH - 10:
            yield f'<text class="middle" x="{x(share):.1f}" y="{CHART_HEIGHT - 10}">{share * 100:g} %</text>\n'
    yield f'<polyline class="line" points="{" ".join(points)}"/>\n</svg>\n'


def _throughput(result: LoadResult) -> Iterator[str]:
    """Yield a chart of answers and errors per second."""
    bars, width = result.timeline, result.width
    top = max((max(each.answers, each.errors) / width for each in bars), default=0) or 1.0
    yield from _chart(
        "Answers per second", [(share * top, f"{share * top:.3g}/s") for share in (0, 0.5, 1)], top
    )
    room = (CHART_WIDTH - CHART_LEFT - 10) / max(len(bars), 1)
    for place, each in enumerate(bars):
        start, end = place * width, (place + 1) * width
        title = f"{start:g} to {end:g} s: {each.answers} answers, {each.errors} errors, at most {duration(each.most)}"
        yield f"<g><title>{title}</title>"
        for name, count in (("bar", each.answers), ("failed", each.errors)):
            y = _y(count / width, top)
            left = f'x="{CHART_LEFT + place * room:.1f}" y="{y:.1f}" width="{max(room - 1, 0.5):.1f}"'
            yield f'<rect class="{name}" {left} height="{CHART_HEIGHT - CHART_BOTTOM - y:.1f}"/>'
        yield "</g>\n"
    yield f'<text x="{CHART_LEFT}" y="{CHART_HEIGHT - 10}">0 s</text>\n'
    yield f'<text class="end" x="{CHART_WIDTH - 10}" y="{CHART_HEIGHT - 10}">{len(bars) * width:g} s</text>\n</svg>\n'


def _chart(title: str, marks: Sequence[tuple[float, str]], top: float) -> Iterator[str]:
    yield f'<svg viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}" role="img" aria-label="{title}">\n'
    for value, text in marks:
        y = _y(value, top)
        yield f'<line class="grid" x1="{CHART_LEFT}" x2="{CHART_WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="end" x="{CHART_LEFT - 8}" y="{y + 4:.1f}">{text}</text>\n'


def _y(value: float, top: float) -> float:
    return CHART_HEIGHT - CHART_BOTTOM - (CHART_HEIGHT - CHART_BOTTOM - CHART_TOP) * value / top
