"""One MCP endpoint that was met under way, and one that may turn out to be one.

Owns what differs from a server that was named: its clients know it by its own
address, and HTTP+SSE (2024-11-05) shows only in what is answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

from mcpspy.io.connect.client import reason
from mcpspy.io.recorder import Recorder, Where, say
from mcpspy.io.streams import ExchangeContext, Streams
from mcpspy.io.tls.outward import Outward

if TYPE_CHECKING:
    from mcpspy.core.protocol.http_headers import Headers, Upstream
    from mcpspy.core.recording.encode import Lines


class Endpoint(ExchangeContext):
    """One MCP endpoint."""

    number = 0
    """What it is called between mitmproxy and us."""
    is_mcp = True
    outward: Outward | None = None
    """The way for one whose clients speak HTTP/2."""
    _has_complained = False

    def ours(self, request: web.BaseRequest) -> str:
        """Return the server's own origin: nothing has to lead to us, all comes by here anyway."""
        return self.upstream.origin

    async def ask(
        self, method: str, target: str, headers: Headers, data: bytes | AsyncIterator[bytes] | None
    ) -> aiohttp.ClientResponse:
        """Send a request to the server; say it, once, if its certificate is not trusted."""
        if self.outward is not None:
            return await self.outward.ask(self.client, method, self.url(target), headers, data)
        try:
            return await super().ask(method, target, headers, data)
        except aiohttp.ClientConnectorCertificateError as error:
            if not self._has_complained:
                self._has_complained = True
                say(f"{self.upstream.host}: {reason(error)}")
            raise


class Probe(Endpoint):
    """Carries one GET; an endpoint from the event on that names the address for messages.

    Until then the little there is to record is held, at the time 0 of the
    recording that begins with that event; without it none of it is kept.
    """

    is_reachable = False

    def __init__(
        self, upstream: Upstream, client: aiohttp.ClientSession, decided: Callable[[Probe], None]
    ) -> None:
        """`decided` is called when it has become an endpoint, and calls `record_to`."""
        self._holding = _Holding()
        super().__init__(upstream, self._holding, client)
        self.is_mcp = False
        self.streams = _Listening(upstream.path, lambda: decided(self))

    async def keep(self, lines: Iterable[bytes | bytearray], size: int) -> None:
        """Have lines in the file, if there is one. The first are those of the event that decides."""
        await super().keep(lines, size)
        self._holding.is_full = True

    def record_to(self, recorder: Recorder) -> None:
        """Begin this recording with what was held."""
        self.recorder = recorder
        recorder.write(self._holding.lines)
        self.is_mcp = True


class _Holding(Recorder):
    """Holds what comes up to the first events of an answer, and nothing after them."""

    def __init__(self) -> None:
        nowhere = Where()
        nowhere.recording = False
        super().__init__(nowhere, {})
        self.lines: list[bytes] = []
        self.is_full = False

    def write(self, lines: Lines) -> None:
        """Hold them, if they are not too late."""
        if not self.is_full:
            self.lines.append(lines if isinstance(lines, bytes) else b"".join(lines))


class _Listening(Streams):
    """Tells when a server names the address for messages."""

    def __init__(self, endpoint: str, named: Callable[[], None]) -> None:
        super().__init__(endpoint)
        self._named = named

    def bind_address(self, target: str, stream: str) -> None:
        """Keep the address."""
        super().bind_address(target, stream)
        self._named()
