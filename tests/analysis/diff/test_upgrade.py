"""The meaning of changes for clients."""

from __future__ import annotations

import pytest

from mcpspy.analysis.diff.model import ChangeKind, ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.analysis.diff.upgrade import grouped, upgrade_of

BREAKING, DIFFERENT, NOTE = ChangeSeverity


def change(kind: ChangeKind, severity: ChangeSeverity, pointer: str = "", **values: object) -> DiffChange:
    return DiffChange(kind=kind, severity=severity, pointer=pointer, **values)  # type: ignore[arg-type]


GAINED = change(ChangeKind.INTERFACE, NOTE, "/result/tools/new")
RENAMED = change(ChangeKind.INTERFACE, DIFFERENT, "/result/tools/a/annotations/readOnlyHint")
LOST = change(ChangeKind.HANDSHAKE, BREAKING, "/result/capabilities/tools")
CLIENT = change(ChangeKind.HANDSHAKE, NOTE, "/params/clientInfo")
FAILS = change(ChangeKind.ERROR, BREAKING, "/error")
VALUE = change(ChangeKind.RESULT, DIFFERENT, "/result/content/0/text")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], None),
        ([FAILS, VALUE], None),
        ([CLIENT], None),
        ([GAINED], (NOTE, 1)),
        ([GAINED, RENAMED], (DIFFERENT, 1)),
        ([GAINED, VALUE], (DIFFERENT, 1)),
        ([GAINED, RENAMED, LOST], (BREAKING, 1)),
        ([GAINED, FAILS, FAILS], (BREAKING, 2)),
    ],
    ids=str,
)
def test_an_upgrade_is_as_grave_as_its_gravest_change_if_the_server_offers_something_else(
    changes: list[DiffChange], expected: tuple[ChangeSeverity, int] | None
) -> None:
    found = upgrade_of(SessionDiff((ComparedCase(method="a", changes=tuple(changes)),)))

    assert (found and (found.severity, len(found.changes))) == expected


def test_only_equal_changes_of_several_tools_are_together() -> None:
    def bound(tool: str, new: object) -> DiffChange:
        return change(
            ChangeKind.INTERFACE, BREAKING, f"/result/tools/{tool}/inputSchema/properties/x/minItems", new=new
        )

    groups = list(
        grouped([bound("a", 1), bound("b", 1), bound("c", 1.0), bound("d", 2), bound("e", 2), FAILS, FAILS])
    )

    assert [len(group) for group in groups] == [3, 1, 1, 1, 1]
