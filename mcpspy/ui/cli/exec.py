"""`mcpspy exec`: start a program and record its MCP traffic over HTTPS."""

from __future__ import annotations

import argparse

from mcpspy.errors import UsageError
from mcpspy.ui.cli.http import configure_hosts, configure_traffic, take_traffic

EPILOG = """\
examples:
  mcpspy exec -- claude
  mcpspy exec --allow 'mcp.example.com' --record sessions/ -- python agent.py
  mcpspy exec -- sh -c 'npx some-agent && npx another'

Runs a forward proxy for this program only (see mcpspy http --forward), and configures
the program through its environment to use and trust the proxy: HTTPS_PROXY,
SSL_CERT_FILE, NODE_EXTRA_CA_CERTS, and the variables of other runtimes. mcpspy installs
nothing and changes nothing outside the program. docs/exec.md lists programs that ignore
these variables.

exit codes: the program's; if a signal ended it, the same signal ends mcpspy;
2 usage error; 3 mitmproxy not installed; 126 not executable; 127 not found
"""

TAKES_COMMAND = True


def configure(parser: argparse.ArgumentParser) -> None:
    configure_hosts(parser)
    configure_traffic(parser)
    parser.add_argument("command", metavar="-- COMMAND", nargs="*", help="the program and its arguments")


def main(args: argparse.Namespace) -> int:
    """Run the program; it ends this process with the program's exit status."""
    if not args.command:
        raise UsageError("exec: missing COMMAND", "use mcpspy exec -- COMMAND ARGS…")
    from mcpspy.io.extras import require

    require("mitmproxy", "exec", "mitm")
    from mcpspy.io.forward.child import ExecOptions, run_program

    options = ExecOptions(args.command)
    options.allowed, options.ignored = args.allow, args.ignore_host
    take_traffic(options, args)
    return run_program(options)
