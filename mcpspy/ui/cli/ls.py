"""`mcpspy ls`: list the recorded sessions; `mcpspy runs`: the runs of hosts, each with its sessions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from mcpspy.analysis import rows
from mcpspy.core.recording.origin import HOST
from mcpspy.core.redact.display import redacted_command
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.outcome import verdict_mark, verdict_tone
from mcpspy.io.recording.catalog import Catalog, sessions_of
from mcpspy.io.recording.listed_session import ListedSession, matching, run_members
from mcpspy.io.recording.reader import read_time
from mcpspy.io.recording.runs import recorded_runs
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.cli.arguments import filter_errors
from mcpspy.ui.cli.options import FOLDER, Option, Switch, formats
from mcpspy.ui.cli.parser import integer, suggested_folder
from mcpspy.ui.text.terminal import Output, columns, print_json
from mcpspy.ui.text.width import cells

EPILOG = """\
examples:
  mcpspy ls
  mcpspy ls -q 'server:weather since:7d errors>0' --all
  mcpspy ls --sort size -n 10
  mcpspy ls --format json | jq -r 'select(.state == "live") | .path'

name: of the session · server: name and version that the server sent in the handshake
● live · ○ fine, or it worked and had errors or unanswered requests
✗ never started · never answered · refused · crashed · mcpspy was killed
origin: what made the session, if it was not a host: replay, mock, demo, import …
entries: messages and notes
QUERY: words, name: server: client: command: revision: id: state: verdict: origin:
since:2h until:2026-11-20 errors>0 issues>0 messages>100 pending>0 unanswered>0 size>1mb
is:problem (any of errors, unanswered requests, protocol issues, a verdict with ✗),
combined with and, or, not, ( )
"""

STARTED = "started"

NEWEST = 50
"""Number of sessions that are listed on a terminal."""

_WIDTHS = (1, 8, 24, 7, 28, 19, 34, 24, 10, -8, -7, -7)
_HEADS = (
    *("", "id", "name", "origin", "server", "started", "verdict", "client", "revision"),
    *("time", "entries", "size"),
)
ORIGIN = _HEADS.index("origin")
"""Column that is shown only if a session was made by something else than a host."""

_COUNTS = ("messages", "errors", "unanswered", "pending", "issues")
_COUNT_WIDTHS = (-8, -7, -10, -7, -7)


SORTS: dict[str, Callable[[ListedSession], Any]] = {
    STARTED: lambda row: row.summary.order,
    "name": lambda row: row.summary.header.name,
    "server": lambda row: str(row.summary.server or ""),
    "time": lambda row: row.summary.last,
    "entries": lambda row: row.summary.entries,
    "size": lambda row: row.summary.size,
    "errors": lambda row: row.count("errors") or 0,
    "issues": lambda row: row.count("issues") or 0,
}


OPTIONS = (
    FOLDER,
    Option("-q --filter", "QUERY", "list only matching sessions, e.g. 'server:weather errors>0 since:7d'"),
    Option("--sort", "COLUMN", f"order of the sessions: {', '.join(SORTS)} (default: {STARTED})",
        choices=list(SORTS), default=STARTED),
    Option("-n --limit", "N", f"list only the last N of this order (default on a terminal: {NEWEST})",
        read=integer("number of sessions", "use 1 or more"), excludes=("--all",)),
    Switch("--all", "list all sessions"),
    Switch("--count", "also print messages, errors, unanswered and pending requests, protocol issues"),
    *formats("json: one object per session"),
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """List the sessions, the newest last: next to the prompt."""
    limit = _limit(args)
    catalog = Catalog(args.dir)
    newest = sessions_of(catalog)
    total, hint = len(newest), ""
    total_matching = total
    is_plain = args.filter is None and args.sort == STARTED  # Then no other session has to be decoded.
    found = [ListedSession(summary, catalog) for summary in newest[: limit or None if is_plain else None]]
    if args.filter is not None:
        with filter_errors("docs/ls.md"):
            found, hint = matching(args.filter, found)
        total_matching = len(found)
    found.reverse()
    if args.sort != STARTED:
        found.sort(key=SORTS[args.sort])
    found = found[-limit:] if limit else found
    if args.format == "json":
        for row in found:
            print_json(_as_json(row, _COUNTS if args.count else ()))
    elif not total:
        output = Output()
        output.line(f"No sessions in {sessions_folder(args.dir)} yet. Record one:")
        folder = suggested_folder(args)
        output.line(f"  mcpspy run{folder} -- COMMAND …   replaces COMMAND in the configuration of your host")
        output.line(f"  mcpspy demo{folder}               records a sample session")
    else:
        if not total_matching:
            Output().line(sanitize(f"None of {total:,} sessions match. {hint}".rstrip()))
            return 0
        if len(found) < total_matching:
            Output().line(f"{len(found)} of {total_matching:,} sessions; --all lists all", rows.QUIET)
        _print(found, _COUNTS if args.count else ())
    catalog.save()
    return 0


def _limit(args: argparse.Namespace) -> int:
    """Return the number of sessions to list; 0 for all."""
    is_short = sys.stdout.isatty() and args.format == "text" and not args.all
    return int(args.limit or (NEWEST if is_short else 0))


def _print(found: list[ListedSession], counts: tuple[str, ...]) -> None:
    output = Output()
    heads = [*_HEADS, *counts]
    limits = [*_WIDTHS, *_COUNT_WIDTHS[: len(counts)]]
    table = [_cells(row, counts) for row in found]
    if not any(cells[ORIGIN] for cells in table):
        del heads[ORIGIN], limits[ORIGIN]
        for cells in table:
            del cells[ORIGIN]
    widths = [_fit(limit, texts) for limit, *texts in zip(limits, heads, *table, strict=True)]
    output.line(columns(heads, widths), rows.QUIET)
    for row, row_cells in zip(found, table, strict=True):
        output.line(columns(row_cells, widths), verdict_tone(row.verdict))


def _as_json(row: ListedSession, counts: tuple[str, ...]) -> dict[str, Any]:
    """Return a session as `--format json` prints it."""
    summary = row.summary
    header, note = summary.header, summary.exit
    return {
        "id": header.id,
        "name": header.name,
        "origin": header.origin,
        "state": row.state,
        "verdict": row.verdict,
        "exit": note.fields.get("code") if note else None,
        "signal": note.fields.get("signal") if note else None,
        "failure": summary.failure if summary.has_failed else None,
        "unanswered": row.unanswered,
        "started": header.started,
        "seconds": summary.last,
        "transport": header.transport,
        "command": header.command and redacted_command(header.command),
        "server": summary.server._asdict() if summary.server else None,
        "client": summary.client._asdict() if summary.client else None,
        "revision": summary.revision,
        "entries": summary.entries,
        "size": summary.size,
        "path": str(summary.path),
        **{name: row.count(name) for name in counts},
    }


def _cells(row: ListedSession, counts: tuple[str, ...]) -> list[str]:
    summary = row.summary
    header = summary.header
    return [
        verdict_mark(row.verdict),
        sanitize(header.id),
        sanitize(header.name),
        "" if header.origin == HOST else sanitize(header.origin),
        sanitize(str(summary.server or "")),
        _local(header.started),
        row.words,
        sanitize(str(summary.client or "")),
        sanitize(summary.revision or ""),
        rows.duration(summary.last),
        str(summary.entries),
        rows.size(summary.size),
        *("" if (number := row.count(name)) is None else str(number) for name in counts),
    ]


def _local(started: str) -> str:
    at = read_time(started)
    return sanitize(started) if at is None else datetime.fromtimestamp(at).isoformat(" ", "seconds")


def _fit(limit: int, texts: list[str]) -> int:
    """Return the width of a column: that of its widest cell, at most `limit`."""
    longest = max(map(len if "".join(texts).isascii() else cells, texts))
    width = min(abs(limit), longest)
    return width if limit > 0 else -width


_RUNS_EPILOG = """\
examples:
  mcpspy runs
  mcpspy show run:last -q status:error     the failures of all servers of the newest run
  mcpspy export run:3fa8 --format csv      one run, by the beginning of its id
  mcpspy runs --format json | jq -r '.sessions[].path'

A run is one process of a host, such as one start of an agent, with the sessions of all the
servers that it used. The sessions of a run are those whose host has the same pid and start;
docs/runs.md describes what is recorded, and on which systems.
● a session is live
exit codes: 0; 2 usage error; 3 the folder is not readable
"""

_RUN_HEADS = "id host client started time sessions messages errors unanswered servers".split()
_RUN_WIDTHS = (1, 8, 16, 24, 19, 10, -8, -8, -6, -10, 48)


def _list_runs(args: argparse.Namespace) -> int:
    """List the runs, the newest last: next to the prompt."""
    catalog = Catalog(args.dir)
    found = [
        run_members(each, lambda summary, name: ListedSession(summary, catalog).count(name))
        for each in recorded_runs(args.dir)
    ]
    if args.format == "json":
        for run in found:
            print_json(run)
        return 0
    output = Output()
    if not found:
        output.line("No runs yet: no session names the process of its host (see docs/runs.md).")
        return 0
    output.line(columns(("", *_RUN_HEADS), _RUN_WIDTHS), rows.QUIET)
    for run in found:
        is_bad = run["errors"] or run["unanswered"]
        output.line(columns(_run_cells(run), _RUN_WIDTHS), rows.BAD if is_bad else None)
    return 0


def _run_cells(run: dict[str, Any]) -> list[str]:
    started = datetime.fromisoformat(run["started"]).astimezone()
    names = dict.fromkeys(str(each["name"]) for each in run["sessions"])
    return [
        "●" if run["live"] else " ",
        run["id"],
        sanitize(run["host"] or f"pid {run['pid']}"),
        sanitize(", ".join(run["clients"])),
        f"{started:%Y-%m-%d %H:%M:%S}",
        rows.duration(run["seconds"]),
        f"{len(run['sessions'])}",
        f"{run['messages']:,}",
        f"{run['errors']:,}",
        f"{run['unanswered']:,}",
        sanitize(", ".join(names)),
    ]


RUNS = SimpleNamespace(
    EPILOG=_RUNS_EPILOG, OPTIONS=(FOLDER, *formats("json: one object per run")), main=_list_runs
)
