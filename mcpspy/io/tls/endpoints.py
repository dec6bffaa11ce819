"""The MCP endpoints that were met under way, each with a recording, and what carries their requests.

Owns the listener on loopback to which mitmproxy sends what is MCP's: there each
request goes through the same core as those of `mcpspy http --upstream`. Nobody
else gets in: the path of every request begins with a word that only we know.
"""

from __future__ import annotations

import asyncio
import copy
import hmac
import itertools
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from yarl import URL

from mcpspy.core.protocol.http_headers import Upstream, is_metadata
from mcpspy.io.connect.client import environments_proxy, trust
from mcpspy.io.http import Options, Proxy, carrying, recording
from mcpspy.io.listener import accepting, listening
from mcpspy.io.tls.endpoint import Endpoint, Probe
from mcpspy.io.tls.outward import Outward

HOME = "127.0.0.1"


class Endpoints:
    """All that were met. One that was met once is known by its path from then on."""

    def __init__(self, options: Options, listen: str, announce: Callable[[str], None] | None) -> None:
        """`listen` is where clients reach us; `options` are those of every endpoint, but for its address.

        `announce` is told of each. Raises CannotStart if a certificate file cannot be read.
        """
        self._options = options
        self._trusted = trust(options.cacert, insecure=options.insecure)
        self._listen = listen
        self._announce = announce
        self._secret = secrets.token_urlsafe(24)
        self._numbers = itertools.count(1)
        self._all: dict[int, Proxy[Endpoint]] = {}
        self._probes: dict[int, tuple[Options, Outward | None]] = {}
        self._running = AsyncExitStack()
        self._meeting = asyncio.Lock()
        self.outward = Outward(listen)
        self.port = 0
        """Of the listener, on 127.0.0.1."""

    def __iter__(self) -> Iterator[Endpoint]:
        return iter([proxy.context for proxy in self._all.values() if proxy.context.is_mcp])

    def find(self, origin: str, target: str) -> Endpoint | None:
        """Return the endpoint that a request belongs to."""
        here = [endpoint for endpoint in self if endpoint.upstream.origin == origin]
        for endpoint in here:
            if endpoint.streams.is_endpoint(target):
                return endpoint
        if here and is_metadata(target):
            # What is said about one of several stands under its path (RFC 9728, 3.1).
            path = target.partition("?")[0]
            return next((known for known in here if path.endswith(known.upstream.path)), here[0])
        return None

    async def meet(self, origin: str, host: str, target: str, *, http2: bool) -> Endpoint:
        """Return an endpoint; begin its recording if it was not known. `http2`: its client speaks it."""
        async with self._meeting:
            if (known := self.find(origin, target)) is not None:
                return known
            options = self._options_for(origin, host, target)
            proxy = await self._running.enter_async_context(
                carrying(
                    options,
                    lambda client: Endpoint(options.upstream, recording(options, self._listen), client),
                    self._trusted,
                )
            )
            endpoint = proxy.context
            endpoint.outward = self._way_to(host, http2=http2)
            endpoint.number = next(self._numbers)
            self._all[endpoint.number] = proxy
        self._met(endpoint)
        return endpoint

    def path(self, endpoint: Endpoint, target: str) -> str:
        """Return the path under which the listener takes a request for an endpoint."""
        return f"/{self._secret}/{endpoint.number}{target}"

    def probe(self, origin: str, host: str, target: str, *, http2: bool) -> str:
        """Return the path for a request whose answer decides whether there is an endpoint."""
        number = next(self._numbers)
        self._probes[number] = self._options_for(origin, host, target), self._way_to(host, http2=http2)
        return f"/{self._secret}/{number}{target}"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Take requests while the context lasts; end the recordings after it."""
        with listening(HOME, 0, "free a port") as listener:
            self.port = listener.getsockname()[1]
            async with self._running, accepting(self._handle, listener):
                try:
                    yield
                finally:
                    for proxy in self._all.values():
                        proxy.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        secret, _, rest = request.rel_url.raw_path_qs[1:].partition("/")
        if not hmac.compare_digest(secret.encode(), self._secret.encode()):
            return web.Response(status=404)
        number, _, target = rest.partition("/")
        theirs = request.clone(rel_url=URL(f"/{target}", encoded=True))
        if int(number) in self._probes:
            return await self._carry_probe(theirs, int(number))
        return await self._all[int(number)].carry(theirs)

    async def _carry_probe(self, request: web.BaseRequest, number: int) -> web.StreamResponse:
        options, outward = self._probes.pop(number)

        def decided(probe: Probe) -> None:
            probe.record_to(recording(options, self._listen))
            proxy.board.record_to(probe.recorder)
            self._met(probe)

        async with AsyncExitStack() as running:
            proxy = await running.enter_async_context(
                carrying(options, lambda client: Probe(options.upstream, client, decided), self._trusted)
            )
            probe = proxy.context
            probe.number, probe.outward = number, outward
            self._all[number] = proxy
            try:
                return await proxy.carry(request)
            finally:
                if probe.is_mcp:
                    self._running.push_async_exit(running.pop_all())
                else:
                    del self._all[number]

    def _options_for(self, origin: str, host: str, target: str) -> Options:
        path, mark, query = target.partition("?")
        options = copy.copy(self._options)
        options.upstream = Upstream(origin, path, host, mark + query)
        return options

    def _way_to(self, host: str, *, http2: bool) -> Outward | None:
        """Return the way to a server whose client speaks HTTP/2, unless the environment has a proxy on it."""
        led = any(environments_proxy(URL(f"{scheme}://{host}")) for scheme in ("http", "https"))
        return self.outward if http2 and not led else None

    def _met(self, endpoint: Endpoint) -> None:
        if self._announce is not None:
            where = endpoint.recorder.path
            what = "not recorded" if where is None else f"recording to {where}"
            self._announce(f"{endpoint.upstream.origin}{endpoint.upstream.path}: {what}")
