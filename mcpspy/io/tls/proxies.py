"""The environment's own proxies on the way to a server: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`.

mitmproxy has one for all servers or none, so the choice is made here, with a
client's first line: a connection of a proxy's client is for one server, or all
of it is in the clear.
"""

from __future__ import annotations

from base64 import b64encode

from mitmproxy import http
from mitmproxy.proxy import layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode
from mitmproxy.proxy.mode_specs import ProxyMode, UpstreamMode
from yarl import URL

from mcpspy.io.connect.client import environments_proxy

AUTHORIZATION = "Proxy-Authorization"


def proxy_for(data: bytes) -> URL | None:
    """Return the proxy to the server that a client's first line names; None if there is none."""
    method, _, rest = data.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
    target = rest.partition(" ")[0]
    try:
        return environments_proxy(URL(f"https://{target}" if method == "CONNECT" else target))
    except ValueError:  # No address: mitmproxy's to refuse.
        return None


def through(proxy: URL, context: Context) -> layer.Layer:
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
    proxy = environments_proxy(URL(f"{scheme}://{request.host}:{request.port}"))
    if proxy is not None and proxy.user is not None:
        name = f"{proxy.user}:{proxy.password or ''}".encode()
        request.headers[AUTHORIZATION] = f"Basic {b64encode(name).decode()}"
