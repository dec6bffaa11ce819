"""The rules of `rules/tools.py`, held against their own examples."""

from __future__ import annotations

from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import tools
from tests.analysis.lint.proving import each, prove


@each(tools.RULES)
def test_a_rule_fires_on_what_is_wrong_and_only_there(rule: LintRule) -> None:
    prove(rule)
