"""`mcpspy prune`: delete old sessions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.recording.decode import Header
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.recording.catalog import sessions
from mcpspy.io.recording.reader import RecordingState, Summary, delete, files_of, headers, read_header_of
from mcpspy.io.settings import config_file, sessions_folder, table
from mcpspy.ui.cli.arguments import age
from mcpspy.ui.cli.options import FOLDER, Option, Switch, formats, size
from mcpspy.ui.cli.parser import integer
from mcpspy.ui.text.terminal import Output, columns, print_json

EPILOG = """\
examples:
  mcpspy prune --older-than 30d --dry-run
  mcpspy prune --keep 100 --max-size 5GB
  mcpspy prune                   the limits of the table [prune] in mcpspy.toml

Deletes each session that exceeds any of the limits, with all of its parts. Live
sessions are never deleted. With a table [prune] in mcpspy.toml, mcpspy also does this
in the background when a session starts.

exit codes: 0; 2 usage error or no limit; 3 a session could not be deleted
"""

_WIDTHS = (8, 24, 19, -7, 0)


FIRST_YEAR = 2024
"""The first year of MCP. A session with an earlier start was recorded before the clock of its machine was set."""


class Limits(NamedTuple):
    """The limits of a folder of sessions; None: no limit."""

    age: float | None
    """Seconds since the end of a session."""
    keep: int | None
    """Number of sessions."""
    size: int | None
    """Bytes of all sessions."""


_UNLIMITED = Limits(None, None, None)


class PrunedSession(NamedTuple):
    """A session to delete, and why."""

    summary: Summary
    reason: str
    files: list[Path]
    size: int
    """Bytes of its files."""


_READERS = {
    "older_than": age,
    "keep": integer("number of sessions", "use 100", 0),
    "max_size": size,
}
"""The limits in the settings, and the functions that read them."""

OPTIONS = (
    Option("--older-than", "AGE", "delete sessions that ended longer ago than this: 12h, 30d, 8w", read=age),
    Option("--keep", "N", "keep only the newest N sessions", read=_READERS["keep"]),
    Option("--max-size", "SIZE", "delete the oldest sessions until the others fit: 500M, 5GB", read=size),
    Switch("--dry-run", "print what would be deleted, and delete nothing"),
    Option("--config", "FILE", "settings file (default: mcpspy.toml in the user's config folder)"),
    FOLDER,
    *formats("json: one object"),
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    limits = _limits(args)
    found = sessions(args.dir)
    deleted: list[PrunedSession] = []
    failures: list[str] = []
    for session in _with_files(list(selected(found, limits, datetime.now(UTC))), args.dir):
        try:
            if not args.dry_run:
                delete(session.summary, session.files)
            deleted.append(session)
        except McpspyError as error:
            failures.append(sanitize(str(error)))
    if deleted and not args.dry_run:
        sessions(args.dir)  # Removes them from the cache, too.
    for failure in failures:
        sys.stderr.write(f"mcpspy: prune: {failure}\n")
    if args.format == "json":
        print_json(_document(deleted, failures, len(found) - len(deleted), is_dry=args.dry_run))
    else:
        _print(deleted, len(found) - len(deleted), is_dry=args.dry_run)
    return CannotStart.exit_code if failures else 0


def selected(found: Sequence[Summary], limits: Limits, now: datetime) -> Iterator[tuple[Summary, str]]:
    """Yield the sessions that exceed a limit, each with the reason; `found` has the newest first."""
    size = sum(summary.size for summary in found if summary.state is RecordingState.LIVE)
    for number, summary in enumerate(found):
        if summary.state is RecordingState.LIVE:
            continue
        size += summary.size
        if limits.keep is not None and number >= limits.keep:
            yield summary, f"not one of the newest {limits.keep}"
        elif limits.age is not None and _age(summary, now) > limits.age:
            yield summary, f"ended {_age(summary, now) / 86400:.1f} days ago"
        elif limits.size is not None and size > limits.size:
            yield summary, f"newer sessions and this one have {rows.size(size)}B"


def _age(summary: Summary, now: datetime) -> float:
    """Return the seconds since the end of a session; 0 if its header has no valid time."""
    try:
        started = datetime.fromisoformat(summary.header.started)
        if started.year < FIRST_YEAR:
            return now.timestamp() - summary.path.stat().st_mtime
        return (now - started - timedelta(seconds=summary.last)).total_seconds()
    except (ValueError, TypeError, OverflowError, OSError):  # Not a time, or one without a zone.
        return 0.0


def _with_files(found: list[tuple[Summary, str]], folder: str | None) -> Iterator[PrunedSession]:
    """Yield the sessions with their files, which are found by one pass over the folder."""
    files: dict[tuple[str, str], list[tuple[Path, Header]]] = {}
    for path, header in headers(Path(sessions_folder(folder))) if found else ():
        files.setdefault((header.id, header.started), []).append((path, header))
    for summary, reason in found:
        header = summary.header
        try:
            # Read the headers again: the pass may have been minutes ago.
            same = [(path, read_header_of(path)) for path, _ in files.get((header.id, header.started), [])]
            own = files_of(summary, same)
            size = sum(path.stat().st_size for path in own)
        except (OSError, McpspyError):  # It was deleted in the meantime.
            continue
        if summary.path in own:
            yield PrunedSession(summary, reason, own, size)


def _limits(args: argparse.Namespace) -> Limits:
    """Return the limits of the options, or else of the settings. Raise UsageError."""
    limits = Limits(args.older_than, args.keep, args.max_size)
    if limits != _UNLIMITED:
        return limits
    settings, file = table("prune", args.config), args.config or config_file()
    if unknown := sorted(settings.keys() - _READERS.keys()):
        raise UsageError(
            sanitize(f"{file}: [prune] {unknown[0]}: unknown setting"), f"use {', '.join(_READERS)}"
        )
    limits = Limits(*(_setting(file, name, settings.get(name)) for name in _READERS))
    if limits == _UNLIMITED:
        raise UsageError("prune: no limit", "use --older-than, --keep or --max-size")
    return limits


def _setting(file: str, name: str, value: Any) -> Any:
    try:
        return None if value is None else _READERS[name](str(value))
    except UsageError as error:
        raise UsageError(sanitize(f"{file}: [prune] {name} {value}: {error.args[0]}"), error.hint) from None


def _document(
    deleted: list[PrunedSession], failures: list[str], kept: int, *, is_dry: bool
) -> dict[str, Any]:
    return {
        "dry_run": is_dry,
        "deleted": [
            {
                "id": each.summary.header.id,
                "name": each.summary.header.name,
                "started": each.summary.header.started,
                "path": str(each.summary.path),
                "files": [str(path) for path in each.files],
                "size": each.size,
                "reason": each.reason,
            }
            for each in deleted
        ],
        "freed": sum(each.size for each in deleted),
        "kept": kept,
        "failures": failures,
    }


def _print(deleted: list[PrunedSession], kept: int, *, is_dry: bool) -> None:
    output = Output()
    for each in deleted:
        header = each.summary.header
        texts = sanitize(header.id), sanitize(header.name), sanitize(header.started[:19])
        output.line(columns((*texts, rows.size(each.size), each.reason), _WIDTHS))
    files, freed = sum(len(each.files) for each in deleted), rows.size(sum(each.size for each in deleted))
    did, frees = ("would delete", "would free") if is_dry else ("deleted", "freed")
    output.line(
        f"{did} {counted(len(deleted), 'session')} ({counted(files, 'file')}), {frees} {freed}B;"
        f" {counted(kept, 'session')} kept"
    )
