"""What a piece of base64 holds, as far as its first bytes say.

Owns reading the size of an image from its head. Refuses to decode a picture: a
terminal shows none.
"""

from __future__ import annotations

import base64
import binascii
import re

from mcpspy.analysis.rows import size

HEAD = 1 << 16
"""Characters of base64 that are decoded: a JPEG says its size behind its thumbnail."""

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def described(kind: str, data: bytes) -> str:
    """Return a type, a size, and the dimensions if it is an image: `image/png, 12.3 kB, 640x480`."""
    blanks = data.count(b"=", -2) if len(data) > 1 else 0
    said = f"{kind or 'unknown type'}, {kilo(len(data) * 3 // 4 - blanks)}"
    found = dimensions(head(data))
    return f"{said}, {found[0]}x{found[1]}" if found else said


def kilo(count: int) -> str:
    """Return a number of bytes with its unit: `312 B`, `12.3 kB`."""
    short = size(count)
    return f"{short[:-1]} {short[-1]}B" if short[-1] in "kMG" else f"{short} B"


def head(data: bytes) -> bytes:
    """Return the first bytes of what base64 holds; of what is none, nothing."""
    taken = data[:HEAD]
    try:
        return base64.b64decode(taken[: len(taken) // 4 * 4], validate=True)
    except binascii.Error:
        return b""


def dimensions(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, WebP or JPEG image."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return _big(data[16:20]), _big(data[20:24])
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) >= 10:
        return _little(data[6:8]), _little(data[8:10])
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp(data)
    return _jpeg(data) if data.startswith(b"\xff\xd8") else None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return _little(data[24:27]) + 1, _little(data[27:30]) + 1
    if kind == b"VP8L":
        bits = _little(data[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while marker := re.compile(rb"\xff+([^\xff\x00])").match(data, at):
        at, kind = marker.end(), marker.group(1)[0]
        if kind in _JPEG_SIZES and len(data) >= at + 7:
            return _big(data[at + 5 : at + 7]), _big(data[at + 3 : at + 5])
        at += _big(data[at : at + 2])
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
