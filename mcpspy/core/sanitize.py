"""Text of a peer made safe to show, on a terminal or in a document.

Owns what is dangerous: whatever could move a cursor, set a title, write a
clipboard or reverse a line comes out as visible text; nothing else is changed.
"""

from __future__ import annotations

_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(0x20), *range(0x7F, 0xA0))}
_DIRECTIONS = {
    n: f"\\u{n:04x}" for n in (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
}
_VISIBLE = str.maketrans({**_CONTROLS, **_DIRECTIONS, "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def sanitize(text: str) -> str:
    """Return one line of text in which nothing is interpreted."""
    return text.translate(_VISIBLE).encode("utf-8", "backslashreplace").decode()


def sanitize_bytes(data: bytes) -> str:
    r"""Return bytes as one line of text; what is not UTF-8 is shown as `\\xff`."""
    return sanitize(data.decode("utf-8", "backslashreplace"))
