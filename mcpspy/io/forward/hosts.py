"""Decrypted hosts, and the environment's proxies (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`).

A host glob without a port matches every port. mitmproxy has one upstream proxy for all servers or none, so this
module chooses the proxy by the first line of each client connection. An encrypted connection is for one server
only.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from fnmatch import fnmatchcase

from mitmproxy import http
from mitmproxy.proxy import layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode
from mitmproxy.proxy.mode_specs import ProxyMode, UpstreamMode
from mitmproxy.tls import ClientHello
from yarl import URL

from mcpspy.io.network.outgoing import environment_proxy

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
