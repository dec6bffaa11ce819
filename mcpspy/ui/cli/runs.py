"""`mcpspy runs`: list the runs of hosts, each with its sessions."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.runs import recorded_runs
from mcpspy.ui.cli.options import FOLDER, formats
from mcpspy.ui.report.listed_session import ListedSession, run_members
from mcpspy.ui.text.terminal import Output, columns, print_json

EPILOG = """\
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

_HEADS = (
    "",
    "id",
    "host",
    "client",
    "started",
    "time",
    "sessions",
    "messages",
    "errors",
    "unanswered",
    "servers",
)
_WIDTHS = (1, 8, 16, 24, 19, 10, -8, -8, -6, -10, 48)


OPTIONS = (FOLDER, *formats("json: one object per run"))


def main(args: argparse.Namespace) -> int:
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
    output.line(columns(_HEADS, _WIDTHS), rows.QUIET)
    for run in found:
        output.line(columns(_cells(run), _WIDTHS), rows.BAD if run["errors"] or run["unanswered"] else None)
    return 0


def _cells(run: dict[str, Any]) -> list[str]:
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
