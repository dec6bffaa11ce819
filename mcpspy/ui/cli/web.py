"""`mcpspy web`: browse sessions in the browser, including live ones."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.errors import UsageError
from mcpspy.io.network.listener import listening, origin, run_server, stop_on_signals
from mcpspy.io.recording.recorder import say
from mcpspy.io.settings import table
from mcpspy.ui.cli.arguments import listen_address, sessions_of_host
from mcpspy.ui.cli.options import FOLDER, SSH, VIEW_SCRIPT, Option, Switch

if TYPE_CHECKING:
    import ssl

EPILOG = """\
examples:
  mcpspy web --open                        all sessions, in the default browser
  mcpspy web --listen 127.0.0.1:8008       the same address every time
  mcpspy web --dir recordings/
  mcpspy web --listen 0.0.0.0:8443 --tls-cert box.pem --tls-key box.key
  mcpspy web --ssh ada@box                 the sessions of another machine
  mcpspy web --script sales.py             with its columns and views

It prints an address that contains a secret token; the page works only with it, and only
until mcpspy web ends (ctrl-c). The page can only read, unless --allow-control is given.

exit codes: 0; 2 usage error; 3 cannot listen
"""

OPTIONS = (
    Option("--listen", "HOST:PORT", "address to listen on (default: 127.0.0.1:0, any free port)"),
    Option("--tls-cert", "FILE", "serve HTTPS with this certificate (PEM, with its chain); needs --tls-key",
        requires="--tls-key"),
    Option("--tls-key", "FILE", "private key of --tls-cert (PEM)", requires="--tls-cert"),
    Switch("--i-know", "--listen: also on an address that other machines reach, without encryption"),
    Switch("--allow-control", "let the page control live sessions, and replay and serve sessions (loopback)"),
    Option("--preview-apps", None,
        "show the pages of apps (MCP Apps) in a frame without network; scripts: run their scripts there (default: off)",
        choices=["off", "static", "scripts"], default="off"),
    Switch("--open", "open the page in the default browser"),
    VIEW_SCRIPT,
    FOLDER,
    SSH,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    host, port = listen_address("--listen", args.listen or "127.0.0.1:0")
    tls, names = None, [] if host in LOOPBACK else [host]
    if args.tls_cert is not None:
        from mcpspy.ui.web.tls import server_context

        tls, found = server_context(args.tls_cert, args.tls_key)
        names += found
    if host not in LOOPBACK and tls is None and not args.i_know:
        raise UsageError(
            f"web: --listen {args.listen}: other machines could read the sessions, without encryption",
            "use --tls-cert and --tls-key, or --ssh on the other machine, or add --i-know",
        )
    from mcpspy.ui.views.extension import Extension

    args.extension = Extension(args.script, table("views"), shows_images=False)
    with (
        sessions_of_host(args, say),
        listening(host, port, "use another port, or 0 for a free one") as listener,
    ):
        if host not in LOOPBACK and tls is None:
            say(f"warning: listening on {host}: who sees the traffic can read every session of the folder")
        run_server(_serve(listener, host, args, tls, names))
    return 0


async def _serve(
    listener: socket.socket,
    host: str,
    args: argparse.Namespace,
    tls: ssl.SSLContext | None,
    names: list[str],
) -> None:
    """Serve until a signal arrives."""
    from aiohttp import web

    from mcpspy.ui.web.access import Access
    from mcpspy.ui.web.server import WebServer

    access = Access(names)
    server = WebServer(
        args.dir,
        access,
        allows_control=args.allow_control,
        preview=args.preview_apps,
        extension=args.extension,
    )
    runner = server.runner()
    await runner.setup()
    stopped = asyncio.Event()
    stop_on_signals(lambda _: stopped.set())
    try:
        await web.SockSite(runner, listener, ssl_context=tls).start()
        url = f"{origin(host, listener, 'http' if tls is None else 'https')}/#{access.token}"
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        with tempfile.TemporaryDirectory(prefix="mcpspy-web-") as folder:
            if args.open:
                await asyncio.to_thread(_open, Path(folder) / "open.html", url)
            await stopped.wait()
    finally:
        await runner.cleanup()


def _open(file: Path, url: str) -> None:
    """Open the page by a file that only this user can read: other users see the arguments of a browser."""
    import webbrowser

    file.write_text(
        f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={escape(url)}">', encoding="utf-8"
    )
    if not webbrowser.open(file.as_uri()):
        say("no browser found: open the address above")
