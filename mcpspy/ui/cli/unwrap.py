"""`mcpspy unwrap`: have a host start its servers as it did before."""

from __future__ import annotations

import argparse

from mcpspy.core.hostconfig.edit import EditResult, unwrapped
from mcpspy.errors import UsageError
from mcpspy.io.hosts.resolve import ConfigTarget
from mcpspy.ui.cli.wrap import change, configure_selection

EPILOG = """\
examples:
  mcpspy unwrap cursor
  mcpspy unwrap claude-code --server memory --dry-run

Without --server, all that are wrapped. What was there before stands in the file
itself, so other changes made to it since are kept, and no backup is needed.

exit codes: 0; 1 a server that was named was left alone; 2 usage, no such file or
server, not readable as what it should be; 3 it cannot be read or replaced
"""


def configure(parser: argparse.ArgumentParser) -> None:
    configure_selection(parser)


def main(args: argparse.Namespace) -> int:
    args.all = args.all or not args.server

    def edit(target: ConfigTarget, names: list[str]) -> EditResult:
        try:
            return unwrapped(target.file.text, target.location, names)
        except UsageError as error:
            raise UsageError(f"{target.file.path}: {error.args[0]}", error.hint) from None

    return change(args, edit, "as it was", lambda server: server.proxy is not None)
