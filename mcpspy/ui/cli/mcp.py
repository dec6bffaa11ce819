"""`mcpspy mcp`: serve recordings to coding agents over MCP; `mcpspy mcp install`: enter it into hosts."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from ipaddress import ip_address

from mcpspy.analysis import rows
from mcpspy.core.hostconfig.entry import added, removed
from mcpspy.core.hostconfig.layout import ConfigSyntax
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.extras import install_command
from mcpspy.io.hosts.configuration import ConfigTarget, command_line, find
from mcpspy.io.hosts.table import HOSTS
from mcpspy.ui.cli.arguments import listen_address, variable_of
from mcpspy.ui.cli.options import FOLDER, Argument, Option, Repeated, Switch
from mcpspy.ui.cli.wrap import show_diff
from mcpspy.ui.text.terminal import Output

EPILOG = """\
examples:
  mcpspy mcp install claude-code cursor      enter it into the configurations of these hosts
  mcpspy mcp install cursor --remove         and remove it again
  mcpspy mcp --allow-replay 'python weather.py' --allow-send weather
  mcpspy mcp --http 8931                     over HTTP; the token is printed on stderr

An MCP server with the tools list_sessions, find, read, explain, lint, stats, diff, export and
wait_for; replay and send need the permission of the user. It speaks stdio unless --http is
given. Secrets are redacted, also in sessions that were recorded with --no-redact; docs/mcp.md
describes the tools, and docs/agents.md what is defended.

Needs the official SDK (extra `agent`): pip install 'mcpspy[agent]'

exit codes: 0 the client disconnected; 2 usage error; 3 the SDK is missing or too old, the
address is in use, or a configuration is not writable
"""

NAME = "mcpspy"
"""Name of the entry in configurations of hosts."""

SDK = (2, 3)
"""Oldest version of the SDK (package `mcp`)."""


_USE_INSTALL = "use mcpspy mcp install HOST"

OPTIONS = (
    Argument("action", None, "enter mcpspy mcp into hosts", nargs="?", choices=["install"]),
    Argument("hosts", "HOST", "hosts (see mcpspy hosts --all), or files", nargs="*"),
    Option("--http", "[HOST:]PORT", "listen on this loopback address instead of stdio; 0: any free port",
        excludes=("install",), hint="hosts start mcpspy mcp on stdio"),
    Option("--token-env", "NAME", "--http: environment variable with the token (default: a random token)",
        requires="--http"),
    Repeated("--allow-replay", "SERVER", "allow the tool replay, to this command or URL"),
    Repeated("--allow-send", "SESSION", "allow the tool send, into live sessions of this name, or all"),
    Switch("--allow-unredacted", "do not redact sessions that were recorded with --no-redact"),
    Switch("--remove", "install: remove the entry", requires="install", hint=_USE_INSTALL),
    Switch("--dry-run", "install: print the changes as a unified diff, and do not write", requires="install",
        hint=_USE_INSTALL),
    FOLDER,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    if args.action is not None:
        return _install(args)
    _require_sdk()

    from mcpspy.ui.agent.live import AgentPermissions
    from mcpspy.ui.agent.mcp_server import AgentServer, serve_http, serve_stdio
    from mcpspy.ui.agent.sessions import SessionStore

    store = SessionStore(args.dir, allows_unredacted=args.allow_unredacted)
    server = AgentServer(store, AgentPermissions(args.allow_replay, args.allow_send))
    try:
        if args.http is None:
            asyncio.run(serve_stdio(server))
        else:
            host, port = _loopback(args.http)
            token = shown = secrets.token_urlsafe(24)
            if args.token_env:
                token, shown = variable_of("--token-env", args.token_env), f"the value of {args.token_env}"
            where = f"http://{f'[{host}]' if ':' in host else host}"

            def started(bound: int) -> None:
                # Not `say`, which would redact the token: no one else knows it.
                line = f"serving {where}:{bound}/mcp, with the header Authorization: Bearer {shown}"
                sys.stderr.write(f"mcpspy: {line}\n")
                sys.stderr.flush()

            asyncio.run(serve_http(server, host, port, token, started))
    finally:
        store.close()
    return 0


def _loopback(text: str) -> tuple[str, int]:
    host, port = listen_address("--http", text)
    with suppress(ValueError):
        if host == "localhost" or ip_address(host).is_loopback:
            return host, port
    raise UsageError(f"--http {text}: not a loopback address", "use 127.0.0.1:PORT or PORT")


def _require_sdk() -> None:
    """Raise CannotStart unless a version of the SDK is installed that has both eras of the protocol."""
    try:
        found = version("mcp")
    except PackageNotFoundError:
        found = ""
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal())
    if numbers >= SDK:
        return
    oldest = ".".join(map(str, SDK))
    problem = (
        f"the installed MCP SDK is {found}, older than {oldest}" if found else "the MCP SDK is not installed"
    )
    hint = install_command("agent")
    if find_spec("mitmproxy") is not None:
        hint = (
            "mitmproxy 11 (extra mitm) and this SDK need different versions of h11: install mcpspy[agent] in an "
            "environment without mitm, e.g. uv tool install 'mcpspy[agent]'"
        )
    raise CannotStart(f"mcp: {problem}", hint)


def _install(args: argparse.Namespace) -> int:
    if not args.hosts:
        raise UsageError(
            "install: missing HOST", f"use one of {', '.join(host.name for host in HOSTS)}, or a file"
        )
    if not args.remove:
        _require_sdk()
    argv = [*command_line(), "mcp"]
    argv += ["--dir", os.path.abspath(os.path.expanduser(args.dir))] if args.dir else []
    for option, values in (("--allow-replay", args.allow_replay), ("--allow-send", args.allow_send)):
        argv += [word for value in values for word in (option, value)]
    argv += ["--allow-unredacted"] if args.allow_unredacted else []
    # Unknown names are reported before a file changes.
    targets = [_target(name, creates=not (args.remove or args.dry_run)) for name in args.hosts]
    for target in targets:
        _enter(target, argv, args)
    return 0


def _target(name: str, *, creates: bool) -> ConfigTarget:
    """Return the configuration of a host or a file; create that of a host if only its folder exists."""
    host = next((host for host in HOSTS if host.name == name), None)
    paths = host.paths() if host is not None else []
    if host is not None and creates and not any(path.exists() for path in paths) and paths[0].parent.is_dir():
        paths[0].write_text("{}\n" if host.location.syntax is ConfigSyntax.JSON else "", encoding="utf-8")
    return find(name)


def _enter(target: ConfigTarget, argv: list[str], args: argparse.Namespace) -> None:
    file = target.file
    try:
        new = (
            removed(file.text, target.location, NAME)
            if args.remove
            else added(file.text, target.location, NAME, argv)
        )
    except McpspyError as error:
        raise UsageError(f"{file.path}: {error.args[0]}", error.hint) from None
    if args.dry_run:
        show_diff(file.path, file.text, new)
        sys.stdout.flush()
        return
    output = Output(width=0)
    if new == file.text:
        output.line(sanitize(f"{file.path}: unchanged"), rows.QUIET)
        return
    backup = file.replace(new)
    done = "removed" if args.remove else "added"
    output.line(sanitize(f"{file.path}: {NAME} {done}; restart {target.product}"), rows.OK)
    output.line(sanitize(f"backup: {backup}"), rows.QUIET)
    if not args.remove:
        name = target.host.name if target.host is not None else file.path
        output.line(sanitize(f"to remove it: mcpspy mcp install {name} --remove"), rows.QUIET)
