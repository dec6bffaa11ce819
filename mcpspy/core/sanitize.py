"""Escaping of a peer's text for display in a terminal or document.

Control and direction characters could move the cursor, set the title, write to the clipboard or
reverse a line. They become visible text; all other characters stay.
"""

from __future__ import annotations

_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(0x20), *range(0x7F, 0xA0))}
_DIRECTIONS = {
    n: f"\\u{n:04x}" for n in (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
}
_VISIBLE = str.maketrans({**_CONTROLS, **_DIRECTIONS, "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def sanitize(text: str) -> str:
    """Return the text as one line without control characters."""
    return text.translate(_VISIBLE).encode("utf-8", "backslashreplace").decode()


def sanitize_bytes(data: bytes) -> str:
    r"""Return bytes as one line of text; invalid UTF-8 is shown as `\\xff`."""
    return sanitize(data.decode("utf-8", "backslashreplace"))
