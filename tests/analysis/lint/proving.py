"""Checks of rules by examples: their own, and those of all other rules."""

from __future__ import annotations

from functools import cache

from mcpspy.analysis.lint import EntryPosition, Finding, Linter
from mcpspy.analysis.lint.examples import entries_of, header_of
from mcpspy.analysis.lint.rule import LintRule
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.streaming import StreamingSession

BESIDE = {
    "AGENT106": {"LIFE202"},  # The late response is one.
    "ENV118": {"ENV101"},  # None of its lines is JSON.
    "ENV208": {"ENV101"},  # It responds to a line that could not be read.
}
"""Rule → other rules that its invalid examples cannot avoid to break."""


@cache
def findings(example: str) -> tuple[Finding, ...]:
    """Return the findings of all rules in an example; the number of the entry is used as its line."""
    header = header_of(example)
    session, linter = StreamingSession(header), Linter(header)
    found = []
    for number, entry in enumerate(entries_of(example), 2):
        for change in session.add(entry):
            found += linter.add(change, EntryPosition(number))
        if isinstance(entry, Note) and entry.kind == "exit":
            found += linter.end()
    return tuple(found)


def prove(rule: LintRule) -> None:
    """Check a rule: it fires alone on each invalid example, and no rule fires on a valid one."""
    for example in rule.invalid:
        codes = {finding.code for finding in findings(example)}
        assert rule.code in codes, example
        assert codes <= {rule.code} | BESIDE.get(rule.code, set()), example
    for example in rule.valid:
        assert not findings(example), example
