"""`mcpspy diff`: compare two sessions.

Owns the options of a comparison, its reports and its exit code, which `mcpspy replay` shares.
"""

from __future__ import annotations

import argparse
import gc
import sys

from mcpspy.analysis.diff import (
    ChangeSeverity,
    DiffOptions,
    SessionDiff,
    compare,
    ignored,
    slower,
    unlisted,
)
from mcpspy.analysis.diff.options import LISTED
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Session
from mcpspy.errors import FINDINGS, CannotStart, UsageError
from mcpspy.io.recording.reader import Recording, find
from mcpspy.ui.cli.options import FOLDER, describe
from mcpspy.ui.terminal import Output, warn_incomplete

EPILOG = """\
examples:
  mcpspy diff yesterday.jsonl today.jsonl
  mcpspy diff weather.jsonl last --only tools
  mcpspy diff a.jsonl b.jsonl --ignore '/result/**/updated' --dates --slower-than 2x
  mcpspy diff a.jsonl b.jsonl --markdown - | gh pr comment --body-file -

OLD and NEW are files, `last`, a session's name, or its id (the beginning will do).
Ids, progress tokens, cursors, task ids and sealed states are never compared;
docs/diff.md says what is, and what is breaking, different, or just a note.

exit codes: 0 the same, or notes alone; 1 different; 2 usage, not a recording; 3 cannot
be read, or a report cannot be written
"""


STDOUT = "-"
"""A file name for the command's own output."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="what it was")
    parser.add_argument("new", metavar="NEW", help="what it is")
    parser.add_argument(
        "--only",
        metavar="PART",
        action="append",
        choices=list(LISTED),
        default=[],
        help="interface drift alone: tools, resources or prompts; may be given more than once",
    )
    describe_comparison(parser)
    describe(parser, FOLDER)


def describe_comparison(parser: argparse.ArgumentParser) -> None:
    options = {
        "--ignore": (
            "PATTERN",
            (
                "what may differ: a JSON pointer with * and **, after a method and a subject if need be, as in"
                " '/result/**/time' or 'tools/call clock /result/content/*/text'; may be given more than once"
            ),
        ),
        "--dates": (None, "texts that differ only in dates and times are the same"),
        "--slower-than": (
            "LIMIT",
            "say what became slower than this: 2x, 1.5x+20ms, 200ms; without it time is not compared",
        ),
    }
    describe(parser, options, repeated=("--ignore",))
    parser.add_argument(
        "--fail-on",
        choices=[str(severity) for severity in ChangeSeverity],
        default=str(ChangeSeverity.DIFFERENT),
        help="exit with 1 from this weight on (default: different; notes alone are fine)",
    )
    reports = {
        "--json": (None, "one JSON document in place of the report"),
        "--junit": ("FILE", "write JUnit XML, too"),
        "--markdown": ("FILE", "write Markdown for a pull request, too"),
    }
    describe(parser, reports)


def main(args: argparse.Namespace) -> int:
    options = read_comparison(args, frozenset(args.only))
    # Two sessions in memory are not garbage: collections would take as long as the comparison.
    gc.disable()
    try:
        old, new = _read(args.old, args, options), _read(args.new, args, options)
        return report(compare(old, new, options), (_title(args.old, old), _title(args.new, new)), args)
    finally:
        gc.enable()


def read_comparison(args: argparse.Namespace, only: frozenset[str] = frozenset()) -> DiffOptions:
    """Return the options of a comparison; raise UsageError, which names the wrong one."""
    patterns = []
    for text in args.ignore:
        try:
            patterns.append(ignored(text))
        except ValueError as error:
            raise UsageError(
                sanitize(f"--ignore {text}: {error}"), "like '/result/**/time' or 'tools/call clock /result'"
            ) from None
    try:
        limit = None if args.slower_than is None else slower(args.slower_than)
    except ValueError as error:
        raise UsageError(sanitize(f"--slower-than {args.slower_than}: {error}")) from None
    return DiffOptions(only=only, ignored=tuple(patterns), dates=args.dates, slower_than=limit)


def report(difference: SessionDiff, titles: tuple[str, str], args: argparse.Namespace) -> int:
    """Print the report, or one that is written to `-`; write the others; return the exit code.

    `titles` name the old session and the new one.
    """
    fail_on = ChangeSeverity(args.fail_on)
    if args.json:
        from mcpspy.ui.report.diff_json import document

        sys.stdout.buffer.write(document(difference, titles, fail_on=fail_on))
        sys.stdout.buffer.flush()
    elif STDOUT not in (args.junit, args.markdown):
        from mcpspy.ui.report.diff_text import terminal

        output = Output()
        for line, tone in terminal(difference, width=output.width, fail_on=fail_on):
            output.line(line, tone)
    if args.junit is not None:
        from mcpspy.ui.report.junit import diff_junit

        _write(args.junit, diff_junit(difference, titles, fail_on=fail_on))
    if args.markdown is not None:
        from mcpspy.ui.report.diff_markdown import markdown

        _write(args.markdown, markdown(difference, titles, fail_on=fail_on))
    return 0 if difference.is_same(fail_on) else FINDINGS


def _read(which: str, args: argparse.Namespace, options: DiffOptions) -> Session:
    recording = Recording(find(which, args.dir))
    session = recording.session()
    warn_incomplete(recording.path, recording.torn)
    if missing := unlisted(session, options):
        raise UsageError(
            f"{which}: its client never asked for the {' and '.join(missing)}",
            "there is nothing to compare: record a session that lists them",
        )
    return session


def _title(which: str, session: Session) -> str:
    """Return the name on the command line, and the id unless that is the name."""
    header = session.header
    assert header is not None
    return sanitize(which if header.id.startswith(which) else f"{which} ({header.id})")


def _write(path: str, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    if path == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise CannotStart(
            f"{path}: {error.strerror}", "the report was not written; name another file"
        ) from None
