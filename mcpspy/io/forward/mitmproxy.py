"""mitmproxy, embedded: CONNECT, TLS, HTTP/1.1 and HTTP/2, and the addon that selects the traffic.

Sets mitmproxy up without its listeners, log, idle timeout and storage of bodies. There is one engine per process,
because mitmproxy keeps its options in a global. Requests that are not for a proxy are rejected, because a web page can
send requests to loopback under its own name (DNS rebinding). Such requests name a path, while requests to a proxy name
a server (RFC 9112, 3.2).

The addon ignores, forwards, or hands over each connection and request to an endpoint. A host glob without a port
matches every port. mitmproxy has one upstream proxy for all servers or none, so the addon chooses among the
environment's proxies (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`) by the first line of each client connection. An
encrypted connection is for one server only.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from base64 import b64encode
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from weakref import WeakKeyDictionary

from mitmproxy import addonmanager, http, options, tls
from mitmproxy.addons.disable_h2c import DisableH2C
from mitmproxy.addons.next_layer import NextLayer
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.addons.tlsconfig import TlsConfig
from mitmproxy.certs import CertStore
from mitmproxy.connection import Client, Server
from mitmproxy.master import Master
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import modes, tcp
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode
from mitmproxy.proxy.mode_servers import ProxyConnectionHandler
from mitmproxy.proxy.mode_specs import ProxyMode, UpstreamMode
from mitmproxy.tls import ClientHello
from yarl import URL

from mcpspy.core.protocol.endpoint_detection import DetectionVerdict, by_body, by_head
from mcpspy.io.forward.endpoints import HOME, EndpointRegistry, McpEndpoint
from mcpspy.io.network.listener import GRACE
from mcpspy.io.network.outgoing import environment_proxy
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


AUTHORIZATION = "Proxy-Authorization"


class HostSet:
    """The hosts to decrypt, each with its name and port.

    A client that refuses the certificate is excluded for that host, and other clients are not. A client is known by
    its `fingerprint`, because it makes a new connection for each attempt.
    """

    def __init__(self, allowed: Iterable[str] = (), ignored: Iterable[str] = ()) -> None:
        """Decrypt only `allowed` hosts, if there are any, and no `ignored` hosts."""
        self._allowed = [glob.lower() for glob in allowed]
        self._ignored = [glob.lower() for glob in ignored]
        self._closed: set[tuple[str, int, str]] = set()
        self._doubted: set[tuple[str, int, str]] = set()

    def is_open(self, name: str, port: int, client: str = "") -> bool:
        """Return whether the client's connections to the host are decrypted."""
        name = name.lower()
        if (name, port, client) in self._closed or _is_in(self._ignored, name, port):
            return False
        return not self._allowed or _is_in(self._allowed, name, port)

    def close(self, name: str, port: int, client: str) -> bool:
        """Stop decrypting the client's connections to a host. Return whether they were decrypted before."""
        key = (name.lower(), port, client)
        if key in self._closed:
            return False
        self._closed.add(key)
        return True

    def mark_doubted(self, name: str, port: int, client: str) -> bool:
        """Return whether the client disconnected from the host before and has not trusted the CA since."""
        key = (name.lower(), port, client)
        if key in self._doubted:
            return True
        self._doubted.add(key)
        return False

    def trust(self, name: str, port: int, client: str) -> None:
        self._doubted.discard((name.lower(), port, client))


def fingerprint(hello: ClientHello, address: str) -> str:
    """Return what distinguishes a client: its address, and the ciphers, extensions and ALPN that it offers.

    Left out is what differs between connections of one client: reserved values (GREASE, RFC 8701), the order of
    extensions, and those of a resumed session or of one server (RFC 8446, 4.2; RFC 6066, 3; RFC 7685; RFC 5077).
    """
    ciphers = [cipher for cipher in hello.cipher_suites if not _is_reserved(cipher)]
    extensions = {kind for kind, _ in hello.extensions if not _is_reserved(kind)} - OF_ONE_CONNECTION
    return f"{address} {ciphers} {sorted(extensions)} {hello.alpn_protocols}"


OF_ONE_CONNECTION = {0, 21, 35, 41, 42, 44}
"""Types of extensions: server_name, padding, session_ticket, pre_shared_key, early_data, cookie."""


def _is_reserved(value: int) -> bool:
    return value & 0x0F0F == 0x0A0A and value >> 8 == value & 0xFF


def proxy_for(data: bytes) -> URL | None:
    """Return the proxy for the server in a client's first line, or None."""
    method, _, rest = data.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
    target = rest.partition(" ")[0]
    try:
        return environment_proxy(URL(f"https://{target}" if method == "CONNECT" else target))
    except ValueError:  # Not an address: mitmproxy will reject it.
        return None


def upstream_layer(proxy: URL, context: Context) -> layer.Layer:
    """Return the layer that forwards a client's requests to a proxy."""
    context.client.proxy_mode = ProxyMode.parse(f"upstream:{proxy.scheme}://{proxy.host}:{proxy.port}")
    return HttpLayer(context, HTTPMode.upstream)


def authorize(flow: http.HTTPFlow) -> None:
    """Add the environment's credentials for the proxy to which a request is sent."""
    request = flow.request
    if not isinstance(flow.client_conn.proxy_mode, UpstreamMode):
        return
    if request.method != "CONNECT" and request.scheme == "https":
        return
    scheme = "https" if request.method == "CONNECT" else request.scheme
    proxy = environment_proxy(URL(f"{scheme}://{request.host}:{request.port}"))
    if proxy is not None and proxy.user is not None:
        name = f"{proxy.user}:{proxy.password or ''}".encode()
        request.headers[AUTHORIZATION] = f"Basic {b64encode(name).decode()}"


def _is_in(globs: list[str], name: str, port: int) -> bool:
    return any(fnmatchcase(name, glob) or fnmatchcase(f"{name}:{port}", glob) for glob in globs)


DEFAULT_PORTS = {"http": 80, "https": 443}

HTTP2 = b"h2"

LENGTH, TRANSFER = FRAMING = ("Content-Length", "Transfer-Encoding")

UNTRUSTED, DISCONNECTED = "does not trust", "disconnected"
"""Parts of mitmproxy's error messages for a failed handshake with a client."""

UNDECIDED = "mcpspy: its body decides"


class InterceptionAddon:
    def __init__(self, hosts: HostSet, endpoints: EndpointRegistry) -> None:
        self._hosts = hosts
        self._endpoints = endpoints
        self._clients: WeakKeyDictionary[Client, str] = WeakKeyDictionary()
        """Connection → fingerprint of its client."""
        self._warned: set[str] = set()

    def next_layer(self, nextlayer: layer.NextLayer) -> None:
        """Reject requests that are not for a proxy. Use the environment's proxy if it has one."""
        data = nextlayer.data_client()
        if len(nextlayer.context.layers) > 1 or not data:
            return
        if not is_proxy_request(data):  # A web page can make a browser send such a request.
            nextlayer.layer = NonProxyRejection(nextlayer.context)
        elif (proxy := proxy_for(data)) is not None:
            nextlayer.layer = upstream_layer(proxy, nextlayer.context)

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Pass TLS of excluded hosts through. Choose HTTP/2 if the client offers it, as servers do."""
        name, port = _requested_server(data.context, data.client_hello.sni)
        client = fingerprint(data.client_hello, data.context.client.peername[0])
        self._clients[data.context.client] = client
        data.ignore_connection = not self._hosts.is_open(name, port, client)
        if HTTP2 in data.client_hello.alpn_protocols:
            data.context.client.alpn = HTTP2

    def tls_established_client(self, data: tls.TlsData) -> None:
        client = data.context.client
        self._hosts.trust(*_requested_server(data.context, client.sni), self._clients.get(client, ""))

    def tls_failed_client(self, data: tls.TlsData) -> None:
        """Stop decrypting the client's TLS to the host, so that it can connect although it does not trust the CA."""
        name, port = _requested_server(data.context, data.context.client.sni)
        client = self._clients.get(data.context.client, "")
        error = data.conn.error or ""
        if DISCONNECTED in error and not self._hosts.mark_doubted(name, port, client):
            return  # The client may have cancelled.
        if self._hosts.close(name, port, client):
            why = "a client does not trust mcpspy's CA (see mcpspy ca)"
            if UNTRUSTED not in error and DISCONNECTED not in error:
                why = f"the TLS handshake with a client failed: {error!a}"
            say(f"{name}: {why}; its traffic to this host is no longer decrypted")

    def tls_failed_server(self, data: tls.TlsData) -> None:
        """Report a host with an untrusted certificate, once."""
        server = data.context.server
        name, error = server.sni or "", data.conn.error or ""
        if "ertificate" in error and name not in self._warned:
            self._warned.add(name)
            say(f"{name}: {error} (trust its CA with --cacert FILE)")

    def http_connect_upstream(self, flow: http.HTTPFlow) -> None:
        authorize(flow)

    async def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Hand over MCP requests, hold bodies that may be MCP, and stream the rest."""
        flow.request.stream = True
        authorize(flow)
        where = self._where(flow)
        if where is None:
            return
        request = flow.request
        endpoint = self._endpoints.find(where[0], request.path)
        if endpoint is None:
            verdict = by_head(request.method, request.path, request.headers)
            if verdict is DetectionVerdict.BODY:
                flow.request.stream = False
                flow.metadata[UNDECIDED] = where
            if verdict is DetectionVerdict.ANSWER:
                self._redirect(flow, self._endpoints.probe(*where, request.path, http2=request.is_http2))
            if verdict is not DetectionVerdict.MCP:
                return
            endpoint = await self._get_or_create(flow, where)
        self._redirect(flow, self._endpoints.path(endpoint, request.path))

    async def request(self, flow: http.HTTPFlow) -> None:
        """Hand over a request if its body is MCP."""
        where = flow.metadata.pop(UNDECIDED, None)
        if where is None or flow.request.raw_content is None or not by_body(flow.request.raw_content):
            return
        endpoint = await self._get_or_create(flow, where)
        self._redirect(flow, self._endpoints.path(endpoint, flow.request.path))

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Stream every response."""
        if flow.response is not None:
            flow.response.stream = True

    async def _get_or_create(self, flow: http.HTTPFlow, where: tuple[str, str]) -> McpEndpoint:
        return await self._endpoints.get_or_create(*where, flow.request.path, http2=flow.request.is_http2)

    def _where(self, flow: http.HTTPFlow) -> tuple[str, str] | None:
        """Return the origin and the Host of a request, or None if the host is excluded."""
        request = flow.request
        # By name, because a client that resolved the host itself requests a tunnel to an address.
        scheme, name, port = request.scheme, request.pretty_host, request.port
        if not self._hosts.is_open(name, port):
            return None
        address = f"[{name}]" if ":" in name else name
        host = address if port == DEFAULT_PORTS.get(scheme) else f"{address}:{port}"
        return f"{scheme}://{host}", host

    def _redirect(self, flow: http.HTTPFlow, path: str) -> None:
        request = flow.request
        host = request.host_header
        if flow.server_conn.via is not None:  # The endpoint listener is reached directly.
            flow.server_conn = Server(address=(HOME, self._endpoints.port))
            request.headers.pop("Proxy-Authorization", None)
        if request.method == "POST" and not any(name in request.headers for name in FRAMING):
            # HTTP/2 needs neither; mitmproxy adds none when it sends HTTP/1.1, and the body would be lost.
            body = request.raw_content
            name, value = (TRANSFER, "chunked") if body is None else (LENGTH, str(len(body)))
            request.headers[name] = value
        request.path = path
        request.scheme, request.host, request.port = "http", HOME, self._endpoints.port
        # Setting the host also sets the header.
        request.host_header = host


def _requested_server(context: Context, sni: str | None) -> tuple[str, int]:
    """Return the name and port of the server that a client requests."""
    name, port = context.server.address or ("", 0)
    return sni or name, port
