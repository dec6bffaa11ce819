"""Protocol violations: rules with examples, and the linter that dispatches to them."""

from mcpspy.analysis.lint.dispatch import selected
from mcpspy.analysis.lint.finding import EntryPosition, EventKind, Finding, Severity
from mcpspy.analysis.lint.linter import Linter
from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import RULES
from mcpspy.analysis.lint.streaming import StreamingSession

__all__ = [
    "RULES",
    "EntryPosition",
    "EventKind",
    "Finding",
    "LintRule",
    "Linter",
    "Severity",
    "StreamingSession",
    "selected",
]
