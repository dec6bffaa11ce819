"""Fuzz targets of the filter language where something else than Python evaluates it: the exported page, and SQL.

What Python's own filter matches is expected. The page gets ASCII without regular expressions, because JavaScript folds
case and reads expressions otherwise (docs/export.md).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from mcpspy.analysis.lake.filter import LakeFilter
from mcpspy.analysis.lake.schema import TABLES, TEXTS, StoredRecording
from mcpspy.analysis.lake.tables import SessionTables
from mcpspy.core.query.item import ExchangeItem
from mcpspy.core.query.parser import parse
from mcpspy.core.session.session import Session
from mcpspy.io.recording.reader import Recording
from tests.analysis.export.html.filters import SESSION, Pages, in_python
from tests.io.lake.lakes import items

STORED = StoredRecording(key="k", digest="d", uri="file:///r", size=1, state="ended", is_redacted=True)
ROWS = Path(__file__).parent / "rows.jsonl"
"""A session with names, ids and texts whose case, spelling or encoding differs between SQL and Python."""

TYPES = {"text": "VARCHAR", "double": "DOUBLE", "bool": "BOOLEAN", "binary": "BLOB", TEXTS: "VARCHAR[]"}


@cache
def _page() -> Pages:
    return Pages([SESSION])


def page_filter(data: bytes) -> None:
    """The exported page finds the rows that Python finds, or both refuse the filter."""
    text = data.decode("ascii", "ignore")
    if "/" in text or not text.isprintable():
        return
    ((found,),) = _page().rows([text])
    expected = in_python(SESSION, text)
    assert found == expected or (isinstance(found, str) and isinstance(expected, str)), (
        text,
        expected,
        found,
    )


@cache
def database() -> tuple[duckdb.DuckDBPyConnection, dict[str, dict[int, ExchangeItem]]]:
    """Return the tables of a session in memory, and the same rows as items of Python's filter."""
    connection = duckdb.connect()
    recording = Recording(ROWS)
    session = Session(recording.header).add_all(recording)
    session.end()
    tables = SessionTables(session, (), STORED)
    for table in ("exchanges", "messages"):
        columns = ", ".join(f'"{each.name}" {TYPES.get(each.type, "BIGINT")}' for each in TABLES[table])
        connection.execute(f"CREATE TABLE {table} ({columns})")
        places = ", ".join("?" * len(TABLES[table]))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", [*tables.rows(table)])  # noqa: S608
    found: dict[str, dict[int, ExchangeItem]] = {"exchanges": {}, "messages": {}}
    for table, number, item in items(session):
        found[table][number] = item
    return connection, found


def same_rows(each: LakeFilter, text: str) -> None:
    """Assert that SQL, and Python where SQL cannot decide, select the rows that match the filter."""
    connection, of_tables = database()

    def rows(condition: str) -> list[dict[str, Any]]:
        query = f"SELECT {each.key} AS key, {each.columns} FROM {each.table} WHERE {condition}"  # noqa: S608
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    found = {row["key"] for row in rows(each.sure)}
    for row in rows(each.undecided) if each.doubtful else ():
        key = row.pop("key")
        if each.matches(row):
            found.add(key)
    query = parse(text)
    expected = {key for key, item in of_tables[each.table].items() if query.matches(item)}
    assert found == expected, (text, each.table, found, expected)
