"""`mcpspy http`: a listener in front of an MCP server that speaks HTTP.

Owns the listener and the upstream client, and the end of both. One exchange is
`io.passage`'s, which of them are one conversation `io.streams`'. No timeout of ours: streams
live for hours, and a slow server is the client's to give up on.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import aiohttp
import orjson
from aiohttp import hdrs, web
from yarl import URL

from mcpspy.core import envelope
from mcpspy.core.headers import LOOPBACK, Upstream, noted, refusal
from mcpspy.io.board import Board
from mcpspy.io.connect.client import IDLE, environments_proxy, trust
from mcpspy.io.interception import Interception
from mcpspy.io.listener import LONG_HEADER, accepting, listening, origin, stop_on_signals
from mcpspy.io.passage import Passage, json_error
from mcpspy.io.passed import ADDED
from mcpspy.io.recorder import Recorder, Where, say
from mcpspy.io.streams import Streams

if TYPE_CHECKING:
    import ssl

    from mcpspy.core.envelope import Value
    from mcpspy.core.headers import Headers

SHORT = 1 << 14
"""Bytes up to which buffers are written as one piece: to join them costs less than writev."""

LONG_WRITE = 1 << 20
"""Bytes from which on a write to the file goes to a thread: below, handing it over costs more than doing it."""


class Options(Where):
    """What `mcpspy http` was asked to do."""

    def __init__(self, upstream: Upstream, host: str, port: int) -> None:
        super().__init__()
        self.upstream = upstream
        self.host = host
        self.port = port
        self.name: str | None = None
        self.allowed_hosts: list[str] = []
        self.cacert: str | None = None
        self.insecure = False
        self.interception = Interception()


class Proxy:
    """What every exchange needs: the server's address, the client, the recording, who decides."""

    is_reachable = True
    """Whether viewers may come in."""

    def __init__(self, options: Options, recorder: Recorder, client: aiohttp.ClientSession) -> None:
        self.upstream = options.upstream
        self.recorder = recorder
        self.client = client
        self.streams = Streams(options.upstream.path)
        self.is_stopping = False
        self.board = Board(self, options.interception, options.name or options.upstream.host)
        self._allowed = [*options.allowed_hosts, *(() if options.host in LOOPBACK else (options.host,))]
        self._numbers = itertools.count(1)
        self._writing = asyncio.Lock()

    async def keep(self, lines: Iterable[bytes | bytearray], size: int) -> None:
        """Have lines in the file. A long write leaves the loop to the other exchanges meanwhile."""
        if size > LONG_WRITE:
            # A thread cannot be cancelled: who hangs up meanwhile must not let the next writer in.
            await asyncio.shield(self._keep_in_thread(lines))
            return
        async with self._writing:
            self.recorder.write(b"".join(lines) if size <= SHORT else lines)

    async def _keep_in_thread(self, lines: Iterable[bytes | bytearray]) -> None:
        async with self._writing:
            await asyncio.to_thread(self.recorder.write, lines)

    async def note(self, kind: str, fields: Mapping[str, Value]) -> None:
        """Have a note in the file."""
        async with self._writing:
            at = self.recorder.now()
            try:
                line = orjson.dumps({"t": round(at, 6), "note": kind, **fields}) + b"\n"
            except TypeError:  # A header that is not UTF-8.
                line = envelope.note(at, kind, fields)
            self.recorder.write(line)

    def ours(self, request: web.BaseRequest) -> str:
        """Return the origin at which the client of this request knows the server."""
        return f"http://{request.headers.get(hdrs.HOST, '')}"

    def url(self, target: str) -> URL:
        """Return where a request for `target` goes: to the same path at the server."""
        return URL(self.upstream.origin + target, encoded=True)

    async def ask(
        self, method: str, target: str, headers: Headers, data: bytes | AsyncIterator[bytes] | None
    ) -> aiohttp.ClientResponse:
        """Send a request to the server. Raises what `connect.client.reason` explains."""
        return await self.client.request(
            method, self.url(target), headers=headers, data=data, allow_redirects=False
        )

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Carry one request through, unless a stranger's page sent it."""
        why = refusal(request.headers.get(hdrs.HOST), request.headers.get(hdrs.ORIGIN), self._allowed)
        return await self.carry(request) if why is None else await self._refuse(request, why)

    async def carry(self, request: web.BaseRequest) -> web.StreamResponse:
        """Carry one request through."""
        return await Passage(self, request, self.next_number()).run()

    def next_number(self) -> int:
        """Return the number of a new exchange."""
        return next(self._numbers)

    async def _refuse(self, request: web.BaseRequest, why: str) -> web.Response:
        number = self.next_number()
        line = f"mcpspy: refused: {why} (--allow-host NAME lets it in)"
        fields: dict[str, Value] = {
            "stream": str(number),
            "http": number,
            "method": request.method,
            "path": request.raw_path,
            "status": 403,
            "request": noted(request.headers.items()),
            "error": line,
        }
        await self.note("http", fields)
        return json_error(403, None, line)


def run(options: Options) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code. Raises CannotStart."""
    return asyncio.run(_serve(options))


async def _serve(options: Options) -> int:
    stop = asyncio.Event()
    stop_on_signals(lambda _: stop.set())
    async with proxying(options) as url:
        say(f"{url} -> {options.upstream.origin}{options.upstream.path}")
        await stop.wait()
    return 0


@asynccontextmanager
async def proxying(options: Options) -> AsyncIterator[str]:
    """Serve while the context lasts; yield the URL to give to clients. Raises CannotStart."""
    with listening(options.host, options.port, "another --listen PORT, or :0") as listener:
        url = origin(options.host, listener) + options.upstream.path + options.upstream.query
        carrier = carrying(options, lambda client: Proxy(options, recording(options, url), client))
        async with carrier as proxy, accepting(proxy.handle, listener):
            try:
                yield url
            finally:
                proxy.is_stopping = True
                proxy.board.end()


AnyProxy = TypeVar("AnyProxy", bound=Proxy)


@asynccontextmanager
async def carrying(
    options: Options,
    make: Callable[[aiohttp.ClientSession], AnyProxy],
    trusted: ssl.SSLContext | bool | None = None,
) -> AsyncIterator[AnyProxy]:
    """Have what carries exchanges with one server, and end its recording after the context. Raises CannotStart.

    `trusted` is what `trust` said, if it was asked before: it takes its time.
    """
    async with upstream_client(options, trusted) as client:
        proxy = make(client)
        async with proxy.board.reachable():
            yield proxy
    proxy.recorder.finish(0, None)


def upstream_client(options: Options, trusted: ssl.SSLContext | bool | None = None) -> aiohttp.ClientSession:
    """Return the client that asks the server, and adds nothing of its own. Raises CannotStart."""
    if trusted is None:
        trusted = trust(options.cacert, insecure=options.insecure)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE, ssl=trusted),
        # A server that answers slowly is not ours to give up on.
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=ADDED,
        # Not trust_env: it reads the environment for every request, in threads, and adds the
        # Authorization of a .netrc, which no client of ours sent.
        proxy=environments_proxy(URL(options.upstream.origin)),
        max_line_size=LONG_HEADER,
        max_field_size=LONG_HEADER,
    )


def recording(options: Options, listen: str) -> Recorder:
    """Begin the recording of what is said to the server by way of `listen`."""
    upstream = options.upstream
    fields: dict[str, Value] = {
        "transport": "http",
        "upstream": upstream.origin + upstream.path,
        "listen": listen,
        "name": options.name or upstream.host,
    }
    return Recorder(options, fields)
