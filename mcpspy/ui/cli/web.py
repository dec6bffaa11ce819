"""`mcpspy web`: browse sessions in the browser, including live ones."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import tempfile
from html import escape
from pathlib import Path

from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.errors import UsageError
from mcpspy.io.http.listener import listening, origin, run_server, stop_on_signals
from mcpspy.io.recording.recorder import say
from mcpspy.ui.cli.arguments import listen_address
from mcpspy.ui.cli.options import FOLDER, describe

EPILOG = """\
examples:
  mcpspy web --open                        all sessions, in the default browser
  mcpspy web --listen 127.0.0.1:8008       the same address every time
  mcpspy web --dir recordings/

It prints an address that contains a secret token; the page works only with it, and only
until mcpspy web ends (ctrl-c). The page can only read, unless --allow-control is given.

exit codes: 0; 2 usage error; 3 cannot listen
"""


def configure(parser: argparse.ArgumentParser) -> None:
    own = {
        "--listen": ("HOST:PORT", "address to listen on (default: 127.0.0.1:0, any free port)"),
        "--i-know": (None, "--listen: also on an address that other machines reach, without encryption"),
        "--allow-control": (None, "let the page hold, change, drop and answer messages, and send requests"),
        "--open": (None, "open the page in the default browser"),
    }
    describe(parser, {**own, **FOLDER})


def main(args: argparse.Namespace) -> int:
    host, port = listen_address("--listen", args.listen or "127.0.0.1:0")
    if host not in LOOPBACK and not args.i_know:
        raise UsageError(
            f"web: --listen {args.listen}: other machines could read the sessions, without encryption",
            "use 127.0.0.1 and ssh -L, or add --i-know",
        )
    with listening(host, port, "use another port, or 0 for a free one") as listener:
        if host not in LOOPBACK:
            say(f"warning: listening on {host}: who sees the traffic can read every session of the folder")
        run_server(_serve(listener, host, args))
    return 0


async def _serve(listener: socket.socket, host: str, args: argparse.Namespace) -> None:
    """Serve until a signal arrives."""
    from aiohttp import web

    from mcpspy.ui.web.access import Access
    from mcpspy.ui.web.server import WebServer

    access = Access(() if host in LOOPBACK else (host,))
    server = WebServer(args.dir, access, allows_control=args.allow_control)
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    stopped = asyncio.Event()
    stop_on_signals(lambda _: stopped.set())
    try:
        await web.SockSite(runner, listener).start()
        url = f"{origin(host, listener)}/#{access.token}"
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
