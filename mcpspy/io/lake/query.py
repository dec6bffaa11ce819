"""SQL over a lake by DuckDB. A connection reads no other file and loads no extension.

Without a lake, the sessions of a folder are converted into a lake in that folder, which follows the folder.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from glob import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpspy.analysis.lake.filter import LakeFilter, check_utf8, quoted
from mcpspy.analysis.lake.schema import ADDED, BYTES, PARTITIONS, TABLES, TEXTS, TIME, VERSION, columns_of
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.lake.files import Lake
from mcpspy.io.lake.storage import ObjectStore, is_url
from mcpspy.io.settings import sessions_folder

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from mcpspy.io.lake.add import AddResult

_TYPES = {"text": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN", "date": "DATE"}
_TYPES |= {TIME: "TIMESTAMPTZ", TEXTS: "VARCHAR[]", BYTES: "BLOB"}

_READS = ("SELECT", "EXPLAIN")
"""Types of statements that only read; DESCRIBE, SHOW and SUMMARIZE are SELECT statements."""

ROWS = 10_000
"""Rows per read of results."""


Adding = tuple["Executor | None", Callable[[int, int, int], None]]
"""The executor and the progress for `add`."""


def lake_of(path: str | None, adding: Adding | None = None) -> tuple[Lake, AddResult | None]:
    """Return the lake in a folder; of a folder with sessions, a lake of them, and what was added to it.

    Raise UsageError or CannotStart.
    """
    if path is not None and is_url(path):
        return Lake.opened(path), None
    lake = Lake(folder := Path(sessions_folder(path)))
    return (Lake.opened(folder), None) if lake.exists() else _cached(folder, adding)


def _cached(folder: Path, adding: Adding | None) -> tuple[Lake, AddResult]:
    """Return a lake with the ended sessions of a folder, and no others."""
    # A query of a lake needs none of them: 30 ms.
    from mcpspy.io.lake.add import add
    from mcpspy.io.recording.catalog import sessions
    from mcpspy.io.recording.reader import LAKE_CACHE
    from mcpspy.io.recording.redaction import RedactionOptions

    found = sessions(str(folder), entries=False)
    if not found:
        raise UsageError(
            f"{sanitize(str(folder))}: neither a lake nor a folder with sessions",
            "create a lake with mcpspy lake add",
        )
    lake = Lake.created(folder / LAKE_CACHE)
    if lake.version < VERSION:
        shutil.rmtree(folder / LAKE_CACHE, ignore_errors=True)
        lake = Lake.created(folder / LAKE_CACHE)
    # The copy stays in the same folder with the same permissions: it keeps what the recording keeps.
    options = RedactionOptions()
    options.off = True
    result = add(lake, found, options, *(adding or ()), copies=False)
    with lake.exclusive():
        for table in TABLES:
            names = (file for file in lake.files(table))
            lake.storage.delete(
                file.name for file in names if file.base.removesuffix(".parquet") not in result.keys
            )
    return lake, result


class Results(NamedTuple):
    names: list[str]
    rows: Iterator[tuple[Any, ...]]


class LakeConnection:
    """The tables of a lake as views. Raises CannotStart.

    Values are Python's: pyarrow, which takes 130 ms to import, is needed only for Parquet and for filters that SQL
    cannot decide.
    """

    def __init__(self, lake: Lake, filters: Iterable[LakeFilter] = ()) -> None:
        """The view of a filtered table has only the rows that match."""
        import duckdb

        self._duckdb, self._lake, self._filters = duckdb, lake, [*filters]
        self._views: set[str] = set()
        self._connection = duckdb.connect(
            ":memory:", config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        )
        storage = lake.storage
        if isinstance(storage, ObjectStore):
            self._root = storage.location
            self._connection.register_filesystem(storage.filesystem())
        else:
            self._root = Path(storage.location).absolute().as_posix()
        # DuckDB checks the pattern of a view, then each file that it finds.
        folders = f"[{quoted(self._root + '/')}, {quoted(escape(self._root) + '/')}]"
        for setting in (
            f"allowed_directories = {folders}",
            "enable_external_access = false",
            "TimeZone = 'UTC'",
            "parquet_metadata_cache = true",
            "lock_configuration = true",
        ):
            self._execute(f"SET {setting}")

    def _create_views(self, sql: str) -> None:
        """Create the views that a statement may name, or all. For each one DuckDB opens a file."""
        words = {*re.findall(r"\w+", sql.lower())}
        for table in TABLES.keys() & words or TABLES.keys():
            if table not in self._views:
                self._create_view(table)
                self._views.add(table)

    def _create_view(self, table: str) -> None:
        columns = (*PARTITIONS, *TABLES[table])
        names = ", ".join(f'"{column.name}"' for column in columns)
        if files := self._lake.files(table):
            pattern = quoted(f"{escape(self._root)}/{table}/*/*/*.parquet")
            if isinstance(self._lake.storage, ObjectStore):
                pattern = f"[{', '.join(quoted(f'{self._root}/{file.name}') for file in files)}]"
            source = (
                f"FROM read_parquet({pattern}, hive_partitioning = true,"
                " hive_types = {'day': DATE, 'server': VARCHAR})"
            )
            stored = columns_of(table, self._lake.version)
            if missing := [each for each in TABLES[table] if each not in stored]:
                values = ", ".join(f"{ADDED[each.name][1]} AS {each.name}" for each in missing)
                source = f"FROM (SELECT *, {values} {source})"
        else:
            nulls = (f'NULL::{_TYPES[each.type]} AS "{each.name}"' for each in columns)
            source = f"FROM (SELECT {', '.join(nulls)} WHERE false)"
        self._execute(f"CREATE VIEW {table} AS SELECT {names} {source}")
        for lake_filter in (each for each in self._filters if each.table == table):
            selected = self._selected(lake_filter)
            self._execute(f"CREATE OR REPLACE VIEW {table} AS SELECT {names} {source} WHERE {selected}")

    def _selected(self, lake_filter: LakeFilter) -> str:
        """Return the condition of the matching rows; the filter itself decides on those that SQL cannot decide."""
        has_rows = f"SELECT 1 FROM {lake_filter.table} WHERE {lake_filter.doubtful} LIMIT 1"
        if not lake_filter.doubtful or not self._execute(has_rows).fetchall():
            return lake_filter.sure
        table, key = lake_filter.table, f"session, {lake_filter.key}"
        found = self._execute(
            f"SELECT {key}, {lake_filter.columns} FROM {table} WHERE {lake_filter.undecided}"
        )
        session, number, *names = (column[0] for column in found.description)
        kept = []
        for rows in self._batches(found, 1_000):
            matching = [row for row in rows if lake_filter.matches(dict(zip(names, row[2:], strict=True)))]
            if matching:
                import pyarrow as pa

                sessions, numbers, *_ = zip(*matching, strict=True)
                kept.append(pa.table({session: sessions, number: numbers}))
        if not kept:
            return lake_filter.sure
        self._connection.register(f"selected_{table}", pa.concat_tables(kept))
        return f"({lake_filter.sure}) OR ({key}) IN (FROM selected_{table})"

    def run(self, sql: str, parameters: object = None) -> Any:
        """Return the results of a statement of mcpspy's own."""
        self._create_views(sql)
        return self._execute(sql, parameters)

    def _execute(self, sql: str, parameters: object = None) -> Any:
        with self._errors(_unreadable):
            return self._connection.execute(sql, parameters)

    def query(self, sql: str) -> Results:
        """Return the results of one statement that only reads. Raise UsageError with DuckDB's reason."""
        self._check(sql)
        try:
            found = self._connection.execute(sql)
        except self._duckdb.Error as error:
            self._bind(sql)
            raise _unreadable(error) from None
        names = _distinct([column[0] for column in found.description or ()])
        return Results(names, chain.from_iterable(self._batches(found, ROWS)))

    def arrow(self, sql: str) -> tuple[Any, Iterator[Any]]:
        """Return the results as a schema and record batches of pyarrow."""
        self._check(sql)
        found = self._bind(sql)
        with self._errors(_unreadable):
            reader = found.to_arrow_reader(ROWS)
        schema = reader.schema
        for place, name in enumerate(_distinct(schema.names)):
            schema = schema.set(place, schema.field(place).with_name(name))
        return schema, (batch.rename_columns(schema.names) for batch in self._read(reader))

    def _check(self, sql: str) -> None:
        """Raise UsageError for anything but one statement that only reads; create its views."""
        check_utf8(sql)
        with self._errors(_refused):
            statements = self._connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type.name not in _READS:
            raise UsageError(
                "query: not one SELECT statement", "mcpspy query reads the lake and changes nothing"
            )
        self._create_views(sql)

    def _bind(self, sql: str) -> Any:
        """Return a relation; raise UsageError for an error that needs no row to be found."""
        with self._errors(_refused):
            return self._connection.sql(sql)

    def _batches(self, found: Any, count: int) -> Iterator[list[tuple[Any, ...]]]:
        with self._errors(_unreadable, OSError):
            while rows := found.fetchmany(count):
                yield rows

    def _read(self, reader: Any) -> Iterator[Any]:
        with self._errors(_unreadable, OSError):
            yield from reader

    @contextmanager
    def _errors(self, become: Callable[[Exception], McpspyError], *more: type[Exception]) -> Iterator[None]:
        """Raise the errors of DuckDB, and others, as errors for the user."""
        errors: tuple[type[Exception], ...] = (self._duckdb.Error, *more)
        try:
            yield
        except errors as error:
            raise become(error) from None


def _distinct(names: list[str]) -> list[str]:
    """Return the names of columns: two may have the same."""
    return [
        f"{name}_{place}" if name in names[: place - 1] else name for place, name in enumerate(names, start=1)
    ]


def _refused(error: Exception) -> UsageError:
    return UsageError(f"query: {sanitize(_reason(str(error)))}", "see mcpspy query --schema")


def _unreadable(error: Exception) -> CannotStart:
    return CannotStart(sanitize(_reason(str(error))), "mcpspy lake verify checks the files")


def _reason(text: str) -> str:
    """Return an error of DuckDB on one line, without the marked copy of the query."""
    return " ".join(text.partition("\n\nLINE")[0].split())
