"""SQL over a lake by DuckDB. A connection reads no other file and loads no extension.

Without a lake, the sessions of a folder are converted into a lake in that folder, which follows the folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.analysis.lake.schema import BYTES, PARTITIONS, TABLES, TEXTS, TIME
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.lake.add import AddResult, add
from mcpspy.io.lake.files import Lake
from mcpspy.io.lake.storage import ObjectStore, is_url
from mcpspy.io.recording.catalog import sessions
from mcpspy.io.recording.reader import LAKE_CACHE
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.io.settings import sessions_folder

_TYPES = {"text": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN", "date": "DATE"}
_TYPES |= {TIME: "TIMESTAMPTZ", TEXTS: "VARCHAR[]", BYTES: "BLOB"}

_READS = ("SELECT", "EXPLAIN")
"""Types of statements that only read; DESCRIBE, SHOW and SUMMARIZE are SELECT statements."""


def lake_of(path: str | None) -> tuple[Lake, AddResult | None]:
    """Return the lake in a folder; of a folder with sessions, a lake of them, and what was added to it.

    Raise UsageError or CannotStart.
    """
    if path is not None and is_url(path):
        return Lake.opened(path), None
    lake = Lake(folder := Path(sessions_folder(path)))
    return (Lake.opened(folder), None) if lake.exists() else _cached(folder)


def _cached(folder: Path) -> tuple[Lake, AddResult]:
    """Return a lake with the ended sessions of a folder, and no others."""
    found = sessions(str(folder), entries=False)
    if not found:
        raise UsageError(
            f"{sanitize(str(folder))}: neither a lake nor a folder with sessions",
            "create a lake with mcpspy lake add",
        )
    lake = Lake.created(folder / LAKE_CACHE)
    # The copy stays in the same folder with the same permissions: it keeps what the recording keeps.
    options = RedactionOptions()
    options.off = True
    result = add(lake, found, options, copies=False)
    with lake.exclusive():
        for table in TABLES:
            names = (file for file in lake.files(table))
            lake.storage.delete(
                file.name for file in names if file.base.removesuffix(".parquet") not in result.keys
            )
    return lake, result


class Results(NamedTuple):
    batches: Iterator[Any]
    """pyarrow record batches."""
    schema: Any


class LakeConnection:
    def __init__(self, lake: Lake) -> None:
        import duckdb

        self._duckdb = duckdb
        self._connection = duckdb.connect(
            ":memory:", config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        )
        storage = lake.storage
        if isinstance(storage, ObjectStore):
            root = storage.location
            self._connection.register_filesystem(storage.filesystem())
        else:
            root = Path(storage.location).absolute().as_posix()
        # DuckDB checks the pattern of a view, then each file that it finds.
        self.run(f"SET allowed_directories = [{_quoted(root + '/')}, {_quoted(escape(root) + '/')}]")
        self.run("SET enable_external_access = false")
        self.run("SET TimeZone = 'UTC'")
        for table, columns in TABLES.items():
            names = ", ".join(f'"{column.name}"' for column in (*PARTITIONS, *columns))
            if files := lake.files(table):
                pattern = _quoted(f"{escape(root)}/{table}/*/*/*.parquet")
                if isinstance(storage, ObjectStore):
                    pattern = f"[{', '.join(_quoted(f'{root}/{file.name}') for file in files)}]"
                source = (
                    f"FROM read_parquet({pattern}, hive_partitioning = true,"
                    " hive_types = {'day': DATE, 'server': VARCHAR}, union_by_name = true)"
                )
            else:
                nulls = (f'NULL::{_TYPES[each.type]} AS "{each.name}"' for each in (*PARTITIONS, *columns))
                source = f"FROM (SELECT {', '.join(nulls)}) WHERE false"
            self.run(f"CREATE VIEW {table} AS SELECT {names} {source}")
        self.run("SET lock_configuration = true")

    def run(self, sql: str, parameters: object = None) -> Any:
        try:
            return self._connection.execute(sql, parameters)
        except self._duckdb.Error as error:
            raise _unreadable(error) from None

    def query(self, sql: str) -> Results:
        """Return the results of one statement that only reads. Raise UsageError with DuckDB's reason."""
        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type.name not in _READS:
                raise UsageError(
                    "query: not one SELECT statement", "mcpspy query reads the lake and changes nothing"
                )
            reader = self._connection.sql(sql).to_arrow_reader(10_000)
        except self._duckdb.Error as error:
            raise UsageError(f"query: {sanitize(_reason(str(error)))}", "see mcpspy query --schema") from None
        return Results(self._read(reader), reader.schema)

    def _read(self, reader: Any) -> Iterator[Any]:
        try:
            yield from reader
        except (self._duckdb.Error, OSError) as error:
            raise _unreadable(error) from None


def _unreadable(error: Exception) -> CannotStart:
    return CannotStart(sanitize(_reason(str(error))), "mcpspy lake verify checks the files")


def _reason(text: str) -> str:
    """Return an error of DuckDB on one line, without the marked copy of the query."""
    return " ".join(text.partition("\n\nLINE")[0].split())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
