"""A diff as JSON."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest

from mcpspy.analysis.diff import (
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    SessionDiff,
)
from mcpspy.analysis.diff.model import IgnoreSuggestion
from mcpspy.ui.report.diff import document


def read(difference: SessionDiff, **options: Any) -> dict[str, Any]:
    def refuse(name: str) -> None:
        pytest.fail(f"{name} is not JSON")

    found: dict[str, Any] = json.loads(document(difference, ("a", "b"), **options), parse_constant=refuse)
    return found


def test_a_document_has_every_change_whole(difference: SessionDiff, hostile: str) -> None:
    report = read(difference)

    assert (report["same"], report["old"], report["new"], report["compared"]) == (False, "a", "b", 7)
    assert report["counts"] == {"breaking": 1, "different": 4, "note": 2}
    assert len(report["changes"]) == 7
    assert report["changes"][2] == {
        "kind": "error",
        "severity": "breaking",
        "method": "tools/call",
        "about": hostile,
        "pointer": "/error",
        "why": f"ok → {hostile}",
        "old": {"line": 5, "exchange": 2},
        "new": {"line": 6, "exchange": 3, "value": {"message": hostile}},
    }
    assert report["changes"][4]["new"] is None


def test_a_document_has_the_options_that_would_ignore_its_changes(difference: SessionDiff) -> None:
    ways = IgnoreSuggestion([f"ping /result/{number}" for number in range(30)], 2, 7)

    assert read(difference, ways=ways)["to_ignore"] == {"volatile": 2, "ignore_path": ways.patterns}
    assert read(difference)["to_ignore"] == {"volatile": 0, "ignore_path": []}


def test_fail_on_decides_which_cases_fail(difference: SessionDiff) -> None:
    noted = SessionDiff(difference.cases[:2])

    assert read(noted)["same"] is True
    assert read(noted, fail_on=ChangeSeverity.NOTE)["same"] is False


def test_any_value_can_be_reported() -> None:
    odd = [2**80, float("nan"), float("inf"), "\ud800", None]
    change = DiffChange(kind=ChangeKind.RESULT, severity=ChangeSeverity.NOTE, old=odd, new={"x": odd})

    (report,) = read(SessionDiff((ComparedCase(method="a", changes=(change,)),)))["changes"]

    assert report["old"]["value"] == [2**80, None, None, "\ud800", None]


def test_a_value_that_cannot_be_serialised_is_replaced() -> None:
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    changes = (
        DiffChange(kind=ChangeKind.RESULT, severity=ChangeSeverity.NOTE, old=deep),
        DiffChange(kind=ChangeKind.RESULT, severity=ChangeSeverity.NOTE, old=2**80),
    )

    gc.collect()
    gc.disable()  # A finalizer that runs where no call is possible raises another error.
    try:
        report = read(SessionDiff((ComparedCase(method="a", old=ChangePosition(2), changes=changes),)))[
            "changes"
        ]
    finally:
        gc.enable()

    assert [(change["old"]["value"], change["new"]) for change in report] == [
        ("(nested too deep)", None),
        (2**80, None),
    ]
