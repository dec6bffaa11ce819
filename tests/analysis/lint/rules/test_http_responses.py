"""The rules of `rules/responses.py`, held against their own examples."""

from __future__ import annotations

from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import http_responses
from tests.analysis.lint.proving import each, prove


@each(http_responses.RULES)
def test_a_rule_fires_on_what_is_wrong_and_only_there(rule: LintRule) -> None:
    prove(rule)
