"""`mcpspy diff`: what one session says otherwise than another."""

from __future__ import annotations

import argparse
import gc

from mcpspy.analysis.diff import DiffOptions, compare, unlisted
from mcpspy.analysis.diff.options import LISTED
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Session
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording, find
from mcpspy.ui.cli.diff_options import configure_comparison, options_of, report
from mcpspy.ui.cli.options import FOLDER, describe
from mcpspy.ui.terminal import warn_torn

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
    configure_comparison(parser)
    describe(parser, FOLDER)


def main(args: argparse.Namespace) -> int:
    options = options_of(args, frozenset(args.only))
    # Two sessions in memory are no garbage: to look through them again and again takes as long as to compare them.
    gc.disable()
    try:
        old, new = _read(args.old, args, options), _read(args.new, args, options)
        return report(compare(old, new, options), (_title(args.old, old), _title(args.new, new)), args)
    finally:
        gc.enable()


def _read(which: str, args: argparse.Namespace, options: DiffOptions) -> Session:
    recording = Recording(find(which, args.dir))
    session = recording.session()
    warn_torn(recording.path, recording.torn)
    if missing := unlisted(session, options):
        raise UsageError(
            f"{which}: its client never asked for the {' and '.join(missing)}",
            "there is nothing to compare: record a session that lists them",
        )
    return session


def _title(which: str, session: Session) -> str:
    """Return what a person calls a session: as it was named here, and what else says which it is."""
    header = session.header
    assert header is not None
    return sanitize(which if header.id.startswith(which) else f"{which} ({header.id})")
