"""The rules of `rules/mirrors.py`, held against their own examples."""

from __future__ import annotations

from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import http_requests
from tests.analysis.lint.proving import each, findings, prove


@each(http_requests.RULES)
def test_a_rule_fires_on_what_is_wrong_and_only_there(rule: LintRule) -> None:
    prove(rule)


def test_a_tool_that_clients_drop_asks_for_no_header() -> None:
    (parameter,) = (rule for rule in http_requests.RULES if rule.code == "HTTP106")
    example = parameter.invalid[-1]
    dropped = example.replace('"type":"integer"', '"type":"number"')

    assert [finding.code for finding in findings(example)] == ["HTTP106"]
    assert [finding.code for finding in findings(dropped)] == ["HTTP105"]
