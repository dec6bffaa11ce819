"""Which hosts are looked into: by `--allow` and `--ignore`, and not after one did not want it.

Owns names and globs. A glob has no port, and then means every port, or has one.

The environment's own proxies on the way to a server: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`.

mitmproxy has one for all servers or none, so the choice is made here, with a
client's first line: a connection of a proxy's client is for one server, or all
of it is in the clear.
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
from yarl import URL

from mcpspy.io.client.aiohttp_session import environment_proxy


class HostSet:
    """Hosts, each as its name and port."""

    def __init__(self, allowed: Iterable[str] = (), ignored: Iterable[str] = ()) -> None:
        """`allowed`: only these, if there are any; `ignored`: none of these."""
        self._allowed = [glob.lower() for glob in allowed]
        self._ignored = [glob.lower() for glob in ignored]
        self._closed: set[tuple[str, int]] = set()
        self._doubted: set[tuple[str, int]] = set()

    def is_open(self, name: str, port: int) -> bool:
        """Whether connections to it are looked into."""
        name = name.lower()
        if (name, port) in self._closed or _is_in(self._ignored, name, port):
            return False
        return not self._allowed or _is_in(self._allowed, name, port)

    def close(self, name: str, port: int) -> bool:
        """Look into it no more; False if that was so already."""
        key = (name.lower(), port)
        if key in self._closed:
            return False
        self._closed.add(key)
        return True

    def mark_doubted(self, name: str, port: int) -> bool:
        """Whether a client has hung up on it before, with nobody trusting us since."""
        key = (name.lower(), port)
        if key in self._doubted:
            return True
        self._doubted.add(key)
        return False

    def trust(self, name: str, port: int) -> None:
        """Keep that a client trusts us with it."""
        self._doubted.discard((name.lower(), port))


def _is_in(globs: list[str], name: str, port: int) -> bool:
    return any(fnmatchcase(name, glob) or fnmatchcase(f"{name}:{port}", glob) for glob in globs)


AUTHORIZATION = "Proxy-Authorization"


def proxy_for(data: bytes) -> URL | None:
    """Return the proxy to the server that a client's first line names; None if there is none."""
    method, _, rest = data.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
    target = rest.partition(" ")[0]
    try:
        return environment_proxy(URL(f"https://{target}" if method == "CONNECT" else target))
    except ValueError:  # No address: mitmproxy's to refuse.
        return None


def upstream_layer(proxy: URL, context: Context) -> layer.Layer:
    """Have what a client asks for go through a proxy."""
    context.client.proxy_mode = ProxyMode.parse(f"upstream:{proxy.scheme}://{proxy.host}:{proxy.port}")
    return HttpLayer(context, HTTPMode.upstream)


def authorize(flow: http.HTTPFlow) -> None:
    """Show our name to the proxy that a request itself goes to, if the environment has one for us."""
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
