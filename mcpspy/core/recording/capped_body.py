"""A body of HTTP in the recording: decoded, and no more than a limit of it in memory.

A larger one is counted and hashed as it was sent, whatever its compression ratio, and recorded as a note.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from mcpspy.core.compression import STEP, BodyDecoder, Steps
from mcpspy.core.recording.encode import MAX_BODY, oversized
from mcpspy.core.recording.encode_body import BodyEncoder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mcpspy.core.recording.encode import Value

MAX_RATIO = 100
"""Compression ratio above which a stream of events that exceeds the limit is no longer decoded."""

MIN_LINES, MAX_LINE_RATIO = 1 << 15, 2
"""Lines in a compressed stream above which it is no longer decoded, if they are more than this many per byte sent.

An event of ten bytes takes six times as many in the recording, and as long as a thousand bytes of a longer one.
"""

LINES_OF_STEP, SMALL_STEP = 128, 1 << 9
"""Lines above which a step of a stream is halved, down to these bytes: an event of two lines takes some 15 µs."""


class CappedBody:
    """A body that is one message."""

    def __init__(
        self, side: str, fields: Mapping[str, Value], encoding: str | None, limit: int = MAX_BODY
    ) -> None:
        self._side = side
        self._fields = fields
        self._limit = limit
        self._decoder = BodyDecoder(encoding)
        self._encoder = BodyEncoder(side, fields)
        # The bytes that were sent are kept only if they are the decoded ones.
        self._hash = sha256() if self._decoder.is_decoding else None
        self.sent = 0
        """Bytes of the body as it was sent."""
        self.size = 0
        """Bytes of the decoded body in memory."""
        self.is_over = False
        """True once the body exceeds the limit."""

    def feed(self, chunk: bytes) -> Steps[None]:
        """Take a chunk as it was sent, in steps for an event loop."""
        return Steps(self._feed(chunk), are_long=self._decoder.has_long_steps and not self.is_over)

    def _feed(self, chunk: bytes) -> Iterator[None]:
        self.sent += len(chunk)
        if self._hash is not None:
            self._hash.update(chunk)
        if self.is_over:
            return
        for data in self._decoder.steps(chunk):
            self._encoder.feed(data)
            self.size += len(data)
            if max(self.size, self.sent) > self._limit:
                break
            yield
        if max(self.size, self.sent) > self._limit:
            self.is_over = True
            yield from self._give_up()

    def data(self) -> bytes:
        """Return the decoded body so far."""
        return b"".join(self._encoder.pieces)

    def close(self, at: float, *, lacks: str = "") -> Iterable[bytes | bytearray]:
        """Return the buffers to append: the message, or the note that replaces it. `lacks` names the missing end."""
        if not self.is_over:
            return self._encoder.close(at, lacks=lacks)
        assert self._hash is not None
        fields = dict(self._fields)
        if self._decoder.encoding != "identity":
            fields["encoding"] = self._decoder.encoding
        return [oversized(at, self._side, fields, self.sent, self._hash.hexdigest(), lacks=lacks)]

    def _give_up(self) -> Iterator[None]:
        pieces, self._encoder.pieces = self._encoder.pieces, []
        self.size = 0
        if self._hash is None:
            self._hash = sha256()
            for piece in pieces:
                self._hash.update(piece)
                yield


class CappedStream:
    """The decoded bytes of a stream of events, unless their compression ratio is that of an attack."""

    def __init__(self, side: str, fields: Mapping[str, Value], encoding: str | None, limit: int) -> None:
        self._side = side
        self._fields = fields
        self._limit = limit
        self._decoder = BodyDecoder(encoding)
        self._hash = sha256() if self._decoder.is_decoding else None
        self._sent = self._decoded = self._lines = 0
        self.is_over = False
        """True once the stream is no longer decoded."""

    @property
    def is_decoding(self) -> bool:
        return self._hash is not None

    def steps(self, chunk: bytes) -> Steps[bytes]:
        """Return a chunk in decoded steps for an event loop, each with few events; none once `is_over`."""
        return Steps(self._steps(chunk), are_long=self._decoder.has_long_steps and not self.is_over)

    def _steps(self, chunk: bytes) -> Iterator[bytes]:
        if self._hash is None:
            yield from _in_short_steps(chunk)
            return
        self._sent += len(chunk)
        self._hash.update(chunk)
        if self.is_over:
            return
        for data in self._decoder.steps(chunk):
            self._decoded += len(data)
            self._lines += _line_ends(data)
            self.is_over = self._decoded > max(self._limit, MAX_RATIO * self._sent) or self._lines > max(
                MIN_LINES, MAX_LINE_RATIO * self._sent
            )
            if self.is_over:
                return
            yield from _in_short_steps(data)

    def close(self, at: float) -> Iterable[bytes]:
        """Return the note of a stream whose rest is not recorded."""
        if not self.is_over or self._hash is None:
            return ()
        fields = {**self._fields, "encoding": self._decoder.encoding}
        return [oversized(at, self._side, fields, self._sent, self._hash.hexdigest(), lacks="")]


def _line_ends(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r")


def _in_short_steps(data: bytes) -> Iterator[bytes]:
    """Yield a part of a stream in steps, each with few lines and so with few events."""
    if len(data) <= SMALL_STEP or (len(data) <= STEP and _line_ends(data) <= LINES_OF_STEP):
        yield data
        return
    middle = len(data) // 2
    yield from _in_short_steps(data[:middle])
    yield from _in_short_steps(data[middle:])
