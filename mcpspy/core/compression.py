"""Decode compressed HTTP bodies in bounded steps (RFC 9110, 8.4; RFC 1950 to 1952, 7932, 8878).

A hundred bytes can decode to a gigabyte. So no step takes or returns more than its bound, and the caller may stop
between two steps. The libraries of br and zstd, which are optional, are those that take a maximum length, as zlib does:
`zstandard`, and `Brotli` before 1.2, return all output of an input at once.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

STEP = 1 << 16
"""Maximum bytes that a step returns."""

PIECE = 1 << 12
"""Maximum bytes that a step takes, because input without output takes time, too: hundreds of empty members."""

MAX_WINDOW = 23
"""Logarithm of the largest window of zstd, which is memory (RFC 9659, 3)."""

IDENTITY = "identity"

_PACKAGES = {"br": "brotlicffi", "zstd": "backports.zstd"}


def missing_package(encoding: str | None) -> str | None:
    """Return the package that a `Content-Encoding` needs, if it is not installed."""
    decoder = BodyDecoder(encoding)
    return None if decoder.is_decoding else _PACKAGES.get(decoder.encoding)


T = TypeVar("T")


class Steps(Generic[T]):
    """The steps of some work, between which, and during which if they are long, other work should run."""

    __slots__ = ("_steps", "are_long")

    def __init__(self, steps: Iterator[T], *, are_long: bool) -> None:
        self._steps = steps
        self.are_long = are_long
        """True if a step may take more than a few milliseconds, in which other threads run."""

    def __iter__(self) -> Iterator[T]:
        return self._steps

    def __next__(self) -> T:
        return next(self._steps)


class _Decompressor(Protocol):
    """The decoder of one member. If it returns less than the maximum, it needs more input, or is at its end."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class BodyDecoder:
    """Decodes one body. What is not compressed as declared, or in an unknown way, is returned unchanged."""

    def __init__(self, encoding: str | None) -> None:
        """Prepare for the value of a `Content-Encoding` header."""
        self.encoding = (encoding or IDENTITY).strip().lower()
        self._create, self._error = _decompressor(self.encoding)
        self._member = None if self._create is None else self._create()
        self._has_output = self._is_damaged = False

    @property
    def is_decoding(self) -> bool:
        return self._member is not None

    @property
    def has_long_steps(self) -> bool:
        """Return whether a step is long: Brotli fills its window, of up to 16 MiB, before it returns the first byte."""
        return isinstance(self._member, _Brotli)

    def steps(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes of a chunk in steps, of which some are empty; what is not consumed is lost."""
        if self._member is None:
            yield data
            return
        for start in range(0, 0 if self._is_damaged else len(data), PIECE):
            try:
                for step in self._piece(data[start : start + PIECE]):
                    self._has_output = self._has_output or bool(step)
                    yield step
            except self._error:
                if self._has_output:
                    self._is_damaged = True
                else:
                    self._member = None
                    yield data
                return

    def _piece(self, data: bytes) -> Iterator[bytes]:
        member = self._member
        assert self._create is not None
        assert member is not None
        while True:
            if member.eof:
                # Another member may follow (RFC 1952, 2.2; RFC 8878, 3).
                if not data or self.encoding in ("deflate", "br"):
                    yield b""
                    return
                member = self._member = self._create()
            output = member.decompress(data, STEP)
            data = member.unused_data
            if len(output) < STEP and not member.eof:
                yield output
                return
            if output:
                yield output


def _decompressor(encoding: str) -> tuple[Callable[[], _Decompressor] | None, type[Exception]]:
    """Return what creates a decoder, and its error; None if there is none for this encoding."""
    try:
        if encoding in ("gzip", "x-gzip"):
            return _Zlib, zlib.error
        if encoding == "deflate":
            return _Deflate, zlib.error
        if encoding == "br":
            brotli = import_module(_PACKAGES[encoding])
            return lambda: _Brotli(brotli.Decompressor()), brotli.error
        if encoding == "zstd":
            zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else _PACKAGES[encoding])
            options = {zstd.DecompressionParameter.window_log_max: MAX_WINDOW}
            return lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError
    except ImportError:  # Recorded compressed, as it came.
        pass
    return None, zlib.error


class _Zlib:
    """A decoder of zlib, which returns the input for which its output had no room."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return self._inflate.decompress(self._inflate.unconsumed_tail or data, max_length)


class _Deflate(_Zlib):
    """The encoding `deflate`: zlib, or as some servers send it, without its header."""

    _is_first = True

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        try:
            return super().decompress(data, max_length)
        except zlib.error:
            if not self._is_first:
                raise
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return super().decompress(data, max_length)
        finally:
            self._is_first = False


class _Brotli:
    """A decoder of Brotli, with the names of those of the standard library."""

    unused_data = b""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    @property
    def eof(self) -> bool:
        return bool(self._decoder.is_finished())

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        output: bytes = self._decoder.decompress(data, output_buffer_limit=max_length)
        return output
