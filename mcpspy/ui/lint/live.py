"""Findings on a session that is being read, by the message each is about.

Owns what is known so far. Which of it is shown, and where, is the caller's.
"""

from __future__ import annotations

from mcpspy.analysis.lint import Finding, Linter
from mcpspy.core.recording.decode import Header
from mcpspy.core.session.session import Change


class Live:
    """A linter, and what it said."""

    def __init__(self, header: Header | None) -> None:
        self._linter = Linter(header)
        self._found: dict[int, list[Finding]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._found.values()))

    def add(self, change: Change) -> list[Finding]:
        """Take the next change; return what is wrong with earlier ones, as it shows only now."""
        return [found for found in self._kept(self._linter.add(change)) if found.number != change.number]

    def end(self) -> list[Finding]:
        """Nothing more will come: return what is wrong with that. After the session's own end."""
        return self._kept(self._linter.end())

    def of(self, number: int) -> list[Finding]:
        """Return what is wrong with a change."""
        return self._found.get(number, [])

    def words(self, number: int) -> list[str]:
        """Return the same as a filter asks for it."""
        return [f"{found.code} {found.severity}" for found in self.of(number)]

    def _kept(self, findings: list[Finding]) -> list[Finding]:
        for found in findings:
            self._found.setdefault(found.number, []).append(found)
        return findings
