"""Where one message ends and the next begins.

Owns the cut: any chunking of the same bytes gives the same lines, in time
linear in their length. Refuses to look inside a line, to bound its length and
to import anything: `mcpspy run` starts with this module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Pieces: TypeAlias = list[bytes | bytearray]

SMALL = 4096
"""Chunks below this are gathered, so that a line fed byte by byte is not a list of bytes objects."""

GATHERED = 65536
"""How much is gathered into one piece before the next is begun."""


class LineFramer:
    """Newline-delimited messages: the stdio transport (MCP, basic/transports, all revisions).

    Splits on LF bytes only. CR, U+2028, U+0085, VT and FF are data, which
    `splitlines` would not know.
    """

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: Pieces = []

    def split(self, data: bytes) -> tuple[Pieces, bytes]:
        """Cut a chunk without joining: what a pump of 1 MB lines needs.

        Returns the pieces of the line that began in earlier chunks and ended
        in this one (its LF left out; empty if there is none), and the run of
        whole lines after it, each with its LF.
        """
        end = data.rfind(b"\n") + 1
        if not end:
            self._keep(data)
            return [], b""
        ended: Pieces = []
        start = 0
        if self._pieces:
            start = data.index(b"\n") + 1
            self._keep(data[: start - 1])
            ended, self._pieces = self._pieces, []
        self._keep(data[end:])
        return ended, data[start:end]

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that ended in this chunk, without their LF."""
        ended, run = self.split(data)
        lines = [b"".join(ended)] if ended else []
        if run:
            lines += run[:-1].split(b"\n")
        return lines

    def close(self) -> Pieces:
        """Return the pieces of the line that never ended; empty if there is none."""
        torn, self._pieces = self._pieces, []
        return torn

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        if len(data) >= SMALL:
            self._pieces.append(data)
            return
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, bytearray) and len(last) < GATHERED:
            last += data
        else:
            self._pieces.append(bytearray(data))
