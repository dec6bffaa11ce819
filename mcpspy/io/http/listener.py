"""A listening socket that is served until a signal arrives, shared by `http` and `mock --http`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from mcpspy.errors import CannotStart
from mcpspy.io.client.aiohttp_session import MAX_HEADER
from mcpspy.io.recording.recorder import say

GRACE = 0.5
"""Seconds that open exchanges get at the end. aiohttp waits for this time twice, before and after it cancels them."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def listening(host: str, port: int, other: str) -> socket.socket:
    """Return a listening socket. Raise CannotStart with the hint `other`."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise CannotStart(f"cannot listen on {host}:{port}: {reason}", other) from None


def origin(host: str, listener: socket.socket) -> str:
    """Return the origin under which clients reach a listener."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


@asynccontextmanager
async def accepting(handler: Handler, listener: socket.socket) -> AsyncIterator[None]:
    """Serve requests with a handler while the context is open. A client that hangs up cancels the handler."""
    server = web.Server(
        handler,
        logger=_quiet_log(),
        access_log=None,
        auto_decompress=False,
        handler_cancellation=True,
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
    )
    runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=GRACE)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield
    finally:
        await runner.cleanup()


def stop_on_signals(stop: Callable[[int], None]) -> None:
    """Call `stop` with the number of the signal on SIGTERM and SIGINT, in the running loop."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop, number)
        except NotImplementedError:  # Windows: Ctrl-C arrives between two steps of the loop.
            signal.signal(number, lambda number, _: loop.call_soon_threadsafe(stop, number))


class _OneLine(logging.Handler):
    """Reports bugs on one line. Malformed requests get a response and are not reported."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, HttpProcessingError | ConnectionError):
            say(f"a bug in mcpspy: {type(error).__name__}: {str(error)!a}")


def _quiet_log() -> logging.Logger:
    log = logging.getLogger("mcpspy.listener")
    log.propagate = False
    log.handlers = [_OneLine(logging.WARNING)]
    return log
