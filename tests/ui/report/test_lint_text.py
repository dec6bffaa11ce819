"""Findings for a terminal."""

from __future__ import annotations

from collections import Counter

import pytest

from mcpspy.analysis import rows
from mcpspy.analysis.lint import RULES, Severity
from mcpspy.ui.report.lint import explanation, finding_lines, more_lines, verdict
from tests.ui.report.linting import HOSTILE, finding


def test_a_finding_is_a_line_and_its_excerpt() -> None:
    assert list(finding_lines(finding(), "a:7")) == [
        ("a:7 ENV101 error: not JSON", rows.BAD),
        ("    | DEBUG", rows.QUIET),
    ]
    assert len(list(finding_lines(finding(excerpt=""), "a.jsonl"))) == 1


def test_on_a_terminal_a_long_message_is_wrapped() -> None:
    lines = [
        line for line, _ in finding_lines(finding(message="many words " * 20, excerpt=""), "a.jsonl", 60)
    ]

    assert len(lines) > 3
    assert all(len(line) <= 60 for line in lines)
    assert all(line.startswith("      ") for line in lines[1:])


def test_nothing_of_a_peer_is_interpreted() -> None:
    for line, _ in finding_lines(HOSTILE.findings[0], "a\x1b.jsonl"):
        assert line.isprintable()
        line.encode()


def test_omitted_findings_are_counted() -> None:
    assert list(more_lines(Counter(ENV101=15), "a.jsonl")) == [
        ("a.jsonl ENV101 … and 15 more; --all shows them", rows.QUIET)
    ]


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ({}, "no findings in 2 recordings"),
        ({Severity.ERROR: 1, Severity.INFO: 3}, "1 error, 3 info in 2 recordings"),
        ({Severity.WARNING: 2}, "2 warnings in 2 recordings"),
    ],
    ids=["none", "error", "warnings"],
)
def test_the_last_line_counts(counts: dict[Severity, int], line: str) -> None:
    text, tone = verdict(Counter(counts), 2)

    assert text == line
    assert tone == (rows.BAD if Severity.ERROR in counts else rows.OPEN if counts else rows.OK)


def test_every_rule_can_be_explained() -> None:
    explanations = {rule: [line for line, _ in explanation(rule, 80)] for rule in RULES}

    assert not [
        rule.code
        for rule, lines in explanations.items()
        if not lines[0].startswith(f"{rule.code} ({rule.severity}): ")
        or rule.url not in "\n".join(lines)
        or not all(line.isprintable() for line in lines)
    ]
