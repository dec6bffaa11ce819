"""Tests of columns sharing the available width."""

from __future__ import annotations

import pytest

from mcpspy.ui.tui.widgets.columns import EXCHANGES, MESSAGES, SESSIONS, Column, Piece, fitted, gap_at, share


def names(columns: tuple[Column, ...], width: int) -> list[str]:
    return [column.name for column, _ in share(columns, width)]


@pytest.mark.parametrize("columns", [EXCHANGES, MESSAGES, SESSIONS])
def test_columns_never_exceed_the_width(columns: tuple[Column, ...]) -> None:
    for width in [*range(130), 250, 1000]:
        placed = share(columns, width)
        taken = sum(wide for _, wide in placed) + gap_at(width) * (len(placed) - 1)

        assert taken <= width
        assert taken == width or len(placed) == 1 or all(wide >= column.most for column, wide in placed)


def test_a_full_list_fits_80_columns() -> None:
    one_client = tuple(column for column in MESSAGES if column.name != "stream")
    assert names(one_client, 77) == [
        "time",
        "finding",
        "arrow",
        "method",
        "subject",
        "id",
        "latency",
        "size",
        "status",
    ]


def test_the_least_important_columns_are_removed_first() -> None:
    assert names(MESSAGES, 62) == ["time", "finding", "arrow", "method", "subject", "id", "latency", "status"]
    assert names(MESSAGES, 52) == ["finding", "arrow", "method", "subject", "id", "latency", "status"]
    assert names(MESSAGES, 20) == ["finding", "arrow", "method"]
    assert names(SESSIONS, 66) == ["state", "name", "started", "messages", "errors", "pending"]
    assert names(SESSIONS, 50) == ["state", "name", "messages", "errors", "pending"]


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
