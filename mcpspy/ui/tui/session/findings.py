"""What is wrong with the rows of a log, looked for while nobody waits.

Owns the linter's pass over what was read, in slices as short as the caller
says, and what is kept of its findings: a line each, and of a rule that
finds without end only where. Reads the file again; keeps no message. Several
recordings merged are linted each by itself.
"""

from __future__ import annotations

import time
from array import array
from bisect import insort
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mcpspy.core.columns import Columns, Kind
from mcpspy.core.record import Header, read_entry

if TYPE_CHECKING:
    from mcpspy.analysis.lint import Finding, Linter, PassingSession
    from mcpspy.ui.tui.session.log import Log

LARGE = 1 << 17
"""Bytes of a line that takes longer than a slice."""

MOST = 1000
"""Findings of one rule of which the words are kept; of the rest there is the rule's summary."""

LONGEST = 300
"""Characters of what is wrong."""


class Found(NamedTuple):
    """One finding, without its place."""

    code: str
    severity: str
    message: str


class Findings:
    """Findings by row."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        """Those that have any, in order."""
        self.count = 0
        self._found: dict[int, tuple[Found, ...]] = {}
        self._of_rule: Counter[str] = Counter()
        self._alike: dict[str, tuple[Found, ...]] = {}

    def of(self, row: int | None) -> tuple[Found, ...]:
        """Return what is wrong with a row."""
        return self._found.get(row, ()) if row is not None else ()

    def of_both(self, index: Columns, row: int, *, exchanges: bool) -> tuple[Found, ...]:
        """Return what is wrong with a row, and with its answer where that has no row of its own."""
        answer = index.pair(row) if exchanges and index.kind(row) is Kind.REQUEST else None
        return self.of(row) + self.of(answer)

    def add(self, row: int, finding: Finding) -> None:
        """Keep a finding."""
        self.count += 1
        self._of_rule[finding.code] += 1
        if self._of_rule[finding.code] > MOST:
            found = self._alike.get(finding.code) or self._summary(finding)
        else:
            found = (Found(finding.code, str(finding.severity), finding.message[:LONGEST]),)
        before = self._found.get(row)
        if before is None:
            insort(self.rows, row)
        elif found[0] in before:
            return
        self._found[row] = found if before is None else before + found

    def _summary(self, finding: Finding) -> tuple[Found, ...]:
        from mcpspy.ui.lint.linted import RULES_BY_CODE

        summary = RULES_BY_CODE[finding.code].summary
        found = self._alike[finding.code] = (Found(finding.code, str(finding.severity), summary),)
        return found


def prepare() -> None:
    """Import what the pass needs, for a thread: it takes longer than a slice."""
    import jsonschema_rs  # noqa: F401 - Imported by `analysis.lint.schemas` with the first schema.

    from mcpspy.analysis.lint import Linter

    Linter()


class _Source:
    """One recording on its way through the rules."""

    def __init__(self, header: Header) -> None:
        from mcpspy.analysis.lint import Linter, PassingSession

        self.session: PassingSession = PassingSession(header)
        self.linter: Linter = Linter(header)
        self.rows = array("I")
        """Of each change, its row."""


class Linting:
    """The pass over a log."""

    def __init__(self, log: Log, origin: Callable[[int], tuple[int, Header]]) -> None:
        """`origin`: the number of a file → which recording that belongs to, and its header."""
        self._log = log
        self._origin = origin
        self._news: list[int] = []
        self._is_over = False
        self._begin()

    @property
    def is_behind(self) -> bool:
        """Whether there is something to look at."""
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
