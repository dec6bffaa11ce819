"""The body of a request, on its way from the client through the recording to the server.

A message is recorded before its last part is sent on; what comes before that part is not delayed, unless the
messages are intercepted. Any other body is sent on as it arrives, and not recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.core.framing import collect
from mcpspy.core.protocol.oauth_flows import FORM_LIMIT
from mcpspy.core.recording.capped_body import CappedBody
from mcpspy.core.recording.encode import CLIENT
from mcpspy.io.http.context import ENCODING
from mcpspy.io.network.outgoing import in_turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcpspy.core.framing import Pieces
    from mcpspy.io.http.context import ExchangeContext, ExchangeHead
    from mcpspy.io.http.exchange_record import ExchangeRecord
    from mcpspy.io.http.interception import HttpInterception
    from mcpspy.io.http.server import HttpRequest


class RequestBody:
    """The body of one request. Its methods raise ConnectionResetError if the client hangs up."""

    def __init__(
        self,
        context: ExchangeContext,
        interception: HttpInterception,
        record: ExchangeRecord,
        head: ExchangeHead,
        request: HttpRequest,
    ) -> None:
        self._context = context
        self._interception = interception
        self._record = record
        self._head = head
        self._request = request
        self.needs_decision = False
        """True if the body is a message that is intercepted."""

    async def message(self) -> bytes | AsyncIterator[bytes]:
        """Return the body of a POST: whole if it has arrived or if messages are intercepted, else in parts.

        A body above the limit is always in parts. Sets `needs_decision`; any other body is recorded.
        """
        request, record = self._request, self._record
        encoding = request.headers.get(ENCODING)
        if record.is_short(request.body, encoding):
            record.request = await request.body.next() or b""
            self.needs_decision = self._interception.decides(CLIENT, record.request)
            if not self.needs_decision:
                record.add_message(CLIENT, record.request)
                await record.flush()
            return record.request
        body = record.unrecorded = CappedBody(CLIENT, self._head.fields, encoding, self._context.max_body)
        pieces: Pieces = [await self._next(body)]
        while self._interception.is_on and not (body.is_over or request.body.is_complete):
            collect(pieces, await self._next(body))
        if body.is_over or not request.body.is_complete:
            return self._as_it_arrives(body, pieces)
        record.request = bytes(pieces[0]) if len(pieces) == 1 else b"".join(pieces)
        self.needs_decision = self._interception.decides(CLIENT, record.request)
        if self.needs_decision:
            record.unrecorded = None
        else:
            await record.write_request()
        return record.request

    async def unrecorded(self) -> AsyncIterator[bytes]:
        """Yield a body that is not a message. Keep its beginning if it is a step of OAuth."""
        limit = FORM_LIMIT if self._context.oauth.step(self._head.target) is not None else 0
        while (piece := await self._request.body.next()) is not None:
            self._record.form += piece[: max(limit - len(self._record.form), 0)]
            yield piece

    async def record_rest(self) -> None:
        """Record a message that is not sent on, up to its end."""
        while self._record.unrecorded is not None:
            await self._next(self._record.unrecorded)
            if self._request.body.is_complete:
                await self._record.write_request()

    async def _as_it_arrives(self, body: CappedBody, pieces: Pieces) -> AsyncIterator[bytes]:
        """Yield a message after its first pieces. Only its last part waits for the recording."""
        pieces.reverse()
        while len(pieces) > 1:
            yield bytes(pieces.pop())
        held = bytes(pieces.pop())
        while not self._request.body.is_complete:
            yield held
            held = await self._next(body)
        await self._record.write_request()
        yield held

    async def _next(self, body: CappedBody) -> bytes:
        """Return the next part; empty at the end."""
        piece = await self._request.body.next() or b""
        await in_turns(body.feed(piece))
        return piece
