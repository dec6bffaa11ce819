"""Tests of the timeline screen: rows, bars, the window, and the target of enter."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.panels import panel_screen
from mcpspy.ui.tui.panels.time_axis import TimeWindow
from mcpspy.ui.tui.panels.timeline import TimelineScreen
from tests.ui.tui.panels.panels import HEADER, Lines, alone, every_recording, recorded


def overlapping() -> Lines:
    lines = Lines()
    lines.call(1, 0.0)
    lines.call(2, 2.0)
    lines.answer(2, 4.0, error=True)
    lines.call(3, 5.0)
    lines.answer(1, 10.0)
    return lines


async def test_each_exchange_is_a_bar_below_the_axis() -> None:
    async with alone(TimelineScreen(overlapping().log), (80, 12)) as shown:
        await shown.shows("peak concurrency 2 (at 2.0 s) · 3 requests", "(whole session)")
        axis, first, second, third = shown.lines[1:5]
        left = axis.index("╷0 s")
        width = len(first.rstrip()) - left
        assert first[left:].rstrip() == "█" * width
        assert "10.00 s" in first
        assert (" ! " in second, " ! " in first) == (True, False)
        await shown.press("k")
        await shown.shows("-32602 invalid params: no · started at 2")
        await shown.press("k")
        await shown.until(lambda: "invalid params" not in shown.text)
        bar = second[left:].rstrip()
        assert len(bar) - len(bar.lstrip()) == int(width * 0.2)
        assert third.rstrip().endswith("▸")


@pytest.mark.parametrize(("keys", "row"), [(("enter",), 0), (("j", "enter"), 1), (("G", "enter"), 3)])
async def test_enter_goes_to_the_request(keys: tuple[str, ...], row: int) -> None:
    lines = overlapping()
    lines.end()
    async with alone(TimelineScreen(lines.log)) as shown:
        await shown.shows("3 requests")
        await shown.press(*keys)
        await shown.until(lambda: shown.app.results == [row])


@pytest.mark.parametrize("key", ["escape", "q"])
async def test_it_can_be_left(key: str) -> None:
    async with alone(TimelineScreen(overlapping().log)) as shown:
        await shown.press(key)
        await shown.until(lambda: shown.app.results == [None])


async def test_enter_in_an_empty_timeline_returns_no_row() -> None:
    async with alone(TimelineScreen(Lines().log)) as shown:
        await shown.shows("no requests yet")
        await shown.press("z", "Z", "b", "plus", "left", "enter")
        await shown.until(lambda: shown.app.results == [None])


@pytest.mark.parametrize(
    ("keys", "window"),
    [
        (("plus",), TimeWindow(0.0, 5.0)),
        (("j", "plus"), TimeWindow(1.0, 5.0)),
        (("j", "plus", "minus"), TimeWindow(0.0, 10.0)),
        (("plus", "right"), TimeWindow(1.25, 5.0)),
        (("plus", "l", "l", "h"), TimeWindow(1.25, 5.0)),
        (("plus", "right", "0"), TimeWindow(0.0, 10.0)),
        (("j", "z"), TimeWindow(1.75, 2.5)),
        (("G", "b", "z"), TimeWindow(1.75, 2.5)),
    ],
)
async def test_keys_move_the_window(keys: tuple[str, ...], window: TimeWindow) -> None:
    lines = overlapping()
    lines.end()
    screen = TimelineScreen(lines.log)
    async with alone(screen) as shown:
        await shown.shows("(whole session)")
        await shown.press(*keys)
        assert screen.window == pytest.approx(window)


async def test_a_moved_window_stays_until_the_cursor_moves() -> None:
    lines = overlapping()
    lines.end()
    screen = TimelineScreen(lines.log)
    async with alone(screen) as shown:
        await shown.shows("(whole session)")
        await shown.press("plus", "right", "right")
        moved = screen.window
        screen.look()
        screen.look()
        assert screen.window == moved
        await shown.press("G", "g")
        await shown.until(lambda: screen.window.left == 0.0)


async def test_a_long_session_begins_with_a_page_of_requests() -> None:
    lines = Lines()
    for number in range(1000):
        lines.call(number, float(number), number + 0.5)
    lines.end()
    screen = TimelineScreen(lines.log, 1001)
    async with alone(screen, (100, 24)) as shown:
        await shown.shows("of 999.5 s")
        assert shown.selected.startswith("▸ ")
        assert screen.listing.cursor == 500
        assert screen.window.left < 500 < screen.window.right
        assert 15 < screen.window.span < 40
        await shown.press("G")
        await shown.until(lambda: screen.window.left < 999 <= screen.window.right)


async def test_a_live_session_grows_and_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_screen, "TICK", 0.01)
    lines = Lines()
    lines.call(1, 0.1)
    screen = TimelineScreen(lines.log)
    async with alone(screen) as shown:
        await shown.shows("1 requests", "▸")
        lines.answer(1, 0.2)
        for number in range(2, 50):
            lines.call(number, number / 10)
        await shown.until(lambda: screen.listing.cursor == 48)
        await shown.press("g")
        lines.call(50, 6.0)
        await shown.shows("50 requests")
        assert screen.listing.cursor == 0


async def test_a_replaced_file_restarts_the_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_screen, "TICK", 0.01)
    lines = overlapping()
    async with alone(TimelineScreen(lines.log)) as shown:
        await shown.shows("3 requests")
        lines.data.clear()
        lines.log.begin_again(HEADER)
        lines.log.begin_part()
        await shown.shows("no requests yet")
        lines.call(1, 0.1, 0.2, name="after")
        await shown.shows("tools/call after")


async def test_a_key_before_the_timeline_knows_of_the_replaced_file_raises_no_exception(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(panel_screen, "TICK", 60.0)
    lines = overlapping()
    async with alone(TimelineScreen(lines.log)) as shown:
        await shown.shows("3 requests")
        lines.data.clear()
        lines.log.begin_again(HEADER)
        for key in ("G", "z", "Z", "+", "0"):
            await shown.press(key)
        await shown.shows("3 requests")


async def test_names_of_peers_are_sanitized() -> None:
    lines = Lines()
    lines.call(1, 0.1, name="a\\u001b[31m\\u202e")
    async with alone(TimelineScreen(lines.log)) as shown:
        await shown.shows("tools/call a\\x1b[31m\\u202e")


async def test_many_rows_are_processed_without_blocking() -> None:
    lines = Lines()
    for number in range(20_000):
        lines.call(number, number / 1000, number / 1000 + 0.0005)
    lines.end()
    screen = TimelineScreen(lines.log)
    async with alone(screen) as shown:
        await shown.press("j")
        await shown.shows("20,000 requests")
        assert screen.listing.cursor == 1


@pytest.mark.parametrize("size", [(80, 24), (250, 80), (40, 10)])
async def test_every_recording_fits_every_size(size: tuple[int, int]) -> None:
    for path in list(every_recording())[:4]:
        screen = TimelineScreen(recorded(path.read_bytes()).log)
        async with alone(screen, size) as shown:
            await shown.shows("requests"[: size[0] // 10])
            assert {len(line) for line in shown.lines} == {size[0]}
