"""The engine of the mock mode, in a separate process: serves one recording until its viewer ends.

Its configuration is `MockSetup`. It sends one event: `serving` with `url` and `path`, or `failed` with `text`. It
takes no orders: viewers steer it through the control socket of the session that it records.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, convert

from mcpspy.core.mock.delivery import PROGRESS_GAP
from mcpspy.core.mock.selector import MatchMode
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.client import ServerAddress, ServerCommand
from mcpspy.io.engine import EngineViewer, serve
from mcpspy.io.mock.live import serving_live
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.serving.live_server import LiveServer
from mcpspy.io.session_name import session_name


class MockSetup(Struct, frozen=True, kw_only=True):
    """The recording to serve, and the options."""

    recording: str
    """Path of the recording."""
    folder: str
    """Folder for the session that the mock records, and for those with the real server."""
    port: int = 0
    """On loopback; 0 for a free one."""
    match: str = "exact"
    speed: float = 0.0
    misses: str = "error"
    """As of `--on-miss`."""
    cwd: str = ""
    """The folder in which the real server starts, if it exists."""
    server: str = ""
    """Command line or URL of the real server, to which misses may be forwarded; empty for none."""


def real_server(settings: MockSetup) -> LiveServer | None:
    """Return the real server; None without one. Raise UsageError."""
    text = settings.server.strip()
    if not text:
        return None
    if text.startswith(("http://", "https://")):
        if (upstream := read_upstream(text)) is None:
            raise UsageError(f"real server: {text}: not a URL", "use http://HOST/PATH, or a command line")
        return LiveServer(ServerAddress(text), upstream.host, settings.folder)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"real server: {str(error).lower()}", "use the syntax of a shell") from None
    return LiveServer(ServerCommand(words), session_name(words), settings.folder)


def _enter_folder(folder: str) -> None:
    with suppress(OSError):  # Empty, or it no longer exists: the real server starts where mcpspy did.
        os.chdir(folder)


async def run(viewer: EngineViewer) -> None:
    try:
        settings = convert(viewer.config, MockSetup)
        real = real_server(settings)
        options = MockOptions(
            match=MatchMode(settings.match),
            speed=settings.speed,
            gap=PROGRESS_GAP,
            may_forward=real is not None,
        ).with_misses(settings.misses)
        _enter_folder(settings.cwd)
        loader = RecordingsLoader([Path(settings.recording)], (), merge=False)
        live = serving_live(loader, options, port=settings.port, folder=settings.folder, real=real)
        async with live as mock:
            viewer.send("serving", url=mock.url, path=mock.path)
            try:
                await mock.reading
                await asyncio.Event().wait()  # Until the viewer ends.
            except asyncio.CancelledError:
                # The proxy ends its recording only if its context ends without an error.
                if (task := asyncio.current_task()) is not None:
                    task.uncancel()
    except McpspyError as error:
        viewer.send("failed", text=str(error))


if __name__ == "__main__":
    serve(run)
