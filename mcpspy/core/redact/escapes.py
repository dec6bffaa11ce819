r"""A JSON string's text, and where each part of it stands in the string.

Owns the way back: what is found in the text `secret` is cut out of the bytes
`\u0073ecret` exactly. Takes what is no valid string as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_ESCAPE = re.compile(rb'\\(?:u([0-9a-fA-F]{4})|([bfnrt"\\/]))')
_BACKSLASH = ord("\\")
_SHORT = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class Unescaped:
    """The text of a string, in UTF-8."""

    def __init__(self, raw: bytes) -> None:
        """`raw` is what stands between the quotes."""
        self._texts = [0]
        self._raws = [0]
        if _BACKSLASH not in raw:
            self.text = raw
            return
        pieces: list[bytes] = []
        length = done = 0
        high = 0
        for found in _ESCAPE.finditer(raw):
            start, end = found.span()
            plain = raw[done:start]
            short: bytes | None = found[2]
            if short is not None:
                piece, high = _SHORT.get(short, short), 0
            else:
                code = int(found[1], 16)
                if 0xDC00 <= code < 0xE000 and high and not plain:
                    # The second half of a character beyond the first 65,536: both halves are one.
                    code = 0x10000 + (high - 0xD800 << 10) + code - 0xDC00
                    length -= len(pieces.pop())
                    del self._texts[-2:], self._raws[-2:]
                    start -= 6
                    high = 0
                else:
                    high = code if 0xD800 <= code < 0xDC00 else 0
                piece = chr(code).encode("utf-8", "surrogatepass")
            if plain:
                pieces.append(plain)
                length += len(plain)
            self._texts += (length, length + len(piece))
            self._raws += (start, end)
            pieces.append(piece)
            length += len(piece)
            done = end
        self.text = b"".join([*pieces, raw[done:]])

    def raw(self, at: int) -> int:
        """Return where a place in the text stands in the string."""
        number = bisect_right(self._texts, at) - 1
        return self._raws[number] + at - self._texts[number]


def escape(text: bytes) -> bytes:
    """Return a text without control characters as it stands in a JSON string."""
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
