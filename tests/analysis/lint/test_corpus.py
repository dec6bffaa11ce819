"""The rules find the violations of the corpus, and the requirements name the rules that do."""

from __future__ import annotations

import pytest

from mcpspy.analysis.lint import RULES
from mcpspy.core.protocol.spec import REVISIONS
from tests.analysis.lint.corpus import TRANSPORTS, Violation, requirements, violations

CODES = {rule.code: rule for rule in RULES}

GROUPS = sorted({(case.revision, case.transport) for case in violations()})


def test_the_corpus_has_every_revision_transport_and_decidable_requirement() -> None:
    cases = violations()
    decidable = {name for name, requirement in requirements().items() if requirement.rules}

    assert len({case.example for case in cases}) == len(
        {(case.number, case.revision, case.transport) for case in cases}
    )
    assert len(cases) >= 300
    assert {case.revision for case in cases} == set(REVISIONS)
    assert {case.transport for case in cases} == set(TRANSPORTS)
    assert {case.requirement.id for case in cases} == decidable


@pytest.mark.parametrize(("revision", "transport"), GROUPS)
def test_a_rule_of_its_requirement_finds_each_violation(revision: str, transport: str) -> None:
    cases = [case for case in violations() if (case.revision, case.transport) == (revision, transport)]

    assert [case.name for case in cases if case.is_found is case.is_open] == []


def test_at_most_three_in_a_hundred_violations_of_rules_other_than_shapes_are_not_found() -> None:
    cases = [case for case in violations() if not case.requirement.id.startswith("shape-")]

    assert sum(case.is_open for case in cases) <= 0.03 * len(cases)


@pytest.mark.parametrize("name", requirements())
def test_the_rules_of_a_requirement_exist_and_apply_to_its_revisions(name: str) -> None:
    requirement = requirements()[name]

    assert bool(requirement.rules) is not bool(requirement.undecidable)
    assert requirement.revisions
    assert set(requirement.rules) <= CODES.keys()
    for revision in requirement.revisions if requirement.rules else ():
        assert any(CODES[code].holds_in(revision) for code in requirement.rules), revision


def test_a_violation_without_its_fault_is_not_found() -> None:
    case = next(case for case in violations() if case.requirement.id == "one-outcome")
    mended = case.example.replace(',"error":{"code":-32603,"message":"a"}', "")

    assert case.is_found
    assert not Violation(*case[:5], mended, case.is_open).is_found
