"""mitmproxy, embedded: CONNECT, TLS, HTTP/1.1 and HTTP/2.

Sets mitmproxy up without its listeners, log, idle timeout and storage of bodies. There is one engine per
process, because mitmproxy keeps its options in a global. Requests that are not for a proxy are rejected, because
a web page can send requests to loopback under its own name (DNS rebinding). Such requests name a path, while
requests to a proxy name a server (RFC 9112, 3.2).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mitmproxy import addonmanager, options
from mitmproxy.addons.disable_h2c import DisableH2C
from mitmproxy.addons.next_layer import NextLayer
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.addons.tlsconfig import TlsConfig
from mitmproxy.certs import CertStore
from mitmproxy.master import Master
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import modes, tcp
from mitmproxy.proxy.mode_servers import ProxyConnectionHandler
from mitmproxy.proxy.mode_specs import ProxyMode

from mcpspy.io.network.listener import GRACE
from mcpspy.io.recording.recorder import say

IDLE_TIMEOUT = 10 * 365 * 86400
"""Seconds without data after which a connection is closed. mitmproxy uses 600, but streams can be silent for hours."""

MAX_CONNECTIONS = 1 << 16
"""Connections to one address for one client. mitmproxy uses 5, with which more open HTTP/2 streams would hang."""

MAX_HELD_BODY = "1m"
"""Maximum size of a body that may be MCP and is held for detection; a larger one is forwarded."""

BODY = b"This is mcpspy, a forward proxy: set HTTPS_PROXY to this address, or use mcpspy exec.\n"

ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)


class Certificates(TlsConfig):
    """TLS with certificates issued by mcpspy's CA."""

    def __init__(self, store: CertStore) -> None:
        self.certstore = store

    def configure(self, updated: set[str]) -> None:
        """Keep the store, whatever the options."""

    def running(self) -> None:
        """Keep the store."""


class PassthroughLayer(tcp.TCPLayer):
    """Forwards bytes. mitmproxy would store them, and read more while its addons decide."""

    def __init__(self, context: Context, ignore: bool = True) -> None:
        super().__init__(context, ignore=True)


class NonHttpPassthrough:
    """Forwards traffic that NextLayer does not recognise as HTTP."""

    def next_layer(self, nextlayer: layer.NextLayer) -> None:
        if isinstance(nextlayer.layer, tcp.TCPLayer):
            nextlayer.layer.flow = None


class MitmproxyEngine:
    """Accepts connections and calls an addon for each."""

    def __init__(self, addon: object, store: CertStore, trusted: str, *, insecure: bool) -> None:
        """Set mitmproxy up. `trusted` is a PEM file with the CAs for the servers' certificates."""
        _configure_log()
        tcp.TCPLayer = PassthroughLayer  # type: ignore[misc]  # mitmproxy uses this class after status 101.
        self._options = options.Options()
        self._master = Master(self._options, asyncio.get_running_loop())
        self._mode = ProxyMode.parse("regular")
        self._clients: dict[ProxyConnectionHandler, asyncio.Task[None]] = {}
        addons: addonmanager.AddonManager = self._master.addons
        addons.add(Proxyserver(), addon, DisableH2C(), NextLayer(), NonHttpPassthrough(), Certificates(store))
        self._options.update(
            # Connect to a server when there is something to send, and never for requests that are handed over.
            connection_strategy="lazy",
            upstream_cert=False,
            stream_large_bodies=MAX_HELD_BODY,
            # As bytes: mitmproxy would join, decompress and store WebSocket messages.
            websocket=False,
            rawtcp=True,
            ssl_insecure=insecure,
            ssl_verify_upstream_trusted_ca=trusted,
        )

    @asynccontextmanager
    async def accepting(self, listener: socket.socket) -> AsyncIterator[None]:
        """Serve connections while the context is open."""
        server = await asyncio.start_server(self._handle, sock=listener)
        try:
            yield
        finally:
            server.close()
            for client in self._clients:
                await client.on_timeout()  # Ends the client and its connections.
            if self._clients:
                await asyncio.wait(self._clients.values(), timeout=GRACE)
            await self._master.done()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = ProxyConnectionHandler(self._master, reader, writer, self._options, self._mode)
        client.layer = modes.HttpProxy(client.layer.context)
        client.timeout_watchdog.timeout = IDLE_TIMEOUT
        client.max_conns = defaultdict(lambda: asyncio.Semaphore(MAX_CONNECTIONS))
        task = self._clients[client] = asyncio.create_task(client.handle_client())
        try:
            await asyncio.wait([task])
        finally:
            del self._clients[client]


class _OneLine(logging.Handler):
    """Reports errors of mitmproxy on one line."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        what = record.getMessage() if error is None else f"{type(error).__name__}: {error}"
        say(f"mitmproxy: {what!a}")


def is_proxy_request(data: bytes) -> bool:
    """Return whether the first bytes of a client may be a request to a proxy."""
    words = data.split(b"\r\n", 1)[0].split(b" ")
    return len(words) < 2 or not words[1].startswith((b"/", b"*"))


class NonProxyRejection(layer.Layer):
    """Responds once and hangs up."""

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, events.Start):
            yield commands.SendData(self.context.client, ANSWER)
            yield commands.CloseConnection(self.context.client)


def _configure_log() -> None:
    """Suppress mitmproxy's log, except errors."""
    log = logging.getLogger("mitmproxy")
    log.propagate = False
    log.handlers = [_OneLine(logging.ERROR)]
