"""Checks of every rule by its examples."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from mcpspy.analysis.lint import RULES, LintRule, rules
from mcpspy.analysis.lint.rule import RULES as DECLARED
from tests.analysis.lint.proving import findings, prove


def invalid(code: str) -> tuple[str, ...]:
    (rule,) = (rule for rule in RULES if rule.code == code)
    return rule.invalid


def test_the_rules_of_every_module_are_among_all_rules() -> None:
    modules = [module.name for module in pkgutil.iter_modules(rules.__path__)]
    for module in modules:
        importlib.import_module(f"{rules.__name__}.{module}")

    assert modules
    # A module that is not in the list of `rules` declares its rules only now.
    assert sorted(rule.code for rule in DECLARED) == sorted(rule.code for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_fires_on_its_invalid_examples_and_only_there(rule: LintRule) -> None:
    prove(rule)


def test_a_question_whose_method_is_not_a_string_is_not_deprecated() -> None:
    example = invalid("LIFE112")[0].replace('"roots/list"', '["roots/list"]')

    assert "LIFE112" not in {found.code for found in findings(example)}


def test_a_call_of_a_tool_that_clients_drop_requires_no_header_but_is_reported() -> None:
    example = invalid("HTTP106")[-1]
    dropped = example.replace('"type":"integer"', '"type":"number"')

    assert [finding.code for finding in findings(example)] == ["HTTP106"]
    assert [finding.message for finding in findings(dropped)] == [
        "x-mcp-header of a: N has type number (use string, integer or boolean)",
        "call of a, which clients must drop for its invalid x-mcp-header",
    ]


@pytest.mark.parametrize(
    ("example", "absent", "present"),
    [
        (
            (
                '@ 2024-11-05 server={"tools":{}}\n> {"id":2,"method":"completion/complete","params":{"ref":{"type":'
                '"ref/prompt","name":"a"},"argument":{"name":"b","value":""}}}\n'
                '< {"id":2,"result":{"completion":{"values":[]}}}'
            ),
            "LIFE106",
            None,
        ),
        (
            (
                '@ 2026-07-28 client={"extensions":{"io.modelcontextprotocol/tasks":{}}}\n> {"id":1,"method":"server/discover"}\n'
                '< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}\n'
                '> {"id":2,"method":"tasks/get","params":{"taskId":"t"}}\n'
                '< {"id":2,"error":{"code":-32602,"message":"unknown task"}}'
            ),
            "LIFE106",
            None,
        ),
        ('* eof {"from":"client"}\n< {"id":9,"method":"ping"}\n* exit {"code":0}', "LIFE201", "LIFE405"),
        (
            '@ http\n> {"id":2,"method":"tools/list"}\n* oversized {"http":3,"from":"server","size":9}\n* exit {"code":0}',
            "LIFE201",
            "REC101",
        ),
        (
            '@ http\n> {"id":2,"method":"tools/list"}\n= 200 {"origin":"http://[x"}\n< {"id":2,"result":{"tools":[]}}',
            "HTTP502",
            "HTTP501",
        ),
        (
            (
                '@ 2026-07-28 http\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n'
                '= 200 {"mcp-name":"=?base64?a?="}\n< {"id":2,"result":{"content":[]}}'
            ),
            "HTTP501",
            "HTTP104",
        ),
        ('* oauth {"step":"token","status":200}', "AUTH101", None),
    ],
    ids=[
        "completion before its capability",
        "tasks of an extension",
        "a late request",
        "a missing response",
        "an origin that is not a URL",
        "a header that is not base64",
        "a step of no flow",
    ],
)
def test_a_case_beside_the_examples_is_judged(example: str, absent: str, present: str | None) -> None:
    """`present` is the only finding."""
    assert absent not in {finding.code for finding in findings(example)}
    assert {finding.code for finding in findings(example)} == ({present} if present else set())
