"""Messages that are wrong in the ways in which peers get them wrong.

Owns the ways, each a function of the message alone, so that a run can be
repeated. Sources: JSON-RPC 2.0, 5 (an answer's id is its request's); MCP
basic/transports, stdio (one message a line).
"""

from __future__ import annotations

from typing import NamedTuple

from mcpspy.core.message import loads
from mcpspy.core.rewrite import replaced
from mcpspy.core.rules.patch import written

BAD_JSON, HALF_LINE, WRONG_ID, OVERSIZE = "bad-json", "half-line", "wrong-id", "oversize"

WAYS = {
    BAD_JSON: "a comma too many before the last bracket",
    HALF_LINE: "the first half, and no line end",
    WRONG_ID: "an id that nobody asked under",
    OVERSIZE: "as many blanks before the last bracket as make it too long",
}

FAR = 1_000_000_000
"""What is added to a number to make it an id that nobody asked under."""


class Corrupted(NamedTuple):
    """What goes on in place of a message."""

    data: bytes
    is_cut: bool = False
    """Whether it lacks its line end, too."""
    padding: int = 0
    """Blanks before the last bracket, which a note need not hold."""


def corrupted(data: bytes, way: str, id: str | None, size: int) -> Corrupted:  # noqa: A002
    """Return the message, wrong in one way; `id` is its id's JSON text, `size` the bytes of an oversized one."""
    data = data.rstrip()  # A body may end in a line end.
    if way == BAD_JSON:
        return Corrupted(data[:-1] + b"," + data[-1:])
    if way == HALF_LINE:
        return Corrupted(data[: len(data) // 2], is_cut=True)
    if way == OVERSIZE:
        padding = max(size - len(data), 0)
        return Corrupted(data[:-1] + b" " * padding + data[-1:], padding=padding)
    value = loads((id or "null").encode())
    wrong = value + FAR if isinstance(value, int) and not isinstance(value, bool) else f"{value}-wrong"
    return Corrupted(replaced(data, ("id",), written(wrong)))
