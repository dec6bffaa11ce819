"""`mcpspy import`: convert a file of another tool to a recording."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import orjson

from mcpspy.core.importers.base import ImportedSession
from mcpspy.core.importers.formats import FORMATS, ImportFormat
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.io.importing import STDIN, check, header, read, write
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import redactor
from mcpspy.ui.cli.options import (
    FOLDER,
    check_redaction,
    describe,
    describe_redaction,
    old_spelling,
    read_redaction,
)
from mcpspy.ui.terminal import Output

SHOWN = 8
"""Number of sessions that an error lists."""

_FORMATS = "\n".join(f"  {each.name:18}{each.about}" for each in FORMATS.values())

EPILOG = f"""\
examples:
  mcpspy import session.har
  mcpspy import cassette.json -o weather.jsonl && mcpspy mock weather.jsonl
  mcpspy import ~/.mcphawk/mcphawk.db --session 3f9c01ab22d4
  curl -s https://example.com/session.har | mcpspy import - --format json

formats, detected by content:
{_FORMATS}

mcpspy reports data that a format does not contain, on stderr and in the recording's
header. Imports are redacted like any recording, and existing files are never overwritten.

exit codes: 0; 1 an entry could not be redacted and was skipped; 2 usage error, or an
unknown or incomplete file (nothing is written); 3 file not readable or not writable
"""


class _OutputFormats(tuple[str, ...]):
    """The values of `--format`. Also contains the formats of files, which `--from` selects: the old spelling."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in FORMATS


class _SetFormat(argparse.Action):
    """Set `--format`, or what is now `--from`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        value: object,
        _: str | None = None,
    ) -> None:
        setattr(namespace, "source" if value in FORMATS else self.dest, value)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="file to import; - for stdin")
    parser.add_argument(
        "--from", metavar="NAME", dest="source", choices=FORMATS, help="format of FILE (default: detect it)"
    )
    options = {
        "--session": ("ID", "import this session of the file (default: import each as a recording)"),
        "-o --output": ("FILE", "the new recording, or a folder (default: the sessions folder)"),
        "--name": ("NAME", "session name (default: the server's name)"),
    }
    describe(parser, options)
    old_spelling(parser, "--out", "output")
    text = "output format (default: text); json: one object"
    choices = _OutputFormats(("text", "json"))
    parser.add_argument("--format", action=_SetFormat, choices=choices, default="text", help=text)
    old_spelling(parser, "--json", "format", action="store_const", const="json")
    describe(parser, FOLDER)
    describe_redaction(parser)


def main(args: argparse.Namespace) -> int:
    """Read the whole file before the first write."""
    check(args.output)
    check_redaction(read_redaction(args))
    format, found = read(args.file, args.source)  # noqa: A001
    sessions = _selected(args, found)
    if args.name is not None:
        for session in sessions:
            session.name = args.name
    heads = [
        header(session, format.name if args.file == STDIN else Path(args.file).stem) for session in sessions
    ]
    written: list[dict[str, object]] = []
    lost = 0
    for session, head in zip(sessions, heads, strict=True):
        redacting = redactor(read_redaction(args), say)
        path = write(head, session.lines, args.dir, args.output, redacting)
        lost += redacting.lost if redacting is not None else 0
        about = {"out": str(path), "session": session.key or None, "messages": session.messages}
        written.append({**about, "lacks": session.lacks, "changed": session.changed})
    for line in _remarks(format, sessions):
        say(sanitize(line))
    if lost:
        say(f"{lost} entries could not be redacted and were skipped")
    if args.format == "json":
        summary = {"in": args.file, "format": format.name, "sessions": written, "lost": lost}
        sys.stdout.buffer.write(orjson.dumps(summary, option=orjson.OPT_APPEND_NEWLINE))
    else:
        output = Output()
        for one in written:
            output.line(sanitize(f"{one['out']}: {one['messages']} messages"))
    return FINDINGS if lost else 0


def _selected(args: argparse.Namespace, found: list[ImportedSession]) -> list[ImportedSession]:
    """Return the sessions to import; raise UsageError if the selection is ambiguous."""
    shown = "stdin" if args.file == STDIN else args.file
    keys = sanitize(", ".join([session.key for session in found[:SHOWN]] + ["…"] * (len(found) > SHOWN)))
    if args.session is not None:
        selected = [session for session in found if session.key == args.session]
        if not selected:
            raise UsageError(
                f"{shown}: contains no session {args.session}",
                f"use {keys}" if keys else "its sessions have no ids",
            )
        return selected
    with_messages = [session for session in found if session.messages]
    if args.output is not None and len(with_messages) > 1 and not _is_folder(args.output):
        raise UsageError(
            f"{shown}: {len(with_messages)} sessions cannot be written to one file",
            f"use --session with {keys}",
        )
    return with_messages


def _is_folder(out: str) -> bool:
    return out.endswith(("/", os.sep)) or os.path.isdir(out)


def _remarks(format: ImportFormat, sessions: list[ImportedSession]) -> list[str]:  # noqa: A002
    """Return one line on the data that the format lacks, and one on changed data."""
    lacks = list(dict.fromkeys(lack for session in sessions for lack in session.lacks))
    changed = list(dict.fromkeys(change for session in sessions for change in session.changed))
    lines = [f"{format.name} does not contain: {'; '.join(lacks)}"] if lacks else []
    return [*lines, f"changed in this import: {'; '.join(changed)}"] if changed else lines
