"""`mcpspy wrap`: have a host start its servers through mcpspy."""

from __future__ import annotations

import argparse
import os

from mcpspy.core.hostconfig.edit import EditResult, wrapped
from mcpspy.core.hostconfig.wrap import WrapTarget
from mcpspy.io.hosts.resolve import ConfigTarget, command_line, is_passing, uvx
from mcpspy.io.recording.recorder import say
from mcpspy.ui.cli import wrap_common
from mcpspy.ui.cli.options import describe

EPILOG = """\
examples:
  mcpspy wrap cursor --all --dry-run
  mcpspy wrap claude-code --server memory github
  mcpspy wrap ~/somewhere/mcp.json

A server that is the only one need not be named. A command then runs through `mcpspy
run`, a URL through `mcpspy bridge`; nothing else in the file changes, comments and
blanks included, and `mcpspy unwrap` puts it back to the byte.

mcpspy hosts lists what there is.

exit codes: 0; 1 a server that was named was left alone; 2 usage, no such file or
server, not readable as what it should be; 3 it cannot be read or replaced
"""


def configure(parser: argparse.ArgumentParser) -> None:
    wrap_common.configure(parser)
    describe(parser, {"--uvx": (None, "start mcpspy by `uvx mcpspy` (default: the one that runs now)")})
    parser.add_argument(
        "--dir",
        metavar="DIR",
        default=os.environ.get("MCPSPY_DIR"),
        help="the folder of sessions for these servers (default: $MCPSPY_DIR, which hosts would drop)",
    )
    oauth = "wrap URLs, too, where the host may log in by itself, which the bridge does not do for it"
    describe(parser, {"--bridge-oauth": (None, oauth)})


def main(args: argparse.Namespace) -> int:
    program = uvx() if args.uvx else command_line()
    if is_passing(program):
        say(f"warning: {program[0]} is in a cache that is emptied some day: say --uvx, or install mcpspy")
    options = ["--dir", os.path.abspath(os.path.expanduser(args.dir))] if args.dir else []
    how = WrapTarget(program, options, insists=args.bridge_oauth)

    def edit(target: ConfigTarget, names: list[str]) -> EditResult:
        return wrapped(target.file.text, target.home, names, how)

    return wrap_common.change(args, edit, "wrapped", lambda server: server.ours is None or args.all)
