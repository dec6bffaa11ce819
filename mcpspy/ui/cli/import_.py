"""`mcpspy import`: convert a file of another tool to a recording, or those of a folder."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.core.counted import counted
from mcpspy.core.importers.base import ImportedSession
from mcpspy.core.importers.formats import FORMATS
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, CannotStart, McpspyError, UsageError
from mcpspy.io.importing import STDIN, check, files_to_import, header, read, write, write_next_to
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import RedactionOptions, prepared, redactor
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.cli.options import FOLDER, REDACTION, Argument, Option, formats
from mcpspy.ui.cli.parser import check_redaction, read_redaction
from mcpspy.ui.cli.workers import FOLDER_WORKERS, create_output, file_size, require_folder, results
from mcpspy.ui.text.terminal import Output, print_json

SHOWN = 8
"""Number of sessions that an error lists."""

_FORMATS = "\n".join(f"  {each.name:18}{each.about}" for each in FORMATS.values())

EPILOG = f"""\
examples:
  mcpspy import session.har
  mcpspy import cassette.json -o weather.jsonl && mcpspy mock weather.jsonl
  mcpspy import ~/.mcphawk/mcphawk.db --session 3f9c01ab22d4
  mcpspy import ~/Library/Logs/Claude --from claude-desktop -o imported/ --workers 4
  curl -s https://example.com/session.har | mcpspy import - --format json

formats, detected by content:
{_FORMATS}

Of a folder, each file is imported that has no recording in the other folder yet, under
its own name. mcpspy reports data that a format does not contain, on stderr and in the recording's
header. Imports are redacted like any recording, and existing files are never overwritten.

exit codes: 0; 1 an entry could not be redacted and was skipped; 2 usage error, or an
unknown or incomplete file (nothing is written); 3 file not readable or not writable, a
file of a folder not imported, or a worker was killed
"""


OPTIONS = (
    Argument("file", "FILE", "file to import, or a folder of files; - for stdin"),
    Option("--from", "NAME", "format of FILE (default: detect it)", choices=FORMATS, dest="source"),
    Option("--session", "ID", "import this session of the file (default: import each as a recording)"),
    Option("-o --output", "FILE", "the new recording, or a folder (default: the sessions folder)"),
    Option("--name", "NAME", "session name (default: the server's name)"),
    *formats("json: one object"),
    FOLDER,
    *FOLDER_WORKERS,
    *REDACTION,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Read the whole file before the first write."""
    if args.file != STDIN and Path(args.file).is_dir():
        return _import_folder(Path(args.file), args)
    require_folder(args, args.file)
    check(args.output)
    check_redaction(read_redaction(args, REDACTION))
    format, found = read(args.file, args.source)  # noqa: A001
    sessions = _selected(args, found)
    if args.name is not None:
        for session in sessions:
            session.name = args.name
    heads = [
        header(session, format.name if args.file == STDIN else Path(args.file).stem) for session in sessions
    ]
    written: list[dict[str, Any]] = []
    lost = 0
    for session, head in zip(sessions, heads, strict=True):
        redacting = redactor(read_redaction(args, REDACTION), say)
        path = write(head, session.lines, args.dir, args.output, redacting)
        lost += redacting.lost if redacting is not None else 0
        written.append(_described(path, session))
    _say_remarks({format.name: written}, lost)
    if args.format == "json":
        summary = {"in": args.file, "format": format.name, "sessions": written, "lost": lost}
        print_json(summary)
    else:
        output = Output()
        for one in written:
            output.line(sanitize(f"{one['out']}: {one['messages']} messages"))
    return FINDINGS if lost else 0


class _Imported(NamedTuple):
    """The result of one file of a folder. Can be pickled."""

    format: str = ""
    sessions: Sequence[dict[str, Any]] = ()
    lost: int = 0
    failure: str | None = None


def _import_folder(folder: Path, args: argparse.Namespace) -> int:
    """Import the files of a folder; those that have a recording in the other folder already are left alone."""
    if args.session is not None:
        raise UsageError("--session: not possible with a folder", "name the file")
    options = prepared(read_redaction(args, REDACTION), say)
    files = files_to_import(folder)
    if not files:
        raise UsageError(sanitize(f"{folder}: this folder contains no files"), "name another folder")
    out = Path(sessions_folder(args.dir) if args.output is None else args.output)
    create_output(out, folder)
    left = [file for file in files if not _recording_of(file, out).exists()]
    written: dict[str, list[dict[str, Any]]] = {}
    lost, failed = 0, list[str]()
    output = Output()
    # One key: a secret has the same placeholder in all recordings of a run.
    convert = partial(_imported, out=out, args=args, options=options, key=os.urandom(32))
    with results(args, convert, left, file_size, is_shown=True, what="files") as imported:
        for one in imported:
            lost += one.lost
            if one.failure is not None:
                failed.append(one.failure)
                say(one.failure)
            written.setdefault(one.format, []).extend(one.sessions)
            if args.format == "text":
                for session in one.sessions:
                    output.line(sanitize(f"{session['out']}: {session['messages']} messages"))
    _say_remarks(written, lost)
    every = [session for sessions in written.values() for session in sessions]
    numbers = {"files": len(left) - len(failed), "present": len(files) - len(left)}
    if args.format == "json":
        summary = {"in": str(folder), "out": str(out), **numbers, "sessions": every}
        print_json({**summary, "failures": failed, "lost": lost})
    else:
        text = f"{out}: {counted(len(every), 'recording')} of {counted(numbers['files'], 'file')}"
        output.line(sanitize(text + (f", {numbers['present']} present" if numbers["present"] else "")))
    if failed:
        return CannotStart.exit_code
    return FINDINGS if lost else 0


def _recording_of(file: Path, out: Path) -> Path:
    """Return the first recording of a file, which is written last."""
    return out / f"{file.name}.jsonl"


def _imported(
    file: Path, out: Path, args: argparse.Namespace, options: RedactionOptions, key: bytes
) -> _Imported:
    """Import one file of a folder. A run that was interrupted can be continued."""
    try:
        format, found = read(str(file), args.source)  # noqa: A001
        sessions = [session for session in found if session.messages]
        written, lost = list[dict[str, Any]](), 0
        for number, session in reversed([*enumerate(sessions, 1)]):
            session.name = session.name if args.name is None else args.name
            redacting = redactor(options, say, key=key)
            head = header(session, file.stem)
            path = write_next_to(_recording_of(file, out), head, session.lines, redacting, number)
            lost += redacting.lost if redacting is not None else 0
            written.append(_described(path, session))
    except McpspyError as error:
        return _Imported(failure=sanitize(str(error)))
    return _Imported(format.name, written[::-1], lost)


def _described(path: Path, session: ImportedSession) -> dict[str, Any]:
    about = {"out": str(path), "session": session.key or None, "messages": session.messages}
    return {**about, "lacks": session.lacks, "changed": session.changed}


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
    is_folder = args.output is not None and (
        args.output.endswith(("/", os.sep)) or os.path.isdir(args.output)
    )
    if args.output is not None and len(with_messages) > 1 and not is_folder:
        raise UsageError(
            f"{shown}: {len(with_messages)} sessions cannot be written to one file",
            f"use --session with {keys}",
        )
    return with_messages


def _say_remarks(written: Mapping[str, Sequence[Mapping[str, Any]]], lost: int) -> None:
    """Say what each format lacks, what of its data was changed, and how many entries were lost."""
    for name, sessions in written.items():
        if lacks := dict.fromkeys(lack for session in sessions for lack in session["lacks"]):
            say(sanitize(f"{name} does not contain: {'; '.join(lacks)}"))
        if changed := dict.fromkeys(change for session in sessions for change in session["changed"]):
            say(sanitize(f"changed in this import: {'; '.join(changed)}"))
    if lost:
        say(f"{lost} entries could not be redacted and were skipped")
