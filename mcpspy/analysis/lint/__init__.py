"""What a session does that the protocol does not allow: rules, and what runs them."""

from mcpspy.analysis.lint.finding import Finding, Kind, Place, Severity
from mcpspy.analysis.lint.linter import Linter
from mcpspy.analysis.lint.passing import PassingSession
from mcpspy.analysis.lint.rule import Rule
from mcpspy.analysis.lint.rules import RULES
from mcpspy.analysis.lint.selection import selected

__all__ = ["RULES", "Finding", "Kind", "Linter", "PassingSession", "Place", "Rule", "Severity", "selected"]
