"""Which two exchanges of a session are compared.

Owns what marks mean to that, and the search for the exchange before that is
like this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.columns import REQUEST
from mcpspy.ui.tui.session.log import Log

PORTION = 20_000
"""Rows that are looked at before a key gets its turn."""


async def two_of(log: Log, row: int | None, marked: Collection[int]) -> tuple[int, int] | str:
    """Return the rows of two requests, the earlier first; or the words for why there are none.

    Two that are marked; the one that is marked and this one; this one and the
    one before of the same side, method and subject.
    """
    index = log.index
    here = None if row is None else index.request(row)
    rows = (one for one in marked if one < len(index))  # The file may have begun anew.
    others = {request for one in rows if (request := index.request(one)) is not None}
    if len(others) > 2:
        return f"{len(others)} exchanges are marked, and two are compared (m takes a mark away)"
    if len(others) < 2:
        others -= {here}
        if here is None:
            return "this row is no request, and belongs to none: nothing to compare"
        before = next(iter(others)) if others else await _before(log, here)
        if before is None:
            about = f"{index.texts[index.method[here]]} {index.texts[index.subject[here]]}".rstrip()
            return f"no {sanitize(about[:60])} before this one: mark another (m), then d"
        others = {before, here}
    old, new = sorted(others)
    return old, new


async def _before(log: Log, here: int) -> int | None:
    """Return the last request before this one that is like it."""
    index = log.index
    what, methods, subjects = index.what, index.method, index.subject
    side, method, subject = index.side(here), methods[here], subjects[here]
    for end in range(here, 0, -PORTION):
        for row in range(end - 1, max(end - PORTION, 0) - 1, -1):
            if (
                methods[row] == method
                and subjects[row] == subject
                and what[row] & 7 == REQUEST
                and index.side(row) == side
                and index.request(row) == row
            ):
                return row
        await asyncio.sleep(0)
        if log.index is not index:  # The file began anew.
            return None
    return None
