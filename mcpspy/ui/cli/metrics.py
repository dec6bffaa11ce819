"""`mcpspy metrics`: metrics of live sessions for Prometheus."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mcpspy.core.protocol.http_headers import LOOPBACK, rejection_reason
from mcpspy.core.recording.decode import read_entry
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.io.extras import install_command
from mcpspy.io.network.listener import listening, origin, run_server, stop_on_signals
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.tail import follow_lines, new_sessions
from mcpspy.ui.cli.arguments import listen_address
from mcpspy.ui.cli.options import FOLDER, Option, Switch

if TYPE_CHECKING:
    from mcpspy.analysis.metrics import PrometheusMetrics

EPILOG = """\
examples:
  mcpspy metrics                            http://127.0.0.1:9464/metrics
  mcpspy metrics --listen 127.0.0.1:0       any free port, which is printed

It follows the files of the sessions that are live or begin while it runs, each from its
start, and never touches their traffic. Needs prometheus-client (extra `metrics`):
pip install 'mcpspy[metrics]'

exit codes: 0; 2 usage error; 3 cannot listen, or prometheus-client is not installed
"""

DEFAULT = "127.0.0.1:9464"
"""The usual address of OpenTelemetry's exporters for Prometheus."""

OPTIONS = (
    Option("--listen", "HOST:PORT", f"address to listen on (default: {DEFAULT})"),
    Switch("--i-know", "--listen: also on an address that other machines reach"),
    FOLDER,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Serve the metrics until a signal arrives."""
    host, port = listen_address("--listen", args.listen or DEFAULT)
    if host not in LOOPBACK and not args.i_know:
        raise UsageError(
            f"metrics: --listen {args.listen}: other machines could read the names of servers and tools",
            "use 127.0.0.1, or add --i-know",
        )
    try:
        from mcpspy.analysis.metrics import PrometheusMetrics
    except ImportError:
        raise CannotStart(
            "metrics needs prometheus-client, which is not installed", install_command("metrics")
        ) from None
    with listening(host, port, "use another port, or 0 for a free one") as listener:
        run_server(_serve(listener, host, Catalog(args.dir), PrometheusMetrics()))
    return 0


async def _serve(listener: socket.socket, host: str, catalog: Catalog, metrics: PrometheusMetrics) -> None:
    from mcpspy.io.http.request import HttpRequest, Response
    from mcpspy.io.http.server import accepting

    async def answer(request: HttpRequest) -> Response:
        names = host, request.local_host
        why = rejection_reason(request.headers.get("Host"), request.headers.get("Origin"), names)
        if why is not None:
            return Response(403, f"{why}\n".encode(), "text/plain")
        if request.method not in ("GET", "HEAD") or request.target.partition("?")[0] != "/metrics":
            return Response(404)
        return Response(200, metrics.text(), "text/plain; version=0.0.4")

    stopped = asyncio.Event()
    stop_on_signals(lambda _: stopped.set())
    following = asyncio.create_task(_follow_all(catalog, metrics))
    following.add_done_callback(lambda _: stopped.set())
    try:
        async with accepting(answer, listener):
            sys.stdout.write(f"{origin(host, listener)}/metrics\n")
            sys.stdout.flush()
            await stopped.wait()
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


async def _follow_all(catalog: Catalog, metrics: PrometheusMetrics) -> None:
    async with asyncio.TaskGroup() as followers:
        async for path in new_sessions(catalog):
            followers.create_task(_follow(path, metrics))


async def _follow(path: Path, metrics: PrometheusMetrics) -> None:
    """Add a session to the metrics, from its start to its end."""
    from mcpspy.analysis.metrics import SessionMetrics

    try:
        session = SessionMetrics(metrics, Recording(path).header)
    except McpspyError as error:  # It was deleted, or its first line is incomplete.
        say(f"metrics: {error}")
        return
    is_over = False
    try:
        async for block in follow_lines(path):
            for line in block.lines:
                session.add(read_entry(line))
            if block.damaged is not None and not block.damaged.data:
                say(f"metrics: {path}: the file was truncated or replaced, and is no longer counted")
                return
        is_over = True
    except (McpspyError, OSError) as error:
        say(f"metrics: {path}: {error}")
    finally:
        session.end(is_over=is_over)
