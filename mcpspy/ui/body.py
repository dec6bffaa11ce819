"""A message's body as lines to read.

Owns the layout of JSON without decoding it: duplicate keys, `1.0`, `1E5` and
thirty-digit integers stay as they were on the wire. What is no JSON is shown as
the text it is.
"""

from __future__ import annotations

from msgspec import DecodeError
from msgspec.json import format as lay_out

from mcpspy.ui.inert import inert

WIDE = 4000
"""Characters of a line that are shown; the rest is counted."""


def pretty(data: bytes) -> list[str]:
    """Return the lines of a body, indented by two, each inert."""
    try:
        text = lay_out(data, indent=2).decode()
    except (DecodeError, UnicodeDecodeError, RecursionError):
        text = data.decode("utf-8", "backslashreplace")
    return [_short(line) for line in text.split("\n")]


def _short(line: str) -> str:
    if len(line) > WIDE:
        return inert(line[:WIDE]) + f"… {len(line) - WIDE} more characters"
    return inert(line)
