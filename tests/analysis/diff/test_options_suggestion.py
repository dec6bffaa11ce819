"""Patterns that ignore all changes of a report."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from msgspec import structs

from mcpspy.analysis.diff.compare import compare
from mcpspy.analysis.diff.model import (
    ChangeKind,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    DiffOptions,
    Ignored,
    SessionDiff,
    ignore_suggestion,
    ignored,
    is_volatile,
)
from mcpspy.core.session.session import Session

from .conftest import Make

DIFFERENT, NOTE = ChangeSeverity.DIFFERENT, ChangeSeverity.NOTE

SESSIONS = [
    "everything-sdk-auto",
    "everything-sdk-legacy",
    "peer-sdk-auto",
    "peer-ts-auto",
    "memory-sdk-auto",
]


def unignored(old: Session, new: Session, options: DiffOptions | None = None) -> SessionDiff:
    """Return what the printed patterns leave."""
    options = options or DiffOptions()

    def again(more: tuple[Ignored, ...]) -> SessionDiff:
        return compare(old, new, structs.replace(options, ignored=(*options.ignored, *more)))

    return again(
        tuple(map(ignored, ignore_suggestion(compare(old, new, options), DIFFERENT, again).patterns))
    )


@pytest.mark.parametrize("names", [*permutations(SESSIONS, 2)], ids=" ".join)
def test_the_patterns_of_any_two_real_sessions_leave_only_order(
    names: tuple[str, str], recorded: Callable[[str], Session]
) -> None:
    left = unignored(recorded(names[0]), recorded(names[1]))

    kinds = {change.kind for _, change in left.changes if change.severity.rank <= DIFFERENT.rank}
    assert kinds <= {ChangeKind.ORDER}


def test_the_results_of_calls_that_match_only_then_are_ignored_as_well(record: Make) -> None:
    def session(argument: int, text: str) -> Session:
        call = {"name": "clock", "arguments": {"now": argument}}
        result = {"content": [{"type": "text", "text": text}, {"type": "text", "text": text}]}
        return record(
            [
                ("client", {"id": 1, "method": "tools/call", "params": call}),
                ("server", {"id": 1, "result": result}),
            ]
        )

    old, new = session(1, "one"), session(2, "two")
    difference = compare(old, new)

    def again(more: tuple[Ignored, ...]) -> SessionDiff:
        return compare(old, new, DiffOptions(ignored=more))

    assert ignore_suggestion(difference, DIFFERENT).patterns == ["tools/call clock /params/arguments/now"]
    assert ignore_suggestion(difference, DIFFERENT, again).patterns == [
        "tools/call clock /params/arguments/now",
        "tools/call clock /result/content/*/text",
    ]
    assert unignored(old, new).is_same()


@pytest.mark.parametrize(
    ("method", "subject", "pointer", "pattern"),
    [
        ("tools/call", "clock", "/result/a~1b", "tools/call clock /result/a~1b"),
        ("tools/call", "two words", "/result/a", "tools/call two words /result/a"),
        ("tools/call", "a\n\u202eb  c ", "/result/x y", "tools/call a*b*c* /result/x*y"),
        ("resources/read", "/etc/hosts", "", "resources/read ?etc/hosts"),
        ("tools/call", "x" * 1000, "/result/a", "tools/call /result/a"),
        ("(unsolicited response)", None, "/params", "(unsolicited*response) /params"),
        ("ping", None, "", "ping"),
    ],
)
def test_a_pattern_is_valid_and_matches_for_any_name(
    method: str, subject: str | None, pointer: str, pattern: str
) -> None:
    change = DiffChange(kind=ChangeKind.NOTIFICATION, severity=DIFFERENT, pointer=pointer, old=1, new=2)
    case = ComparedCase(method=method, subject=subject, changes=(change,))

    (found,) = ignore_suggestion(SessionDiff((case,)), DIFFERENT).patterns

    assert found == pattern
    assert ignored(found).is_about(case)


def test_lesser_changes_order_and_latency_have_no_pattern() -> None:
    changes = [
        DiffChange(kind=ChangeKind.RESULT, severity=NOTE, pointer="/result/a"),
        DiffChange(kind=ChangeKind.ORDER, severity=DIFFERENT),
        DiffChange(kind=ChangeKind.LATENCY, severity=DIFFERENT),
    ]
    case = ComparedCase(method="ping", changes=tuple(changes))

    assert ignore_suggestion(SessionDiff((case,)), DIFFERENT).patterns == []
    assert ignore_suggestion(SessionDiff((case,)), NOTE).patterns == ["ping /result/a"]


def test_a_volatile_change_is_recognised_by_its_values_and_its_name() -> None:
    def change(pointer: str, old: object, new: object) -> DiffChange:
        return DiffChange(kind=ChangeKind.RESULT, severity=DIFFERENT, pointer=pointer, old=old, new=new)

    assert is_volatile(change("/result/pid", 1, 2))
    assert is_volatile(change("/result/content/0/text", "at 08:28:02", "at 08:28:04"))
    assert not is_volatile(change("/result/n", 1, 2))
    assert not is_volatile(
        DiffChange(kind=ChangeKind.RESULT, severity=DIFFERENT, pointer="/result/pid", new=2)
    )
