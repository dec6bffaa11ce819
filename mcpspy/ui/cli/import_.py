"""`mcpspy import`: turn the file of another tool into a recording."""

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
from mcpspy.ui.cli.options import FOLDER, check_redaction, describe, describe_redaction, read_redaction
from mcpspy.ui.terminal import Output

SHOWN = 8
"""Number of sessions that an error names."""

_FORMATS = "\n".join(f"  {each.name:18}{each.about}" for each in FORMATS.values())

EPILOG = f"""\
examples:
  mcpspy import session.har
  mcpspy import cassette.json -o weather.jsonl && mcpspy mock weather.jsonl
  mcpspy import ~/.mcphawk/mcphawk.db --session 3f9c01ab22d4
  curl -s https://example.com/session.har | mcpspy import - --json

formats, told by what is in the file:
{_FORMATS}

What a format does not keep is said on stderr, and in the recording's header. The
recording is redacted as any other is, and is new: no file is overwritten.

exit codes: 0; 1 an entry could not be redacted and is left out; 2 usage, or a file of
no such format, or half of one: nothing is written; 3 cannot be read or written
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file of the other tool; - for stdin")
    parser.add_argument("--format", metavar="NAME", choices=FORMATS, help="what it is, whatever is in it")
    options = {
        "--session": ("ID", "this one of the sessions in it (default: each becomes a recording)"),
        "-o --out": ("FILE", "the recording, or its folder (default: the folder of sessions)"),
        "--name": ("NAME", "what to call the session (default: as its server)"),
        "--json": (None, "tell of it as one JSON object"),
        **FOLDER,
    }
    describe(parser, options)
    describe_redaction(parser)


def main(args: argparse.Namespace) -> int:
    """Read the whole file before anything is written."""
    check(args.out)
    check_redaction(read_redaction(args))
    format, found = read(args.file, args.format)  # noqa: A001 - it is one.
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
        path = write(head, session.lines, args.dir, args.out, redacting)
        lost += redacting.lost if redacting is not None else 0
        about = {"out": str(path), "session": session.key or None, "messages": session.messages}
        written.append({**about, "lacks": session.lacks, "changed": session.changed})
    for line in _remarks(format, sessions):
        say(sanitize(line))
    if lost:
        say(f"{lost} entries could not be redacted and are left out")
    if args.json:
        summary = {"in": args.file, "format": format.name, "sessions": written, "lost": lost}
        sys.stdout.buffer.write(orjson.dumps(summary, option=orjson.OPT_APPEND_NEWLINE))
    else:
        output = Output()
        for one in written:
            output.line(sanitize(f"{one['out']}: {one['messages']} messages"))
    return FINDINGS if lost else 0


def _selected(args: argparse.Namespace, found: list[ImportedSession]) -> list[ImportedSession]:
    """Return the sessions to import; raise UsageError if the selection is not clear."""
    shown = "stdin" if args.file == STDIN else args.file
    keys = sanitize(", ".join([session.key for session in found[:SHOWN]] + ["…"] * (len(found) > SHOWN)))
    if args.session is not None:
        selected = [session for session in found if session.key == args.session]
        if not selected:
            raise UsageError(f"{shown}: no session {args.session}", f"there are {keys or 'none with an id'}")
        return selected
    with_messages = [session for session in found if session.messages]
    if args.out is not None and len(with_messages) > 1 and not _is_folder(args.out):
        raise UsageError(
            f"{shown}: {len(with_messages)} sessions do not go into one file", f"--session ID: {keys}"
        )
    return with_messages


def _is_folder(out: str) -> bool:
    return out.endswith(("/", os.sep)) or os.path.isdir(out)


def _remarks(format: ImportFormat, sessions: list[ImportedSession]) -> list[str]:  # noqa: A002 - it is one.
    """Return one line on what the format lacks, and one on what was changed."""
    lacks = list(dict.fromkeys(lack for session in sessions for lack in session.lacks))
    changed = list(dict.fromkeys(change for session in sessions for change in session.changed))
    lines = [f"{format.name} does not keep: {'; '.join(lacks)}"] if lacks else []
    return [*lines, f"of this file: {'; '.join(changed)}"] if changed else lines
