"""`mcpspy diff`: compare two sessions.

Holds the options of a comparison, its reports and its exit code, which `mcpspy replay` shares.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from msgspec import structs

from mcpspy.analysis.diff import (
    ChangeSeverity,
    DiffOptions,
    Ignored,
    SessionDiff,
    compare,
    ignored,
    slower,
    unlisted,
)
from mcpspy.analysis.diff.model import LISTED, IgnoreSuggestion, ignore_suggestion
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Session
from mcpspy.errors import FINDINGS, CannotStart, UsageError
from mcpspy.io.recording.piped import STDIN
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.scan import no_collection
from mcpspy.ui.cli.arguments import session_path
from mcpspy.ui.cli.options import FOLDER, LAKE, Argument, Option, Options, Repeated, Switch, formats
from mcpspy.ui.cli.parser import reading
from mcpspy.ui.model.replay_settings import kept_ignored
from mcpspy.ui.text.terminal import Output, warn_incomplete

EPILOG = """\
examples:
  mcpspy diff yesterday.jsonl today.jsonl
  mcpspy diff weather.jsonl last --only tools
  mcpspy diff a.jsonl b.jsonl --ignore-path '/result/**/updated' --dates --slower-than 2x
  mcpspy diff a.jsonl b.jsonl --format markdown | gh pr comment --body-file -
  mcpspy diff a.jsonl b.jsonl --format junit -o diff.xml

OLD and NEW are files, `last`, session names, or beginnings of session ids. Request ids,
progress tokens, cursors, task ids and sealed states are never compared; docs/diff.md
describes what is compared, and which changes are breaking, different or notes.

exit codes: 0 same, or only notes; 1 different; 2 usage error or not a recording; 3 file
not readable, or report not writable
"""


STDOUT = "-"
"""The file name that means stdout."""

FORMATS = ("json", "junit", "markdown")


def comparison(*more: str) -> Options:
    """Return the options of a comparison; `more` are formats other than those of a diff."""
    about = "junit: XML; markdown: for a pull request"
    return (
        Repeated("--ignore-path", "PATTERN",
            "values that may differ: a JSON pointer with * and **, optionally after a method and a subject, e.g."
            " '/result/**/time' or 'tools/call clock /result/content/*/text'",
            read=reading(ignored, "use '/result/**/time' or 'tools/call clock /result'")),
        Switch("--dates", "treat texts that differ only in dates and times as equal"),
        Switch("--volatile",
            "like --dates, and also for UUIDs, hexadecimal ids, epochs, process ids, ports and temporary paths"
            " that change in the same place"),
        Option("--slower-than", "LIMIT",
            "report requests that became slower: 2x, 1.5x+20ms, 200ms (default: do not compare latency)",
            read=slower),
        Option("--fail-on", None, "exit 1 at or above this severity (default: different)",
            choices=[*map(str, ChangeSeverity)], default=str(ChangeSeverity.DIFFERENT)),
        Option("--show", None, "print only changes at or above this severity (default: note); the others are counted",
            choices=[*map(str, ChangeSeverity)], default=str(ChangeSeverity.NOTE)),
        *formats(f"{about}; {' and '.join(more)}: of a load test" if more else about, *FORMATS, *more),
        Option("-o --output", "FILE", "write --format to this file, and print text on stdout",
            requires="--format", hint=f"use --format {', '.join(FORMATS)}"),
    )  # fmt: skip


OPTIONS = (
    Argument("old", "OLD", "the session before the change, - for stdin"),
    Argument("new", "NEW", "the session after the change, - for stdin"),
    Repeated("--only", "PART", "compare only these listings: tools, resources or prompts",
        choices=list(LISTED)),
    *comparison(),
    FOLDER,
    LAKE,
)  # fmt: skip


# Two sessions in memory are not garbage: collections would take as long as the comparison itself.
@no_collection()
def main(args: argparse.Namespace) -> int:
    options = read_comparison(args, frozenset(args.only))
    if args.old == args.new == STDIN:
        raise UsageError("diff: stdin contains only one session", "use a file for the other one")
    old, new = _read(args.old, args, options), _read(args.new, args, options)

    def again(more: tuple[Ignored, ...]) -> SessionDiff:
        return compare(old, new, structs.replace(options, ignored=(*options.ignored, *more)))

    if old.header is not None and old.header == new.header:
        say(
            sanitize(
                f"diff: {args.old} and {args.new} are the same session, {old.header.id} (mcpspy ls lists ids)"
            )
        )
    titles = _title(args.old, old), _title(args.new, new)
    return report(compare(old, new, options), titles, args, again)


def read_comparison(args: argparse.Namespace, only: frozenset[str] = frozenset()) -> DiffOptions:
    """Return the options of a comparison, with the values that the settings ignore."""
    return DiffOptions(
        only=only,
        ignored=(*args.ignore_path, *kept_ignored()),
        dates=args.dates,
        volatile=args.volatile,
        slower_than=args.slower_than,
    )


def report(
    difference: SessionDiff,
    titles: tuple[str, str],
    args: argparse.Namespace,
    again: Callable[[tuple[Ignored, ...]], SessionDiff] | None = None,
) -> int:
    """Print text unless another format goes to stdout; write the other formats; return the exit code.

    `titles` name the old session and the new one; `again` compares them with more ignored values.
    """
    fail_on = ChangeSeverity(args.fail_on)
    has_ways = is_text_printed(args) or args.format != "junit"
    ways = (
        ignore_suggestion(difference, fail_on, again)
        if has_ways and not difference.is_same(fail_on)
        else None
    )
    if is_text_printed(args):
        from mcpspy.ui.report.diff import terminal, ways_to_ignore

        output = Output()
        show = ChangeSeverity(args.show)
        output.lines(terminal(difference, width=output.width, fail_on=fail_on, show=show))
        for number, line in enumerate(ways_to_ignore(ways)):
            if number == 0:
                output.line("to ignore these changes:")
            output.line(f"  {line}")
    if args.format != "text":
        write_report(args.output or STDOUT, _rendered(args.format, difference, titles, fail_on, ways))
    return 0 if difference.is_same(fail_on) else FINDINGS


def is_text_printed(args: argparse.Namespace) -> bool:
    """Return whether stdout has the text report, and no other format."""
    return args.format == "text" or (args.output or STDOUT) != STDOUT


def _rendered(
    form: str,
    difference: SessionDiff,
    titles: tuple[str, str],
    fail_on: ChangeSeverity,
    ways: IgnoreSuggestion | None,
) -> bytes:
    if form == "json":
        from mcpspy.ui.report.diff import document

        return document(difference, titles, fail_on=fail_on, ways=ways)
    if form == "junit":
        from mcpspy.ui.report.junit import diff_junit

        text = diff_junit(difference, titles, fail_on=fail_on)
    else:
        from mcpspy.ui.report.diff import markdown

        text = markdown(difference, titles, fail_on=fail_on, ways=ways)
    return text.encode("utf-8", "backslashreplace")


def _read(name: str, args: argparse.Namespace, options: DiffOptions) -> Session:
    recording = Recording(session_path(name, args.dir, lake=args.lake))
    session = recording.session()
    warn_incomplete(recording.path, recording.torn)
    if missing := unlisted(session, options):
        raise UsageError(
            f"{name}: its client never listed the {' and '.join(missing)}",
            "record a session that lists them",
        )
    return session


def _title(name: str, session: Session) -> str:
    """Return the name on the command line, followed by the session id unless the name is the id."""
    header = session.header
    assert header is not None
    name = "stdin" if name == STDIN else name
    return sanitize(name if header.id.startswith(name) else f"{name} ({header.id})")


def write_report(path: str, data: bytes) -> None:
    if path == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise CannotStart(
            f"{path}: {error.strerror}", "the report was not written; use another file"
        ) from None
