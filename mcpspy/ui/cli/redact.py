"""`mcpspy redact`: redact secrets from a recording."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from contextlib import redirect_stdout

import orjson

from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.io.recording.catalog import find
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import STDOUT, clean, redactor
from mcpspy.ui.cli.options import FOLDER, describe, describe_format, describe_redaction, read_redaction
from mcpspy.ui.terminal import Output, columns

EPILOG = """\
examples:
  mcpspy redact old.jsonl -o clean.jsonl
  mcpspy redact last -o shared.jsonl --redact-key pin --redact-env MY_TOKEN
  mcpspy redact --check recorded.jsonl    search for secrets, and write nothing

SESSION is a file, `last`, a session name, or the beginning of a session id. The report
lists each secret by rule and location, never by value; docs/redact.md lists the rules.
Each part of a session in several parts is a file: redact the files one by one.

exit codes: 0; 1 --check found a secret, or an entry could not be redacted and was
skipped; 2 usage error; 3 file not readable or not writable
"""

_INDEX = re.compile(r"/\d+(?=/|$)")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="the recording to redact")
    parser.add_argument("old_output", nargs="?", help=argparse.SUPPRESS)  # The old spelling of --output.
    options = {
        "-o --output": (
            "FILE",
            "write the redacted recording to this new file; -: stdout, and the report to stderr",
        ),
        "--check": (None, "report what would be redacted, and write nothing"),
    }
    describe(parser, options)
    describe_format(parser, "json: one object")
    describe(parser, FOLDER)
    describe_redaction(parser, can_be_off=False)


def main(args: argparse.Namespace) -> int:
    out = args.old_output if args.output is None else args.output
    if args.output is not None and args.old_output is not None:
        raise UsageError(
            sanitize(f"redact: unexpected argument {args.old_output}"), "see mcpspy redact --help"
        )
    if out is None and not args.check:
        raise UsageError("redact: missing --output or --check", "use mcpspy redact SESSION -o FILE")
    if out is not None and args.check:
        raise UsageError("redact: --output and --check exclude each other")
    source = str(find(args.session, args.dir))
    counts: Counter[tuple[str, str]] = Counter()
    redacting = redactor(
        read_redaction(args),
        say,
        lambda rule, pointer: counts.update([(rule, _INDEX.sub("/*", pointer))]),
    )
    assert redacting is not None
    torn = clean(source, out, redacting)
    report = _print_json if args.format == "json" else _print
    with redirect_stdout(sys.stderr if out == STDOUT else sys.stdout):
        report(source, out, counts, redacting.lost, torn)
    return FINDINGS if redacting.lost or (args.check and counts) else 0


def _print_json(source: str, out: str | None, counts: Counter[tuple[str, str]], lost: int, torn: int) -> None:
    found = [
        {"rule": rule, "pointer": pointer, "count": count} for (rule, pointer), count in counts.most_common()
    ]
    document = {"in": source, "out": out, "secrets": counts.total(), "found": found}
    sys.stdout.buffer.write(orjson.dumps({**document, "lost": lost, "torn": torn}) + b"\n")


def _print(source: str, out: str | None, counts: Counter[tuple[str, str]], lost: int, torn: int) -> None:
    output = Output()
    secrets = counted(counts.total(), "secret")
    output.line(sanitize(f"{source}: {secrets}" if out is None else f"{out}: {secrets} redacted"))
    for (rule, pointer), count in counts.most_common():
        output.line(columns((str(count), sanitize(rule), sanitize(pointer) or "(not JSON)"), (-7, 20, 0)))
    if lost:
        output.line(f"{lost} could not be redacted and were skipped; the file contains a note for each")
    if torn:
        output.line(
            f"the last line is incomplete ({torn} bytes skipped): mcpspy was stopped while writing it"
        )
