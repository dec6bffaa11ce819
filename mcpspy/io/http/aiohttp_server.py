"""aiohttp's server on a listening socket."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from mcpspy.io.client.aiohttp_session import MAX_HEADER
from mcpspy.io.http.listener import GRACE
from mcpspy.io.recording.recorder import say

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


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
