"""`mcpspy exec`: start a program whose MCP over HTTPS is recorded."""

from __future__ import annotations

import argparse

from mcpspy.errors import UsageError
from mcpspy.ui.cli.http import configure_hosts, configure_traffic, take_traffic

EPILOG = """\
examples:
  mcpspy exec -- claude
  mcpspy exec --allow 'mcp.example.com' --record sessions/ -- python agent.py
  mcpspy exec -- sh -c 'npx some-agent && npx another'

Runs a forward proxy for this one program (mcpspy http --forward says what that does),
and tells it by its environment where it is and to trust it: HTTPS_PROXY, SSL_CERT_FILE,
NODE_EXTRA_CA_CERTS, and what else runtimes heed. Nothing is installed, nothing outside
of the program changes. docs/exec.md says which programs do not listen to these.

exit codes: the program's own; if a signal ended it, the same signal ends mcpspy;
2 usage; 3 mitmproxy is not installed; 126 not executable; 127 not found
"""

TAKES_COMMAND = True


def configure(parser: argparse.ArgumentParser) -> None:
    configure_hosts(parser)
    configure_traffic(parser)
    parser.add_argument("command", metavar="-- COMMAND", nargs="*", help="the program and its arguments")


def main(args: argparse.Namespace) -> int:
    """Run the program; it ends this process with the program's exit status."""
    if not args.command:
        raise UsageError("exec: no program to start", "mcpspy exec -- COMMAND ARGS…")
    from mcpspy.io.forward.proxy import require_mitmproxy

    require_mitmproxy("exec")
    from mcpspy.io.forward.child import ExecOptions, run_program

    options = ExecOptions(args.command)
    options.allowed, options.ignored = args.allow, args.ignore
    take_traffic(options, args, "exec")
    return run_program(options)
