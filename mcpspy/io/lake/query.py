"""SQL over a lake by DuckDB. A connection reads no other file and loads no extension.

Without a lake, the sessions of a folder are converted into a lake in that folder, which follows the folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.analysis.lake.filter import LakeFilter, check_utf8, quoted
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
    def __init__(self, lake: Lake, filters: Iterable[LakeFilter] = ()) -> None:
        """The view of a filtered table has only the rows that match. Raise CannotStart."""
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
        self.run(f"SET allowed_directories = [{quoted(root + '/')}, {quoted(escape(root) + '/')}]")
        self.run("SET enable_external_access = false")
        self.run("SET TimeZone = 'UTC'")
        self.run("SET parquet_metadata_cache = true")
        for table, columns in TABLES.items():
            names = ", ".join(f'"{column.name}"' for column in (*PARTITIONS, *columns))
            if files := lake.files(table):
                pattern = quoted(f"{escape(root)}/{table}/*/*/*.parquet")
                if isinstance(storage, ObjectStore):
                    pattern = f"[{', '.join(quoted(f'{root}/{file.name}') for file in files)}]"
                source = (
                    f"FROM read_parquet({pattern}, hive_partitioning = true,"
                    " hive_types = {'day': DATE, 'server': VARCHAR})"
                )
            else:
                nulls = (f'NULL::{_TYPES[each.type]} AS "{each.name}"' for each in (*PARTITIONS, *columns))
                source = f"FROM (SELECT {', '.join(nulls)} WHERE false)"
            self.run(f"CREATE VIEW {table} AS SELECT {names} {source}")
            for lake_filter in (each for each in filters if each.table == table):
                selected = self._selected(lake_filter)
                self.run(f"CREATE OR REPLACE VIEW {table} AS SELECT {names} {source} WHERE {selected}")
        self.run("SET lock_configuration = true")

    def _selected(self, lake_filter: LakeFilter) -> str:
        """Return the condition of the matching rows; the filter itself decides on those that SQL cannot decide."""
        if lake_filter.undecided is None:
            return lake_filter.sure
        import pyarrow as pa

        key = ("session", lake_filter.key)
        columns = f"{', '.join(key)}, {lake_filter.columns}"
        sql = f"SELECT {columns} FROM {lake_filter.table} WHERE {lake_filter.undecided}"
        try:
            reader = self._connection.sql(sql).to_arrow_reader(1_000)
        except self._duckdb.Error as error:
            raise _unreadable(error) from None
        kept = []
        for batch in self._read(reader):
            rows = batch.drop_columns(key).to_pylist()
            kept.append(batch.select(key).filter(pa.array(map(lake_filter.matches, rows), pa.bool_())))
        schema = pa.schema([reader.schema.field(name) for name in key])
        self._connection.register(f"selected_{lake_filter.table}", pa.Table.from_batches(kept, schema))
        return f"({lake_filter.sure}) OR ({', '.join(key)}) IN (FROM selected_{lake_filter.table})"

    def run(self, sql: str, parameters: object = None) -> Any:
        try:
            return self._connection.execute(sql, parameters)
        except self._duckdb.Error as error:
            raise _unreadable(error) from None

    def query(self, sql: str) -> Results:
        """Return the results of one statement that only reads. Raise UsageError with DuckDB's reason."""
        check_utf8(sql)
        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type.name not in _READS:
                raise UsageError(
                    "query: not one SELECT statement", "mcpspy query reads the lake and changes nothing"
                )
            reader = self._connection.sql(sql).to_arrow_reader(10_000)
        except self._duckdb.Error as error:
            raise UsageError(f"query: {sanitize(_reason(str(error)))}", "see mcpspy query --schema") from None
        schema = reader.schema
        for place, name in enumerate(schema.names):  # Two columns may have the same name.
            if name in schema.names[:place]:
                schema = schema.set(place, schema.field(place).with_name(f"{name}_{place + 1}"))
        return Results((batch.rename_columns(schema.names) for batch in self._read(reader)), schema)

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
