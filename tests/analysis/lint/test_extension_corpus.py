"""The rules find the violations of the extensions, and nothing in the same recordings without them."""

from __future__ import annotations

import pytest

from mcpspy.analysis.lint import RULES
from tests.analysis.lint.corpus import requirements as core_requirements
from tests.analysis.lint.extension_corpus import pairs, requirements
from tests.analysis.lint.proving import findings

CODES = {rule.code: rule for rule in RULES}
AREAS = sorted({pair.requirement.area for pair in pairs()})


def test_each_decidable_requirement_of_an_extension_has_a_violation() -> None:
    decidable = {name for name, requirement in requirements().items() if requirement.rules}

    assert {pair.requirement.id for pair in pairs()} == decidable
    assert all(pair.violation != pair.twin for pair in pairs())


@pytest.mark.parametrize("area", AREAS)
def test_a_rule_of_its_requirement_finds_each_violation_of_an_area(area: str) -> None:
    assert [pair.name for pair in pairs() if pair.requirement.area == area and not pair.is_found] == []


@pytest.mark.parametrize("area", AREAS)
def test_no_rule_finds_anything_in_the_twin_of_a_violation(area: str) -> None:
    of_area = [pair for pair in pairs() if pair.requirement.area == area]

    assert [(pair.name, findings(pair.twin)) for pair in of_area if findings(pair.twin)] == []


def test_each_rule_for_an_extension_or_for_dpop_is_that_of_a_requirement() -> None:
    covered = {
        code for each in (requirements(), core_requirements()) for row in each.values() for code in row.rules
    }

    assert {code for code in CODES if code.startswith(("EXT", "AUTH3"))} - covered == set()


@pytest.mark.parametrize("name", requirements())
def test_the_rules_of_a_requirement_of_an_extension_exist(name: str) -> None:
    requirement = requirements()[name]

    assert bool(requirement.rules) is not bool(requirement.undecidable)
    assert set(requirement.rules) <= CODES.keys()
