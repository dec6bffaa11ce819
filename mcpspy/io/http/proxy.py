"""`mcpspy http`: a listener in front of an MCP server that uses HTTP.

An upstream without a path takes the first endpoint that is found as its own; so does an endpoint the path to which it
redirects. Every other endpoint gets its own recording. There are no timeouts: streams stay open for hours, and the
client decides when to give up on a slow server.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from yarl import URL

from mcpspy.core.exchange.base import json_error
from mcpspy.core.exchange.prepared import PreparedRequest
from mcpspy.core.protocol.endpoint_detection import DetectionVerdict, by_body, by_head
from mcpspy.core.protocol.http_headers import (
    JSON,
    LOOPBACK,
    WEBSOCKET_REFUSAL,
    Upstream,
    is_websocket,
    recorded_headers,
    rejection_reason,
)
from mcpspy.core.recording.encode import MAX_BODY
from mcpspy.core.redact.display import REDACTED, redacted_command, redacted_url
from mcpspy.io.http.context import ExchangeContext
from mcpspy.io.http.exchange import FirstExchange, InjectedExchange, ProxiedExchange
from mcpspy.io.http.interception import HttpInterception
from mcpspy.io.http.request import BUFFERED, HttpRequest, Response
from mcpspy.io.http.server import accepting
from mcpspy.io.http.upstream import UpstreamClient
from mcpspy.io.intercept.interception import InterceptionOptions
from mcpspy.io.network.listener import UNIX, listening, origin, run_server, stop_on_signals
from mcpspy.io.network.outgoing import environment_proxy, trust
from mcpspy.io.recording.recorder import Recorder, RecordingTarget, say
from mcpspy.io.recording.redaction import display_rules

if TYPE_CHECKING:
    import ssl

    from mcpspy.core.recording.encode import Value

Context_co = TypeVar("Context_co", bound=ExchangeContext, covariant=True)


MAX_PREPARED_SIZE = 1 << 13
"""Maximum size, in bytes, of the headers of a request that is kept prepared."""

MAX_ENDPOINTS = 64
"""Number of endpoints with their own recordings. Requests to others are forwarded unrecorded."""


class HttpOptions(RecordingTarget):
    """The options of `mcpspy http`."""

    def __init__(self, upstream: Upstream, host: str, port: int) -> None:
        super().__init__()
        self.upstream = upstream
        self.server_command: list[str] | None = None
        """The command of the server, if mcpspy starts it (`io.gateway`); `upstream` is then mcpspy's own."""
        self.host = host
        self.port = port
        self.port_hint = "use another --listen PORT, or :0 for a free one"
        """The next step if the port is in use."""
        self.name: str | None = None
        self.allowed_hosts: list[str] = []
        self.cacert: str | None = None
        self.insecure = False
        self.unix_socket: str | None = None
        """The path of the Unix socket through which the server is reached."""
        self.keep_resource = False
        """True if the metadata's `resource` stays the server's own URL."""
        self.max_body = MAX_BODY
        self.interception = InterceptionOptions(self.redaction.unsafe_regex)


class HttpProxy(Generic[Context_co]):
    """The exchanges with one server, and their interception."""

    def __init__(self, context: Context_co, options: HttpOptions) -> None:
        self.context = context
        context.max_body = options.max_body
        context.oauth.keeps_resource = options.keep_resource
        self.interception = HttpInterception(
            context, options.interception, options.name or options.upstream.host, InjectedExchange
        )
        self._allowed = [*options.allowed_hosts, *(() if options.host in LOOPBACK else (options.host,))]

    def refusal(self, request: HttpRequest) -> Response | None:
        """Return the response to a request that a foreign web page sent; None for any other request."""
        host, origin = request.headers.get("Host"), request.headers.get("Origin")
        why = rejection_reason(host, origin, self._allowed)
        if why is not None:
            return self._reject(request, 403, f"{why} (allow it with --allow-host NAME)")
        if is_websocket(request.method, request.headers):
            self.context.report_once(f"refused a WebSocket at {request.target}: {WEBSOCKET_REFUSAL}")
            return self._reject(request, 501, WEBSOCKET_REFUSAL)
        return None

    def forward(self, request: HttpRequest) -> ProxiedExchange:
        """Let a new exchange handle a request, and the next ones of its connection with an equal head."""
        prepared = PreparedRequest(self.context, request.head, request.target)
        begin = partial(ProxiedExchange, self.context, self.interception, prepared)
        if len(prepared.recorded) <= MAX_PREPARED_SIZE and self.context.streams.is_endpoint(request.target):
            request.connection.remember(request.head, begin)
        exchange = begin(request.connection)
        request.connection.hand_over(request, exchange)
        return exchange

    def forward_first(self, request: HttpRequest) -> FirstExchange:
        """Let a new exchange handle the first request of an endpoint, and return it."""
        prepared = PreparedRequest(self.context, request.head, request.target)
        exchange = FirstExchange(self.context, self.interception, prepared, request.connection)
        request.connection.hand_over(request, exchange)
        return exchange

    def stop(self) -> None:
        """Release held messages, because the listener is about to close."""
        self.context.is_stopping = True
        self.interception.end()

    def _reject(self, request: HttpRequest, status: int, why: str) -> Response:
        number = next(self.context.numbers)
        line = f"mcpspy: refused: {why}"
        fields: dict[str, Value] = {
            "stream": str(number),
            "http": number,
            "method": request.method,
            "path": request.target,
            "status": status,
            "request": recorded_headers(request.headers.items()),
            "error": line,
        }
        self.context.note_soon("http", fields)
        return Response(status, json_error(None, line), JSON)


class HttpEndpoints:
    """The endpoints, and the requests to each. Ends all recordings but the first one's after its context."""

    def __init__(
        self,
        main: HttpProxy[ExchangeContext],
        options: HttpOptions,
        start: Callable[[HttpOptions], AbstractAsyncContextManager[HttpProxy[ExchangeContext]]],
    ) -> None:
        """Create the endpoints. `main` is that of `--upstream`; `start` starts the proxy of another one."""
        self._main = main
        self._options = options
        self._start = start
        self._running = AsyncExitStack()
        self._creating = asyncio.Lock()
        self._others: list[HttpProxy[ExchangeContext]] = []
        self._is_full = False
        """True if the user knows that no more endpoints are recorded."""

    async def __aenter__(self) -> HttpEndpoints:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._running.aclose()

    def handle(self, request: HttpRequest) -> Response | Awaitable[None] | None:
        """Proxy one request, unless a foreign web page sent it."""
        main = self._main
        if (refusal := main.refusal(request)) is not None:
            return refusal
        if main.context.streams.is_endpoint(request.target):
            main.forward(request)
            return None
        for proxy in self._others:
            if proxy.context.streams.is_endpoint(request.target):
                proxy.forward(request)
                return None
        return self._handle_unknown(request)

    async def _handle_unknown(self, request: HttpRequest) -> None:
        """Proxy a request to an unknown path."""
        proxy, is_new = self._main, False
        if await _is_mcp(request):
            async with self._creating:
                known = len(self._others)
                proxy = await self._found(request.target)
                is_new = len(self._others) > known
        if not is_new:
            proxy.forward(request)
            return
        exchange = proxy.forward_first(request)
        exchange.ended().add_done_callback(lambda _: self._copy_if_missing(exchange, proxy))

    def _copy_if_missing(self, exchange: FirstExchange, proxy: HttpProxy[ExchangeContext]) -> None:
        """Record the first exchange of another path beside the endpoint too, if the server has no endpoint there.

        A client that posts to a wrong path is a failure of this session, which shows the right path.
        """
        main, other = self._main.context, proxy.context
        if not exchange.is_missing or main.recorder.writer is None:
            return
        later = main.recorder.now() - other.recorder.now()
        main.record_soon(exchange.copied(next(main.numbers), later))
        here, there = (redacted_url(each.origin + each.path) for each in (main.upstream, other.upstream))
        say(f"{there} is not an endpoint of the server: this request is also in the recording of {here}")

    def stop(self) -> None:
        """Release held messages, because the listener is about to close."""
        for proxy in (self._main, *self._others):
            proxy.stop()

    async def _found(self, target: str) -> HttpProxy[ExchangeContext]:
        """Return the proxy of a new endpoint."""
        path, mark, query = target.partition("?")
        upstream, main = self._options.upstream, self._main
        if upstream.path == "/" and not main.interception.routes.has_posts:
            main.context.streams.add_endpoint(path)
            return main
        for other in self._others:  # Another request found it while the first message of this one arrived.
            if other.context.streams.is_endpoint(target):
                return other
        shown = redacted_url(upstream.origin + path)
        if len(self._others) == MAX_ENDPOINTS:
            if not self._is_full:
                say(f"{shown} and further MCP endpoints are not recorded: {MAX_ENDPOINTS} others are")
            self._is_full = True
            return main
        options = copy.copy(self._options)
        options.upstream = upstream._replace(path=path, query=mark + query)
        options.name = f"{options.name or upstream.host}-{len(self._others) + 2}"
        proxy = await self._running.enter_async_context(self._start(options))
        self._others.append(proxy)
        where = proxy.context.recorder.path
        say(
            f"{shown} is another MCP endpoint: {'not recorded' if where is None else f'recording to {where}'}"
        )
        return proxy


async def _is_mcp(request: HttpRequest) -> bool:
    """Return whether a request to an unknown path is one of MCP. Reads nothing of its body."""
    verdict = by_head(request.method, request.target, request.headers)
    if verdict is not DetectionVerdict.BODY:
        return verdict is DetectionVerdict.MCP
    request.accept_body()
    return by_body(await request.body.preview(BUFFERED))


def run(options: HttpOptions) -> int:
    """Serve until SIGTERM or SIGINT. Return the exit code. Raises CannotStart."""
    return run_server(_serve(options))


async def _serve(options: HttpOptions) -> int:
    stop = asyncio.Event()
    stop_on_signals(lambda _: stop.set())
    async with proxying(options) as url:
        say(banner(url, options))
        # The transports of asyncio are cycles. The collector looks for them earlier if there is little else to look at.
        gc.freeze()
        await stop.wait()
    return 0


def banner(url: str, options: HttpOptions) -> str:
    """Return the line with the URL for clients and that of the server, redacted by the rules of the recording."""
    rules = display_rules(options.redaction)
    shown = redacted_url(url, rules)
    upstream = (
        redacted_url(options.upstream.origin + options.upstream.path, rules)
        if options.server_command is None
        else " ".join(redacted_command(options.server_command))
    )
    hint = "" if shown == url else f"; clients need the value from --upstream in place of {REDACTED}"
    socket = f" on {options.host}" if options.host.startswith(UNIX) else ""
    return f"{shown}{socket} -> {upstream}{hint}"


@asynccontextmanager
async def proxying(
    options: HttpOptions, begun: Callable[[HttpProxy[ExchangeContext]], None] = lambda _: None
) -> AsyncIterator[str]:
    """Serve while the context is open. Yield the URL for clients. Raises CannotStart.

    `begun` is called with the proxy of the server before clients are accepted.
    """
    with listening(options.host, options.port, options.port_hint) as listener:
        here = origin(options.host, listener)
        trusted = trust(options.cacert, insecure=options.insecure)

        def start(chosen: HttpOptions) -> AbstractAsyncContextManager[HttpProxy[ExchangeContext]]:
            upstream = chosen.upstream
            recorder = recording(chosen, here + upstream.path + upstream.query)
            return running_proxy(chosen, lambda client: ExchangeContext(upstream, recorder, client), trusted)

        async with (
            start(options) as main,
            HttpEndpoints(main, options, start) as endpoints,
        ):
            begun(main)
            async with accepting(endpoints.handle, listener):
                try:
                    yield here + options.upstream.path + options.upstream.query
                finally:
                    endpoints.stop()
                    if options.host.startswith(UNIX):
                        os.unlink(options.host.removeprefix(UNIX))


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
    proxy_of_environment = environment_proxy(URL(origin)) if options.unix_socket is None else None
    client = UpstreamClient(origin, trusted, proxy_of_environment, options.unix_socket)
    proxy = HttpProxy(make(client), options)
    asyncio.get_running_loop().call_soon(proxy.context.recorder.prepare)
    async with proxy.interception.serving_viewers():
        yield proxy
    await proxy.context.client.close()
    proxy.context.recorder.finish(0, None)


def recording(options: HttpOptions, listen: str) -> Recorder:
    """Start the recording of a server that clients reach at `listen`."""
    upstream = options.upstream
    started: dict[str, Value] = {} if options.server_command is None else {"command": options.server_command}
    fields: dict[str, Value] = {
        "transport": "http",
        **started,
        # mcpspy's own server has no URL that is known outside; the one for clients is the server's.
        "upstream": upstream.origin + upstream.path if options.server_command is None else listen,
        "listen": listen,
        "name": options.name or upstream.host,
    }
    return Recorder(options, fields)
