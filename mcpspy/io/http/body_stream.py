"""The body of a request that a coroutine reads while it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

BUFFERED = 1 << 18
"""Bytes of a body that wait for their reader, above which the sender is paused."""


class BodyStream:
    """The pieces of a body, for one reader. The connection calls `feed` and `end`, then `flush`."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._pieces: list[bytes] = []
        self.size = 0
        """Bytes that wait for the reader."""
        self.is_paused = False
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None
        self.is_over = False
        """True once the last byte has arrived, or the sender has hung up."""

    @property
    def has_data(self) -> bool:
        """Return whether `next` would return at once."""
        return self.is_over or bool(self._pieces)

    def feed(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.size += len(piece)
        if self.size > BUFFERED and not self.is_paused:
            self.is_paused = True
            self._transport.pause_reading()

    def end(self, error: Exception | None = None) -> None:
        """Take the end; with an error if the sender hung up before it."""
        if not self.is_over:
            self.is_over, self._error = True, error

    def flush(self) -> None:
        """Wake the reader if there is something to read."""
        if self.has_data:
            self.interrupt()

    def interrupt(self) -> None:
        """Wake the reader, even if nothing has arrived."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def _wait(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        await self._waiting

    async def preview(self, limit: int) -> bytes:
        """Return the body, or what has arrived of it above the limit, and leave it to be read."""
        while not self.is_over and self.size <= limit:
            await self._wait()
        return b"".join(self._pieces)

    async def next(self) -> bytes | None:
        """Return what has arrived: empty after `interrupt`, None at the end. Raises the error that ended the body."""
        if not self.has_data:
            await self._wait()
        if self._pieces:
            return self.discard()
        if not self.is_over:
            return b""
        if self._error is not None:
            raise self._error
        return None

    def discard(self) -> bytes:
        """Return what has arrived, and let the sender continue."""
        pieces, self._pieces, self.size = self._pieces, [], 0
        if self.is_paused:
            self.is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the pieces that have arrived. Raises the error that ended the body."""
        while (piece := await self.next()) is not None:
            if piece:
                yield piece
