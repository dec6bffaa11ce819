"""`mcpspy http`: a recording proxy for HTTP; `mcpspy exec`: a program with its own one."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import TYPE_CHECKING

from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.redact.display import redacted_url
from mcpspy.errors import UsageError
from mcpspy.ui.cli.arguments import listen_address, read_endpoint
from mcpspy.ui.cli.options import (
    CERTIFICATES,
    COMMAND,
    MAX_BODY,
    REDACTION,
    RULES,
    SCRIPTS,
    SESSION,
    Argument,
    Option,
    Options,
    Repeated,
    Switch,
    check_interception,
    only_with,
)
from mcpspy.ui.cli.parser import recorded

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
  mcpspy http -- npx -y @modelcontextprotocol/server-memory
  mcpspy http --watch src -- python -m weather
  mcpspy http --forward                        for hosts whose server URLs cannot be changed

Configure the client with the printed URL instead of the server's URL. The proxy
forwards every path of the server, so the client's authorization flow works too.

With COMMAND, mcpspy starts a server on stdio, and offers it over HTTP: at /mcp, and at /sse
for clients of 2024-11-05. Every session has its own process, or all share one (--shared).
With --watch, the server is restarted when its code changes, and the clients keep their sessions.

With --forward, mcpspy is a proxy for programs that use HTTPS_PROXY and trust the CA of
`mcpspy ca`; `mcpspy exec -- COMMAND` starts a program with both configured. It detects
MCP by content and records one file per server; all other traffic is only forwarded.

The default address is 127.0.0.1:{PORT} (127.0.0.1:{FORWARD_PORT} with --forward). The proxy accepts
only requests whose Host names this machine, so web pages cannot reach a server through
it. SIGTERM or Ctrl-C ends it.

exit codes: 0; 2 usage error or invalid rule; 3 port in use, certificate, rules file or
script not readable, no such COMMAND, or an extra not installed (--forward, --watch)
"""


_DECRYPTED = (
    Repeated("--allow", "GLOB", "decrypt only these hosts; with :PORT, only on that port", "allowed"),
    Repeated("--ignore-host", "GLOB", "never decrypt these hosts", "ignored"),
)

_TRAFFIC = (*SESSION, MAX_BODY, *REDACTION, *RULES)

_ONE_SERVER = f"--upstream or {COMMAND}"

_ON_STDIO = "mcpspy reaches COMMAND on stdio, without TLS"

OPTIONS = (
    Option("--upstream", "URL", "URL of the server: http:// or https://", one_of="servers"),
    Switch("--forward", "run a proxy for all servers (docs/forward.md)", one_of="servers"),
    Argument("command", COMMAND, "a server on stdio to offer over HTTP, and its arguments", nargs="*",
        excludes=("--upstream", "--forward")),
    Switch("--shared", "-- COMMAND: one process for all sessions (default: one for each)", "is_shared",
        requires=COMMAND),
    Repeated("--watch", "PATH", "-- COMMAND: restart the server in its sessions when this file, or one in this folder, "
        "changes", "watch", requires=COMMAND),
    Option("--listen", "HOST:PORT",
        f"address to listen on, or unix:PATH (default: 127.0.0.1:{PORT}, with --forward 127.0.0.1:{FORWARD_PORT})"),
    Option("--unix-socket", "PATH", "--upstream: connect to the server through this Unix socket",
        "unix_socket", requires="--upstream"),
    *only_with("--forward", _DECRYPTED),
    Repeated("--allow-host", "NAME", "--upstream or COMMAND: also accept requests whose Host is NAME",
        "allowed_hosts", requires=_ONE_SERVER, hint="with --forward, use --allow GLOB to decrypt a host"),
    Switch("--keep-resource", "--upstream: keep the server's own URL as `resource` in its OAuth metadata",
        "keep_resource", requires="--upstream", hint="with --forward, no metadata is rewritten"),
    *_TRAFFIC,
    *(option.but(excludes=(COMMAND,), hint=_ON_STDIO) for option in CERTIFICATES),
    SCRIPTS[0].but(requires=_ONE_SERVER),
    *SCRIPTS[1:],
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    if not (args.upstream or args.forward or args.command):
        raise UsageError("http: missing the server", "use --upstream URL, -- COMMAND, or --forward")
    if args.command:
        return _offer(args)
    upstream = None if args.forward else read_endpoint("--upstream", args.upstream)
    host, port = _listen(args)
    if upstream is None:
        return _forward(args, host, port)
    # Not at the top: the help of this command does not wait for aiohttp.
    from mcpspy.io.http.proxy import HttpOptions, run

    options = HttpOptions(upstream, host, port)
    _take(options, args, OPTIONS, url=args.upstream, name=args.name or upstream.host)
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


def _offer(args: argparse.Namespace) -> int:
    """Offer a server on stdio over HTTP."""
    from mcpspy.io.gateway.gateway import GatewayOptions, run
    from mcpspy.io.session_name import session_name

    options = GatewayOptions(args.command, *_listen(args))
    options.name = args.name or session_name(args.command)
    options.interception.command = args.command
    _take(options, args, OPTIONS, name=options.name, is_known=True)
    _warn(options.host, "this server")
    return run(options)


def _forward(args: argparse.Namespace, host: str, port: int) -> int:
    from mcpspy.io.extras import require

    require("mitmproxy", "http --forward", "mitm")
    from mcpspy.io.forward.proxy import ForwardOptions, run

    options = ForwardOptions(host, port)
    _take(options, args, (*_DECRYPTED, *_TRAFFIC, *CERTIFICATES))
    _warn(host, "any server that this proxy reaches")
    return run(options)


def _take(
    options: HttpOptions,
    args: argparse.Namespace,
    table: Options,
    *,
    url: str = "",
    name: str = "",
    is_known: bool = False,
) -> None:
    """Set the options; raise UsageError or CannotStart. `url` and `name` are those of the only server."""
    recorded(options, args, table)
    interception = options.interception
    interception.folder, interception.url, interception.name = options.folder, url, name
    interception.may_be_unknown = not (url or is_known)  # A forward proxy reaches many servers.
    check_interception(interception)


def _warn(host: str, target: str) -> None:
    if host not in LOOPBACK and not host.startswith(UNIX):
        from mcpspy.io.recording.recorder import say

        say(f"warning: listening on {host}: other machines can reach {target} through mcpspy")


_EXEC_EPILOG = """\
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


def _exec(args: argparse.Namespace) -> int:
    """Run the program; it ends this process with the program's exit status."""
    if not args.command:
        raise UsageError("exec: missing COMMAND", "use mcpspy exec -- COMMAND ARGS…")
    from mcpspy.io.extras import require

    require("mitmproxy", "exec", "mitm")
    from mcpspy.io.forward.child import ExecOptions, run_program

    options = ExecOptions(args.command)
    _take(options, args, EXEC.OPTIONS)
    return run_program(options)


EXEC = SimpleNamespace(
    EPILOG=_EXEC_EPILOG,
    OPTIONS=(
        *_DECRYPTED,
        *_TRAFFIC,
        *CERTIFICATES,
        Argument("command", COMMAND, "the program and its arguments", nargs="*"),
    ),
    main=_exec,
)
