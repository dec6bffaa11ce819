"""The MCP endpoints found by the forward proxy, each with its recording.

Contains the listener on loopback to which mitmproxy sends MCP requests; they are proxied as with
`mcpspy http --upstream`. The path of every request begins with a secret, so only mitmproxy can use the listener.
Clients use the endpoint's own address. HTTP+SSE (2024-11-05) is recognised only by the response.
"""

from __future__ import annotations

import asyncio
import copy
import hmac
import itertools
import re
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from mcpspy.core.protocol.http_headers import Upstream
from mcpspy.core.protocol.oauth import is_well_known
from mcpspy.core.redact.display import redacted_url
from mcpspy.io.http.context import ExchangeContext, SessionScopes
from mcpspy.io.http.proxy import HttpOptions, HttpProxy, recording, running_proxy
from mcpspy.io.http.request import HttpRequest, Response
from mcpspy.io.http.server import accepting
from mcpspy.io.http.upstream import HTTP1, HTTP2, UpstreamClient
from mcpspy.io.network.listener import listening
from mcpspy.io.network.outgoing import trust
from mcpspy.io.recording.recorder import Recorder, RecordingTarget, say

if TYPE_CHECKING:
    from mcpspy.core.exchange.heads import RequestHead
    from mcpspy.core.recording.encode import Lines
    from mcpspy.io.http.upstream_connection import UpstreamError

HOME = "127.0.0.1"

_TIME = re.compile(rb'^\{"t":[^,]+', re.MULTILINE)
_BEFORE_EVENTS = re.compile(rb'\{"t":[^,]+,"note":"(?:rules|http)"')


class McpEndpoint(ExchangeContext):
    number = 0
    """Its number in the paths of the listener."""
    _has_warned = False

    def public_origin(self, request: RequestHead) -> str:
        """Return the server's own origin, because all requests pass through the proxy anyway."""
        return self.upstream.origin

    def connect_failed(self, error: UpstreamError) -> None:
        """Report an untrusted certificate once."""
        if isinstance(error.__cause__, ssl.SSLCertVerificationError) and not self._has_warned:
            self._has_warned = True
            say(f"{self.upstream.host}: {error}")


class EndpointProbe(McpEndpoint):
    """A GET that becomes an endpoint with the event that names the address for messages.

    Until then, its entries are held; they get time 0 in the recording, which begins with that event. Without the
    event, they are dropped.
    """

    is_reachable = False

    def __init__(
        self, upstream: Upstream, client: UpstreamClient, decided: Callable[[EndpointProbe], None]
    ) -> None:
        """Create a probe. `decided` is called when it has become an endpoint, and must call `record_to`."""
        self._held = _HoldingRecorder()
        super().__init__(upstream, self._held, client)
        self.is_mcp = False
        self.streams = _ObservedScopes(upstream.path, lambda: decided(self))

    def record_at_once(self, _lines: Lines, _size: int) -> bool:
        """Return False: all lines go through `record`."""
        return False

    async def record(self, lines: Lines, size: int) -> None:
        """Record or hold lines: notes of rules and of the head, then the lines of the event that decides."""
        await super().record(lines, size)
        self._held.is_full = not all(map(_BEFORE_EVENTS.match, self._held.lines))

    def record_to(self, recorder: Recorder) -> None:
        """Start this recording with the held lines."""
        self.recorder = recorder
        recorder.write([_TIME.sub(b'{"t":0.0', lines) for lines in self._held.lines])
        self.is_mcp = True


class _HoldingRecorder(Recorder):
    """Holds all lines up to the first events of a response, and no later ones."""

    def __init__(self) -> None:
        nowhere = RecordingTarget()
        nowhere.recording = False
        super().__init__(nowhere, {})
        self.lines: list[bytes] = []
        """An item for each call of `write`."""
        self.is_full = False

    def write(self, lines: Lines) -> None:
        if not self.is_full:
            self.lines.append(lines if isinstance(lines, bytes) else b"".join(lines))


class _ObservedScopes(SessionScopes):
    """Reports when a server names the address for messages."""

    def __init__(self, endpoint: str, named: Callable[[], None]) -> None:
        super().__init__(endpoint)
        self._named = named

    def bind_address(self, target: str, stream: str) -> None:
        super().bind_address(target, stream)
        self._named()


class EndpointRegistry:
    """All endpoints, recognised by their paths."""

    def __init__(self, options: HttpOptions, listen: str, announce: Callable[[str], None] | None) -> None:
        """Create a registry. `listen` is the proxy's URL; `options` apply to every endpoint, except its address.

        `announce` is called with a line for each endpoint. Raises CannotStart if a certificate file cannot be read.
        """
        self._options = options
        self._trusted = {False: trust(options.cacert, insecure=options.insecure)}
        """Contexts of connections to servers, by whether HTTP/2 is offered."""
        self._listen = listen
        self._announce = announce
        self._secret = secrets.token_urlsafe(24)
        self._numbers = itertools.count(1)
        self._all: dict[int, HttpProxy[McpEndpoint]] = {}
        self._probes: dict[int, tuple[HttpOptions, bool]] = {}
        self._running = AsyncExitStack()
        self._creating = asyncio.Lock()
        self.port = 0
        """The port of the listener on 127.0.0.1."""

    def __iter__(self) -> Iterator[McpEndpoint]:
        return iter([proxy.context for proxy in self._all.values() if proxy.context.is_mcp])

    def find(self, origin: str, target: str) -> McpEndpoint | None:
        """Return the endpoint for a request, or None."""
        here = [endpoint for endpoint in self if endpoint.upstream.origin == origin]
        for endpoint in here:
            if endpoint.streams.is_endpoint(target):
                return endpoint
        if here and is_well_known(target):
            # If there are several, the path of the metadata ends with the path of its endpoint (RFC 9728, 3.1).
            path = target.partition("?")[0]
            return next((known for known in here if path.endswith(known.upstream.path)), here[0])
        return None

    async def get_or_create(self, origin: str, host: str, target: str, *, http2: bool) -> McpEndpoint:
        """Return an endpoint, and start its recording if it is new. `http2`: the client uses HTTP/2."""
        async with self._creating:
            if (known := self.find(origin, target)) is not None:
                return known
            options = self._options_for(origin, host, target)
            proxy = await self._running.enter_async_context(
                running_proxy(
                    options,
                    lambda client: McpEndpoint(options.upstream, recording(options, self._listen), client),
                    self._trust(http2=http2),
                )
            )
            endpoint = proxy.context
            endpoint.number = next(self._numbers)
            self._all[endpoint.number] = proxy
        self._announce_new(endpoint)
        return endpoint

    def path(self, endpoint: McpEndpoint, target: str) -> str:
        """Return the listener's path for a request to an endpoint."""
        return f"/{self._secret}/{endpoint.number}{target}"

    def probe(self, origin: str, host: str, target: str, *, http2: bool) -> str:
        """Return the path for a request whose response decides whether there is an endpoint."""
        number = next(self._numbers)
        self._probes[number] = self._options_for(origin, host, target), http2
        return f"/{self._secret}/{number}{target}"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve requests while the context is open, then end the recordings."""
        with listening(HOME, 0, "free a port") as listener:
            self.port = listener.getsockname()[1]
            async with self._running, accepting(self._handle, listener):
                try:
                    yield
                finally:
                    for proxy in self._all.values():
                        proxy.stop()

    def _handle(self, request: HttpRequest) -> Response | Awaitable[None] | None:
        secret, _, rest = request.target[1:].partition("/")
        if not hmac.compare_digest(secret.encode("utf-8", "surrogateescape"), self._secret.encode()):
            return Response(404)
        number, _, target = rest.partition("/")
        request.target = f"/{target}"
        if int(number) in self._probes:
            return self._handle_probe(request, int(number))
        self._all[int(number)].forward(request)
        return None

    async def _handle_probe(self, request: HttpRequest, number: int) -> None:
        options, http2 = self._probes.pop(number)

        def decided(probe: EndpointProbe) -> None:
            probe.record_to(recording(options, self._listen))
            proxy.interception.record_to(probe.recorder)
            self._announce_new(probe)

        async with AsyncExitStack() as running:
            proxy = await running.enter_async_context(
                running_proxy(
                    options,
                    lambda client: EndpointProbe(options.upstream, client, decided),
                    self._trust(http2=http2),
                )
            )
            probe = proxy.context
            probe.number = number
            self._all[number] = proxy
            try:
                await proxy.forward(request).ended()
            finally:
                if probe.is_mcp:
                    self._running.push_async_exit(running.pop_all())
                else:
                    del self._all[number]

    def _options_for(self, origin: str, host: str, target: str) -> HttpOptions:
        path, mark, query = target.partition("?")
        options = copy.copy(self._options)
        options.upstream = Upstream(origin, path, host, mark + query)
        options.interception = copy.copy(options.interception)
        options.interception.url, options.interception.name = origin + path, host
        return options

    def _trust(self, *, http2: bool) -> ssl.SSLContext:
        """Return the context of connections to a server: HTTP/2 is offered to it if its client uses HTTP/2."""
        found = self._trusted.get(http2)
        if found is None:
            options, protocols = self._options, (HTTP2, HTTP1)
            found = trust(options.cacert, insecure=options.insecure, protocols=protocols)
            self._trusted[http2] = found
        return found

    def _announce_new(self, endpoint: McpEndpoint) -> None:
        if self._announce is not None:
            where = endpoint.recorder.path
            what = "not recorded" if where is None else f"recording to {where}"
            self._announce(f"{redacted_url(endpoint.upstream.origin + endpoint.upstream.path)}: {what}")
