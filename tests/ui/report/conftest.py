"""A difference with every kind of change, and with hostile texts."""

from __future__ import annotations

import pytest

from mcpspy.analysis.diff import (
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    SessionDiff,
)

HOSTILE = "\x1b[2J\x1b]0;title\x07\u202e```\n| a | <b>&amp; @everyone [x](y) \\| ]]> \ud800\x00\ufffe"

BREAKING, DIFFERENT, NOTE = ChangeSeverity


def change(severity: ChangeSeverity = DIFFERENT, **fields: object) -> DiffChange:
    return DiffChange(**{"kind": ChangeKind.RESULT, "severity": severity, **fields})  # type: ignore[arg-type]


@pytest.fixture
def hostile() -> str:
    """Return a text that tries to be interpreted as anything but text."""
    return HOSTILE


@pytest.fixture
def difference() -> SessionDiff:
    """Return a difference of seven cases; four of them changed, two of these only with notes."""
    return SessionDiff(
        (
            ComparedCase(method="handshake", changes=(change(NOTE, kind=ChangeKind.HANDSHAKE, pointer="/v", old="1", new="2"),)),
            ComparedCase(method="ping", old=ChangePosition(2, 0), new=ChangePosition(2, 0), latency=0.5),
            ComparedCase(method="ping", old=ChangePosition(3, 1), new=ChangePosition(4, 1), latency=0.25),
            ComparedCase(
                method="tools/call",
                subject=HOSTILE,
                old=ChangePosition(5, 2),
                new=ChangePosition(6, 3),
                latency=1.0,
                changes=(
                    change(NOTE, pointer="/result/_meta/x", new=1),
                    change(BREAKING, kind=ChangeKind.ERROR, why=f"ok → {HOSTILE}", pointer="/error", new={"message": HOSTILE}),
                    change(pointer=f"/result/{HOSTILE}", old=HOSTILE, new="short"),
                ),
            ),
            ComparedCase(method="roots/list", old=ChangePosition(9, 4), changes=(change(kind=ChangeKind.REMOVED),)),
            ComparedCase(
                method="tools/call",
                subject="slow",
                old=ChangePosition(10, 5),
                new=ChangePosition(10, 5),
                changes=(
                    change(kind=ChangeKind.LATENCY, old=0.001, new=2.0),
                    change(pointer="/result/content/0/text", old="a\nb\nc", new="a\nB\nc\n"),
                ),
            ),
            ComparedCase(method="exit"),
        )
    )  # fmt: skip
