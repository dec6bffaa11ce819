"""`mcpspy http -- COMMAND`: a server on stdio, offered over HTTP.

The clients talk to `mcpspy http`, which records, checks Host and Origin, and intercepts; behind it, `Gateway` passes
their messages to processes. A client of a revision with sessions has its own process, or shares one with the others.
Requests of 2026-07-28 share a process that only they use, because nothing in them names a session (2026-07-28, basic:
"stateless"), and a server on stdio may decide by its first message which era it speaks.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from mcpspy.core.gateway.relay import RelaySession
from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.core.protocol.message import AnyMessage, Request
from mcpspy.core.recording.encode import TextEncoder
from mcpspy.errors import CannotStart
from mcpspy.io.client import ServerCommand
from mcpspy.io.gateway.processes import OwnProcess, ProcessObserver, SharedConnection, SharedProcess
from mcpspy.io.http.context import ExchangeContext
from mcpspy.io.http.proxy import HttpOptions, HttpProxy, banner, proxying
from mcpspy.io.http.server import accepting
from mcpspy.io.mock.http_client import MAX_STORED, ClientStream, Connects, MockClient
from mcpspy.io.mock.mcp_server import ENDPOINT, LOOPBACK_HOST, MESSAGES, SSE, McpServer, ParsedPost
from mcpspy.io.mock.upstream import RealServer
from mcpspy.io.network.listener import listening, origin, run_server, stop_on_signals
from mcpspy.io.recording.recorder import say

if sys.platform == "win32":
    from mcpspy.io.stdio.windows import explain
else:
    from mcpspy.io.stdio.process import explain

MAX_PROCESSES = 64
"""Sessions with their own process. Most clients never end theirs; the least recently used one is ended for another."""

DISCOVER = "server/discover"


class GatewayClient(MockClient):
    """A client of the gateway."""

    session: RelaySession

    def post(
        self, body: bytes, ids: list[bytes], messages: Sequence[AnyMessage] | None = None
    ) -> ClientStream:
        stream = super().post(body, ids, messages)
        cancelled, self.session.cancelled = self.session.cancelled, []
        for id in cancelled:  # noqa: A001
            self.end_cancelled(id)
        return stream


class Gateway(McpServer):
    """The clients of a server on stdio, and its processes."""

    def __init__(
        self, command: Sequence[str], *, is_shared: bool = False, allowed: Sequence[str] = ()
    ) -> None:
        super().__init__(ENDPOINT, allowed)
        self.most_sessions = 0 if is_shared else MAX_PROCESSES
        self.observer = ProcessObserver()
        self.complain: Callable[[str], None] = lambda _: None
        """Takes lines for the user, and for the recording."""
        self._real = RealServer(ServerCommand(list(command)), "", None, failure="mcpspy http", restarts=False)
        self._is_shared = is_shared
        self._shared: SharedProcess | None = None
        self._stateless: SharedProcess | None = None

    @property
    def _is_modern(self) -> bool:
        return True

    def _new(self, *, one_stream: bool = False) -> MockClient:
        if self._is_shared:
            self._shared = self._running(self._shared)
            return self._client_of(self._shared, one_stream=one_stream)
        process = OwnProcess(self._real, self.observer, lambda: self._lose(client))
        client = self._client_of(process, one_stream=one_stream)
        return client

    def _sender(self, post: ParsedPost, message: Request) -> MockClient:
        self._stateless = self._running(self._stateless)
        return self._client_of(self._stateless)

    def _answered(self, client: MockClient) -> None:
        """End the client of one request; and the process, if the server does not know requests without a session."""
        self._end(client)
        process = self._stateless
        assert process is not None
        if not process.server.has_succeeded and not process.has_clients and not process.has_ended:
            self._end_soon(process.close())

    async def close(self) -> None:
        for process in (self._shared, self._stateless):
            if process is not None:
                self._end_soon(process.close())
        await super().close()

    def _client_of(self, server: Connects, *, one_stream: bool = False) -> MockClient:
        client = GatewayClient(RelaySession(), self.complain, server, one_stream=one_stream)
        client.dropped = self._dropped
        self._clients.add(client)
        return client

    def _running(self, process: SharedProcess | None) -> SharedProcess:
        if process is not None and not process.has_ended:
            return process
        new = SharedProcess(self._real, self.observer, lambda: self._lose_all(new))
        return new

    def _lose_all(self, process: SharedProcess) -> None:
        for client in list(self._clients):
            real = client.real_server
            if isinstance(real, SharedConnection) and real.process is process:
                self._lose(client)

    def _lose(self, client: MockClient) -> None:
        """End the session of a client whose process has ended: its next request gets a 404."""
        for name, each in list(self._sessions.items()):
            if each is client:
                del self._sessions[name]
        if client in self._clients:
            self._end(client)

    def _end(self, client: MockClient) -> None:
        super()._end(client)
        if isinstance(client.real_server, SharedConnection):
            client.real_server.leave()

    def _dropped(self) -> None:
        self.complain(
            f"a client has no GET stream: of more than {MAX_STORED} messages for it, the oldest are dropped"
        )


class _Recorded(ProcessObserver):
    """Writes lines of stderr and ends of processes to the recording, and to the user."""

    def __init__(self, context: ExchangeContext) -> None:
        self._context = context
        self._encoder = TextEncoder("stderr")

    def heard(self, line: bytes) -> None:
        self._context.record_soon(b"".join(self._encoder.feed(self._context.recorder.now(), line + b"\n")))
        say(line.decode("utf-8", "replace"))

    def ended(self, why: str) -> None:
        self.complain(why)

    def complain(self, line: str) -> None:
        """Take a line for the user."""
        self._context.note_soon("error", {"text": line})
        self._context.report_once(line)


class GatewayOptions(HttpOptions):
    """The options of `mcpspy http -- COMMAND`."""

    def __init__(self, command: list[str], host: str, port: int) -> None:
        upstream = read_upstream(f"http://{LOOPBACK_HOST}{ENDPOINT}")
        assert upstream is not None
        super().__init__(upstream, host, port)
        self.command = self.server_command = command
        self.is_shared = False


@asynccontextmanager
async def serving_command(options: GatewayOptions) -> AsyncIterator[str]:
    """Offer a server while the context is open. Yield the URL for clients. Raise CannotStart."""
    allowed = [*options.allowed_hosts, options.host]
    gateway = Gateway(options.command, is_shared=options.is_shared, allowed=allowed)
    with listening(LOOPBACK_HOST, 0, "close other programs") as listener:
        upstream = read_upstream(origin(LOOPBACK_HOST, listener) + ENDPOINT)
        assert upstream is not None
        options.upstream = upstream

        def begun(proxy: HttpProxy[ExchangeContext]) -> None:
            for path in (ENDPOINT, SSE, MESSAGES):
                proxy.context.streams.add_endpoint(path)  # Not another server, with its own recording.
            recorded = _Recorded(proxy.context)
            gateway.observer, gateway.complain = recorded, recorded.complain

        async with accepting(gateway.handle, listener), proxying(options, begun) as url:
            try:
                yield url
            finally:
                await gateway.close()


def run(options: GatewayOptions) -> int:
    """Serve until SIGTERM or SIGINT. Return the exit code. Raise CannotStart, also for a program that does not exist."""
    if (
        shutil.which(options.command[0]) is None
    ):  # Not at the first request, whose client would get the error.
        missing = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        raise CannotStart(explain(missing, options.command[0])[1])
    return run_server(_serve(options))


async def _serve(options: GatewayOptions) -> int:
    stop = asyncio.Event()
    stop_on_signals(lambda _: stop.set())
    async with serving_command(options) as url:
        say(banner(url, options))
        await stop.wait()
    return 0
