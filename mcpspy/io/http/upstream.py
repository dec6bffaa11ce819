"""The connections to one server behind the proxy, opened and used again.

A connection is used again while it is idle for a few seconds. A request that a server did not begin to answer, because
it closed an idle connection, is sent again only if its method is idempotent (RFC 9110, 9.2.2). Over TLS, HTTP/2 is
offered by ALPN (RFC 7301) only to a server that refuses HTTP/1.1, which is faster here, or if the client uses HTTP/2
too (`io.forward`). Proxies of the environment are reached with absolute targets, or with CONNECT for TLS (RFC 9110,
9.3.6).
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable
from importlib.util import find_spec
from time import monotonic
from typing import Any, cast
from urllib.parse import unquote

from yarl import URL

from mcpspy.core.protocol.http_headers import Headers
from mcpspy.io.http.upstream_connection import (
    CHUNKED,
    Body,
    UpstreamConnection,
    UpstreamError,
    UpstreamResponse,
)
from mcpspy.io.network.outgoing import IDLE, reason

IDEMPOTENT = frozenset("DELETE GET HEAD OPTIONS PUT TRACE".split())

HAPPY_EYEBALLS = 0.25
"""Seconds after which the next address of a name is tried too (RFC 8305, 5)."""

HTTP1, HTTP2 = "http/1.1", "h2"
"""The names of the protocols in ALPN (RFC 7301, 6; RFC 9113, 3.2)."""

NO_PROTOCOL = "alert no application protocol"
"""OpenSSL's text for the alert of a server that speaks none of the offered protocols (RFC 7301, 3.2)."""


class _Negotiation(asyncio.Protocol):
    """The choice of the connection's protocol, when TLS has been negotiated."""

    connection: UpstreamConnection

    def __init__(self, keep: Callable[[UpstreamConnection], None]) -> None:
        self._keep = keep
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == HTTP2:
            from mcpspy.io.http.http2_connection import Http2Connection

            self.connection = Http2Connection(self._keep)
        else:
            self.connection = UpstreamConnection(self._keep)
        cast("asyncio.Transport", transport).set_protocol(self.connection)
        self.connection.connection_made(transport)
        for data in self._early:
            self.connection.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Keep what arrives before `start_tls` returns: an HTTP/2 server sends first."""
        self._early.append(data)


class UpstreamClient:
    """The connections to one server."""

    def __init__(
        self, origin: str, trusted: ssl.SSLContext, proxy: URL | None = None, unix_socket: str | None = None
    ) -> None:
        """Prepare for a server at `origin`, through a proxy or a Unix socket. Connects with the first request.

        `trusted` offers the protocols of the connection by ALPN (`io.network.outgoing.trust`).
        """
        self._origin = URL(origin)
        self._trusted = trusted
        self._proxy = proxy
        self._unix_socket = unix_socket
        self._idle: list[UpstreamConnection] = []

    def head(self, method: str, target: str, headers: Headers, body: Body) -> bytes:
        """Return the head of a request. A body of bytes gets its length; another one is chunked unless it has one."""
        if self._proxy is not None and self._origin.scheme == "http":
            target = str(self._origin).rstrip("/") + target
            headers = headers + _authorization(self._proxy)
        lines = [f"{method} {target} HTTP/1.1"]
        if isinstance(body, bytes):
            headers = [pair for pair in headers if pair[0].lower() != "content-length"]
            headers.append(("Content-Length", str(len(body))))
        lines += [f"{name}: {value}" for name, value in headers]
        lines.append("\r\n")
        head = "\r\n".join(lines).encode("utf-8", "surrogateescape")
        if body is None or any(name.lower() == "content-length" for name, _ in headers):
            return head
        return head[:-2] + CHUNKED

    async def send(
        self,
        method: str,
        head: bytes,
        body: Body,
        early: Callable[[], None] | None = None,
        on_connection: Callable[[UpstreamConnection], None] | None = None,
    ) -> UpstreamResponse:
        """Send a request whose head was made by `head`. Return the response when its head has arrived.

        `early` is called if that happens before the request has been sent; then `body` must yield something.
        `on_connection` gets the connection before the request is sent. Raises UpstreamError.
        """
        connection = self._take()
        is_fresh = connection is None
        while True:
            if connection is None:
                connection = await self._connect()
            if on_connection is not None:
                on_connection(connection)
            try:
                return await connection.send(method, head, body, early)
            except UpstreamError:
                if is_fresh or not connection.is_stale or method not in IDEMPOTENT or body is not None:
                    raise
            connection, is_fresh = None, True

    @property
    def can_half_close(self) -> bool:
        """Return whether a connection has a sending side that ends alone, which TLS has not."""
        first = self._origin if self._proxy is None else self._proxy
        return self._origin.scheme == first.scheme == "http"

    @property
    def has_short(self) -> bool:
        """Return whether an idle connection can carry a short exchange."""
        return bool(self._idle) and self._idle[-1].takes_short

    def take(self) -> UpstreamConnection | None:
        """Return an idle connection that can carry a short exchange."""
        return self._take() if self.has_short else None

    async def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().transport.abort()
        await asyncio.sleep(0)  # The transports close in the next iteration of the loop.

    def _take(self) -> UpstreamConnection | None:
        """Return the idle connection that was used last."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.transport.is_closing() and monotonic() - connection.idle_since < IDLE:
                return connection
            connection.transport.abort()
        return None

    def _keep(self, connection: UpstreamConnection) -> None:
        connection.idle_since = monotonic()
        self._idle.append(connection)

    async def _connect(self) -> UpstreamConnection:
        """Open a connection. Raises UpstreamError."""
        try:
            return await self._open()
        except ssl.SSLError as error:
            if NO_PROTOCOL not in str(error):
                raise UpstreamError(reason(error)) from error
        except OSError as error:
            raise UpstreamError(reason(error)) from error
        if find_spec("h2") is None:
            from mcpspy.io.extras import install_command

            raise UpstreamError(f"it speaks only HTTP/2, which needs h2: {install_command('http2')}")
        self._trusted.set_alpn_protocols([HTTP2, HTTP1])
        try:
            return await self._open()
        except OSError as error:
            raise UpstreamError(reason(error)) from error

    async def _open(self) -> UpstreamConnection:
        origin, proxy, loop = self._origin, self._proxy, asyncio.get_running_loop()
        first = origin if proxy is None else proxy
        tls = self._trusted if first.scheme == "https" else None
        # uvloop tries one address after the other.
        eyeballs: dict[str, Any] = {}
        if isinstance(loop, asyncio.BaseEventLoop):
            eyeballs["happy_eyeballs_delay"] = HAPPY_EYEBALLS
        if self._unix_socket is not None:
            name = origin.raw_host if tls else None
            _, negotiation = await loop.create_unix_connection(
                lambda: _Negotiation(self._keep), self._unix_socket, ssl=tls, server_hostname=name
            )
            return negotiation.connection
        _, negotiation = await loop.create_connection(
            lambda: _Negotiation(self._keep), first.raw_host or "", first.port or 0, ssl=tls, **eyeballs
        )
        if proxy is not None and origin.scheme == "https":
            return await self._tunnel(negotiation.connection, proxy)
        return negotiation.connection

    async def _tunnel(self, outer: UpstreamConnection, proxy: URL) -> UpstreamConnection:
        """Return a connection over TLS through a proxy."""
        host, port = self._origin.raw_host or "", self._origin.port
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {name} HTTP/1.1", f"Host: {name}"]
        lines += [f"{header}: {value}" for header, value in _authorization(proxy)]
        response = await outer.send("CONNECT", "\r\n".join((*lines, "", "")).encode(), None)
        if response.status != 200:
            outer.transport.abort()
            raise UpstreamError(f"the proxy answered {response.status} {response.head.reason}")
        inner = _Negotiation(self._keep)
        try:
            transport = await asyncio.get_running_loop().start_tls(
                outer.transport, inner, self._trusted, server_hostname=host
            )
        except OSError:
            outer.transport.abort()
            raise
        assert transport is not None
        inner.connection_made(transport)
        return inner.connection


def _authorization(proxy: URL) -> Headers:
    """Return the header with the user and password of a proxy's URL (RFC 9110, 11.7.2)."""
    if proxy.raw_user is None:
        return []
    pair = f"{unquote(proxy.raw_user)}:{unquote(proxy.raw_password or '')}"
    return [("Proxy-Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")]
