"""`mcpspy http`: a recording proxy for MCP servers that speak HTTP."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.redact.display import redacted_url
from mcpspy.errors import UsageError
from mcpspy.ui.cli.arguments import listen_address, read_endpoint
from mcpspy.ui.cli.options import (
    BODY,
    CERTIFICATES,
    SESSION,
    check_rules,
    describe,
    describe_redaction,
    describe_rules,
    describe_scripts,
    old_spelling,
    read_rules,
    read_scripts,
    read_size,
    set_recording,
)

if TYPE_CHECKING:
    from mcpspy.io.http.proxy import HttpOptions

PORT = 8808
FORWARD_PORT = 8899

UNIX = "unix:"

EPILOG = f"""\
examples:
  mcpspy http --upstream http://localhost:3001/mcp
  mcpspy http --upstream https://example.com/mcp --listen :0 --name example
  mcpspy http --upstream http://localhost:3001/mcp --rule 'tool:echo => 20% error -32000 boom'
  mcpspy http --forward                        for hosts whose server URLs cannot be changed

Configure the client with the printed URL instead of the server's URL. The proxy
forwards every path of the server, so the client's authorization flow works too.

With --forward, mcpspy is a proxy for programs that use HTTPS_PROXY and trust the CA of
`mcpspy ca`; `mcpspy exec -- COMMAND` starts a program with both configured. It detects
MCP by content and records one file per server; all other traffic is only forwarded.

The default address is 127.0.0.1:{PORT} (127.0.0.1:{FORWARD_PORT} with --forward). The proxy accepts
only requests whose Host names this machine, so web pages cannot reach a server through
it. SIGTERM or Ctrl-C ends it.

exit codes: 0; 2 usage error or invalid rule; 3 port in use, certificate, rules file or
script not readable, or mitmproxy not installed (--forward)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    server = parser.add_mutually_exclusive_group(required=True)
    server.add_argument("--upstream", metavar="URL", help="URL of the server: http:// or https://")
    server.add_argument(
        "--forward", action="store_true", help="run a proxy for all servers (docs/forward.md)"
    )
    listen = f"address to listen on, or unix:PATH (default: 127.0.0.1:{PORT}, with --forward 127.0.0.1:{FORWARD_PORT})"
    describe(parser, {"--listen": ("HOST:PORT", listen)})
    socket = "--upstream: connect to the server through this Unix socket"
    describe(parser, {"--unix-socket": ("PATH", socket)})
    configure_hosts(parser, "--forward: ")
    allow_host = {"--allow-host": ("NAME", "--upstream: also accept requests whose Host is NAME; repeatable")}
    describe(parser, allow_host, repeated=allow_host)
    keep = "--upstream: keep the server's own URL as `resource` in its OAuth metadata"
    describe(parser, {"--keep-resource": (None, keep)})
    configure_traffic(parser)
    describe_scripts(parser)


def configure_hosts(parser: argparse.ArgumentParser, prefix: str = "") -> None:
    """Add the options for which hosts a forward proxy decrypts."""
    hosts = {
        "--allow": ("GLOB", f"{prefix}decrypt only these hosts; with :PORT, only on that port; repeatable"),
        "--ignore-host": ("GLOB", f"{prefix}never decrypt these hosts; repeatable"),
    }
    describe(parser, hosts, repeated=hosts)
    old_spelling(parser, "--ignore", "ignore_host", action="append")


def configure_traffic(parser: argparse.ArgumentParser) -> None:
    """Add the options for recording, redaction, rules and certificates."""
    describe(parser, SESSION)
    describe(parser, BODY)
    describe_redaction(parser)
    describe_rules(parser)
    describe(parser, CERTIFICATES)


def main(args: argparse.Namespace) -> int:
    upstream = None if args.forward else read_endpoint("--upstream", args.upstream)
    host, port = _listen(args)
    if upstream is None:
        return _forward(args, host, port)
    if args.allow or args.ignore_host:
        raise UsageError(f"http: {'--allow' if args.allow else '--ignore-host'} requires --forward")
    # Not at the top: the help of this command does not wait for aiohttp.
    from mcpspy.io.http.proxy import HttpOptions, run

    options = HttpOptions(upstream, host, port)
    options.allowed_hosts = args.allow_host
    options.keep_resource = args.keep_resource
    options.unix_socket = args.unix_socket
    take_traffic(options, args)
    read_scripts(options.interception, args)
    check_rules(options.interception)
    _warn(host, redacted_url(args.upstream))
    return run(options)


def _listen(args: argparse.Namespace) -> tuple[str, int]:
    """Return host and port to listen on; a host that begins with `unix:` names a Unix socket. Raises UsageError."""
    text = args.listen or str(FORWARD_PORT if args.forward else PORT)
    if not text.startswith(UNIX):
        return listen_address("--listen", text)
    if args.forward or text == UNIX:
        raise UsageError(
            f"http: --listen {text} is not a valid address", "use HOST:PORT, or unix:PATH with --upstream"
        )
    return text, 0


def _forward(args: argparse.Namespace, host: str, port: int) -> int:
    if args.unix_socket is not None:
        raise UsageError("http: --unix-socket requires --upstream")
    if args.keep_resource:
        raise UsageError(
            "http: --keep-resource requires --upstream", "with --forward, no metadata is rewritten"
        )
    if args.allow_host:
        raise UsageError(
            "http: --allow-host requires --upstream", "with --forward, use --allow GLOB to decrypt a host"
        )
    if args.script:
        raise UsageError("http: --script requires --upstream")
    from mcpspy.io.extras import require

    require("mitmproxy", "http --forward", "mitm")
    from mcpspy.io.forward.proxy import ForwardOptions, run

    options = ForwardOptions(host, port)
    options.allowed, options.ignored = args.allow, args.ignore_host
    take_traffic(options, args)
    _warn(host, "any server that this proxy reaches")
    return run(options)


def take_traffic(options: HttpOptions, args: argparse.Namespace) -> None:
    """Set the options of `configure_traffic`. Raises UsageError."""
    options.name = args.name
    options.cacert, options.insecure = args.cacert, args.insecure
    if args.max_body is not None:
        options.max_body = read_size("--max-body", args.max_body)
    set_recording(options, args)
    options.interception = read_rules(args)
    options.interception.unsafe_regex = options.redaction.unsafe_regex
    interception = options.interception
    interception.folder = options.folder
    if (url := getattr(args, "upstream", None)) is not None:
        interception.url, interception.name = url, args.name or options.upstream.host
    interception.may_be_unknown = url is None  # A forward proxy reaches many servers.
    check_rules(options.interception)


def _warn(host: str, target: str) -> None:
    if host not in LOOPBACK and not host.startswith(UNIX):
        from mcpspy.io.recording.recorder import say

        say(f"warning: listening on {host}: other machines can reach {target} through mcpspy")
