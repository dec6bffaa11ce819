"""CSV, one exchange per line."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.analysis.export import RecordedSession
from mcpspy.analysis.export.exchange_lines import COLUMNS, FORMULA, export_csv
from mcpspy.core.sanitize import sanitize
from tests.analysis.export.sessions import EVERY, call, client, failure, recorded, result, session_of


def table(*sessions: RecordedSession) -> list[dict[str, str]]:
    text = "".join(export_csv(sessions))
    rows = list(csv.reader(text.split("\r\n")[:-1], strict=True))
    assert text.count("\n") == text.count("\r\n") == len(rows), "a line end ends a line, and is CR LF"
    assert rows[0] == list(COLUMNS)
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows[1:]]


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_a_table_is_read_back_as_it_was_written(path: Path) -> None:
    session = recorded(path)
    rows = table(session)

    assert [int(row["exchange"]) for row in rows] == [each.number for each in session.exchanges()]
    for row, exchange in zip(rows, session.exchanges(), strict=True):
        answer, latency = exchange.answer, exchange.latency
        assert row["method"] == exchange.request.method
        assert row["status"] == exchange.state
        assert row["latency_ms"] == ("" if latency is None else str(round(latency * 1000, 3)))
        assert row["response_bytes"] == ("" if answer is None else str(len(answer.data)))


def test_several_sessions_are_one_table() -> None:
    rows = table(session_of(call(0.1), result(0.2)), session_of(call(0.1, 2), failure(0.3, 2, b"a,\\nb")))

    assert [row["id"] for row in rows] == ["1", "2"]
    assert rows[1]["code"] == "-32602"
    assert rows[1]["outcome"] == "error -32602 invalid params: a,\\nb"


@pytest.mark.parametrize("name", ["=1+1", "+1", "-x", "@SUM(A1)", "\uff1dcmd", "\t=1", '","=1'])
def test_no_cell_is_a_formula(name: str) -> None:
    (row,) = table(session_of(call(0.1, name=name.encode().replace(b"\t", b"\\t").replace(b'"', b'\\"'))))

    assert not row["about"].startswith(tuple(FORMULA))
    assert row["about"].removeprefix("'") == sanitize(name)


def test_a_number_stays_a_number() -> None:
    (row,) = table(session_of(client(0.1, b'{"jsonrpc":"2.0","id":-7,"method":"m"}')))

    assert row["id"] == "-7"


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_any_name_is_sanitized_and_stays_on_one_line(name: str) -> None:
    escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x20 or c in '"\\' else c for c in name)
    (row,) = table(session_of(call(0.1, name=escaped.encode())))

    assert row["about"] in (sanitize(name), "'" + sanitize(name))
