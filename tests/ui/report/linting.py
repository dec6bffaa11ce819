"""Findings for tests."""

from __future__ import annotations

from pathlib import Path

from mcpspy.analysis.lint import EntryPosition, Finding, Severity
from mcpspy.ui.report.lint_scan import LintedRecording

EVIL = "a\x1b[2J\u202e]]> <b> & %0A\n::error::, \ud800"


def finding(code: str = "ENV101", severity: Severity = Severity.ERROR, **more: object) -> Finding:
    fields = {
        "message": "not JSON",
        "excerpt": "DEBUG",
        "place": EntryPosition(7),
        "number": 5,
        "at": 1.5,
        "side": "server",
    }
    return Finding(code, severity, **{**fields, **more})  # type: ignore[arg-type]  # Made for the test.


def linted(
    *findings: Finding,
    title: str = "a b.jsonl",
    parts: tuple[str, ...] = ("a b.jsonl", "a b.part2.jsonl"),
    fail_on: Severity = Severity.ERROR,
) -> LintedRecording:
    return LintedRecording(title, [Path(part) for part in parts], list(findings), "a", fail_on)


HOSTILE = linted(
    finding(message=EVIL, excerpt=EVIL), finding("LIFE201", Severity.WARNING, place=EntryPosition(3, 2))
)
