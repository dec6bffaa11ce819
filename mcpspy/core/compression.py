"""Decode compressed HTTP bodies in bounded steps (RFC 9110, 8.4; RFC 1950 to 1952, 7932, 8878).

A kilobyte can decode to a gigabyte. So no step returns more than its bound, and the caller may stop between two steps.
zlib takes a maximum length. The libraries of br and zstd, which are optional, return all output of an input: they get
pieces of a few bytes, because one byte of Brotli decodes to at most 16 MiB (RFC 7932, 9.2), and four bytes of Zstandard
to at most 128 KiB (RFC 8878, 3.1.1.2.3).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import TypeAlias

STEP = 1 << 18
"""Maximum bytes of a step of gzip and deflate."""

BROTLI_PIECE = 8
ZSTD_PIECE = 32

IDENTITY = "identity"

Decode: TypeAlias = Callable[[bytes], bytes]


class _DamagedBody(Exception):  # noqa: N818 - never leaves this module.
    pass


_PACKAGES = {"br": "brotli", "zstd": "zstandard"}


def missing_package(encoding: str | None) -> str | None:
    """Return the package that a `Content-Encoding` needs, if it is not installed."""
    package = _PACKAGES.get((encoding or IDENTITY).strip().lower())
    return package if package is not None and find_spec(package) is None else None


class BodyDecoder:
    """Decodes one body. What is not compressed as declared, or in an unknown way, is returned unchanged."""

    def __init__(self, encoding: str | None) -> None:
        """Prepare for the value of a `Content-Encoding` header."""
        self.encoding = (encoding or IDENTITY).strip().lower()
        self._steps = _decoder(self.encoding)

    @property
    def is_decoding(self) -> bool:
        return self._steps is not None

    def steps(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes of a chunk in steps; what is not consumed is lost."""
        if self._steps is None:
            yield data
            return
        produced = False
        try:
            for step in self._steps(data):
                produced = True
                yield step
        except (zlib.error, _DamagedBody):
            self._steps = None
            if not produced:
                yield data


def _decoder(encoding: str) -> Callable[[bytes], Iterator[bytes]] | None:
    if encoding in ("gzip", "x-gzip"):
        return _Zlib(zlib.MAX_WBITS | 32, has_members=True).steps
    if encoding == "deflate":
        return _Zlib(zlib.MAX_WBITS | 32, has_members=False).steps
    try:
        if encoding == "br":
            brotli = import_module("brotli")
            return _in_pieces(brotli.Decompressor().process, BROTLI_PIECE, brotli.error)
        if encoding == "zstd":
            zstandard = import_module("zstandard")
            decode = zstandard.ZstdDecompressor().decompressobj().decompress
            return _in_pieces(decode, ZSTD_PIECE, zstandard.ZstdError)
    except ImportError:  # Recorded compressed, as it came.
        pass
    return None


def _in_pieces(decode: Decode, size: int, error: type[Exception]) -> Callable[[bytes], Iterator[bytes]]:
    """Return the steps of a decoder that cannot limit its output."""

    def steps(data: bytes) -> Iterator[bytes]:
        ready: list[bytes] = []
        length = 0
        for start in range(0, len(data), size):
            try:
                output = decode(data[start : start + size])
            except error:
                if ready:
                    yield b"".join(ready)
                raise _DamagedBody from None
            if output:
                ready.append(output)
                length += len(output)
                if length >= STEP:
                    yield b"".join(ready)
                    ready, length = [], 0
        if ready:
            yield b"".join(ready)

    return steps


class _Zlib:
    def __init__(self, bits: int, *, has_members: bool) -> None:
        self._bits = bits
        self._has_members = has_members
        """True if another member may follow the end of one (RFC 1952, 2.2)."""
        self._inflate = zlib.decompressobj(bits)
        self._is_first = True

    def steps(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate.eof:
                if not self._has_members:
                    return
                self._inflate = zlib.decompressobj(self._bits)
            output = self._decompress(data)
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            if output:
                yield output
        while not self._inflate.eof and (output := self._inflate.decompress(b"", STEP)):
            yield output

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._inflate.decompress(data, STEP)
        except zlib.error:
            if not self._is_first or self._has_members:
                raise
            self._inflate = zlib.decompressobj(
                -zlib.MAX_WBITS
            )  # Some servers send deflate without its header.
            return self._inflate.decompress(data, STEP)
        finally:
            self._is_first = False
