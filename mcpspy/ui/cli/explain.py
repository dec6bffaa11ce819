"""`mcpspy explain`: what went wrong in a session, with evidence and the next step."""

from __future__ import annotations

import argparse
import sys

import msgspec

from mcpspy.analysis.lint.host_profiles import NAMES
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS
from mcpspy.io.recording.scan import no_collection
from mcpspy.ui.cli.arguments import session_path
from mcpspy.ui.cli.lint import host_profiles
from mcpspy.ui.cli.options import FOLDER, Argument, Option, formats
from mcpspy.ui.cli.parser import integer
from mcpspy.ui.report.explanation import explain, explanation_lines
from mcpspy.ui.report.last_good import compared_with_last_good, since_last_good
from mcpspy.ui.text.terminal import Output

EPILOG = """\
examples:
  mcpspy explain                    the newest session
  mcpspy explain weather 12         the request on line 12 of the file, or the response on it
  mcpspy explain last --last-good 3f9a
  mcpspy explain last --format json | jq -r '.causes[0].code'

Prints the causes, the most likely one first, each with the lines of the recording that
show it and the next thing to try. A cause that another one brings about is left out.
Then what is worth knowing although it is not a failure, and what changed since the last
session of the same server in which nothing was wrong, if the folder of the recording has
one.

exit codes: 0 nothing wrong found; 1 causes found; 2 usage error or not a recording;
3 file not readable
"""

OPTIONS = (
    Argument("session", "SESSION", "session to explain, - for stdin (default: last)", nargs="?",
        default="last"),
    Argument("line", "LINE", "line of the file, as lint prints it", nargs="?",
        read=integer("line number", "use 1 or more")),
    Option("--host", "HOSTS",
        f"explain with the limits of these hosts: {', '.join(NAMES)}, all, none (default: the host of the session)"),
    Option("--last-good", "SESSION",
        "the session that worked, or none (default: the last one of the server in the folder in which "
        "nothing was wrong)"),
    *formats("json: one object"),
    FOLDER,
)  # fmt: skip


@no_collection()  # Objects are freed with their line: there are no cycles to collect.
def main(args: argparse.Namespace) -> int:
    path = session_path(args.session, args.dir)
    diagnosis = explain(path, line=args.line, hosts=host_profiles(args.host))
    if diagnosis.causes and args.last_good != "none":
        if args.last_good is None:
            diagnosis = compared_with_last_good(diagnosis, path)
        else:
            diagnosis = since_last_good(diagnosis, path, session_path(args.last_good, args.dir))
    if args.format == "json":
        sys.stdout.buffer.write(
            msgspec.json.encode({"session": str(path), **msgspec.to_builtins(diagnosis)}) + b"\n"
        )
    else:
        output = Output()
        output.line(sanitize(str(path)), None)
        for line, tone in explanation_lines(diagnosis, output.width):
            output.line(line, tone)
    return FINDINGS if diagnosis.causes else 0
