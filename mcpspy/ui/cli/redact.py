"""`mcpspy redact`: redact secrets from a recording, or from those of a folder."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mcpspy.core.counted import counted
from mcpspy.core.redact.reasons import Rest, placeholders, reason, rests
from mcpspy.core.redact.redactor import Redactor
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, CannotStart, McpspyError, UsageError
from mcpspy.io.recording.catalog import sessions
from mcpspy.io.recording.lookup import find
from mcpspy.io.recording.reader import RecordingState
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import STDOUT, RedactionOptions, clean, prepared, redactor
from mcpspy.ui.cli.arguments import is_folder
from mcpspy.ui.cli.options import ALWAYS_REDACTED, FOLDER, Argument, Option, Switch, formats
from mcpspy.ui.cli.parser import read_redaction
from mcpspy.ui.cli.workers import FOLDER_WORKERS, create_output, file_size, require_folder, results
from mcpspy.ui.text.terminal import Output, columns, print_json

EPILOG = """\
examples:
  mcpspy redact old.jsonl -o clean.jsonl
  mcpspy redact last -o shared.jsonl --redact-key pin --redact-env MY_TOKEN
  mcpspy redact --check recorded.jsonl    search for secrets, and write nothing
  mcpspy redact --check last --why        each secret with its rule, and what else looks random
  mcpspy redact recordings/ -o clean/ --workers 4    each file that clean/ does not have yet

SESSION is a file, a folder of recordings, `last`, a session name, or the beginning of a
session id. The report lists each secret by rule and location, never by value;
docs/redact.md lists the rules. Each part of a session in several parts is a file: redact
the files one by one, or their folder.

exit codes: 0; 1 --check found a secret, or an entry could not be redacted and was
skipped; 2 usage error; 3 file not readable or not writable, or a worker was killed
"""

_INDEX = re.compile(r"/\d+(?=/|$)")

Counts = Counter[tuple[str, str]]
"""Rule and JSON pointer → number of secrets."""


OPTIONS = (
    Argument("session", "SESSION", "the recording to redact, or a folder"),
    Option("-o --output", "FILE",
        "write to this new file, or those of a folder to this one; -: stdout, and the report to stderr",
        excludes=("--check",)),
    Switch("--check", "report what would be redacted, and write nothing"),
    Switch("--why", "of one file: list each secret with its rule, and the values that look random but are kept"),
    *formats("json: one object"),
    FOLDER,
    *FOLDER_WORKERS,
    *ALWAYS_REDACTED,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    out = args.output
    if out is None and not args.check:
        raise UsageError("redact: missing --output or --check", "use mcpspy redact SESSION -o FILE")
    if is_folder(args.session, args.dir):
        if args.why:
            raise UsageError("redact: --why is for one file", "name a file of this folder")
        return _redact_folder(Path(args.session), None if out is None else Path(out), args)
    require_folder(args, args.session)
    source = str(find(args.session, args.dir))
    counts = Counts()
    why = Why()
    redacting = _counting(read_redaction(args, ALWAYS_REDACTED), counts, why=why if args.why else None)
    torn = clean(source, out, redacting, why.look if args.why else None)
    with redirect_stdout(sys.stderr if out == STDOUT else sys.stdout):
        if args.format == "json":
            more = why.document() if args.why else {}
            print_json(
                {"in": source, "out": out, **_found(counts), "lost": redacting.lost, "torn": torn, **more}
            )
        else:
            _print(source, out, counts, redacting.lost, torn, why=why if args.why else None)
    return FINDINGS if redacting.lost or (args.check and counts) else 0


class _Redacted(NamedTuple):
    """The result of one file. Can be pickled."""

    counts: Counts
    lost: int
    torn: int
    failure: str | None = None


def _redact_folder(folder: Path, out: Path | None, args: argparse.Namespace) -> int:
    """Redact the recordings of a folder that have ended; those that the other folder has already are left alone."""
    options = prepared(read_redaction(args, ALWAYS_REDACTED), say)
    found = [*reversed(sessions(str(folder), entries=False))]
    if not found:
        raise UsageError(sanitize(f"{folder}: this folder contains no recordings"), "name another folder")
    ended = [summary for summary in found if summary.state is not RecordingState.LIVE]
    files = [folder / name for summary in ended for name in (summary.path.name, *summary.parts)]
    if out is not None:
        create_output(out, folder)
    left = [file for file in files if out is None or not (out / file.name).exists()]
    counts = Counts()
    lost = torn = failed = 0
    output = Output()
    # One key: a secret has the same placeholder in all files of a run.
    redact = partial(_redacted, out=out, options=options, key=os.urandom(32))
    with results(args, redact, left, file_size, is_shown=True) as redacted:
        for file, one in zip(left, redacted, strict=True):
            counts, lost, torn = counts + one.counts, lost + one.lost, torn + bool(one.torn)
            if one.failure is not None:
                failed += 1
                say(one.failure)
            elif out is None and one.counts and args.format == "text":
                output.line(sanitize(f"{file}: {counted(one.counts.total(), 'secret')}"))
    numbers = {
        "files": len(left) - failed,
        "present": len(files) - len(left),
        "live": len(found) - len(ended),
    }
    if args.format == "json":
        document = {"in": str(folder), "out": None if out is None else str(out), **numbers, "failed": failed}
        print_json({**document, **_found(counts), "lost": lost, "torn": torn})
    else:
        text = f"{folder if out is None else out}: {counted(numbers['files'], 'file')}"
        text += f", {counted(counts.total(), 'secret')}{'' if out is None else ' redacted'}"
        text += f", {numbers['present']} present" if numbers["present"] else ""
        text += f", {numbers['live']} live and left out" if numbers["live"] else ""
        _print_counts(output, text, counts, lost)
        if torn:
            output.line(f"{counted(torn, 'file')} with an incomplete last line, which was skipped")
    if failed:
        return CannotStart.exit_code
    return FINDINGS if lost or (args.check and counts) else 0


def _redacted(file: Path, out: Path | None, options: RedactionOptions, key: bytes) -> _Redacted:
    """Redact one file. It gets its name when it is complete: a run that was interrupted can be continued."""
    counts = Counts()
    redacting = _counting(options, counts, key)
    aside = None if out is None else out / f".{file.name}.tmp"
    try:
        if out is None or aside is None:
            return _Redacted(counts, torn=clean(str(file), None, redacting), lost=redacting.lost)
        aside.unlink(missing_ok=True)  # Of a process that was killed.
        torn = clean(str(file), str(aside), redacting)
        aside.replace(out / file.name)
    except McpspyError as error:
        return _Redacted(Counts(), 0, 0, sanitize(str(error)))
    except OSError as error:
        return _Redacted(Counts(), 0, 0, sanitize(f"{error.filename}: {error.strerror}"))
    return _Redacted(counts, redacting.lost, torn)


class Why:
    """The secrets of one file, each with its line and its rule, and what else in it looks random."""

    def __init__(self) -> None:
        self._line: list[tuple[str, str]] = []
        """Rules and pointers of the line that is being redacted."""
        self.secrets: list[tuple[int, str, str, str]] = []
        """Line, rule, pointer, and reason; `before` is the rule of a placeholder that was there already."""
        self.rests: dict[Rest, list[int]] = {}
        """Values that look random, by place without indexes → the lines with them."""

    def found(self, rule: str, pointer: str) -> None:
        self._line.append((rule, pointer))

    def look(self, number: int, line: bytes) -> None:
        """Add a line, after it was redacted."""
        found, self._line = self._line, []
        self.secrets += ((number, rule, pointer, reason(rule)) for rule, pointer in found)
        pointers = {pointer for _, pointer in found}
        self.secrets += (
            (number, "before", pointer, why) for pointer, why in placeholders(line) if pointer not in pointers
        )
        for rest in rests(line):
            place = rest._replace(pointer=_INDEX.sub("/*", rest.pointer))
            self.rests.setdefault(place, []).append(number)

    def document(self) -> dict[str, object]:
        names = ("line", "rule", "pointer", "why")
        return {
            "why": [dict(zip(names, secret, strict=True)) for secret in self.secrets],
            "random": [{**rest._asdict(), "lines": lines} for rest, lines in self.rests.items()],
        }

    def print(self, output: Output) -> None:
        for line, rule, pointer, why in self.secrets:
            where = sanitize(pointer) or "(not JSON)"
            output.line(columns((f"line {line}", sanitize(rule), where, sanitize(why)), (-12, 20, 36, 0)))
        if self.rests:
            count = sum(map(len, self.rests.values()))
            verb = "look" if count > 1 else "looks"
            output.line(f"{counted(count, 'value')} that {verb} random and would be kept:")
        for rest, lines in self.rests.items():
            where = f"line {lines[0]}" + (f" and {len(lines) - 1} more" if len(lines) > 1 else "")
            row = (where, rest.shape, sanitize(rest.pointer), f"redact it with {sanitize(rest.option)}")
            output.line(columns(row, (-20, 24, 36, 0)))


def _counting(
    options: RedactionOptions, counts: Counts, key: bytes | None = None, why: Why | None = None
) -> Redactor:
    """Return a redactor that counts what it finds, by rule and location without indexes."""

    def found(rule: str, pointer: str) -> None:
        counts.update([(rule, _INDEX.sub("/*", pointer))])
        if why is not None:
            why.found(rule, pointer)

    redacting = redactor(options, say, found, key=key)
    assert redacting is not None  # ALWAYS_REDACTED has no option that turns it off.
    return redacting


def _found(counts: Counts) -> dict[str, object]:
    found = [
        {"rule": rule, "pointer": pointer, "count": count} for (rule, pointer), count in counts.most_common()
    ]
    return {"secrets": counts.total(), "found": found}


def _print(source: str, out: str | None, counts: Counts, lost: int, torn: int, *, why: Why | None) -> None:
    output = Output()
    secrets = counted(counts.total(), "secret")
    text = f"{source}: {secrets}" if out is None else f"{out}: {secrets} redacted"
    _print_counts(output, text, counts, lost)
    if why is not None:
        why.print(output)
    if torn:
        output.line(
            f"the last line is incomplete ({torn} bytes skipped): mcpspy was stopped while writing it"
        )


def _print_counts(output: Output, text: str, counts: Counts, lost: int) -> None:
    output.line(sanitize(text))
    for (rule, pointer), count in counts.most_common():
        output.line(columns((str(count), sanitize(rule), sanitize(pointer) or "(not JSON)"), (-7, 20, 0)))
    if lost:
        output.line(f"{lost} could not be redacted and were skipped; the file contains a note for each")
