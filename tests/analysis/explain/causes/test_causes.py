"""Every cause names its own examples first, and none names a session in which nothing failed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpspy.analysis.explain import CAUSES, causes
from mcpspy.analysis.explain.causes import AREAS, READ_RULES
from mcpspy.analysis.explain.causes.examples import HEALTHY
from mcpspy.analysis.explain.claims import CauseKind
from mcpspy.analysis.lint import RULES
from tests.analysis.explain.sessions import explained

WITHOUT_EXAMPLES = {"answer-not-matched", "stream-not-begun"}
"""Causes of messages on several streams, which the notation does not have: rebuilt reports show them (h23, l08)."""


def examples(kind: str) -> Iterator[object]:
    """Yield the examples of all causes, each with its cause."""
    for cause in CAUSES:
        for number, example in enumerate(getattr(cause, kind), 1):
            yield pytest.param(cause, example, id=f"{cause.code}-{number}")


@pytest.mark.parametrize(("cause", "example"), [*examples("positive")])
def test_a_positive_example_names_its_cause_first(cause: CauseKind, example: str) -> None:
    diagnosis = explained(example).diagnosis()
    named = diagnosis.causes or diagnosis.observations
    assert named, example
    assert named[0].code == cause.code, [each.title for each in named]
    assert named[0].next_step
    assert named[0].title in diagnosis.summary or not diagnosis.causes


@pytest.mark.parametrize(("cause", "example"), [*examples("negative")])
def test_a_negative_example_does_not_name_the_cause(cause: CauseKind, example: str) -> None:
    diagnosis = explained(example).diagnosis()
    assert cause.code not in {each.code for each in (*diagnosis.causes, *diagnosis.observations)}


@pytest.mark.parametrize("example", HEALTHY)
def test_no_cause_names_a_session_in_which_nothing_failed(example: str) -> None:
    diagnosis = explained(example).diagnosis()
    assert (diagnosis.causes, diagnosis.observations) == ((), ())


def test_every_cause_has_an_example() -> None:
    assert {cause.code for cause in CAUSES if not cause.positive} == WITHOUT_EXAMPLES


def test_every_cause_has_a_summary_and_the_reasons_for_it() -> None:
    for cause in CAUSES:
        assert cause.summary[0].islower()
        assert not cause.summary.endswith(".")
        assert cause.explanation.endswith(".")


def test_every_area_defines_causes() -> None:
    assert {cause.claims.__module__ for cause in CAUSES} == {area.__name__ for area in AREAS}


def rules_in(source: str) -> set[str]:
    return set(re.findall(r"\b(?:AGENT|AUTH|DATA|ENV|EXT|HOST|HTTP|LIFE|MOD|REC|SEC)\d{3}\b", source))


def test_a_cause_declares_the_rules_that_it_names() -> None:
    for cause in CAUSES:
        if cause.claims.__name__ != "claims":  # Made from a row.
            assert rules_in(inspect.getsource(cause.claims)) <= cause.rules, cause.code


def test_the_rules_that_are_checked_are_those_that_the_causes_name() -> None:
    modules = Path(str(causes.__file__)).parent.glob("*.py")
    assert rules_in("".join(path.read_text(encoding="utf-8") for path in modules)) == READ_RULES
    assert {rule.code for rule in RULES} >= READ_RULES
