"""Public bug reports, rebuilt small and recorded: the first cause is the right one, and healthy sessions have none.

`reports/reports.tsv` names each report, and the round in which it was scored before any change for it (docs/explain.md).
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import pytest

from mcpspy.analysis.explain import CAUSES
from mcpspy.ui.report.explanation import explain

HERE = Path(__file__).parent / "reports"


class RebuiltReport(NamedTuple):
    case: str
    report: str
    round: str
    transport: str
    cause: str
    """Empty if nothing is wrong in the session."""
    side: str


with (HERE / "reports.tsv").open(encoding="utf-8") as table:
    REPORTS = [RebuiltReport(**row) for row in csv.DictReader(table, delimiter="\t")]


@pytest.mark.parametrize("rebuilt", REPORTS, ids=lambda rebuilt: rebuilt.case)
def test_the_first_cause_of_a_rebuilt_report_is_the_right_one(rebuilt: RebuiltReport) -> None:
    causes = explain(HERE / f"{rebuilt.case}.jsonl").causes
    first = (causes[0].code, causes[0].side) if causes else ("", "")
    assert first == (rebuilt.cause, rebuilt.side), [cause.title for cause in causes]


def test_every_report_is_named_with_its_repository_and_number() -> None:
    assert len(REPORTS) >= 120
    assert {rebuilt.cause for rebuilt in REPORTS} <= {"", *(kind.code for kind in CAUSES)}
    assert all("#" in rebuilt.report and "/" in rebuilt.report for rebuilt in REPORTS)
    assert {path.stem for path in HERE.glob("*.jsonl")} == {rebuilt.case for rebuilt in REPORTS}
