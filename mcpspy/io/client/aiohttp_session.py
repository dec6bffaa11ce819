"""aiohttp client sessions: connections, trusted certificates, proxies, and the text of their errors.

No timeouts: it is up to the caller to give up on a slow server.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.errors import CannotStart
from mcpspy.io.client.base import ServerAddress

IDLE = 4.0
"""Seconds an idle connection is kept: less than the five after which uvicorn and Node close theirs."""

MAX_HEADER = 1 << 16
"""Bytes a header may have."""


def client(address: ServerAddress) -> aiohttp.ClientSession:
    """Return a client for one server; raise CannotStart if a certificate file cannot be read."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0, keepalive_timeout=IDLE, ssl=trust(address.cacert, insecure=address.insecure)
        ),
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        cookie_jar=aiohttp.CookieJar(unsafe=True),  # Some balancers identify a session by a cookie.
        proxy=environment_proxy(URL(address.url)),
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
    )


async def check_reachable(address: ServerAddress) -> None:
    """Raise CannotStart if the server does not listen."""
    url = URL(address.url)
    if environment_proxy(url) is not None:
        return
    try:
        _, writer = await asyncio.open_connection(url.host, url.port)
    except OSError as error:
        raise CannotStart(f"cannot reach {address.url}: {reason(error)}", "is the server running?") from None
    writer.close()


def reason(error: Exception) -> str:
    """Return in a few words why a server cannot be reached, or went away."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error} (--cacert FILE trusts one more)"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    # The numbers of an SSLError are not errno values.
    number = cause.errno if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) else None
    # asyncio's own text repeats the address; an errno below zero is the resolver's.
    return os.strerror(number) if number and number > 0 else str(cause) or type(cause).__name__


def environment_proxy(url: URL) -> URL | None:
    """Return the proxy that `http_proxy`, `https_proxy` and `no_proxy` name for a server; None for loopback."""
    found = getproxies().get(url.scheme)
    host = url.host or ""
    return None if found is None or host in LOOPBACK or proxy_bypass(host) else URL(found)


def trust(cacert: str | None, *, insecure: bool) -> ssl.SSLContext | bool:
    """Return the verification of certificates: by the system's authorities and those of `cacert`."""
    if insecure:
        return False
    context = ssl.create_default_context()
    # From Python 3.13 on the default also wants what RFC 5280 has a certificate say of its keys, which many
    # private authorities leave out. Who is trusted does not change; the hosts' Node and curl do not ask either.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cacert is not None:
        try:
            context.load_verify_locations(cacert)
        except OSError as error:
            raise CannotStart(f"{cacert}: {error.strerror or error}", "--cacert takes a PEM file") from None
    return context
