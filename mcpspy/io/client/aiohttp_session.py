"""aiohttp client sessions: connections, trusted certificates, proxies, and readable errors.

There are no timeouts: the caller decides when to give up on a slow server.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.redact.display import redacted_text
from mcpspy.errors import CannotStart
from mcpspy.io.client.base import ServerAddress

IDLE = 4.0
"""Seconds that an idle connection is kept: less than the five after which uvicorn and Node close theirs."""

MAX_HEADER = 1 << 16
"""Maximum size of a header in bytes. Tokens are long, and a proxy should not refuse them."""


def client(address: ServerAddress) -> aiohttp.ClientSession:
    """Return a client for one server. Raise CannotStart if a certificate file cannot be read."""
    trusted = trust(address.cacert, insecure=address.insecure)
    # Some load balancers identify a session by a cookie.
    return open_session(URL(address.url), trusted, cookie_jar=aiohttp.CookieJar(unsafe=True))


def open_session(url: URL, trusted: ssl.SSLContext | bool, **more: Any) -> aiohttp.ClientSession:
    """Return a client without timeouts. `more` are other arguments of `aiohttp.ClientSession`."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE, ssl=trusted),
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        # Not trust_env: it reads the environment for every request, in threads, and adds the Authorization of a
        # .netrc, which no client sent.
        proxy=environment_proxy(url),
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
        **more,
    )


async def check_reachable(address: ServerAddress) -> None:
    """Raise CannotStart if the server does not listen."""
    url = URL(address.url)
    if environment_proxy(url) is not None:
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
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error} (trust its CA with --cacert FILE)"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    # The numbers of an SSLError are not errno values.
    number = cause.errno if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) else None
    # asyncio's own text repeats the address. Negative errno values come from the resolver.
    # Some texts contain a URL: that of a proxy, with its password.
    return os.strerror(number) if number and number > 0 else redacted_text(str(cause)) or type(cause).__name__


def environment_proxy(url: URL) -> URL | None:
    """Return the proxy for a server from `http_proxy`, `https_proxy` and `no_proxy`; None for loopback."""
    found = getproxies().get(url.scheme)
    host = url.host or ""
    return None if found is None or host in LOOPBACK or proxy_bypass(host) else URL(found)


def trust(cacert: str | None, *, insecure: bool) -> ssl.SSLContext | bool:
    """Return the verification of certificates, against the system's CAs and those of `cacert`."""
    if insecure:
        return False
    context = ssl.create_default_context()
    # Since Python 3.13, the default also requires fields of RFC 5280 that many private CAs leave out. The trusted
    # CAs stay the same; Node and curl do not require these fields either.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cacert is not None:
        try:
            context.load_verify_locations(cacert)
        except OSError as error:
            raise CannotStart(f"{cacert}: {error.strerror or error}", "--cacert takes a PEM file") from None
    return context


async def in_turns(steps: Iterator[None]) -> None:
    """Run steps; other exchanges run between two of them."""
    for number, _ in enumerate(steps):
        if number:
            await asyncio.sleep(0)
