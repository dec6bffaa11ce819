"""The changes of the interface of a server that was restarted, as lines of its note."""

from __future__ import annotations

from mcpspy.analysis.diff import ChangeSeverity, DiffChange
from mcpspy.analysis.trust import Interface, compare
from mcpspy.core.counted import counted
from mcpspy.core.jsontools import pointer, pointer_text
from mcpspy.core.protocol.listing import LISTINGS
from mcpspy.core.restart.listings import ServerInterface
from mcpspy.core.trust.lock import TrustedItem, TrustedServer

MOST = 40
"""Changes that one note has."""


def changes(before: ServerInterface, after: ServerInterface) -> list[str]:
    """Return a line for each change, with the verdict of `mcpspy diff`: `tool echo: gained … (breaking)`.

    A list that was not read before, or not after, is not compared.
    """
    common = [method for method in after.items if method in before.items]
    old, new = before.handshake, after.handshake
    was = TrustedServer(
        listed=tuple(LISTINGS[method].member for method in common),
        items={
            LISTINGS[method].member: {
                name: TrustedItem(item) for name, item in before.items.get(method, {}).items()
            }
            for method in before.items
        },
        instructions=old.instructions,
        capabilities=dict(old.capabilities),
    )
    now = Interface(
        {LISTINGS[method].member: after.items[method] for method in common},
        new.instructions,
        dict(new.capabilities),
    )
    found = [_line(change) for case in compare(was, now).cases for change in case.changes]
    if old.revision != new.revision:
        found.insert(0, f"revision {old.revision} became {new.revision}, and the client keeps the former")
    if len(found) > MOST:
        found[MOST:] = [f"and {counted(len(found) - MOST, 'other change')}"]
    return found


def _line(change: DiffChange) -> str:
    _, member, *rest = pointer(change.pointer)
    noun = next((listing.noun for listing in LISTINGS.values() if listing.member == member), "")
    verdict = " (breaking)" if change.severity is ChangeSeverity.BREAKING else ""
    if not noun:
        return f"{change.why or f'{member} changed'}{verdict}"
    name, *inside = rest
    if not inside:
        return f"{change.why}{verdict}"
    where = pointer_text(tuple(inside)).removeprefix("/")
    return f"{noun} {name}: {where} {change.why or 'changed'}{verdict}"
