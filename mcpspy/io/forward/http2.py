"""Requests to a server over HTTP/2, through mitmproxy because aiohttp supports only HTTP/1.1.

Marks these requests. When one fails, mitmproxy would respond with a page, so it reports the reason here instead.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import AsyncIterator

import aiohttp
from yarl import URL

from mcpspy.core.protocol.http_headers import Headers

HEADER = "Mcpspy-Outward"


class Http2Upstream:
    """Sends requests through the proxy's own listener, with a secret mark."""

    def __init__(self, proxy: str) -> None:
        """Create an upstream. `proxy` is the listener's address."""
        self._proxy = proxy
        self._secret = secrets.token_urlsafe(24)
        self._numbers = itertools.count(1)
        self._under_way: dict[str, str | None] = {}

    def is_pending(self, mark: str) -> bool:
        """Return whether a request with this mark was sent by this object and is in progress."""
        return mark in self._under_way

    def failed(self, mark: str, why: str) -> None:
        """Store the reason for a missing response."""
        if mark in self._under_way:
            self._under_way[mark] = why

    async def send_request(
        self,
        client: aiohttp.ClientSession,
        method: str,
        url: URL,
        headers: Headers,
        data: bytes | AsyncIterator[bytes] | None,
    ) -> aiohttp.ClientResponse:
        """Send a request. Raises ClientConnectionError if there is no response."""
        mark = f"{self._secret}-{next(self._numbers)}"
        # The form for a proxy: unencrypted, with the server's address in the first line.
        clear = url.with_scheme("http").with_port(url.port)
        self._under_way[mark] = None
        try:
            response = await client.request(
                method,
                clear,
                headers=[*headers, (HEADER, mark)],
                data=data,
                allow_redirects=False,
                proxy=self._proxy,
            )
            why = self._under_way[mark]
        finally:
            del self._under_way[mark]
        if why is not None:
            response.close()
            raise aiohttp.ClientConnectionError(why)
        return response
