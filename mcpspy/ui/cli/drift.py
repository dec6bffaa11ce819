"""`mcpspy drift`: when the tools and skills of a server changed, and for whom."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import starmap
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from mcpspy.analysis.diff import ChangeSeverity
from mcpspy.analysis.drift import CallOutcomes, ListedPage, ToolDefinition, definitions, drift
from mcpspy.analysis.export.base import dumps
from mcpspy.core.protocol.extensions import EXTENSION_LISTINGS
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.ui.cli.options import Argument, Option, formats
from mcpspy.ui.cli.workers import WORKERS, adding_shown
from mcpspy.ui.text.terminal import Output, ProgressBar, write_json

if TYPE_CHECKING:
    from concurrent.futures import Executor

Item = TypeVar("Item")
Result = TypeVar("Result")

EPILOG = """\
examples:
  mcpspy drift ~/lake --server weather
  mcpspy drift recordings/ --server weather --format markdown
  mcpspy drift s3://acme/lake --server weather --format html > drift.html
  mcpspy drift recordings/ --server weather --workers 4

Compares the tools and skills that each client was shown with those of its session before, and
rates each change as mcpspy diff does. Without a lake, LAKE is a folder of recordings;
--server is the name in the column server of mcpspy query (docs/lake.md). Workers read
the recordings of a folder that are new, and compare the definitions.

exit codes: 0; 1 a change is breaking; 2 usage error or unknown server; 3 duckdb or
pyarrow not installed, a file not readable, or a worker was killed
"""

_LISTED = """
SELECT t.session, strftime(t.time, '%Y-%m-%d %H:%M:%S.%g'), coalesce(t.client, 'unknown client'),
  coalesce(s.server_version, ''), t.name, t.digest, t.definition
FROM tools t JOIN sessions s USING (session) WHERE t.server = ?
ORDER BY s.started, t.session, t.client, t.time, t.n, t.name"""

_PAGES = """
SELECT e.session, strftime(e.time, '%Y-%m-%d %H:%M:%S.%g'), coalesce(e.client, 'unknown client'),
  coalesce(s.server_version, ''), e.stream, e.request, e.response
FROM exchanges e JOIN sessions s USING (session)
WHERE e.server = ? AND e.method = ? AND e.status = 'ok' AND NOT e.injected AND e.response IS NOT NULL
ORDER BY s.started, e.session, e.client, e.n"""

_CALLS = """
SELECT session, target, count(*), count(*) FILTER (status IN ('error', 'tool error', 'refused'))
FROM exchanges WHERE server = ? AND method = 'tools/call' AND target IS NOT NULL GROUP BY ALL"""

OPTIONS = (
    Argument("lake", "LAKE", "a lake, or a folder of recordings"),
    Option("--server", "NAME", "name of the server", is_required=True),
    *formats("json: one object; markdown: for a pull request; html: one page", "json", "markdown", "html"),
    *WORKERS,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    from mcpspy.io.lake.executors import executor_of

    with executor_of(args.workers, args.on) as executor:
        return _print(args, executor)


def _print(args: argparse.Namespace, executor: Executor | None) -> int:
    from mcpspy.ui.cli.query import connected
    from mcpspy.ui.report import drift as drift_report

    with ProgressBar("sessions") as progress:
        connection = connected("drift", args.lake, adding=(executor, adding_shown(progress)))
    counts = dict(
        connection.run("SELECT server, count(*) FROM sessions GROUP BY ALL ORDER BY ALL").fetchall()
    )
    if (sessions := counts.get(args.server)) is None:
        known = ", ".join(list(counts)[:20]) or "none"
        raise UsageError(
            sanitize(f"--server {args.server}: not in {args.lake}"), sanitize(f"servers: {known}")
        )
    listed = [ToolDefinition(*row) for row in connection.run(_LISTED, [args.server]).fetchall()]
    calls = {
        (session, tool): CallOutcomes(*counts)
        for session, tool, *counts in connection.run(_CALLS, [args.server]).fetchall()
    }
    found = drift(listed, calls, partial(_compared, executor))
    for method in EXTENSION_LISTINGS:
        pages = starmap(ListedPage, connection.run(_PAGES, [args.server, method]).fetchall())
        found += drift(definitions(method, pages), {}, partial(_compared, executor), method)
    found.sort(key=attrgetter("time"))
    if args.format == "json":
        write_json(dumps(drift_report.document(args.server, found, sessions)).encode() + b"\n")
    elif args.format == "markdown":
        for line in drift_report.markdown(args.server, found, sessions):
            sys.stdout.buffer.write(f"{line}\n".encode())
    elif args.format == "html":
        sys.stdout.buffer.write(drift_report.page(args.server, found, sessions))
    else:
        output = Output()
        output.lines(drift_report.text(args.server, found, sessions, output.width))
    return FINDINGS if any(each.severity is ChangeSeverity.BREAKING for each in found) else 0


def _compared(
    executor: Executor | None, compare: Callable[[Item], Result], pairs: Sequence[Item]
) -> Iterator[Result]:
    from mcpspy.io.lake.executors import mapped

    with ProgressBar("changes") as progress:
        found = map(compare, pairs) if executor is None else mapped(executor, compare, pairs)
        for number, changes in enumerate(found, 1):
            yield changes
            progress.show(number, len(pairs), f"{number:,} of {len(pairs):,} changes")
