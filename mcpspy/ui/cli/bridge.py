"""`mcpspy bridge`: a stdio server for the host, backed by a server that speaks HTTP."""

from __future__ import annotations

import argparse

from mcpspy.ui.cli.arguments import filled, read_endpoint, read_headers, shown_url
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

Use it as the server's command in a host's config: it speaks stdio with the host and HTTP
with the server, in every revision, and records the session. ${NAME} in a header expands
to an environment variable, so the config's arguments contain no secrets. A URL whose path
ends in /sse uses HTTP+SSE of 2024-11-05.

If the server is unreachable, mcpspy answers each request with an error that states the
reason, and connects again for the next request. If the server ends the session, mcpspy
starts a new one.

exit codes: 0 stdin closed; 2 usage error; 143 ended by SIGTERM
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--upstream",
        metavar="URL",
        required=True,
        help=f"URL of the server: http:// or https://; {VARIABLE}",
    )
    header = {"--header": ("'NAME: VALUE'", f"send this header with every request; {VARIABLE}; repeatable")}
    describe(parser, header, repeated=header)
    describe(parser, {"--sse": (None, "use HTTP+SSE of 2024-11-05"), **SESSION})
    describe_redaction(parser)
    describe(parser, CERTIFICATES)


def main(args: argparse.Namespace) -> int:
    url = filled("--upstream", args.upstream)
    upstream = read_endpoint("--upstream", url, args.upstream)
    headers = read_headers("--header", args.header)
    # Not at the top: the help of this command does not wait for aiohttp.
    from mcpspy.io.bridge import BridgeOptions, run
    from mcpspy.io.client import ServerAddress

    is_sse = True if args.sse else None
    address = ServerAddress(url, headers, args.cacert, args.insecure, is_sse, shown_url(args.upstream))
    options = BridgeOptions(address, args.name or upstream.host)
    set_recording(options, args)
    return run(options)
