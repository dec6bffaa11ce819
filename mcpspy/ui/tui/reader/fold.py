"""Which parts of a laid-out body are folded away.

Owns the folds and what a folded line says. Finds where a container ends only
when it is folded.
"""

from __future__ import annotations

from mcpspy.analysis.rows import size
from mcpspy.ui.body import Body
from mcpspy.ui.tui.reader.outline import STEP, Outline

COUNTED = 8_000_000
"""Bytes of a container whose items are counted; of a larger one its size is said."""

MOST = 10_000
"""Folds that are made at once."""


class Folds:
    """The folds of one body, by the line they begin at."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.outline = Outline(body)
        self._folds: dict[int, tuple[int, str]] = {}

    def __contains__(self, line: int) -> bool:
        return line in self._folds

    def opens(self, line: int) -> bool:
        return self.body.is_json and self.outline.opens(self.body.start(line))

    def container(self, line: int) -> int | None:
        """Return the line that folds what a line belongs to: itself, its opening line, or what is around it."""
        if not self.body.is_json:
            return None
        start = self.body.start(line)
        if self.outline.opens(start):
            return line
        outer = self.outline.opener(start) if self.outline.closes(start) else self.outline.parent(start)
        return None if outer is None else self.body.line_at(outer)

    def around(self, line: int) -> int | None:
        """Return the line that opens the container around a line."""
        outer = self.outline.parent(self.body.start(line)) if self.body.is_json else None
        return None if outer is None else self.body.line_at(outer)

    def fold(self, line: int) -> None:
        start = self.body.start(line)
        end = self.outline.close(start)
        opened, closed = self.body.end(line), end + self.outline.indent(start)
        if closed - opened <= COUNTED:
            many = self.outline.members(start, end)
            kind = "member" if self.body.text[closed : closed + 1] == b"}" else "item"
            said = f"{many:,} {kind}{'s' if many > 1 else ''}"
        else:
            said = f"{size(closed - opened)} bytes"
        tail = self.body.text[closed : closed + 2].decode().rstrip("\n")
        self._folds[line] = self.body.line_at(end), f" … {said} {tail}"

    def unfold(self, line: int) -> None:
        """Show what a line opens; what was folded inside stays so."""
        self._folds.pop(line, None)

    def fold_all(self) -> None:
        """Fold every member of the outermost container."""
        self._folds.clear()
        if not (self.body.is_json and self.opens(0)):
            return
        text, close, at = self.body.text, self.outline.close(0), 0
        while (at := text.find(b"\n", at) + 1) < close and len(self._folds) < MOST:
            if self.outline.indent(at) == STEP and self.outline.opens(at):
                line = self.body.line_at(at)
                self.fold(line)
                at = self.body.start(self._folds[line][0])

    def unfold_all(self) -> None:
        self._folds.clear()

    def hidden(self) -> list[tuple[int, int]]:
        """Return the outermost folds: the line that stays, and the last that is hidden."""
        found: list[tuple[int, int]] = []
        for line in sorted(self._folds):
            if not found or line > found[-1][1]:
                found.append((line, self._folds[line][0]))
        return found

    def reveal(self, line: int) -> bool:
        """Unfold whatever hides a line; return whether anything did."""
        over = [first for first, (last, _) in self._folds.items() if first < line <= last]
        for first in over:
            del self._folds[first]
        return bool(over)

    def shown(self, line: int) -> int:
        """Return the line that stands for a line: itself, or the fold it is in."""
        return min((first for first, (last, _) in self._folds.items() if first < line <= last), default=line)

    def words(self, line: int) -> str:
        """Return what follows the bracket of a folded line."""
        return self._folds[line][1]
