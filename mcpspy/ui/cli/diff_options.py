"""What every command that compares sessions takes, and how it reports.

Owns the options of a comparison and its reports, and the exit code. Refuses to
know where the two sessions come from: `diff` reads both, `replay` makes one.
"""

from __future__ import annotations

import argparse
import sys

from mcpspy.analysis.diff import ChangeSeverity, DiffOptions, SessionDiff, ignored, slower
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, CannotStart, UsageError
from mcpspy.ui.cli.options import describe
from mcpspy.ui.terminal import Output

STDOUT = "-"
"""A file name that stands for the command's own output."""


def configure_comparison(parser: argparse.ArgumentParser) -> None:
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


def options_of(args: argparse.Namespace, only: frozenset[str] = frozenset()) -> DiffOptions:
    """Return what the options mean; raise UsageError, in the name of the one that is wrong."""
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
    """Print the report, write those that are asked for; return the exit code.

    `titles` name the old session and the new one. A file that is `-` is printed
    in place of the report.
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
