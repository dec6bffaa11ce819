"""`mcpspy query`: SQL over many sessions."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import orjson

from mcpspy.analysis.lake.filter import LakeFilter, lake_filters
from mcpspy.analysis.lake.schema import PARTITIONS, QUERIES, TABLES
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.extras import require
from mcpspy.io.recording.atomic import save
from mcpspy.ui.cli.arguments import filter_errors
from mcpspy.ui.cli.options import FOLDER, Argument, Option, Switch, formats
from mcpspy.ui.text.terminal import Output, columns
from mcpspy.ui.text.width import cells

if TYPE_CHECKING:
    from mcpspy.io.lake.query import Adding, LakeConnection, Results

EPILOG = """\
examples:
  mcpspy query top-tools --lake ~/lake
  mcpspy query "SELECT target, count(*) FROM exchanges WHERE status = 'error' GROUP BY ALL"
  mcpspy query "FROM exchanges WHERE server = 'weather'" --lake ~/lake --format parquet -o weather.parquet
  mcpspy query -q 'tool:forecast status:error >200ms' --lake ~/lake
  mcpspy query -q 'params.arguments.path:*.env' agents --lake ~/lake
  mcpspy query "SELECT day, count(*) AS calls FROM exchanges GROUP BY day" --plot
  mcpspy query --schema

saved queries:
SAVED
SQL is one SELECT statement in DuckDB's dialect. It can read the tables of the lake, and no
other file. Without --lake it reads the ended sessions of the sessions folder, which are
converted once. docs/lake.md describes the tables. QUERY selects rows of exchanges and
messages by their requests and notifications (docs/filter.md).

exit codes: 0; 2 usage error, invalid SQL or filter; 3 a package not installed, or a file not
readable or not writable
""".replace("SAVED", "".join(f"  {name:14}{query.about}\n" for name, query in QUERIES.items()))

MATCHING = """\
SELECT time, server, method, target, status, latency_ms, session, n FROM exchanges ORDER BY time, session, n"""
"""The query of `--filter` without SQL."""

LONGEST = 60
"""Maximum columns of a cell, except in the last column."""

OPTIONS = (
    Argument("sql", "SQL", "a SELECT statement, or the name of a saved query", nargs="?",
        excludes=("--schema",)),
    Option("-q --filter", "QUERY",
        "only matching rows of exchanges and messages, e.g. 'tool:x status:error'; without SQL: print them",
        excludes=("--schema",)),
    Option("--lake", "LAKE", "the lake to read (default: $MCPSPY_LAKE, or the sessions folder)"),
    Switch("--schema", "print the tables and their columns", excludes=("--format",),
        hint="it is printed as text"),
    Switch("--plot", "draw a chart: first column x, numeric columns y; -o FILE.svg or .html",
        excludes=("--schema", "--format"), hint="use -o FILE.svg or FILE.html, or the terminal"),
    Option("-o --output", "FILE", "write to this new file"),
    *formats("json: one object per line; csv: RFC 4180; parquet: with --output", "json", "csv", "parquet"),
    FOLDER,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    if not args.schema and args.sql is args.filter is None:
        raise UsageError("query: missing SQL or --filter", "see mcpspy query --help")
    suffix = PurePath(args.output or "").suffix
    if args.plot and suffix not in ((".svg", ".html") if args.output else ("",)):
        raise UsageError(
            sanitize(f"--output {args.output}: not a file for --plot"), "use -o FILE.svg or FILE.html"
        )
    if args.plot and args.output is None:
        require("plotext", "--plot", "plot")
    if args.format == "parquet" and args.output is None:
        raise UsageError("--format parquet: missing --output", "use -o FILE")
    if args.schema:
        return _write(args, _schema())
    saved = QUERIES.get(args.sql)
    with filter_errors():
        selected = () if args.filter is None else lake_filters(args.filter)
    lake = args.lake or (os.environ.get("MCPSPY_LAKE") if args.dir is None else args.dir)
    connection = connected("query", lake, selected)
    sql = (args.sql or MATCHING) if saved is None else saved.sql
    if args.format == "parquet":
        return _write(args, _parquet(*connection.arrow(sql)))
    results = connection.query(sql)
    if args.plot:
        return _plot(args, results, suffix)
    if args.format == "text":
        return _write(args, _text(*results))
    return _write(args, (_json if args.format == "json" else _csv)(*results))


def connected(
    command: str, path: str | None, selected: Iterable[LakeFilter] = (), adding: Adding | None = None
) -> LakeConnection:
    """Return a connection to a lake, or to the sessions of a folder; report sessions that are not in it.

    Its views have the selected rows. `adding` is how new sessions of a folder are converted.
    """
    for package in ("pyarrow", "duckdb", "pytz"):
        require(package, command)
    from mcpspy.io.lake.query import LakeConnection, lake_of

    lake, result = lake_of(path, adding)
    if result is not None:
        live = f"{result.live} live session{'s' * (result.live != 1)} not included"
        for line in (*result.failures, *([live] if result.live else [])):
            sys.stderr.write(f"mcpspy: {command}: {line}\n")
    return LakeConnection(lake, selected)


def _write(args: argparse.Namespace, pieces: Iterator[str] | Iterator[bytes]) -> int:
    if args.output is not None:
        save(args.output, pieces)
        return 0
    output = Output(width=None if args.format == "text" else 0)
    for piece in pieces:
        if isinstance(piece, bytes):
            sys.stdout.buffer.write(piece)
        else:
            output.line(piece.removesuffix("\n"))
    return 0


def _plot(args: argparse.Namespace, results: Results, suffix: str) -> int:
    from mcpspy.ui.report.chart import html, read_chart, svg, terminal

    chart = read_chart(results.names, [[*row] for row in results.rows])
    if suffix:
        return _write(args, iter([(svg if suffix == ".svg" else html)(chart).encode()]))
    output = Output()
    for line in terminal(chart, output.width or 100, 20, has_color=output.colour):
        sys.stdout.write(line + "\n")
    return 0


def _json(names: list[str], found: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    option = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS
    for row in found:
        line = dict(zip(names, row, strict=True))
        try:
            yield orjson.dumps(line, default=_plain, option=option)
        except orjson.JSONEncodeError:  # An integer of more than 64 bits, as in a sum.
            yield orjson.dumps(_bounded(line), default=_plain, option=option)


def _bounded(value: Any) -> Any:
    """Return a value with text in place of the integers that orjson cannot write."""
    if isinstance(value, dict):
        return {_bounded(key): _bounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(each) for each in value]
    return str(value) if isinstance(value, int) and abs(value) >= 1 << 63 else value


def _csv(names: list[str], found: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    from mcpspy.analysis.export.exchange_lines import cell

    for row in (names, *found):
        line = io.StringIO()
        csv.writer(line).writerow(cell(_text_of(value)) for value in row)
        yield line.getvalue().encode()


def _parquet(schema: Any, batches: Iterable[Any]) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_batches(batches, schema), buffer, compression="zstd")
    yield buffer.getvalue()


def _text(names: list[str], found: Iterable[Sequence[Any]]) -> Iterator[str]:
    values = [*found]
    table = [[sanitize(_text_of(value)) for value in row] for row in (names, *values)]
    widths = [min(max(map(cells, column)), LONGEST) for column in zip(*table, strict=True)]
    for place in range(len(names)):
        if values and all(isinstance(row[place], int | float | Decimal | None) for row in values):
            widths[place] *= -1
    for row in table:
        yield columns(row, [*widths[:-1], min(widths[-1], 0)]) + "\n"
    yield f"({len(values):,} row{'s' * (len(values) != 1)})\n"


def _plain(value: Any) -> Any:
    """Return a value that orjson can write: DuckDB's sums are decimals."""
    if isinstance(value, Decimal) and abs(value) < 1 << 63:
        return float(value) if value % 1 else int(value)
    return _text_of(value)


def _text_of(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return "" if value is None else str(value)


def _schema() -> Iterator[str]:
    for table, described in TABLES.items():
        yield f"{table}\n"
        for column in (*PARTITIONS, *described):
            yield f"  {column.name:16}{column.type:11}{column.about}\n"
