"""`mcpspy lake`: sessions as Parquet files, for SQL."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpspy.core.counted import counted
from mcpspy.errors import FINDINGS, CannotStart, UsageError
from mcpspy.io.extras import require
from mcpspy.io.lake.files import Lake
from mcpspy.io.recording.catalog import sessions
from mcpspy.io.recording.reader import RecordingState, Summary, read_header_of, summarize
from mcpspy.ui.cli.arguments import age, is_folder, session_path
from mcpspy.ui.cli.options import FOLDER, REDACTION, Argument, Option, Switch, formats, only_with
from mcpspy.ui.cli.parser import read_redaction
from mcpspy.ui.cli.workers import WORKERS, adding_shown
from mcpspy.ui.text.terminal import Output, ProgressBar, print_json

if TYPE_CHECKING:
    from concurrent.futures import Executor

ACTIONS = ("add", "verify", "compact", "rm")

EPILOG = """\
examples:
  mcpspy lake add ~/lake ~/.local/share/mcpspy/sessions --workers 4
  mcpspy lake add ~/lake last weather.jsonl
  mcpspy lake add s3://acme/lake /shared/sessions --on tcp://10.0.0.5:8786
  mcpspy lake compact ~/lake           merge the files of each day and server
  mcpspy lake verify ~/lake            read every file, and compare the counts
  mcpspy lake rm ~/lake --older-than 90d
  mcpspy query top-tools --lake ~/lake

LAKE is a folder of Parquet files, or s3://BUCKET/PREFIX, gs:// or az:// (docs/lake.md). SESSION is a file, a folder of
recordings, `last`, a session name, or the beginning of a session id. Sessions that are
in the lake are not added again, and live sessions only when they have ended (--watch).

exit codes: 0; 1 verify found a problem; 2 usage error; 3 a package not installed, a
session, a file of the lake or the cluster not usable
"""

TAKES_OPTIONS_ANYWHERE = True

WATCH_SECONDS = 2.0
"""Time between two looks for sessions that have ended."""

OPTIONS = (
    Argument("action", "ACTION", f"one of {', '.join(ACTIONS)}", choices=ACTIONS),
    Argument("lake", "LAKE", "folder or URL of the lake; add creates it"),
    Argument("sessions", "SESSION", "add: sessions and folders to add", nargs="*", requires="add"),
    *only_with("add", WORKERS),
    Switch("--watch", "add: continue, and add sessions when they end, until Ctrl-C", requires="add"),
    Switch("--no-jsonl", "add: keep only the tables, and not the recordings", requires="add"),
    Option("--older-than", "AGE", "rm: delete days that ended longer ago than this: 30d, 12w", read=age,
        requires="rm"),
    *formats("json: one object"),
    FOLDER,
    *REDACTION,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    action: str = args.action
    if action == "add" and not args.sessions:
        raise UsageError("lake add: missing SESSION", "see mcpspy lake --help")
    if action == "rm" and args.older_than is None:
        raise UsageError("lake rm: missing --older-than")
    require("pyarrow", "lake")
    lake = Lake.created(args.lake) if action == "add" else Lake.opened(args.lake)
    if action == "add":
        return _add(lake, args)
    document, text, code = {"verify": _verify, "compact": _compact, "rm": _remove}[action](lake, args)
    _print(lake, args, document, text)
    return code


def _print(lake: Lake, args: argparse.Namespace, document: dict[str, Any], text: str) -> None:
    if args.format == "json":
        print_json({"lake": lake.storage.location, **document})
    else:
        Output().line(f"{lake.shown}: {text}")
    sys.stdout.flush()


def _add(lake: Lake, args: argparse.Namespace) -> int:
    from mcpspy.io.lake.executors import executor_of

    with executor_of(args.workers, args.on) as executor:
        found = _summaries(args.sessions, args.dir)
        code = _add_found(lake, args, found, executor)
        known = _ended(found)
        while args.watch:
            time.sleep(WATCH_SECONDS)
            found = _summaries(args.sessions, args.dir)
            if _ended(found) - known:
                try:
                    _add_found(lake, args, [each for each in found if each.path not in known], executor)
                except CannotStart as error:  # Another process is changing the lake, or the network is down.
                    sys.stderr.write(f"mcpspy: lake: {error}; trying again\n")
                    continue
                known |= _ended(found)
    return code


def _ended(found: list[Summary]) -> set[Path]:
    return {summary.path for summary in found if summary.state is not RecordingState.LIVE}


def _add_found(lake: Lake, args: argparse.Namespace, found: list[Summary], executor: Executor | None) -> int:
    from mcpspy.io.lake.add import add

    with ProgressBar("sessions") as progress:
        show = adding_shown(progress)
        result = add(lake, found, read_redaction(args, REDACTION), executor, show, copies=not args.no_jsonl)
    for failure in result.failures:
        sys.stderr.write(f"mcpspy: lake: {failure}\n")
    text = f"{counted(result.added, 'session')} added, {result.present} present"
    if result.live:
        text += f", {result.live} live and not added"
    document = {
        "added": result.added,
        "present": result.present,
        "live": result.live,
        "failures": result.failures,
    }
    _print(lake, args, document, text)
    return CannotStart.exit_code if result.failures else 0


def _summaries(names: list[str], folder: str | None) -> list[Summary]:
    """Return the sessions on the command line, each once; those of a folder oldest first."""
    found: dict[Path, Summary] = {}
    for name in names:
        if is_folder(name, folder):
            named = [*reversed(sessions(name, entries=False))]
        else:
            path = session_path(name, folder)
            named = [summarize(path, read_header_of(path), counts=False)]
        found.update({summary.path.absolute(): summary for summary in named})
    return [*found.values()]


def _verify(lake: Lake, _: argparse.Namespace) -> tuple[dict[str, Any], str, int]:
    from mcpspy.analysis.rows import size
    from mcpspy.io.lake.maintenance import verify

    result = verify(lake)
    for problem in result.problems:
        sys.stderr.write(f"mcpspy: lake: {problem}\n")
    text = f"{counted(result.sessions, 'session')}, {counted(result.rows, 'row')}"
    text += f" in {counted(result.files, 'file')} ({size(result.size)}B), "
    text += counted(len(result.problems), "problem") if result.problems else "no problems"
    return result._asdict(), text, FINDINGS if result.problems else 0


def _compact(lake: Lake, _: argparse.Namespace) -> tuple[dict[str, Any], str, int]:
    from mcpspy.io.lake.maintenance import compact

    before, after = compact(lake)
    return {"files_before": before, "files": after}, f"{counted(before, 'file')} merged into {after:,}", 0


def _remove(lake: Lake, args: argparse.Namespace) -> tuple[dict[str, Any], str, int]:
    from mcpspy.io.lake.maintenance import remove_before

    try:
        first = (datetime.now(UTC) - timedelta(seconds=args.older_than)).date().isoformat()
    except OverflowError:
        first = date.min.isoformat()
    days = remove_before(lake, first)
    return {"days": days, "before": first}, f"{counted(days, 'day')} before {first} deleted", 0
