"""The decorators, and their requirements for every rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from mcpspy.analysis.lint import RULES, EventKind, Severity
from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.rule import LintRule, Report, RuleGroup
from mcpspy.analysis.lint.rules import FAMILIES

GOOD: dict[str, Any] = {
    "page": "2025-11-25/basic",
    "on": EventKind.REQUEST,
    "valid": ("a",),
    "invalid": ("b",),
}


def check(event: LintEvent) -> Iterator[Report]:
    """Because."""
    yield from ()


def test_a_rule_keeps_its_options() -> None:
    rules: list[LintRule] = []
    RuleGroup(rules).info("ENV101", "wrong", **GOOD, about="ping", since="2025-06-18")(check)
    (rule,) = rules

    assert (rule.family, rule.explanation, rule.about) == ("ENV", "Because.", frozenset({"ping"}))
    assert rule.url == "https://modelcontextprotocol.io/specification/2025-11-25/basic"
    assert [rule.holds_in(revision) for revision in ("2025-03-26", "2025-06-18", "2026-07-28", None)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_rule_has_the_options_of_its_group_unless_it_gives_its_own() -> None:
    rules: list[LintRule] = []
    shared = RuleGroup(rules, **GOOD)
    requests = shared.group(about="ping", since="2025-06-18", valid=("c", "d"))
    requests.error("ENV101", "wrong")(check)
    requests.warning("ENV102", "wrong", about=None, invalid="e")(check)
    shared.info("ENV103", "wrong")(check)

    assert [
        (rule.code, rule.severity, rule.about, rule.since, rule.valid, rule.invalid) for rule in rules
    ] == [
        ("ENV101", Severity.ERROR, frozenset({"ping"}), "2025-06-18", ("c", "d"), ("b",)),
        ("ENV102", Severity.WARNING, None, "2025-06-18", ("c", "d"), ("e",)),
        ("ENV103", Severity.INFO, None, "2024-11-05", ("a",), ("b",)),
    ]


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("ENV101", {}),
        ("ENV1", {}),
        ("ENV102", {"valid": ()}),
        ("ENV102", {"invalid": ()}),
        ("ENV102", {"page": "basic"}),
    ],
    ids=["taken", "no code", "no valid", "no invalid", "no page"],
)
def test_an_incomplete_rule_is_refused(code: str, more: dict[str, Any]) -> None:
    rules: list[LintRule] = []
    RuleGroup(rules).info("ENV101", "wrong", **GOOD)(check)

    with pytest.raises(ValueError, match=code):
        RuleGroup(rules).info(code, "wrong", **(GOOD | more))(check)


def test_a_rule_needs_an_explanation() -> None:
    def silent(_: LintEvent) -> Iterator[Report]:
        yield from ()

    with pytest.raises(ValueError, match="docstring is missing"):
        RuleGroup([]).info("ENV101", "wrong", **GOOD)(silent)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({}, "all"),
        ({"since": "2025-06-18"}, "2025-06-18 and later"),
        ({"until": "2025-11-25"}, "2025-11-25 and earlier"),
        ({"since": "2025-06-18", "until": "2025-11-25"}, "2025-06-18 to 2025-11-25"),
        ({"since": "2025-06-18", "until": "2025-06-18"}, "2025-06-18"),
    ],
    ids=["all", "since", "until", "both", "one"],
)
def test_revisions_are_described_as_text(bounds: dict[str, str], words: str) -> None:
    rules: list[LintRule] = []
    RuleGroup(rules).info(
        "ENV101",
        "wrong",
        **GOOD,
        since=bounds.get("since", "2024-11-05"),
        until=bounds.get("until"),
    )(check)

    assert rules[0].revisions == words


def test_every_rule_can_be_read() -> None:
    assert not [
        rule.code
        for rule in RULES
        if rule.family not in FAMILIES
        or len(rule.summary) > 80
        or len(rule.explanation) <= 30
        or not re.fullmatch(r"https://\S+", rule.url)
    ]


def test_no_code_is_given_twice() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
