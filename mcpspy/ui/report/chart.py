"""The result of a query as a chart: by plotext in the terminal, or as SVG, alone or in a page.

The first column is x, every numeric column a series. Numbers and times make lines, any other x makes groups of bars.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from html import escape
from typing import Any, NamedTuple

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.ui.text.width import cut

MOST = 10_000
"""Maximum number of points per series."""

COLORS = ("#1558b8", "#d3394a", "#2f9a54", "#a35a00", "#7a3ea8", "#008080")

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 880, 320, 70, 20, 34, 40
"""Size of an SVG image, and its margins."""

_LABEL = 24
"""Maximum columns of a label."""


class Chart(NamedTuple):
    name: str
    """Name of the first column."""
    labels: list[str]
    x: list[float]
    series: dict[str, list[float]]
    is_line: bool


def read_chart(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Chart:
    """Return a chart of a table, without rows that have a null; raise UsageError if it has no numbers."""
    places = [
        place
        for place in range(1, len(names))
        if any(_is_number(row[place]) for row in rows)
        and all(_is_number(row[place]) or row[place] is None for row in rows)
    ]
    if not places:
        raise UsageError(
            "--plot: no column with numbers after the first",
            "SELECT x, y …: the first column is x, the others are y",
        )
    rows = [row for row in rows if all(row[place] is not None for place in (0, *places))]
    if not 0 < len(rows) <= MOST:
        raise UsageError(
            f"--plot: {len(rows):,} rows", f"a chart has 1 to {MOST:,} rows: use LIMIT or GROUP BY"
        )
    first = [row[0] for row in rows]
    is_line = len(first) > 1 and all(_is_number(each) or isinstance(each, date) for each in first)
    if is_line:
        rows = sorted(rows, key=lambda row: row[0])
    labels = [
        cut(sanitize(f"{row[0]:%Y-%m-%d %H:%M:%S}" if isinstance(row[0], datetime) else str(row[0])), _LABEL)
        for row in rows
    ]
    x = [_position(row[0]) if is_line else float(place) for place, row in enumerate(rows)]
    series = {sanitize(names[place]): [float(row[place]) for row in rows] for place in places}
    return Chart(sanitize(names[0]), labels, x, series, is_line)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _position(value: Any) -> float:
    if isinstance(value, datetime):
        return value.timestamp()
    return float(value.toordinal() if isinstance(value, date) else value)


def terminal(chart: Chart, width: int, height: int, *, has_color: bool) -> list[str]:
    """Return the lines of a chart of this size in columns and lines."""
    import plotext

    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, height)
    share = 0.8 / len(chart.series)
    for number, (name, values) in enumerate(chart.series.items()):
        if chart.is_line:
            signal = figure.signal(chart.x, values).lines()
        else:
            shift = (number - (len(chart.series) - 1) / 2) * share
            signal = figure.bar([x + shift for x in chart.x], values, width=share)
        figure.draw(signal.label(name))
    ticks = _ticks(chart, max(1, width // _LABEL))
    figure.ruler("x").ticks([chart.x[place] for place in ticks], [chart.labels[place] for place in ticks])
    return [*figure.build().string(colorless=not has_color).splitlines()]


def _ticks(chart: Chart, most: int) -> list[int]:
    """Return the rows whose labels have room beside each other."""
    apart = (chart.x[-1] - chart.x[0]) / most
    found = [0]
    for place, x in enumerate(chart.x):
        if x - chart.x[found[-1]] >= apart and place:
            found.append(place)
    return found


def svg(chart: Chart) -> str:
    return "".join(_svg(chart))


def _svg(chart: Chart) -> Iterator[str]:
    values = [value for each in chart.series.values() for value in each]
    low, high = min(0.0, *values), max(0.0, *values)
    high += low == high
    first, last = (chart.x[0], chart.x[-1]) if chart.is_line else (-0.5, len(chart.x) - 0.5)
    room = (WIDTH - LEFT - RIGHT) / ((last - first) or 1.0)

    def at(x: float) -> float:
        return LEFT + (x - first) * room

    def up(y: float) -> float:
        return HEIGHT - BOTTOM - (y - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">\n'
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n'
    for value in (low, (low + high) / 2, high):
        yield f'<path d="M{LEFT} {up(value):.1f}H{WIDTH - RIGHT}" stroke="#d9dad4"/>'
        yield f'<text x="{LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{value:,.6g}</text>\n'
    for place in _ticks(chart, 6):
        yield f'<text x="{at(chart.x[place]):.1f}" y="{HEIGHT - 20}" text-anchor="middle">{escape(chart.labels[place])}</text>\n'
    yield f'<text x="{WIDTH / 2}" y="{HEIGHT - 4}" text-anchor="middle">{escape(chart.name)}</text>\n'
    width = 0.8 * room / len(chart.series)
    for number, (name, ys) in enumerate(chart.series.items()):
        color = COLORS[number % len(COLORS)]
        yield f'<text x="{LEFT + 130 * number}" y="20" fill="{color}">{escape(name)}</text>\n'
        if chart.is_line:
            points = " ".join(f"{at(x):.1f},{up(y):.1f}" for x, y in zip(chart.x, ys, strict=True))
            yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>\n'
            continue
        for x, y in zip(chart.x, ys, strict=True):
            left, top = at(x) - 0.4 * room + number * width, up(max(y, 0.0))
            yield f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{up(min(y, 0.0)) - top:.1f}" fill="{color}"/>\n'
    yield "</svg>\n"


def html(chart: Chart) -> str:
    title = escape(f"{', '.join(chart.series)} by {chart.name}")
    return f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n{svg(chart)}</html>\n'
