"""Requests to a server over HTTP/2, through mitmproxy: `io.http.upstream` has HTTP/1.1 only.

Marks these requests. When one fails, mitmproxy would respond with a page, so it reports the reason here instead.
"""

from __future__ import annotations

import itertools
import secrets
import ssl
from collections.abc import Callable

from yarl import URL

from mcpspy.io.http.upstream import Body, UpstreamClient, UpstreamError, UpstreamResponse

HEADER = "Mcpspy-Outward"


class Http2Upstream:
    """The proxy's own listener, and the requests in progress that are sent through it with a secret mark."""

    def __init__(self, proxy: str) -> None:
        """Create an upstream. `proxy` is the listener's address."""
        self._proxy = URL(proxy)
        self._secret = secrets.token_urlsafe(24)
        self._numbers = itertools.count(1)
        self._under_way: dict[str, str | None] = {}

    def client(self, origin: str, trusted: ssl.SSLContext) -> UpstreamClient:
        """Return a client for a server."""
        # The form for a proxy: unencrypted, with the server's address in the first line.
        url = URL(origin)
        return _MarkingClient(self, str(url.with_scheme("http").with_port(url.port)), trusted, self._proxy)

    def begin(self) -> str:
        """Return the mark of a new request."""
        mark = f"{self._secret}-{next(self._numbers)}"
        self._under_way[mark] = None
        return mark

    def is_pending(self, mark: str) -> bool:
        """Return whether a request with this mark was sent by this object and is in progress."""
        return mark in self._under_way

    def failed(self, mark: str, why: str) -> None:
        """Store the reason for a missing response."""
        if mark in self._under_way:
            self._under_way[mark] = why

    def end(self, mark: str) -> str | None:
        """End a request. Return the reason for a missing response."""
        return self._under_way.pop(mark)


class _MarkingClient(UpstreamClient):
    def __init__(self, upstream: Http2Upstream, origin: str, trusted: ssl.SSLContext, proxy: URL) -> None:
        super().__init__(origin, trusted, proxy)
        self._upstream = upstream

    async def send(
        self, method: str, head: bytes, body: Body, early: Callable[[], None] | None = None
    ) -> UpstreamResponse:
        mark = self._upstream.begin()
        first, _, others = head.partition(b"\r\n")
        try:
            marked = b"%b\r\n%b: %b\r\n%b" % (first, HEADER.encode(), mark.encode(), others)
            response = await super().send(method, marked, body, early)
        finally:
            why = self._upstream.end(mark)
        if why is not None:
            response.close()
            raise UpstreamError(why)
        return response
