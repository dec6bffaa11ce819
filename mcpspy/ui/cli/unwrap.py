"""`mcpspy unwrap`: restore the original servers in a host's configuration."""

from __future__ import annotations

import argparse

from mcpspy.core.hostconfig.edit import EditResult, unwrapped
from mcpspy.errors import UsageError
from mcpspy.io.hosts.configuration import ConfigTarget
from mcpspy.ui.cli.wrap import change, configure_selection

EPILOG = """\
examples:
  mcpspy unwrap cursor
  mcpspy unwrap claude-code --server memory --dry-run

Without --server, unwraps all wrapped servers. The original entries are stored in the
file itself, so later changes to the file are kept, and no backup is needed.

exit codes: 0; 1 a named server was skipped; 2 usage error, no such file or server, or
invalid syntax in the file; 3 file not readable or not replaceable
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

    return change(args, edit, "unwrapped", lambda server: server.proxy is not None)
