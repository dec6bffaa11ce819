"""`mcpspy bridge`: a stdio server for the host, backed by a server that speaks HTTP."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mcpspy.core.era.commands import AUTO, POLICIES
from mcpspy.errors import CannotStart
from mcpspy.ui.cli.arguments import filled, read_endpoint, read_headers_of, shown_url, variable_of
from mcpspy.ui.cli.options import (
    CERTIFICATES,
    HEADERS,
    MAX_BODY,
    REDACTION,
    SCRIPTS,
    SESSION,
    TRUST,
    VARIABLE,
    Option,
    Switch,
    check_interception,
)
from mcpspy.ui.cli.parser import recorded

if TYPE_CHECKING:
    from mcpspy.io.client.oauth import OAuthOptions

EPILOG = """\
examples:
  mcpspy bridge --upstream https://example.com/mcp
  mcpspy bridge --name example --upstream https://example.com/mcp --bearer-env TOKEN
  mcpspy bridge --upstream-env URL --header-env X-Api-Key=KEY

Use it as the server's command in a host's config: it speaks stdio with the host and HTTP
with the server, in every revision, and records the session. The options that end in -env
read environment variables, so the config's arguments contain no secrets, and no ${NAME},
which several hosts expand themselves. A URL whose path ends in /sse uses HTTP+SSE of
2024-11-05.

If the server requires OAuth, mcpspy opens its page in a browser, or prints a code to
enter there, and keeps the token (extra oauth).

If the server is unreachable, mcpspy answers each request with an error that states the
reason, and connects again for the next request. If the server ends the session, mcpspy
starts a new one.

exit codes: 0 stdin closed; 2 usage error; 143 ended by SIGTERM
"""

_DECISIONS = (*TRUST, *SCRIPTS, *REDACTION)

OPTIONS = (
    Option("--upstream", "URL", f"URL of the server: http:// or https://; {VARIABLE}", one_of="servers",
        is_required=True),
    Option("--upstream-env", "VARIABLE", "read the URL of the server from this environment variable",
        one_of="servers"),
    *HEADERS,
    Option("--bearer-env", "VARIABLE",
        "send `Authorization: Bearer` with the value of this environment variable"),
    Option("--oauth-client-id", "ID", "sign in as this client (default: register one)"),
    Option("--oauth-secret-env", "VARIABLE", "the secret of that client, in this environment variable",
        requires="--oauth-client-id", hint="name the client of the secret"),
    Option("--oauth-scope", "SCOPES", "scopes to ask for (default: those that the server names)"),
    Switch("--no-oauth", "do not sign in; report that the server requires it",
        excludes=("--oauth-client-id", "--oauth-secret-env", "--oauth-scope")),
    Switch("--sse", "use HTTP+SSE of 2024-11-05"),
    Option("--translate", None,
        "translate between a host and a server of which one has 2026-07-28 and the other only older revisions: if the"
        " server refuses the host (auto, default), also a host that could fall back (always), or never",
        choices=POLICIES, default=AUTO),
    *SESSION,
    MAX_BODY.but(about="answer a request with an error if its response is larger (default: 64M)"),
    *_DECISIONS,
    *CERTIFICATES,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    if args.upstream_env is not None:
        url = variable_of("--upstream-env", args.upstream_env)
        upstream = read_endpoint("--upstream-env", url, args.upstream_env)
    else:
        url = filled("--upstream", args.upstream)
        upstream = read_endpoint("--upstream", url, args.upstream)
    sent = read_headers_of(args.header, args.header_env, args.bearer_env)
    # Not at the top: the help of this command does not wait for aiohttp.
    from mcpspy.core.recording import encode
    from mcpspy.io.bridge.bridge import BridgeOptions
    from mcpspy.io.bridge.run import run
    from mcpspy.io.client import ServerAddress

    is_sse = True if args.sse else None
    typed = url if args.upstream is None else shown_url(args.upstream)
    max_body = args.max_body or encode.MAX_BODY
    address = ServerAddress(url, sent, args.cacert, args.insecure, is_sse, max_body, typed)
    options = BridgeOptions(address, upstream.host)
    options.oauth = _oauth_options(args)
    options.translate = args.translate
    recorded(options, args, (*SESSION, *_DECISIONS))
    options.interception.url, options.interception.name = url, options.name
    options.interception.folder = options.folder
    check_interception(options.interception)
    return run(options)


def _oauth_options(args: argparse.Namespace) -> OAuthOptions | None:
    from mcpspy.io.client.oauth import OAuthOptions, is_installed
    from mcpspy.io.extras import install_command

    given = (args.oauth_client_id, args.oauth_secret_env, args.oauth_scope)
    if args.no_oauth or not any(given):
        return None if args.no_oauth else OAuthOptions()
    if not is_installed():
        raise CannotStart("--oauth-… needs the extra oauth", install_command("oauth"))
    secret = args.oauth_secret_env and variable_of("--oauth-secret-env", args.oauth_secret_env)
    return OAuthOptions(args.oauth_client_id, secret, args.oauth_scope)
