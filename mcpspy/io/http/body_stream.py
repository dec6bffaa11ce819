"""A body of HTTP that is read while it arrives, on either side of the proxy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from mcpspy.io.http.inline_task import Wakeup

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
        self._waiting: Wakeup | None = None
        self._take: Callable[[bytes], bool] | None = None
        """Takes what arrives in place of the reader that waits, if it can."""
        self.is_over = False
        """True once the last byte has arrived, or the sender has hung up."""

    @property
    def has_data(self) -> bool:
        """Return whether `next` would return at once."""
        return self.is_over or bool(self._pieces)

    @property
    def is_whole(self) -> bool:
        """Return whether the whole body has arrived."""
        return self.is_over and self._error is None

    @property
    def is_complete(self) -> bool:
        """Return whether the whole body has arrived and was read."""
        return self.is_whole and not self._pieces

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
        """Wake the reader if there is something to read, and nothing takes it in the reader's place."""
        if self._waiting is None or not (self._pieces or self.is_over):
            return
        pieces = self._pieces
        if self.is_over or not self._is_taken(pieces[0] if len(pieces) == 1 else b"".join(pieces)):
            self.interrupt()

    def pass_on(self, piece: bytes) -> None:
        """Do what `feed` and `flush` do, with one piece of a body that is not over."""
        if self._waiting is not None and not self._pieces and self._is_taken(piece):
            return
        if not self.is_over:  # Otherwise there was an error.
            self.feed(piece)
        self.interrupt()

    def _is_taken(self, arrived: bytes) -> bool:
        """Give what has arrived to what takes it in the reader's place. Return False if the reader has to read."""
        if self._take is None:
            return False
        try:
            if not self._take(arrived):
                return False
        except Exception as error:  # The reader raises it.
            self.end(error)
        self._pieces, self.size = [], 0
        return not self.is_over

    def interrupt(self) -> None:
        """Wake the reader, even if nothing has arrived."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting.set()

    async def wait(self) -> None:
        """Wait for more of the body, its end, or `interrupt`."""
        if not self.has_data:
            self._waiting = Wakeup()
            try:
                await self._waiting
            finally:
                self._waiting = None

    async def preview(self, limit: int) -> bytes:
        """Return the body, or what has arrived of it above the limit, and leave it to be read."""
        while not self.is_over and self.size <= limit:
            self._waiting = Wakeup()
            await self._waiting
        return b"".join(self._pieces)

    async def next(self, take: Callable[[bytes], bool] | None = None) -> bytes | None:
        """Return what has arrived: empty after `interrupt`, None at the end. Raises the error that ended the body.

        What arrives while this waits is given to `take`, which returns False, before anything, to leave it.
        """
        self._take = take
        try:
            await self.wait()
        finally:
            self._take = None  # It refers to this stream: the cycle would wait for the collector.
        if self._pieces:
            pieces = self._pieces
            self.discard()
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if not self.is_over:
            return b""
        if self._error is not None:
            raise self._error
        return None

    def discard(self) -> None:
        """Drop what has arrived, and let the sender continue."""
        self._pieces, self.size = [], 0
        if self.is_paused:
            self.is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the pieces that have arrived. Raises the error that ended the body."""
        while (piece := await self.next()) is not None:
            if piece:
                yield piece
