"""`mcpspy http`: a listener in front of an MCP server that uses HTTP.

Contains the listener and the upstream client. There are no timeouts: streams stay open for hours, and the client
decides when to give up on a slow server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from yarl import URL

from mcpspy.core.protocol.http_headers import LOOPBACK, Upstream, recorded_headers, rejection_reason
from mcpspy.core.recording.capped_body import MAX_BODY
from mcpspy.core.redact.display import REDACTED, redacted_url
from mcpspy.io.client.network import environment_proxy, trust
from mcpspy.io.http.context import ExchangeContext
from mcpspy.io.http.exchange import HttpExchange, json_error
from mcpspy.io.http.injected_request import InjectedRequest
from mcpspy.io.http.interception import HttpInterception
from mcpspy.io.http.listener import listening, origin, run_server, stop_on_signals
from mcpspy.io.http.server import HttpRequest, Response, accepting
from mcpspy.io.http.upstream import UpstreamClient
from mcpspy.io.interception import InterceptionOptions
from mcpspy.io.recording.recorder import Recorder, RecordingTarget, say
from mcpspy.io.recording.redaction import display_rules

if TYPE_CHECKING:
    import ssl

    from mcpspy.core.recording.encode import Value

Context_co = TypeVar("Context_co", bound=ExchangeContext, covariant=True)


class HttpOptions(RecordingTarget):
    """The options of `mcpspy http`."""

    def __init__(self, upstream: Upstream, host: str, port: int) -> None:
        super().__init__()
        self.upstream = upstream
        self.host = host
        self.port = port
        self.name: str | None = None
        self.allowed_hosts: list[str] = []
        self.cacert: str | None = None
        self.insecure = False
        self.keep_resource = False
        """True if the metadata's `resource` stays the server's own URL."""
        self.max_body = MAX_BODY
        self.interception = InterceptionOptions()


class HttpProxy(Generic[Context_co]):
    """The exchanges with one server, and their interception."""

    def __init__(self, context: Context_co, options: HttpOptions) -> None:
        self.context = context
        context.max_body = options.max_body
        context.oauth.keeps_resource = options.keep_resource
        self.interception = HttpInterception(
            context, options.interception, options.name or options.upstream.host, InjectedRequest
        )
        self._allowed = [*options.allowed_hosts, *(() if options.host in LOOPBACK else (options.host,))]

    async def handle(self, request: HttpRequest) -> Response | None:
        """Proxy one request, unless a foreign web page sent it."""
        if not request.head.is_accepted:
            host, origin = request.headers.get("Host"), request.headers.get("Origin")
            why = rejection_reason(host, origin, self._allowed)
            if why is not None:
                return await self._reject(request, why)
            request.head.is_accepted = True
        return await self.forward(request)

    def forward(self, request: HttpRequest) -> Awaitable[Response | None]:
        return HttpExchange(self.context, self.interception, request).run()

    def stop(self) -> None:
        """Release held messages, because the listener is about to close."""
        self.context.is_stopping = True
        self.interception.end()

    async def _reject(self, request: HttpRequest, why: str) -> Response:
        number = self.context.next_number()
        line = f"mcpspy: refused: {why} (allow it with --allow-host NAME)"
        fields: dict[str, Value] = {
            "stream": str(number),
            "http": number,
            "method": request.method,
            "path": request.target,
            "status": 403,
            "request": recorded_headers(request.headers.items()),
            "error": line,
        }
        await self.context.note("http", fields)
        return json_error(403, None, line)


def run(options: HttpOptions) -> int:
    """Serve until SIGTERM or SIGINT. Return the exit code. Raises CannotStart."""
    return run_server(_serve(options))


async def _serve(options: HttpOptions) -> int:
    stop = asyncio.Event()
    stop_on_signals(lambda _: stop.set())
    async with proxying(options) as url:
        say(banner(url, options))
        await stop.wait()
    return 0


def banner(url: str, options: HttpOptions) -> str:
    """Return the line with the URL for clients and that of the server, redacted by the rules of the recording."""
    rules = display_rules(options.redaction)
    shown = redacted_url(url, rules)
    upstream = redacted_url(options.upstream.origin + options.upstream.path, rules)
    hint = "" if shown == url else f"; clients need the value from --upstream in place of {REDACTED}"
    return f"{shown} -> {upstream}{hint}"


@asynccontextmanager
async def proxying(options: HttpOptions) -> AsyncIterator[str]:
    """Serve while the context is open. Yield the URL for clients. Raises CannotStart."""
    with listening(options.host, options.port, "use another --listen PORT, or :0 for a free one") as listener:
        url = origin(options.host, listener) + options.upstream.path + options.upstream.query
        upstream = options.upstream
        running = running_proxy(
            options, lambda client: ExchangeContext(upstream, recording(options, url), client)
        )
        async with running as proxy, accepting(proxy.handle, listener):
            try:
                yield url
            finally:
                proxy.stop()


@asynccontextmanager
async def running_proxy(
    options: HttpOptions,
    make: Callable[[UpstreamClient], Context_co],
    trusted: ssl.SSLContext | None = None,
) -> AsyncIterator[HttpProxy[Context_co]]:
    """Yield a proxy for one server, and end its recording after the context. Raises CannotStart.

    `trusted` is the result of `trust`, if it is known, because loading certificates takes time.
    """
    if trusted is None:
        trusted = trust(options.cacert, insecure=options.insecure)
    origin = options.upstream.origin
    client = UpstreamClient(origin, trusted, environment_proxy(URL(origin)))
    proxy = HttpProxy(make(client), options)
    async with proxy.interception.serving_viewers():
        yield proxy
    await proxy.context.client.close()
    proxy.context.recorder.finish(0, None)


def recording(options: HttpOptions, listen: str) -> Recorder:
    """Start the recording of a server that clients reach at `listen`."""
    upstream = options.upstream
    fields: dict[str, Value] = {
        "transport": "http",
        "upstream": upstream.origin + upstream.path,
        "listen": listen,
        "name": options.name or upstream.host,
    }
    return Recorder(options, fields)
