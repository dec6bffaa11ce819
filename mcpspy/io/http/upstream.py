"""The connections to one server behind the proxy, opened and used again.

A connection is used again while it is idle for a few seconds. Over TLS, HTTP/2 is
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

from mcpspy.core.exchange.heads import ResponseHead
from mcpspy.core.protocol.http_headers import Headers
from mcpspy.io.http.upstream_connection import CHUNKED, UpstreamConnection, UpstreamError
from mcpspy.io.network.outgoing import IDLE, reason

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


class _ProxyAnswer:
    """Gets the response to a CONNECT, which has no body."""

    def __init__(self) -> None:
        self.head: asyncio.Future[ResponseHead] = asyncio.get_running_loop().create_future()

    def response_begins(self, head: ResponseHead, _: bytes, keeps_alive: bool, is_last: bool) -> None:
        if not self.head.done():
            self.head.set_result(head)

    def response_data(self, data: bytes, is_last: bool) -> None: ...

    def server_gone(self, error: UpstreamError) -> None:
        if not self.head.done():
            self.head.set_exception(error)

    def server_waits(self, *, is_paused: bool) -> None: ...


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

    def head(
        self, method: str, target: str, headers: Headers, body: bytes | None, *, has_body: bool
    ) -> bytes:
        """Return the head of a request. A body of bytes gets its length; another one is chunked unless it has one."""
        if self._proxy is not None and self._origin.scheme == "http":
            target = str(self._origin).rstrip("/") + target
            headers = headers + _authorization(self._proxy)
        lines = [f"{method} {target} HTTP/1.1"]
        if body is not None:
            headers = [pair for pair in headers if pair[0].lower() != "content-length"]
            headers.append(("Content-Length", str(len(body))))
        lines += [f"{name}: {value}" for name, value in headers]
        lines.append("\r\n")
        head = "\r\n".join(lines).encode("utf-8", "surrogateescape")
        if not has_body or any(name.lower() == "content-length" for name, _ in headers):
            return head
        return head[:-2] + CHUNKED

    @property
    def can_half_close(self) -> bool:
        """Return whether a connection has a sending side that ends alone, which TLS has not."""
        first = self._origin if self._proxy is None else self._proxy
        return self._origin.scheme == first.scheme == "http"

    def take(self) -> UpstreamConnection | None:
        """Return the idle connection that was used last, if there is one."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.transport.is_closing() and monotonic() - connection.idle_since < IDLE:
                return connection
            connection.transport.abort()
        return None

    async def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().transport.abort()
        await asyncio.sleep(0)  # The transports close in the next iteration of the loop.

    def _keep(self, connection: UpstreamConnection) -> None:
        connection.idle_since = monotonic()
        self._idle.append(connection)

    async def connect(self) -> UpstreamConnection:
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
        answer = _ProxyAnswer()
        outer.ask(answer, "CONNECT", "\r\n".join((*lines, "", "")).encode(), b"", is_last=True)
        head = await answer.head
        if head.status != 200:
            outer.transport.abort()
            raise UpstreamError(f"the proxy answered {head.status} {head.reason}")
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
