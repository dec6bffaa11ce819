"""What is wrong with the rows of a log, looked for while nobody waits.

Owns the linter's pass over what was read, in slices as short as the caller
says. What is kept of its findings is `log`'s. Reads the file again; keeps no
message. Several recordings merged are linted each by itself.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcpspy.core.recording.decode import Header, read_entry
from mcpspy.ui.session_model import SessionModel

if TYPE_CHECKING:
    from mcpspy.analysis.lint import Finding, Linter, StreamingSession

LARGE = 1 << 17
"""Bytes of a line that takes longer than a slice."""


def prepare() -> None:
    """Import what the pass needs, for a thread: it takes longer than a slice."""
    import jsonschema_rs  # noqa: F401 - Imported by `analysis.lint.schemas` with the first schema.

    from mcpspy.analysis.lint import Linter

    Linter()


class _Source:
    """One recording on its way through the rules."""

    def __init__(self, header: Header) -> None:
        from mcpspy.analysis.lint import Linter, StreamingSession

        self.session: StreamingSession = StreamingSession(header)
        self.linter: Linter = Linter(header)
        self.rows = array("I")
        """Of each change, its row."""


class LintPass:
    """The pass over a log."""

    def __init__(self, log: SessionModel, origin: Callable[[int], tuple[int, Header]]) -> None:
        """`origin`: the number of a file → which recording that belongs to, and its header."""
        self._log = log
        self._origin = origin
        self._news: list[int] = []
        self._is_over = False
        self._begin()

    @property
    def is_behind(self) -> bool:
        log = self._log
        is_new = self._generation != log.generation
        return is_new or self.done < len(log) or (log.is_over and not self._is_over)

    @property
    def is_large(self) -> bool:
        """Whether the next line takes longer than a slice: it is best looked at in a thread."""
        return self.done < len(self._log) and self._log.index.where(self.done).length > LARGE

    def advance(self, seconds: float) -> list[int]:
        """Look at lines for so long, at one at least and at no large one more; return the rows with something new."""
        end = time.perf_counter() + seconds
        if self._generation != self._log.generation:
            self._begin()
        while self.done < len(self._log):
            self._look()
            if self.is_large or time.perf_counter() >= end:
                break
        if self._log.is_over and not self._is_over and self.done == len(self._log):
            self._is_over = True
            for source in self._sources.values():
                source.session.end()
                self._keep(source, source.linter.end())
        news = self._news.copy()
        self._news.clear()
        return news

    def _begin(self) -> None:
        self._generation = self._log.generation
        self.done = 0
        """Rows that were looked at."""
        self._is_over = False
        self._sources: dict[int, _Source] = {}
        self._news.clear()

    def _look(self) -> None:
        """Take the line of the next row; a batch has several rows."""
        row, log = self.done, self._log
        where = log.index.where(row)
        self.done = row + 1
        line = log.read(where.part, where.offset, where.length)
        if where.item or len(line) < where.length:  # It was seen with the first; it is not there any more.
            return
        number, header = self._origin(where.part)
        source = self._sources.get(number)
        if source is None:
            source = self._sources[number] = _Source(header)
        changes = source.session.add(read_entry(line))
        source.rows.extend(range(row, row + len(changes)))
        for change in changes:
            self._keep(source, source.linter.add(change))

    def _keep(self, source: _Source, findings: list[Finding]) -> None:
        for finding in findings:
            row = source.rows[finding.number]
            self._log.findings.add(row, finding)
            self._news.append(row)
