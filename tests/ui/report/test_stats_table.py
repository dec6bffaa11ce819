"""The table fits the width and lists the largest first."""

from __future__ import annotations

import pytest

from mcpspy.analysis import rows
from mcpspy.analysis.stats.group import GroupKind
from mcpspy.ui.report.stats_table import SORTS, TableRow, TableStyle, lines, methods
from mcpspy.ui.text.numbers import BarStyle
from mcpspy.ui.text.width import cells
from tests.analysis.stats.talking import Talk


def talk() -> Talk:
    talk = Talk().hello().call(1, 1.0, 1.5, "slow").call(2, 2.0, 2.1, "often").call(3, 3.0, 3.1, "often")
    return talk.ask(4, 4.0, "ping").answer(4, 4.9, code=-1)


def found(sort: str, of: Talk | None = None, *, is_over: bool = True) -> list[list[TableRow]]:
    stats = (of or talk()).stats(is_over=is_over)
    return methods([group for group in stats.groups.of("client", GroupKind.REQUEST) if group.count], sort)


def labels(sort: str) -> list[list[str]]:
    return [[row.label for row in rows_of_method] for rows_of_method in found(sort)]


def test_tools_are_below_their_method_and_the_slowest_is_first() -> None:
    assert labels("time") == [["ping"], ["tools/call", "slow", "often"], ["initialize"]]
    assert labels("count") == [["tools/call", "often", "slow"], ["initialize"], ["ping"]]
    assert labels("errors")[0] == ["ping"]


@pytest.mark.parametrize("sort", SORTS)
def test_every_order_has_all_rows(sort: str) -> None:
    assert {label for below in labels(sort) for label in below} == {
        "initialize",
        "ping",
        "tools/call",
        "slow",
        "often",
    }


def drawn(width: int, of: Talk | None = None, *, is_over: bool = True) -> list[tuple[str, str | None]]:
    flat = [row for rows_of_method in found("time", of, is_over=is_over) for row in rows_of_method]
    return list(lines("→ requests", flat, TableStyle(width, BarStyle(), "time", 10)))


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_line_is_never_wider_than_the_terminal_and_bars_grow_with_it(width: int) -> None:
    long = talk().call(9, 5.0, 9.0, "a-tool-with-a-very-long-name-that-no-terminal-has-any-room-for" * 2)
    long.ask(10, 6.0, "tools/call", {"name": "slow"}).cancel(10, 7.0).ask(11, 8.0, "ping")
    texts = [text for text, _ in drawn(width, long)]

    assert max(map(cells, texts)) <= width
    assert max(text.count("█") for text in texts) >= {80: 6, 120: 6, 200: 30}[width]
    assert "canc" in texts[0]
    assert "unans" in texts[0]
    assert "open" not in texts[0]


def test_numbers_are_aligned_with_their_heads() -> None:
    head, *_ = texts = [text for text, _ in drawn(100)]
    ping = next(text for text in texts if text.startswith("ping"))

    assert head.split() == ["→", "requests", *"count err unans p50 p95 p99 max sent back time".split()]
    assert ping.split()[:8] == ["ping", "1", "1", "·", "900ms", "900ms", "900ms", "900ms"]
    assert ping.index(" 900ms") + 6 == head.index(" p50") + 4


def test_open_requests_are_highlighted() -> None:
    waiting = talk().ask(9, 6.0, "tools/call", {"name": "hangs"})
    tones = {text.split()[0]: tone for text, tone in drawn(100, waiting, is_over=False)}

    assert (tones["hangs"], tones["tools/call"], tones["slow"]) == (rows.OPEN, rows.OPEN, None)


def test_a_text_between_rows_has_its_own_line() -> None:
    row = found("time")[0][0]

    assert [text for text, _ in lines("", ["one", row, "two"], TableStyle(80, BarStyle(), "time", 10))][
        1::2
    ] == [
        "one",
        "two",
    ]
