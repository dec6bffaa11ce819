"""aiohttp client sessions: connections, and readable errors.

There are no timeouts: the caller decides when to give up on a slow server.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiohttp
from yarl import URL

from mcpspy.errors import CannotStart
from mcpspy.io.client.base import ServerAddress
from mcpspy.io.network import outgoing

MAX_HEADER = 1 << 16
"""Maximum size of a header in bytes. Tokens are long, and a proxy should not refuse them."""


def client(address: ServerAddress) -> aiohttp.ClientSession:
    """Return a client for one server. Raise CannotStart if a certificate file cannot be read."""
    trusted = outgoing.shared_trust(address.cacert, insecure=address.insecure)
    # Some load balancers identify a session by a cookie.
    return open_session(URL(address.url), trusted, cookie_jar=aiohttp.CookieJar(unsafe=True))


def open_session(url: URL, trusted: ssl.SSLContext, **more: Any) -> aiohttp.ClientSession:
    """Return a client without timeouts. `more` are other arguments of `aiohttp.ClientSession`."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=outgoing.IDLE, ssl=trusted),
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        # Not trust_env: it reads the environment for every request, in threads, and adds the Authorization of a
        # .netrc, which no client sent.
        proxy=outgoing.environment_proxy(url),
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
        # `core.compression` decodes bodies: aiohttp does not count what was sent, and cannot use old Brotli.
        auto_decompress=False,
        **more,
    )


async def check_reachable(address: ServerAddress) -> None:
    """Raise CannotStart if the server does not listen."""
    url = URL(address.url)
    if outgoing.environment_proxy(url) is not None:
        return
    try:
        _, writer = await asyncio.open_connection(url.host, url.port)
    except OSError as error:
        raise CannotStart(
            f"cannot reach {address.shown}: {reason(error)}", "is the server running?"
        ) from None
    writer.close()


def reason(error: Exception) -> str:
    """Return a short reason why a server cannot be reached, or has disconnected; redacted."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return outgoing.reason(error.certificate_error)
    return outgoing.reason(error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error)
