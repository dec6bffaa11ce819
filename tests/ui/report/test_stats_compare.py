"""Statistics of several sessions: each method and tool lists all sessions."""

from __future__ import annotations

from mcpspy.ui.report.stats_table import MANY, CountedSession, TableStyle, comparison
from mcpspy.ui.text.numbers import BarStyle
from mcpspy.ui.text.width import cells
from tests.analysis.stats.talking import Talk


def printed(*talks: Talk, top: int = 10, width: int = 80) -> list[str]:
    sessions = [
        CountedSession(f"s{number}", talk.stats(), False, ("x",)) for number, talk in enumerate(talks, 1)
    ]
    return [line for line, _ in comparison(sessions, TableStyle(width, BarStyle(), "time", top))]


def test_every_group_has_one_row_per_session() -> None:
    before = Talk().hello().call(1, 1.0, 1.1).call(2, 2.0, 2.1, "old")
    after = Talk().hello().call(1, 1.0, 3.0).note(4.0, "exit", code=0, signal=None)

    head, one, two, *rest = printed(before, after)

    assert head.split() == "time messages requests err init p50 p95 max server state".split()
    assert one.split()[:5] == ["s1", "2.10s", "7", "3", "·"]
    assert two.split()[-2:] == ["exit", "0"]
    rows = [line.split()[:2] for line in rest[2:]]
    assert rows == [
        ["tools/call"],
        ["s1", "2"],
        ["s2", "1"],
        ["echo"],
        ["s1", "1"],
        ["s2", "1"],
        ["old"],
        ["s1", "1"],
        ["initialize"],
        ["s1", "1"],
        ["s2", "1"],
    ]
    bars = [line.count("█") for line in rest[3:5]]
    assert bars[1] > bars[0] * 5


def test_hidden_rows_are_counted_and_lines_fit() -> None:
    talks = [Talk().hello(), Talk().hello()]
    for number in range(1, 6):
        for talk in talks:
            talk.call(number, 1.0, 2.0, f"tool-{number}")

    lines = printed(*talks, top=2)

    assert lines[-1] == "  and 3 more: --top 5"
    assert max(map(cells, lines)) <= 80


def test_of_very_many_sessions_the_newest_are_rows_and_all_are_counted() -> None:
    talks = [Talk().hello().call(1, 1.0, 1.5) for _ in range(MANY)]
    lines = printed(Talk().hello().call(1, 1.0, 3.0).call(2, 2.0, 9.0, "rare"), *talks)

    assert lines[1].startswith(f"all {MANY + 1}, newest {MANY}: ")
    assert lines[1].split()[4:8] == ["1m24s", "257", "103", "·"]
    assert [line.split()[0] for line in lines[2:4]] == ["s2", "s3"]
    rows = [line.split()[:3] for line in lines[2 + MANY :]]
    assert ["51", "sessions", "51"] in rows  # The calls of echo.
    assert ["1", "sessions", "1"] in rows  # That of rare, which only the oldest session has.
    assert "echo" in "\n".join(lines)


def test_names_of_tools_are_sanitized() -> None:
    assert "".join(printed(Talk().call(1, 1.0, 2.0, "\x1b[31m"), Talk().hello())).isprintable()
