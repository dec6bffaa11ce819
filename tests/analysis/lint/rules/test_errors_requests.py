"""The rules of `rules/requests.py`, held against their own examples."""

from __future__ import annotations

from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import errors
from tests.analysis.lint.proving import each, findings, prove


@each(errors.RULES)
def test_a_rule_fires_on_what_is_wrong_and_only_there(rule: LintRule) -> None:
    prove(rule)


def test_a_question_whose_method_is_no_name_is_none_that_will_be_taken_out() -> None:
    example = next(rule for rule in errors.RULES if rule.code == "LIFE112").invalid[0]

    assert "LIFE112" not in {
        found.code for found in findings(example.replace('"roots/list"', '["roots/list"]'))
    }
