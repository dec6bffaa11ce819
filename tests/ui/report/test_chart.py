"""Charts of query results: lines and bars, as text, SVG and HTML."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.report.chart import html, read_chart, svg, terminal

TOOLS: list[list[Any]] = [["search", 3, "x", 1.5], ["<read>", Decimal(5), "y", 0.5], [None, 9, "z", 9.0]]
NAMES = ["tool", "calls", "text", "a & b\x1b[31m"]
DAYS: list[list[Any]] = [[date(2026, 11, 3), -2.0], [date(2026, 11, 1), 4.0], [date(2026, 11, 2), 0.0]]

SVG = "{http://www.w3.org/2000/svg}"


def drawn(chart: Any, name: str) -> list[dict[str, str]]:
    """Return the attributes of all elements of this name except the background."""
    return [
        each.attrib for each in ElementTree.fromstring(svg(chart)).iter(SVG + name) if "fill" in each.attrib
    ][name == "rect" :]


def test_numeric_columns_are_series_and_rows_with_null_are_left_out() -> None:
    chart = read_chart(NAMES, TOOLS)

    assert (chart.labels, chart.is_line) == (["search", "<read>"], False)
    assert list(chart.series.values()) == [[3.0, 5.0], [1.5, 0.5]]
    assert all("\x1b" not in name for name in chart.series)


def test_bars_have_the_heights_of_the_values() -> None:
    bars = drawn(read_chart(NAMES, TOOLS), "rect")

    heights = [float(bar["height"]) for bar in bars]
    assert [round(height / heights[0] * 3, 1) for height in heights] == [3.0, 5.0, 1.5, 0.5]
    assert len({bar["fill"] for bar in bars}) == 2


def test_moments_of_a_day_keep_their_distances() -> None:
    moments: list[list[Any]] = [[datetime(2026, 11, 3, hour, tzinfo=UTC), hour] for hour in (10, 11, 14)]
    (line,) = drawn(read_chart(["time", "n"], moments), "polyline")
    x = [float(point.split(",")[0]) for point in line["points"].split()]
    assert (x[2] - x[1]) / (x[1] - x[0]) == pytest.approx(3, abs=0.1)


def test_times_make_a_line_in_their_order_over_zero() -> None:
    chart = read_chart(["day", "n"], DAYS)

    (line,) = drawn(chart, "polyline")
    points = [tuple(map(float, point.split(","))) for point in line["points"].split()]
    assert chart.labels == ["2026-11-01", "2026-11-02", "2026-11-03"]
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.2)
    assert points[1][1] - points[0][1] == pytest.approx(2 * (points[2][1] - points[1][1]), abs=0.2)


@pytest.mark.parametrize("row", [[1, 7], [datetime(2026, 11, 1, tzinfo=UTC), 0], ["x", 0]])
def test_one_row_is_a_chart(row: list[Any]) -> None:
    chart = read_chart(["x", "y"], [row])

    assert ElementTree.fromstring(svg(chart)) is not None
    assert any("y" in line for line in terminal(chart, 60, 10, has_color=False))


def test_a_page_contains_the_image_and_no_script() -> None:
    page = html(read_chart(NAMES, TOOLS))

    assert page.startswith("<!doctype html>")
    assert "&lt;read&gt;" in page
    assert "<script" not in page


@pytest.mark.parametrize(("names", "rows"), [(NAMES, TOOLS), (["day", "n"], DAYS)])
def test_the_terminal_shows_names_and_labels(names: list[str], rows: list[list[Any]]) -> None:
    chart = read_chart(names, rows)
    lines = terminal(chart, 80, 14, has_color=False)
    text = "\n".join(lines)

    assert (len(lines), max(map(len, lines))) == (14, 80)
    assert all(each in text for each in (*chart.series, chart.labels[0], chart.labels[-1]))
    assert "\x1b" not in text
    assert "\x1b" in "".join(terminal(chart, 80, 14, has_color=True))


@pytest.mark.parametrize(
    ("rows", "error"),
    [([["x", "y"]], "no column with numbers"), ([["x", True]], "no column with numbers"), ([], "no column")],
)
def test_a_table_without_numbers_is_refused(rows: list[list[Any]], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        read_chart(["a", "b"], rows)


def test_too_many_rows_are_refused() -> None:
    with pytest.raises(UsageError, match="10,001 rows"):
        read_chart(["a", "b"], [[n, n] for n in range(10_001)])
