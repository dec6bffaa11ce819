"""`mcpspy ls`: the recorded sessions."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import Any

import orjson

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.recording.catalog import SessionCounts, count
from mcpspy.io.recording.reader import RecordingState, Summary, sessions
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.cli.options import FOLDER, describe
from mcpspy.ui.terminal import Output, columns

EPILOG = """\
examples:
  mcpspy ls
  mcpspy ls --count
  mcpspy ls --json | jq -r 'select(.state == "live") | .path'

live: its server runs · ended: with its exit code · died: mcpspy was killed, what
peers had seen is there · entries: messages and notes
"""

_GLYPHS = {RecordingState.LIVE: "●", RecordingState.ENDED: "○", RecordingState.DIED: "✗"}
_TONES = {RecordingState.LIVE: rows.OK, RecordingState.ENDED: None, RecordingState.DIED: rows.BAD}
_WIDTHS = (1, 8, 20, 19, 22, 18, 24, 10, -8, -7, -7)
_HEADS = ("", "id", "name", "started", "state", "server", "client", "revision", "time", "entries", "size")
_COUNT_WIDTHS = (-8, -7, -7)


def configure(parser: argparse.ArgumentParser) -> None:
    count = "messages, errors and pending requests, too: reads every file"
    describe(parser, {**FOLDER, "--count": (None, count), "--json": (None, "one JSON object a session")})


def main(args: argparse.Namespace) -> int:
    """List the sessions, the newest last, next to the prompt."""
    found = sessions(args.dir)[::-1]
    if args.json:
        for summary in found:
            document = as_json(summary) | (_counts(summary) if args.count else {})
            sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))
        return 0
    output = Output()
    if not found:
        output.line(f"No session in {sessions_folder(args.dir)} yet. Record one:")
        output.line("  mcpspy run -- COMMAND …   in place of COMMAND in your host's config")
        output.line("  mcpspy demo               to see how it looks first")
        return 0
    heads, most = list(_HEADS), list(_WIDTHS)
    table = [_cells(summary) for summary in found]
    if args.count:
        heads += SessionCounts._fields
        most += _COUNT_WIDTHS
        for summary, cells in zip(found, table, strict=True):
            cells += ["" if number is None else str(number) for number in _counts(summary).values()]
    widths = [
        _fit(width, [head, *(cells[i] for cells in table)])
        for i, (head, width) in enumerate(zip(heads, most, strict=True))
    ]
    output.line(columns(heads, widths), rows.QUIET)
    for summary, cells in zip(found, table, strict=True):
        output.line(columns(cells, widths), _TONES[summary.state])
    return 0


def as_json(summary: Summary) -> dict[str, Any]:
    """Return a session as `--json` prints it."""
    header, note = summary.header, summary.exit
    return {
        "id": header.id,
        "name": header.name,
        "state": str(summary.state),
        "exit": note.fields.get("code") if note else None,
        "signal": note.fields.get("signal") if note else None,
        "started": header.started,
        "seconds": summary.last,
        "transport": header.transport,
        "command": header.command,
        "server": summary.server._asdict() if summary.server else None,
        "client": summary.client._asdict() if summary.client else None,
        "revision": summary.revision,
        "entries": summary.entries,
        "size": summary.size,
        "path": str(summary.path),
    }


def _cells(summary: Summary) -> list[str]:
    header = summary.header
    state = f"{summary.state}, {rows.ending(summary.exit)}" if summary.exit else str(summary.state)
    return [
        _GLYPHS[summary.state],
        sanitize(header.id),
        sanitize(header.name),
        _local(header.started),
        state,
        sanitize(str(summary.server or "")),
        sanitize(str(summary.client or "")),
        sanitize(summary.revision or ""),
        rows.duration(summary.last),
        str(summary.entries),
        rows.size(summary.size),
    ]


def _counts(summary: Summary) -> dict[str, int | None]:
    try:
        return count(summary)._asdict()
    except (OSError, McpspyError):  # Deleted meanwhile.
        return dict.fromkeys(SessionCounts._fields)


def _local(started: str) -> str:
    try:
        return datetime.fromisoformat(started).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return sanitize(started)


def _fit(most: int, cells: list[str]) -> int:
    """Return the width of a column: of its widest cell, at most `most`."""
    width = min(abs(most), max(map(len, cells)))
    return width if most > 0 else -width
