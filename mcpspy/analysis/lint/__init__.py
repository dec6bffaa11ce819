"""Protocol violations: rules with examples, and the linter that dispatches to them."""

from mcpspy.analysis.lint.dispatch import selected
from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EntryPosition, EventKind, Finding, Severity
from mcpspy.analysis.lint.linter import Linter
from mcpspy.analysis.lint.rule import LintRule, Report, RuleGroup
from mcpspy.analysis.lint.rules import RULES

__all__ = [
    "RULES",
    "EntryPosition",
    "EventKind",
    "Finding",
    "LintEvent",
    "LintRule",
    "Linter",
    "Report",
    "RuleGroup",
    "Severity",
    "selected",
]
