"""`mcpspy http -- COMMAND`: a server on stdio, offered over HTTP.

The clients talk to `mcpspy http`, which records, checks Host and Origin, and intercepts; behind it, `Gateway` passes
their messages to processes. A client of a revision with sessions has its own process, or shares one with the others.
Requests of 2026-07-28 share a process that only they use, because nothing in them names a session (2026-07-28, basic:
"stateless"), and a server on stdio may decide by its first message which era it speaks. Watched processes are restarted
in their sessions, each with what its clients had set.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcpspy.core.gateway.relay import RelaySession
from mcpspy.core.intercept.actions import CommandError
from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.core.protocol.message import AnyMessage, Request
from mcpspy.core.recording.encode import TextEncoder
from mcpspy.core.session import restart_notes
from mcpspy.core.session.restart_notes import RESTART
from mcpspy.errors import CannotStart
from mcpspy.io.gateway.processes import (
    OwnProcess,
    ProcessEvents,
    ProcessObserver,
    RestartedProcess,
    ServerCommands,
    SharedConnection,
    SharedProcess,
)
from mcpspy.io.http.context import ExchangeContext
from mcpspy.io.http.proxy import HttpOptions, HttpProxy, banner, proxying
from mcpspy.io.http.server import accepting
from mcpspy.io.intercept.interception import RESTART as RESTART_ORDER
from mcpspy.io.network.listener import listening, origin, run_server, stop_on_signals
from mcpspy.io.recording.recorder import say
from mcpspy.io.serving.client import MAX_STORED, ClientStream, Connects, ServedClient
from mcpspy.io.serving.mcp_server import ENDPOINT, LOOPBACK_HOST, MESSAGES, SSE, McpServer, ParsedPost
from mcpspy.io.watch.files import FileWatcher

if sys.platform == "win32":
    from mcpspy.io.stdio.windows import explain
else:
    from mcpspy.io.stdio.process import explain

MAX_PROCESSES = 64
"""Sessions with their own process. Most clients never end theirs; the least recently used one is ended for another."""

DISCOVER = "server/discover"


class GatewayClient(ServedClient):
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
        self,
        command: Sequence[str],
        observer: ProcessObserver,
        *,
        is_shared: bool = False,
        is_watched: bool = False,
        allowed: Sequence[str] = (),
    ) -> None:
        super().__init__(ENDPOINT, allowed)
        self.most_sessions = 0 if is_shared else MAX_PROCESSES
        self.restarted: Callable[[str, dict[str, Any]], None] = lambda _session, _fields: None
        """Takes the notes of restarts, each with the name of the session that has the process; "" for a shared one."""
        self.complain: Callable[[str], None] = lambda _: None
        """Takes lines for the user, and for the recording."""
        self._commands = ServerCommands(list(command), observer, is_watched=is_watched)
        self._is_shared = is_shared
        self._shared: SharedProcess | None = None
        self._stateless: SharedProcess | None = None

    @property
    def _is_modern(self) -> bool:
        return True

    def _new(self, *, one_stream: bool = False) -> ServedClient:
        if self._is_shared:
            self._shared = self._running(self._shared)
            return self._client_of(self._shared, one_stream=one_stream)
        events = ProcessEvents(
            lambda: self._lose(client), lambda fields: self.restarted(self._session_of(client), fields)
        )
        client = self._client_of(OwnProcess(self._commands, events), one_stream=one_stream)
        return client

    def _sender(self, post: ParsedPost, message: Request) -> ServedClient:
        self._stateless = self._running(self._stateless)
        return self._client_of(self._stateless)

    def _answered(self, client: ServedClient) -> None:
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

    def _client_of(self, server: Connects, *, one_stream: bool = False) -> ServedClient:
        client = GatewayClient(RelaySession(), self.complain, server, one_stream=one_stream)
        client.dropped = self._dropped
        self._clients.add(client)
        return client

    def _running(self, process: SharedProcess | None) -> SharedProcess:
        if process is not None and not process.has_ended:
            return process
        events = ProcessEvents(lambda: self._lose_all(new), lambda fields: self.restarted("", fields))
        new = SharedProcess(self._commands, events)
        return new

    def restart(self, why: dict[str, Any]) -> int:
        """Restart all processes; `why` has the fields of their notes. Return their number."""
        shared = [each.process for each in (self._shared, self._stateless) if each and not each.has_ended]
        found = [client.real_server for client in self._clients] + shared
        return sum(each.restart(why) for each in found if isinstance(each, RestartedProcess))

    def _session_of(self, client: ServedClient) -> str:
        return next((name for name, each in self._sessions.items() if each is client), "")

    def _lose_all(self, process: SharedProcess) -> None:
        for client in list(self._clients):
            real = client.real_server
            if isinstance(real, SharedConnection) and real.process is process:
                self._lose(client)

    def _lose(self, client: ServedClient) -> None:
        """End the session of a client whose process has ended: its next request gets a 404."""
        for name, each in list(self._sessions.items()):
            if each is client:
                del self._sessions[name]
        if client in self._clients:
            self._end(client)

    def _end(self, client: ServedClient) -> None:
        super()._end(client)
        if isinstance(client.real_server, SharedConnection):
            client.real_server.leave()

    def _dropped(self) -> None:
        self.complain(
            f"a client has no GET stream: of more than {MAX_STORED} messages for it, the oldest are dropped"
        )


class _Recorded(ProcessObserver):
    """Writes lines of stderr, and restarts and ends of processes, to the recording, and for the user and viewers."""

    def __init__(self) -> None:
        self._encoder = TextEncoder("stderr")
        self._proxy: HttpProxy[ExchangeContext]

    def begin(self, proxy: HttpProxy[ExchangeContext]) -> None:
        """Take the proxy, before the first client is accepted."""
        self._proxy = proxy

    @property
    def path(self) -> str | None:
        """The recording."""
        return self._proxy.context.recorder.path

    def heard(self, line: bytes) -> None:
        context = self._proxy.context
        context.record_soon(b"".join(self._encoder.feed(context.recorder.now(), line + b"\n")))
        say(line.decode("utf-8", "replace"))

    def ended(self, why: str) -> None:
        self.complain(why)

    def restarted(self, session: str, fields: dict[str, Any]) -> None:
        """Take the fields of a note of kind `restart`, and the name of the session that has the process."""
        if fields["did"] in ("started", "failed"):
            say(restart_notes.words(fields))
        stream = self._proxy.context.streams.known(session, f"{MESSAGES}?session_id={session}")
        fields = {**fields, "process": "own" if session else "shared"}
        if stream is not None:
            fields["stream"] = stream
        self._proxy.context.note_soon(RESTART, fields)
        self._proxy.interception.notify(None, {"event": RESTART, **fields})

    def complain(self, line: str) -> None:
        """Take a line for the user."""
        self._proxy.context.note_soon("error", {"text": line})
        self._proxy.context.report_once(line)


class GatewayOptions(HttpOptions):
    """The options of `mcpspy http -- COMMAND`."""

    def __init__(self, command: list[str], host: str, port: int) -> None:
        upstream = read_upstream(f"http://{LOOPBACK_HOST}{ENDPOINT}")
        assert upstream is not None
        super().__init__(upstream, host, port)
        self.command = self.server_command = command
        self.is_shared = False
        self.watch: list[str] = []
        """Files and folders; the processes are restarted when one changes."""


@asynccontextmanager
async def serving_command(options: GatewayOptions) -> AsyncIterator[str]:
    """Offer a server while the context is open. Yield the URL for clients.

    Raise CannotStart, and UsageError for a path that cannot be watched.
    """
    watcher = FileWatcher(options.watch) if options.watch else None
    recorded = _Recorded()
    gateway = Gateway(
        options.command,
        recorded,
        is_shared=options.is_shared,
        is_watched=watcher is not None,
        allowed=[*options.allowed_hosts, options.host],
    )
    gateway.complain = recorded.complain
    gateway.restarted = recorded.restarted
    with listening(LOOPBACK_HOST, 0, "close other programs") as listener:
        upstream = read_upstream(origin(LOOPBACK_HOST, listener) + ENDPOINT)
        assert upstream is not None
        options.upstream = upstream

        def begun(proxy: HttpProxy[ExchangeContext]) -> None:
            for path in (ENDPOINT, SSE, MESSAGES):
                proxy.context.streams.add_endpoint(path)  # Not another server, with its own recording.
            recorded.begin(proxy)
            if watcher is not None:
                proxy.interception.orders[RESTART_ORDER] = lambda viewer, order: _ordered(
                    gateway, viewer, order
                )

        async with (
            accepting(gateway.handle, listener),
            proxying(options, begun) as url,
            watching(watcher, gateway, recorded),
        ):
            try:
                yield url
            finally:
                await gateway.close()


@asynccontextmanager
async def watching(watcher: FileWatcher | None, gateway: Gateway, recorded: _Recorded) -> AsyncIterator[None]:
    """Restart the processes when files change while the context is open."""
    if watcher is None:
        yield
        return
    watch = asyncio.ensure_future(watcher.restart(gateway.restart, recorded.path, recorded.complain))
    try:
        yield
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)


def _ordered(gateway: Gateway, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
    """Execute the order `restart` of a viewer. Raise CommandError."""
    if unknown := order.keys() - {"n", "order"}:
        raise CommandError(f"restart: unknown key {min(unknown)!r}")
    if not (number := gateway.restart({"viewer": viewer})):
        raise CommandError("cannot restart: no server runs, as no client has connected")
    return {"servers": number}


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
