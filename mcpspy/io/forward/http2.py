"""The way to a server in HTTP/2: back out through mitmproxy, since the core's client speaks HTTP/1.1.

Owns how a request of ours is told from a client's, and how it is told here why
one failed: mitmproxy would answer with a page.
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
    """Sends requests through our own listener, marked with words that only we know."""

    def __init__(self, proxy: str) -> None:
        """`proxy` is the listener's address."""
        self._proxy = proxy
        self._secret = secrets.token_urlsafe(24)
        self._numbers = itertools.count(1)
        self._under_way: dict[str, str | None] = {}

    def is_ours(self, mark: str) -> bool:
        """Whether a request with this mark is one of ours, under way."""
        return mark in self._under_way

    def failed(self, mark: str, why: str) -> None:
        """Keep why there will be no answer."""
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
        """Send a request. Raises ClientConnectionError if there is no answer."""
        mark = f"{self._secret}-{next(self._numbers)}"
        # As a proxy is asked for it: in the clear, with the server's address in the first line.
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
