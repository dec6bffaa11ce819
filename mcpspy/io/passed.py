"""An answer of a server as it goes on: under the head it came with, its body readable for the record.

Owns what aiohttp would add to a head, and takes it out again, and how what is
compressed is read without being changed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiohttp import hdrs, web
from multidict import CIMultiDict

if TYPE_CHECKING:
    import aiohttp

    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.io.streams import Decoder

ADDED = (hdrs.USER_AGENT, hdrs.ACCEPT, hdrs.CONTENT_TYPE, hdrs.ACCEPT_ENCODING, hdrs.SERVER, hdrs.DATE)
"""Headers that aiohttp adds where there is none."""


class Passed(web.StreamResponse):
    """A response with the headers it came with, and no others."""

    def __init__(self, response: aiohttp.ClientResponse, headers: Headers) -> None:
        super().__init__(status=response.status, reason=response.reason, headers=CIMultiDict(headers))
        self._given = response.headers
        # A body that is all there goes in one packet with its head; for another the head does not wait.
        self._send_headers_immediately = not response.content.is_eof()

    async def _write_headers(self) -> None:
        for name in ADDED:
            if name not in self._given:
                self.headers.popall(name, None)
        await super()._write_headers()


def decoder(response: aiohttp.ClientResponse) -> Decoder:
    """Return what makes a compressed body readable for the record, chunk by chunk; it goes on compressed."""
    encoding = response.headers.get(hdrs.CONTENT_ENCODING, "identity").lower()
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return lambda data: data
    inflate: Callable[[bytes], bytes] = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress

    def decode(data: bytes) -> bytes:
        nonlocal inflate
        try:
            return inflate(data)
        except zlib.error:  # Not what it says it is: recorded as it came from here on.
            inflate = bytes
            return data

    return decode
