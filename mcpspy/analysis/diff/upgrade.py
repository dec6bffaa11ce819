"""The meaning of changes for the clients of the old server, and changes that are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import UNSET

from mcpspy.analysis.diff.json_diff import fingerprint
from mcpspy.analysis.diff.model import ChangeKind, ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.core.jsontools import pointer

INTERFACE = (ChangeKind.INTERFACE, ChangeKind.HANDSHAKE)
"""Kinds of changes of what a server offers."""

NAMED = 3
"""Length of a pointer to a tool, resource or prompt: `/result/tools/echo`."""

SEVERAL = 3
"""Minimum tools, resources or prompts whose equal changes are one."""


class Upgrade(NamedTuple):
    severity: ChangeSeverity
    """The severity of the gravest change."""
    changes: list[tuple[ComparedCase, DiffChange]]
    """The changes with this severity."""


def upgrade_of(difference: SessionDiff) -> Upgrade | None:
    """Return what an upgrade of the server means; None if it offers the same.

    A call that fails now counts, too: a server may break its clients without a change of what it lists.
    """
    if not any(_is_offer(change) for _, change in difference.changes):
        return None
    gravest = min((change.severity for _, change in difference.changes), key=lambda severity: severity.rank)
    return Upgrade(gravest, [each for each in difference.changes if each[1].severity is gravest])


def _is_offer(change: DiffChange) -> bool:
    """Return whether a change is one of what the server offers, and not of what the client states about itself."""
    return change.kind in INTERFACE and not change.pointer.startswith("/params")


def grouped(changes: Sequence[DiffChange]) -> Iterator[list[DiffChange]]:
    """Yield changes; those of an interface that are equal in several tools, resources or prompts together."""
    groups: dict[object, list[DiffChange]] = {}
    for number, change in enumerate(changes):
        tokens = pointer(change.pointer) if change.pointer else ()
        key: object = number
        if change.kind is ChangeKind.INTERFACE and len(tokens) > NAMED:
            values = [fingerprint([] if each is UNSET else [each]) for each in (change.old, change.new)]
            key = (change.severity, tokens[NAMED], tokens[-1], *values)
        groups.setdefault(key, []).append(change)
    for group in groups.values():
        if len({listed_name(change) for change in group}) >= SEVERAL:
            yield group
        else:
            yield from ([change] for change in group)


def listed_name(change: DiffChange) -> str:
    """Return the name of the tool, resource or prompt that an interface change is about; empty for others."""
    tokens = pointer(change.pointer) if change.kind is ChangeKind.INTERFACE and change.pointer else ()
    return tokens[NAMED - 1] if len(tokens) >= NAMED else ""
