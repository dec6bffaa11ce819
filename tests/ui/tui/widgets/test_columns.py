"""Tests of columns sharing the available width."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.widgets.columns import (
    EXCHANGES,
    MESSAGES,
    SESSIONS,
    Column,
    Piece,
    fitted,
    gap_at,
    joined,
    share,
)


def names(columns: tuple[Column, ...], width: int) -> list[str]:
    return [column.name for column, _ in share(columns, width)]


@pytest.mark.parametrize("columns", [EXCHANGES, MESSAGES, SESSIONS])
def test_columns_never_exceed_the_width(columns: tuple[Column, ...]) -> None:
    for width in [*range(130), 250, 1000]:
        placed = share(columns, width)
        taken = sum(wide for _, wide in placed) + gap_at(width) * (len(placed) - 1)

        assert taken <= width
        assert taken == width or len(placed) == 1 or all(wide >= column.most for column, wide in placed)


def test_client_id_and_size_are_hidden_before_the_time() -> None:
    one_client = tuple(column for column in EXCHANGES if column.name not in ("stream", "bar"))
    essential = ["time", "finding", "arrow", "method", "subject", "latency", "status"]

    assert names(EXCHANGES, 140) == [column.name for column in EXCHANGES]
    assert names(one_client, 77) == essential
    assert names(MESSAGES, 77) == essential
    assert names(MESSAGES, 60) == essential
    assert names(MESSAGES, 48) == ["finding", "arrow", "method", "subject", "latency", "status"]
    assert names(MESSAGES, 20) == ["finding", "arrow", "method"]


def test_an_error_gets_its_space_before_an_id_and_a_size_are_shown() -> None:
    quiet = tuple(column._replace(enough=0) for column in MESSAGES)

    assert "id" in names(quiet, 77)
    assert next(wide for column, wide in share(MESSAGES, 77) if column.name == "status") >= 25


def test_the_status_takes_the_space_that_names_do_not_need() -> None:
    columns = [
        column.needing(10) if column.most > 20 and column.name != "status" else column for column in MESSAGES
    ]
    placed = {column.name: wide for column, wide in share(columns, 200)}

    assert (placed["method"], placed["subject"]) == (10, 10)
    assert placed["status"] > 90


def test_the_errors_of_a_session_stay_longest() -> None:
    of_hosts = tuple(column for column in SESSIONS if column.name != "origin")
    assert names(of_hosts, 76) == [
        "state",
        "name",
        "started",
        "messages",
        "errors",
        "unanswered",
        "issues",
        "verdict",
    ]
    assert names(of_hosts, 45) == ["state", "name", "errors", "issues", "verdict"]


def test_the_server_of_a_session_is_shown_where_there_is_space_for_it() -> None:
    of_hosts = tuple(column for column in SESSIONS if column.name != "origin")
    ended = tuple(column for column in of_hosts if column.name != "pending")

    assert "server" in names(ended, 116), "120 columns without mark and scrollbar"
    assert "server" in names(of_hosts, 126), "130 columns, with a live session"


def line(width: int, *cells: str) -> str:
    columns = [Column("a", "", 4, 4, 0), Column("b", "", 4, 4, 0), Column("c", "", 4, 4, 0, right=True)]
    row: list[Piece] = [(cell, None) for cell in cells]
    return "".join(text for text, _ in joined(row, share(columns, width), width))


def test_a_long_cell_uses_the_columns_of_empty_ones() -> None:
    assert line(14, "long", "b", "c") == "long b    c   "
    assert line(14, "longer", "", "c") == "longer    c   "
    assert line(14, "longer", "b", "c") == "lon… b    c   "
    assert line(14, "longest cell", "", "") == "longest cell  "
    assert line(14, "longest cell of all", "", "") == "longest cell …"


def test_a_row_with_fewer_cells_ends_with_a_text() -> None:
    assert line(14, "a", "a text of any length") == "a    a text o…"
    assert line(14, "a text of any length") == "a text of any…"


def test_the_state_of_a_session_is_always_shown() -> None:
    assert names(SESSIONS, 10) == ["state"]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (12, "one 漢字 two"),
        (11, "one 漢字 t…"),
        (8, "one 漢…"),
        (9, "one 漢字…"),
        (4, "one…"),
        (1, "…"),
        (0, ""),
    ],
)
def test_a_line_of_pieces_is_truncated_with_an_ellipsis(width: int, shown: str) -> None:
    pieces: list[Piece] = [("one ", "title"), ("", None), ("漢字 ", None), ("two", "quiet")]
    assert "".join(text for text, _ in fitted(pieces, width)) == shown
    assert fitted(pieces, 12) == [piece for piece in pieces if piece[0]]
