"""Tests of the statistics screen: sort order, cursor, and the filter it returns."""

from __future__ import annotations

import pytest

from mcpspy.core.query.parser import parse
from mcpspy.ui.tui.panels import panel_screen
from mcpspy.ui.tui.panels.stats import SORTABLE, StatsScreen
from tests.ui.tui.panels.panels import HEADER, Lines, alone, every_recording, recorded


def called() -> Lines:
    lines = Lines()
    for number, (name, took) in enumerate((("often", 0.1), ("often", 0.2), ("slow", 0.9))):
        lines.call(number, float(number), number + took, name=name, error=name == "slow")
    return lines


def order(lines: list[str]) -> list[str]:
    return [line.lstrip("▸").split()[2] for line in lines if "tools/call" in line]


async def test_groups_are_listed_below_the_total() -> None:
    async with alone(StatsScreen(called().log), (140, 12)) as shown:
        await shown.shows("3 requests · 0 notifications")
        head, total, often, slow = shown.lines[1:5]
        assert head.split() == [
            "method",
            "count↓",
            "errors",
            "p50",
            "p95",
            "p99",
            "max",
            "sent",
            "received",
        ]
        assert total.split()[:6] == ["▸", "→", "all", "requests", "3", "1"]
        assert often.split()[1:8] == ["tools/call", "often", "2", "·", "100.0", "ms", "200.0"]
        assert slow.split()[1:5] == ["tools/call", "slow", "1", "1"]


async def test_pending_requests_have_a_column_only_if_there_are_any() -> None:
    lines = called()
    async with alone(StatsScreen(lines.log), (140, 12)) as shown:
        await shown.shows("3 requests")
        assert "pending" not in shown.lines[1]
        lines.call(9, 5.0)
        await shown.shows("4 requests", "pending")


async def test_s_sorts_by_the_next_column_and_capital_s_reverses() -> None:
    screen = StatsScreen(called().log)
    async with alone(screen, (120, 12)) as shown:
        await shown.shows("sorted by count, descending")
        assert order(shown.lines) == ["often", "slow"]
        await shown.press("s")
        await shown.shows("errors↓", "sorted by errors, descending")
        assert order(shown.lines) == ["slow", "often"]
        await shown.press("S")
        await shown.shows("errors↑", "sorted by errors, ascending")
        assert order(shown.lines) == ["often", "slow"]
        await shown.press(*["s"] * (len(SORTABLE) - 1))
        await shown.shows("sorted by count, descending")


async def test_the_cursor_stays_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_screen, "TICK", 0.01)
    lines = called()
    async with alone(StatsScreen(lines.log), (120, 12)) as shown:
        await shown.shows("3 requests")
        await shown.press("G")
        assert "slow" in shown.selected
        for number in range(10, 15):
            lines.call(number, float(number), number + 0.1, name="slow")
        await shown.shows("8 requests")
        await shown.until(lambda: order(shown.lines) == ["slow", "often"])
        assert "slow" in shown.selected


@pytest.mark.parametrize(
    ("keys", "text"),
    [((), "is:request dir:client"), (("j",), 'is:request tool="often"'), (("G",), 'is:request tool="slow"')],
)
async def test_enter_returns_the_filter_of_a_group(keys: tuple[str, ...], text: str) -> None:
    async with alone(StatsScreen(called().log)) as shown:
        await shown.shows("3 requests")
        await shown.press(*keys, "enter")
        await shown.until(lambda: shown.app.results == [text])
        assert parse(text).text == text


@pytest.mark.parametrize("key", ["escape", "q"])
async def test_it_can_be_left_without_a_filter(key: str) -> None:
    async with alone(StatsScreen(called().log)) as shown:
        await shown.press(key)
        await shown.until(lambda: shown.app.results == [None])


async def test_a_session_without_requests_has_an_empty_table() -> None:
    async with alone(StatsScreen(Lines().log)) as shown:
        await shown.shows("no requests yet")
        await shown.press("s", "S", "j", "enter")
        await shown.until(lambda: shown.app.results == [None])


async def test_a_replaced_file_restarts_the_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_screen, "TICK", 0.01)
    lines = called()
    async with alone(StatsScreen(lines.log)) as shown:
        await shown.shows("3 requests")
        await shown.press("G")
        lines.data.clear()
        lines.log.begin_again(HEADER)
        lines.log.begin_part()
        await shown.shows("no requests yet")
        lines.call(1, 0.1, 0.2, name="after")
        await shown.shows("tools/call after")


async def test_names_of_peers_are_sanitized() -> None:
    lines = Lines()
    lines.call(1, 0.1, name="a\\u001b[31m")
    async with alone(StatsScreen(lines.log)) as shown:
        await shown.shows("a\\x1b[31m")


@pytest.mark.parametrize("size", [(80, 24), (250, 80), (40, 10)])
async def test_every_recording_fits_every_size(size: tuple[int, int]) -> None:
    for path in list(every_recording())[:4]:
        async with alone(StatsScreen(recorded(path.read_bytes()).log), size) as shown:
            await shown.shows("all requests")
            assert {len(line) for line in shown.lines} == {size[0]}
