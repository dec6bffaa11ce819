"""What a command waits for, on the last line of a terminal.

Owns that line: it is there while something takes long, and gone without a trace
before anything else is printed. Where stderr is no terminal, there is none.
"""

from __future__ import annotations

from mcpspy.core.sanitize import sanitize
from mcpspy.ui.cli.output import LastLine


class Status(LastLine):
    """A line that says what is waited for; a context in which it may be there."""

    def __enter__(self) -> None:
        return

    def show(self, what: str, seconds: float) -> None:
        if self._has_line:
            self.put(f"waiting for {sanitize(what)} · {seconds:.0f} s")
