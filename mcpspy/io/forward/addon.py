"""The mitmproxy addon: ignores, forwards, or hands over each connection and request to an endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mitmproxy import http, tls
from mitmproxy.connection import Client, Server
from mitmproxy.proxy import layer

from mcpspy.core.protocol.endpoint_detection import DetectionVerdict, by_body, by_head
from mcpspy.io.forward.endpoints import HOME, EndpointRegistry, McpEndpoint
from mcpspy.io.forward.hosts import HostSet, authorize, fingerprint, proxy_for, upstream_layer
from mcpspy.io.forward.mitmproxy import NonProxyRejection, is_proxy_request
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from mitmproxy.proxy.context import Context

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
