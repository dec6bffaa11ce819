"""Load report as one HTML page: no scripts, no requests, two inline SVG charts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import log10

from mcpspy.analysis.load import PERCENTILES, Histogram, LoadGate, LoadResult
from mcpspy.analysis.rows import duration
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.report.load_text import measured, slowest_first, summary

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 880, 240, 76, 32, 12

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


def _page(result: LoadResult, title: str, gate: LoadGate | None) -> Iterator[str]:
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Load test: {title}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    yield '<meta name="viewport" content="width=device-width">\n'
    yield f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>Load test: {title}</h1>\n<p>{summary(result)}</p>\n"
    if gate is not None:
        met = gate.met(result)
        terms = escape(", ".join(measured(term, result) for term in met or gate.terms))
        yield f'<p class="{"bad" if met else "ok"}">{"Failed" if met else "Passed"}: {terms}</p>\n'
    yield f"<p>{result.different} of {result.runs} runs are different.</p>\n"
    yield "<h2>Latency by percentile</h2>\n"
    yield from _percentiles(result.latencies)
    yield "<h2>Throughput over time</h2>\n"
    yield from _throughput(result)
    yield "<h2>Requests</h2>\n"
    rows = [(about, each.sent, each.errors, each.latencies) for about, each in slowest_first(result)]
    rows.append(("all", result.sent, result.errors, result.latencies))
    yield from _table(
        ("request", "sent", "failed", "mean", *PERCENTILES),
        [(about, str(sent), str(errors), *_times(latencies)) for about, sent, errors, latencies in rows],
    )
    if result.kinds:
        yield "<h2>Errors</h2>\n"
        yield from _table(
            ("error", "count"), [(kind, str(count)) for kind, count in result.kinds.most_common()]
        )
    yield "</body>\n</html>\n"


def _times(histogram: Histogram) -> list[str]:
    values = [histogram.mean, *(histogram.quantile(share) for share in PERCENTILES.values())]
    return [duration(value) if histogram.count else "" for value in values]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table>\n<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>\n"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(sanitize(cell))}</td>" for cell in row) + "</tr>\n"
    yield "</table>\n"


def _percentiles(histogram: Histogram) -> Iterator[str]:
    """Yield a chart of latency by percentile; each nine of the percentile has the same width."""
    nines = max(2.0, log10(max(histogram.count, 1)))

    def x(share: float) -> float:
        return LEFT + (WIDTH - LEFT - 10) * min(-log10(max(1 - share, 1e-12)) / nines, 1.0)

    points, seen, top = [], 0, histogram.most or 1.0
    for bound, count in histogram.buckets():
        shares = seen / histogram.count, (seen + count) / histogram.count
        points += [f"{x(share):.1f},{_y(bound, top):.1f}" for share in shares]
        seen += count
    yield from _chart(
        "Latency by percentile", [(share * top, duration(share * top)) for share in (0, 0.5, 1)], top
    )
    for share in (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999):
        if x(share) < WIDTH - 10:
            yield f'<text class="middle" x="{x(share):.1f}" y="{HEIGHT - 10}">{share * 100:g} %</text>\n'
    yield f'<polyline class="line" points="{" ".join(points)}"/>\n</svg>\n'


def _throughput(result: LoadResult) -> Iterator[str]:
    """Yield a chart of answers and errors per second."""
    bars, width = result.timeline, result.width
    top = max((max(each.answers, each.errors) / width for each in bars), default=0) or 1.0
    yield from _chart(
        "Answers per second", [(share * top, f"{share * top:.3g}/s") for share in (0, 0.5, 1)], top
    )
    room = (WIDTH - LEFT - 10) / max(len(bars), 1)
    for place, each in enumerate(bars):
        start, end = place * width, (place + 1) * width
        title = f"{start:g} to {end:g} s: {each.answers} answers, {each.errors} errors, at most {duration(each.most)}"
        yield f"<g><title>{title}</title>"
        for name, count in (("bar", each.answers), ("failed", each.errors)):
            y = _y(count / width, top)
            left = f'x="{LEFT + place * room:.1f}" y="{y:.1f}" width="{max(room - 1, 0.5):.1f}"'
            yield f'<rect class="{name}" {left} height="{HEIGHT - BOTTOM - y:.1f}"/>'
        yield "</g>\n"
    yield f'<text x="{LEFT}" y="{HEIGHT - 10}">0 s</text>\n'
    yield f'<text class="end" x="{WIDTH - 10}" y="{HEIGHT - 10}">{len(bars) * width:g} s</text>\n</svg>\n'


def _chart(title: str, marks: Sequence[tuple[float, str]], top: float) -> Iterator[str]:
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">\n'
    for value, text in marks:
        y = _y(value, top)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="end" x="{LEFT - 8}" y="{y + 4:.1f}">{text}</text>\n'


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top
