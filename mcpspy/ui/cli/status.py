"""What a command waits for, on the last line of a terminal.

Owns that line: it is there while something takes long, and gone without a trace
before anything else is printed. Where stderr is no terminal, there is none.
"""

from __future__ import annotations

import os
import sys

from mcpspy.core.inert import inert
from mcpspy.ui.cli.output import cut

WIDTH = 80
"""Columns of a terminal that does not know."""

_CLEAR = "\r\x1b[K"


class Status:
    """A line that says what is waited for; a context in which it may be there."""

    def __init__(self) -> None:
        self._has_line = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._is_there = False

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        if self._is_there:
            self._write(_CLEAR)
            self._is_there = False

    def show(self, what: str, seconds: float) -> None:
        """Say what is waited for, and how long it has been."""
        if self._has_line:
            width = os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH
            self._write(_CLEAR + cut(f"waiting for {inert(what)} · {seconds:.0f} s", width - 1))
            self._is_there = True

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
