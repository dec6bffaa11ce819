"""`mcpspy bridge`: a stdio server for the host, backed by a server that speaks HTTP."""

from __future__ import annotations

import argparse

from mcpspy.ui.cli.arguments import filled, read_endpoint, read_headers
from mcpspy.ui.cli.options import (
    CERTIFICATES,
    SESSION,
    VARIABLE,
    describe,
    describe_redaction,
    set_recording,
)

EPILOG = """\
examples:
  mcpspy bridge --upstream https://example.com/mcp
  mcpspy bridge --name example --upstream https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'

Put it where a server's command stands in a host's config: the host speaks stdio with it,
it speaks HTTP with the server, in every revision, and the session is recorded. ${NAME} in
a header is that variable of the environment, so that no secret stands in the config's
arguments. A path that ends in /sse is taken for HTTP+SSE of 2024-11-05.

If the server cannot be reached, every request is answered with an error that says why,
and tried again the next time. A session that the server has ended is begun anew.

exit codes: 0 stdin was closed; 2 usage; 143 ended by SIGTERM
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--upstream",
        metavar="URL",
        required=True,
        help="the server's endpoint: http:// or https://; ${NAME} is a variable of the environment",
    )
    header = {
        "--header": ("'NAME: VALUE'", f"sent with every request; {VARIABLE}; may be given more than once")
    }
    describe(parser, header, repeated=header)
    describe(parser, {"--sse": (None, "the server speaks HTTP+SSE of 2024-11-05"), **SESSION})
    describe_redaction(parser)
    describe(parser, CERTIFICATES)


def main(args: argparse.Namespace) -> int:
    url = filled("bridge: --upstream", args.upstream)
    upstream = read_endpoint("bridge: --upstream", url, args.upstream)
    headers = read_headers("bridge: --header", args.header)
    # Not at the top: the help of this command does not wait for aiohttp.
    from mcpspy.io.bridge import BridgeOptions, run
    from mcpspy.io.client import ServerAddress

    address = ServerAddress(url, headers, args.cacert, args.insecure, True if args.sse else None)
    options = BridgeOptions(address, args.name or upstream.host)
    set_recording(options, args, "bridge")
    return run(options)
