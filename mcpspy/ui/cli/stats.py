"""`mcpspy stats`: counts, latency, sizes, concurrency, and the context cost of tools."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mcpspy.analysis.stats import StatsCollector
from mcpspy.core.query.parser import Query
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.scan import no_collection
from mcpspy.ui.cli.arguments import counted_back, query_of, recordings, title_of
from mcpspy.ui.cli.options import FOLDER, UNSAFE_REGEX, Argument, Option, Switch, formats
from mcpspy.ui.cli.parser import integer, read_unsafe_regex
from mcpspy.ui.cli.workers import WORKERS, file_size, results
from mcpspy.ui.report.stats_table import SORTS, CountedSession, TableStyle, count_session
from mcpspy.ui.text.numbers import GLYPHS, BarStyle
from mcpspy.ui.text.terminal import Output, warn_incomplete

EPILOG = """\
examples:
  mcpspy stats                                  the newest session
  mcpspy stats weather -q 'tool:forecast'       one tool of the newest session with this name
  mcpspy stats before.jsonl after.jsonl         two sessions side by side
  mcpspy stats last --sort p95 --top 3
  mcpspy stats recordings/ --format json | jq '{name, p95: .requests.client.latency.p95}'
  mcpspy stats recordings/ --context --window claude-opus-5

SESSION is a file, a folder of recordings, `last`, a session name, or the beginning of a
session id. QUERY selects requests and notifications: tool:NAME, method:tools/*, status:ok,
>200ms, time>10s, stream:1, text:WORDS (see docs/filter.md). docs/stats.md defines what
each number counts.

exit codes: 0; 2 usage error, not a recording, or invalid filter; 3 file not readable
"""

WIDTH = 100
"""Columns if the output has no width."""

OPTIONS = (
    Argument("sessions", "SESSION", "sessions to count, - for stdin; several are compared (default: last)",
        nargs="*"),
    Option("-q --filter", "QUERY", "count only matching requests and notifications, e.g. 'tool:x'"),
    UNSAFE_REGEX,
    Option("--sort", "COLUMN",
        f"order of the rows: {', '.join(SORTS)} (default: time, the sum of all latencies)",
        choices=list(SORTS), default="time"),
    Option("--top", "N", "rows per method, and number of largest messages (default: 10)",
        read=integer("count", "use 0 or a positive integer", 0), default=10),
    Switch("--context", "estimate the tokens of tool definitions and results, of all sessions together",
        excludes=("--filter", "--sort", "--workers", "--on")),
    Option("--window", "SIZE",
        "context window for the shares of --context: 200k, 1m, or a model of docs/stats.md (default: 200k)",
        requires="--context"),
    *formats("json: one object per session; markdown: tables, with --context", "json", "markdown"),
    FOLDER,
    *WORKERS,
)  # fmt: skip


@no_collection()  # The counts of thousands of sessions are kept, and are not garbage.
def main(args: argparse.Namespace) -> int:
    if args.context:
        return _print_context(args)
    if args.format == "markdown":
        raise UsageError("--format markdown requires --context")
    query = query_of(args.filter, allow_unsafe=read_unsafe_regex(args))
    paths = list(recordings(args.sessions, args.dir))
    count = partial(_counted, query=query, top=args.top)
    with results(args, count, paths, lambda found: file_size(found[1])) as counted:
        return _print_counted(args, counted, len(paths))


def _print_counted(args: argparse.Namespace, counted: Iterator[CountedSession], count: int) -> int:
    if args.format == "json":
        from mcpspy.ui.report.stats import document

        for each in counted:
            sys.stdout.buffer.write(document(each))
            sys.stdout.buffer.flush()
        return 0
    output = Output()
    style = TableStyle(output.width or WIDTH, BarStyle(plain=not _can_print(GLYPHS)), args.sort, args.top)
    if count == 1:
        from mcpspy.ui.report.stats import terminal

        lines = terminal(next(counted), style)
    else:
        from mcpspy.ui.report.stats_table import comparison

        lines = comparison(list(counted), style)
    output.lines(lines)
    return 0


def _print_context(args: argparse.Namespace) -> int:
    from mcpspy.analysis.context import ContextCollector, read_window
    from mcpspy.ui.report import stats_context

    try:
        window = read_window(args.window or "200k")
    except ValueError as error:
        raise UsageError(sanitize(f"--window {args.window}: {error}"), "use 200k, 1m or 128000") from None
    collector = ContextCollector()
    for _, path in recordings(args.sessions, args.dir):
        recording = Recording(path)
        collector.add(recording.session())
        warn_incomplete(path, recording.torn)
    report = collector.report()
    if args.format == "json":
        sys.stdout.buffer.write(stats_context.document(report, window))
        return 0
    render = stats_context.markdown if args.format == "markdown" else stats_context.text
    output = Output(width=None if args.format == "text" else 0)
    output.lines(render(report, window, args.top))
    return 0


def _counted(found: tuple[str, Path], query: Query | None, top: int) -> CountedSession:
    """Return the current statistics of a session, and show the progress of reading it."""
    name, path = found
    recording = Recording(path)
    # Before the read: a session that ends during the read counts as live.
    is_live = recording.state is RecordingState.LIVE
    counted_back(query, path, recording.header)
    return count_session(path, title_of(name), StatsCollector(recording.header, query, top), is_live=is_live)


def _can_print(glyphs: str) -> bool:
    try:
        glyphs.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
