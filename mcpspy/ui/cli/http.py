"""`mcpspy http`: a recording proxy for MCP servers that speak HTTP."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.errors import UsageError
from mcpspy.ui.cli.arguments import listen_address, read_endpoint
from mcpspy.ui.cli.options import (
    CERTIFICATES,
    SESSION,
    check_rules,
    describe,
    describe_redaction,
    describe_rules,
    read_rules,
    set_recording,
)

if TYPE_CHECKING:
    from mcpspy.io.http.proxy import HttpOptions

PORT = 8808
FORWARD_PORT = 8899

EPILOG = f"""\
examples:
  mcpspy http --upstream http://localhost:3001/mcp
  mcpspy http --upstream https://example.com/mcp --listen :0 --name example
  mcpspy http --upstream http://localhost:3001/mcp --rule 'tool:echo => 20% error -32000 boom'
  mcpspy http --forward                        for hosts whose servers' addresses cannot be changed

Give the client the address that is printed in place of the server's. Every path of
the server is there, so that a client's authorization flow works too.

With --forward it is a proxy for programs that take one from HTTPS_PROXY, and trust the
authority of `mcpspy ca`; `mcpspy exec -- COMMAND` starts one with all of that set. MCP,
recognised by what is said, is recorded, one file a server; all else passes.

Listens on 127.0.0.1:{PORT} ({FORWARD_PORT} with --forward) unless told otherwise, and lets in what names this machine
only: a page of a stranger cannot reach through it. Ends with SIGTERM or Ctrl-C.

exit codes: 0; 2 usage, a wrong rule; 3 the port is taken, a certificate file or rules cannot be read,
--forward: mitmproxy is not installed
"""


def configure(parser: argparse.ArgumentParser) -> None:
    server = parser.add_mutually_exclusive_group(required=True)
    server.add_argument("--upstream", metavar="URL", help="the server's endpoint: http:// or https://")
    server.add_argument("--forward", action="store_true", help="be a proxy for all servers (docs/forward.md)")
    listen = f"where to listen (default: {PORT}, --forward: {FORWARD_PORT})"
    describe(parser, {"--listen": ("[HOST:]PORT", listen)})
    configure_hosts(parser, "--forward: ")
    allow_host = {"--allow-host": ("NAME", "--upstream: let requests in that name this host, too")}
    describe(parser, allow_host, repeated=allow_host)
    configure_traffic(parser)


def configure_hosts(parser: argparse.ArgumentParser, of: str = "") -> None:
    """Add the options for which hosts a forward proxy decrypts."""
    hosts = {
        "--allow": ("GLOB", f"{of}look into these hosts only; with :PORT, at that port only"),
        "--ignore": ("GLOB", f"{of}never look into these hosts"),
    }
    describe(parser, hosts, repeated=hosts)


def configure_traffic(parser: argparse.ArgumentParser) -> None:
    """Add the options for recording, redaction, rules and certificates."""
    describe(parser, SESSION)
    describe_redaction(parser)
    describe_rules(parser)
    describe(parser, CERTIFICATES)


def main(args: argparse.Namespace) -> int:
    upstream = None if args.forward else read_endpoint("http: --upstream", args.upstream)
    host, port = listen_address("http: --listen", args.listen or str(FORWARD_PORT if args.forward else PORT))
    if upstream is None:
        return _forward(args, host, port)
    if args.allow or args.ignore:
        raise UsageError("http: --allow and --ignore are for --forward")
    # Not at the top: the help of this command does not wait for aiohttp.
    from mcpspy.io.http.proxy import HttpOptions, run

    options = HttpOptions(upstream, host, port)
    options.allowed_hosts = args.allow_host
    take_traffic(options, args, "http")
    _warn(host, args.upstream)
    return run(options)


def _forward(args: argparse.Namespace, host: str, port: int) -> int:
    if args.allow_host:
        raise UsageError("http: --allow-host is for --upstream", "--allow GLOB says what is looked into")
    from mcpspy.io.forward.proxy import require_mitmproxy

    require_mitmproxy("http --forward")
    from mcpspy.io.forward.proxy import ForwardOptions, run

    options = ForwardOptions(host, port)
    options.allowed, options.ignored = args.allow, args.ignore
    take_traffic(options, args, "http")
    _warn(host, "whatever this one reaches")
    return run(options)


def take_traffic(options: HttpOptions, args: argparse.Namespace, command: str) -> None:
    """Set the options of `configure_traffic`. Raises UsageError."""
    options.name = args.name
    options.cacert, options.insecure = args.cacert, args.insecure
    set_recording(options, args, command)
    options.interception = read_rules(args)
    check_rules(options.interception)


def _warn(host: str, what: str) -> None:
    if host not in LOOPBACK:
        from mcpspy.io.recording.recorder import say

        say(f"warning: listening on {host}, so other machines can reach {what} through this one")
