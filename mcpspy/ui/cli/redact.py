"""`mcpspy redact`: redact secrets from a recording."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter

import orjson

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.io.recording.reader import find
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import clean, redactor
from mcpspy.ui.cli.options import FOLDER, describe, describe_redaction, read_redaction
from mcpspy.ui.terminal import Output, columns

EPILOG = """\
examples:
  mcpspy redact old.jsonl clean.jsonl
  mcpspy redact last shared.jsonl --redact-key pin --redact-env MY_TOKEN
  mcpspy redact --check recorded.jsonl    is there a secret in it?

IN is a file, `last`, a session's name, or its id. OUT must not exist. What is redacted
is told by rule and place, never by value; docs/redact.md lists the rules. A session in
several parts has one file for each: redact them one by one.

exit codes: 0; 1 if --check found a secret, or an entry could not be redacted and is
left out; 2 usage; 3 a file cannot be read or written
"""

_INDEX = re.compile(r"/\d+(?=/|$)")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="IN", help="which recording")
    parser.add_argument("out", metavar="OUT", nargs="?", help="the file to write; never over one that exists")
    options = {
        "--check": (None, "write nothing; tell what would be redacted"),
        "--json": (None, "tell it as one JSON object"),
        **FOLDER,
    }
    describe(parser, options)
    describe_redaction(parser, can_be_off=False)


def main(args: argparse.Namespace) -> int:
    if args.check == (args.out is not None):
        raise UsageError("redact: needs OUT, or --check and no OUT", "mcpspy redact IN OUT")
    source = str(find(args.session, args.dir))
    counts: Counter[tuple[str, str]] = Counter()
    redacting = redactor(
        read_redaction(args),
        say,
        lambda rule, pointer: counts.update([(rule, _INDEX.sub("/*", pointer))]),
    )
    assert redacting is not None
    torn = clean(source, args.out, redacting)
    if args.json:
        found = [
            {"rule": rule, "pointer": pointer, "count": count}
            for (rule, pointer), count in counts.most_common()
        ]
        document = {"in": source, "out": args.out, "secrets": counts.total(), "found": found}
        sys.stdout.buffer.write(orjson.dumps({**document, "lost": redacting.lost, "torn": torn}) + b"\n")
    else:
        _print(source, args.out, counts, redacting.lost, torn)
    return FINDINGS if redacting.lost or (args.check and counts) else 0


def _print(source: str, out: str | None, counts: Counter[tuple[str, str]], lost: int, torn: int) -> None:
    output = Output()
    secrets = f"{counts.total()} secret{'s' * (counts.total() != 1)}"
    output.line(sanitize(f"{source}: {secrets}" if out is None else f"{out}: {secrets} redacted"))
    for (rule, pointer), count in counts.most_common():
        output.line(columns((str(count), sanitize(rule), sanitize(pointer) or "(no JSON)"), (-7, 20, 0)))
    if lost:
        output.line(f"{lost} could not be redacted and are left out: a note in the file says so for each")
    if torn:
        output.line(f"the last line is torn ({torn} bytes, left out): its writer was stopped while writing")
