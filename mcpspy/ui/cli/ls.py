"""`mcpspy ls`: list the recorded sessions."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import Any

import orjson

from mcpspy.analysis import rows
from mcpspy.core.redact.display import redacted_command
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.recording.catalog import SessionCounts, count
from mcpspy.io.recording.reader import RecordingState, Summary, sessions
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.cli.options import FOLDER, describe, describe_format
from mcpspy.ui.terminal import Output, cells, columns

EPILOG = """\
examples:
  mcpspy ls
  mcpspy ls --count
  mcpspy ls --format json | jq -r 'select(.state == "live") | .path'

name: of the session · server: name and version that the server sent in the handshake
● live: the server is running · ○ ended: with this exit code or signal
✗ died: mcpspy was killed; all forwarded messages are in the recording
entries: messages and notes
"""

_GLYPHS = {RecordingState.LIVE: "●", RecordingState.ENDED: "○", RecordingState.DIED: "✗"}
_TONES = {RecordingState.LIVE: rows.OK, RecordingState.ENDED: None, RecordingState.DIED: rows.BAD}
_WIDTHS = (1, 8, 24, 28, 19, 22, 24, 10, -8, -7, -7)
_HEADS = ("", "id", "name", "server", "started", "state", "client", "revision", "time", "entries", "size")
_COUNT_WIDTHS = (-8, -7, -7, -10)


def configure(parser: argparse.ArgumentParser) -> None:
    describe(parser, FOLDER)
    count = "also count messages, errors, pending and unanswered requests; reads every file"
    describe(parser, {"--count": (None, count)})
    describe_format(parser, "json: one object per session")


def main(args: argparse.Namespace) -> int:
    """List the sessions, the newest last: next to the prompt."""
    found = sessions(args.dir)[::-1]
    if args.format == "json":
        for summary in found:
            document = as_json(summary) | (_counts(summary) if args.count else {})
            sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))
        return 0
    output = Output()
    if not found:
        output.line(f"No sessions in {sessions_folder(args.dir)} yet. Record one:")
        output.line("  mcpspy run -- COMMAND …   replaces COMMAND in the configuration of your host")
        output.line("  mcpspy demo               records a sample session")
        return 0
    heads, limits = list(_HEADS), list(_WIDTHS)
    table = [_cells(summary) for summary in found]
    if args.count:
        heads += SessionCounts._fields
        limits += _COUNT_WIDTHS
        for summary, row in zip(found, table, strict=True):
            row += ["" if number is None else str(number) for number in _counts(summary).values()]
    widths = [
        _fit(width, [head, *(row[i] for row in table)])
        for i, (head, width) in enumerate(zip(heads, limits, strict=True))
    ]
    output.line(columns(heads, widths), rows.QUIET)
    for summary, row in zip(found, table, strict=True):
        output.line(columns(row, widths), _TONES[summary.state])
    return 0


def as_json(summary: Summary) -> dict[str, Any]:
    """Return a session as `--format json` prints it."""
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
        "command": header.command and redacted_command(header.command),
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
        sanitize(str(summary.server or "")),
        _local(header.started),
        state,
        sanitize(str(summary.client or "")),
        sanitize(summary.revision or ""),
        rows.duration(summary.last),
        str(summary.entries),
        rows.size(summary.size),
    ]


def _counts(summary: Summary) -> dict[str, int | None]:
    try:
        return count(summary)._asdict()
    except (OSError, McpspyError):  # The file was deleted in the meantime.
        return dict.fromkeys(SessionCounts._fields)


def _local(started: str) -> str:
    try:
        return datetime.fromisoformat(started).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return sanitize(started)


def _fit(limit: int, texts: list[str]) -> int:
    """Return the width of a column: that of its widest cell, at most `limit`."""
    width = min(abs(limit), max(map(cells, texts)))
    return width if limit > 0 else -width
