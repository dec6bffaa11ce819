"""The shared context of HTTP exchanges with one server: the recording, the client and the sessions.

A stream is the scope in which ids are paired, named by the number of the exchange that started it. Exchanges
belong together by a session header, or by an address that HTTP+SSE handed out; any other exchange is a separate
stream.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from typing import TYPE_CHECKING

from mcpspy.core.compression import missing_package
from mcpspy.core.protocol.http_headers import names_only, without_downgrade
from mcpspy.core.protocol.oauth import OAuthTracker
from mcpspy.core.recording import encode
from mcpspy.core.recording.encode import MAX_BODY
from mcpspy.core.redact.display import redacted_text, redacted_url
from mcpspy.io.host_process import clients_of
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from mcpspy.core.exchange.heads import RequestHead
    from mcpspy.core.exchange.shell import DecisionPolicy
    from mcpspy.core.protocol.http_headers import Headers, Location, Upstream
    from mcpspy.core.recording.encode import Lines, Value
    from mcpspy.io.host_process import Fields
    from mcpspy.io.http.upstream import UpstreamClient
    from mcpspy.io.http.upstream_connection import UpstreamError
    from mcpspy.io.recording.recorder import Recorder

JOIN_LIMIT = 1 << 14
"""Maximum size, in bytes, of buffers that are joined for a write. Below it, joining is faster than writev."""

THREAD_WRITE_SIZE = 1 << 20
"""Size in bytes above which a thread writes to the file. Below it, the switch takes longer than the write."""

MAX_PATHS = 16
"""Number of paths of one endpoint: its own, and those to which it redirects."""

MAX_ENDED = 4096
"""Number of ended sessions that are remembered, because an exchange of one may still be in progress."""

MAX_CLIENTS = 1 << 12
"""Number of connections whose clients are remembered, and of looks in vain."""

MAX_KNOWN_PROCESSES = 8
"""Number of processes of clients that are looked at before all others."""

MAX_REMEMBERED = 1 << 16
"""Number of sessions that are remembered; the least recently used is forgotten first. Many clients never end one."""


class SessionScopes:
    """The streams of one server."""

    def __init__(self, endpoint: str) -> None:
        self._endpoints = {endpoint}
        self._sessions = _Names()
        self._addresses = _Names()

    def has_path(self, target: str) -> bool:
        """Return whether messages are sent to this path, as long as the proxy runs."""
        return target.partition("?")[0] in self._endpoints

    def is_endpoint(self, target: str) -> bool:
        """Return whether messages are sent to this path now."""
        return self.has_path(target) or target in self._addresses

    def add_endpoint(self, path: str) -> None:
        """Treat another path as the same endpoint."""
        if len(self._endpoints) < MAX_PATHS:
            self._endpoints.add(path)

    def of(self, session: str | None, target: str, number: int) -> str:
        """Return the stream of an exchange."""
        if session is not None:
            return self._sessions.refresh(session, str(number))
        return self._addresses.get(target, str(number))

    def known(self, session: str, target: str) -> str | None:
        """Return the stream of a session with a header, or of an address that HTTP+SSE handed out; None if unknown."""
        return self._sessions.get(session) or self._addresses.get(target)

    def is_address(self, target: str) -> bool:
        """Return whether HTTP+SSE handed out this address."""
        return target in self._addresses

    def bind(self, session: str, stream: str) -> None:
        self._sessions.refresh(session, stream)

    def bind_address(self, target: str, stream: str) -> None:
        self._addresses[target] = stream

    def end(self, session: str) -> None:
        """Forget a session, after a while."""
        self._sessions.end(session)

    def end_address(self, target: str) -> None:
        """Forget an address, after a while."""
        self._addresses.end(target)


class _Names(dict[str, str]):
    """Names of streams, in order of last use."""

    def __init__(self) -> None:
        super().__init__()
        self._ended: dict[str, None] = {}

    def refresh(self, name: str, stream: str) -> str:
        """Return the stream of a name, or assign `stream` to it."""
        stream = self[name] = self.pop(name, stream)
        if len(self) > MAX_REMEMBERED:
            self._drop(next(iter(self)))
        return stream

    def end(self, name: str) -> None:
        if name in self:
            self._ended[name] = None
            if len(self._ended) > MAX_ENDED:
                self._drop(next(iter(self._ended)))

    def _drop(self, name: str) -> None:
        del self[name]
        self._ended.pop(name, None)


class ClientProcesses:
    """The processes of clients on this machine: a look per connection until one is found, in a thread."""

    def __init__(self) -> None:
        self._connections: dict[object, str] = {}
        """Address of a connection → the stream of its first exchange."""
        self._found: dict[str, Fields | None] = {}
        """Stream → the process of its client, and None after it was taken."""
        self._due: dict[object, str] = {}
        """Connections that the next look is for, because a look at many takes no longer than at one."""
        self._is_looking = False
        self._pids: dict[int, None] = {}
        """The processes that were found, which nearly always have the next connection too."""
        self._failures = 0

    def look(self, address: object, stream: str) -> None:
        """Begin to look for a client that is not known, while its request is open.

        A look fails if the connection is closed first. So each connection of a session is looked at, even while
        another look is in progress: the connection of the listening stream stays open, and may be the only one.
        """
        if stream in self._found or address in self._connections:
            return
        if len(self._connections) >= MAX_CLIENTS:  # The oldest.
            self._found.pop(self._connections.pop(next(iter(self._connections))), None)
        self._connections[address] = self._due[address] = stream
        self._look()

    def take(self, address: object, stream: str) -> Fields | None:
        """Return the process of a client once, when it was found."""
        first = stream if stream in self._found else self._connections.get(address, "")
        found = self._found.get(first)
        if found is not None:
            self._found[first] = None
        return found

    def _look(self) -> None:
        """Look at what is due, unless a look is in progress, which does it at its end."""
        if self._is_looking or not self._due:
            return
        due, self._due = self._due, {}
        try:
            look = asyncio.get_running_loop().run_in_executor(None, clients_of, tuple(due), tuple(self._pids))
        except RuntimeError:  # The loop ends.
            return
        self._is_looking = True
        look.add_done_callback(lambda done: self._add(due, {} if done.cancelled() else done.result()))

    def _add(self, due: dict[object, str], found: dict[object, Fields]) -> None:
        self._is_looking = False
        for address, stream in due.items():
            if address in found:
                self._found.setdefault(stream, found[address])
                self._pids = {int(found[address]["pid"]): None, **self._pids}
                continue
            self._failures += 1
            if self._failures < MAX_CLIENTS:  # Look at its next request.
                self._connections.pop(address, None)
        self._pids = dict(islice(self._pids.items(), MAX_KNOWN_PROCESSES))
        self._look()


class ExchangeContext:
    is_reachable = True
    """True if viewers may connect from the start."""
    is_mcp = True
    """False while it is not known whether the server speaks MCP."""
    policy: DecisionPolicy
    """The interception, once there is one."""

    def __init__(self, upstream: Upstream, recorder: Recorder, client: UpstreamClient) -> None:
        self.upstream = upstream
        self.recorder = recorder
        self.client = client
        self.streams = SessionScopes(upstream.path)
        self.oauth = OAuthTracker(upstream.origin)
        self.is_stopping = False
        self.max_body = MAX_BODY
        """Bytes of a decoded body, or of an event, above which it is not recorded."""
        self._unrecorded: set[str] = set()
        self._reported: set[str] = set()
        self._said: set[str] = set()
        self._left: set[str] = set()
        """Origins to which redirects led past the proxy, of which the user knows."""
        self.numbers = itertools.count(1)
        """The next numbers of exchanges."""
        self._writing = asyncio.Lock()
        self._writers = 0
        """Number of those that write, or wait for that."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.clients = ClientProcesses()
        self.client_process = self.clients.take

    def record_at_once(self, lines: Lines, size: int) -> bool:
        """Write lines to the recording, unless that would block other exchanges. Return whether they are written."""
        if self._writers or size > THREAD_WRITE_SIZE:
            return False
        if not isinstance(lines, bytes) and size <= JOIN_LIMIT:
            lines = b"".join(lines)
        self.recorder.write(lines)
        return True

    async def record(self, lines: Lines, size: int) -> None:
        """Write lines to the recording. A long write does not block other exchanges."""
        if self.record_at_once(lines, size):
            return
        if size > THREAD_WRITE_SIZE:
            # A thread cannot be cancelled, so the lock is held even if the client hangs up in the meantime.
            await asyncio.shield(self._record_in_thread(lines))
            return
        async with self._turn():
            self.recorder.write(lines)

    async def _record_in_thread(self, lines: Lines) -> None:
        async with self._turn():
            await asyncio.to_thread(self.recorder.write, lines)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Write after those who came before."""
        self._writers += 1
        try:
            async with self._writing:
                yield
        finally:
            self._writers -= 1

    def record_soon(self, line: bytes) -> None:
        """Write a line after those that are being written."""
        if not self.record_at_once(line, len(line)):
            task = asyncio.ensure_future(self.record([line], len(line)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def note_soon(self, kind: str, fields: Mapping[str, Value]) -> None:
        self.record_soon(encode.note(self.recorder.now(), kind, fields))

    async def note(self, kind: str, fields: Mapping[str, Value]) -> None:
        await self.record([encode.note(self.recorder.now(), kind, fields)], 0)

    def report_once(self, line: str) -> None:
        """Print a line about a client once."""
        if line not in self._said and len(self._said) < MAX_PATHS:
            self._said.add(line)
            say(redacted_text(line))

    def report_unrecorded(self, target: str) -> None:
        """Print once that a stream of events may be one of MCP, but is not recorded."""
        path = target.partition("?")[0]
        if path not in self._unrecorded and len(self._unrecorded) < MAX_PATHS:
            self._unrecorded.add(path)
            url = redacted_url(self.upstream.origin + path)
            say(f"{url} is a stream of events and is not recorded; if it is MCP: --upstream {url}")

    def report_redirect(self, location: Location, *, keeps_method: bool) -> None:
        """Print once per origin that a redirect leads past the proxy. One to a sign-in page does not keep the method."""
        if location.origin is None or location.origin in self._left or len(self._left) == MAX_PATHS:
            return
        self._left.add(location.origin)
        here = redacted_url(self.upstream.origin + self.upstream.path)
        there = redacted_url(names_only(location.value))
        secure = without_downgrade(location.value, self.upstream.origin)
        if secure is not None:
            hint = f"; use --upstream {redacted_url(names_only(secure))}, or let the server trust X-Forwarded-Proto"
        else:
            hint = f"; to record that: --upstream {there}" if keeps_method else ""
        say(f"{here} redirects past mcpspy to {there}{' without TLS' if secure else ''}{hint}")

    def report_encoding(self, encoding: str | None) -> None:
        """Print once that bodies with this encoding cannot be decoded for the recording."""
        package = None if encoding is None or encoding in self._reported else missing_package(encoding)
        if package is not None and encoding is not None:
            self._reported.add(encoding)
            from mcpspy.io.extras import install_command

            command = install_command("compression")
            say(
                f"bodies compressed by {encoding} are recorded as they are sent, without {package}: {command}"
            )

    def public_origin(self, request: RequestHead) -> str:
        """Return the origin under which the client of this request knows the server."""
        return f"http://{request.headers.get('Host', '')}"

    def upstream_head(
        self, method: str, target: str, headers: Headers, body: bytes | None, *, has_body: bool
    ) -> bytes:
        """Return the head of a request, as `UpstreamClient.head` does."""
        return self.client.head(method, target, headers, body, has_body=has_body)

    def connect_failed(self, error: UpstreamError) -> None:
        """Report why there is no connection to the server, where only the user can do something about it."""
