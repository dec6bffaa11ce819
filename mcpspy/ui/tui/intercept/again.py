"""A request of the past as one to be sent, and its exchange once that is there.

Owns what is taken from the recording, method and parameters; ids, progress
tokens and what a client says of itself are the session's to give anew.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from mcpspy.core.protocol.message import Notification, Request, loads
from mcpspy.core.protocol.spec import other
from mcpspy.core.session.columns import RowKind
from mcpspy.ui.tui.intercept.checks import editable
from mcpspy.ui.tui.session.log import Log

LOOK = 0.05
"""Seconds between two looks whether the answer is in the recording."""


class Again(NamedTuple):
    """What is sent."""

    row: int
    """Of the original."""
    to: str
    method: str
    params: Any
    stream: str | None
    is_request: bool

    @property
    def text(self) -> str | None:
        """It as text to edit; None if that cannot be."""
        said = {"method": self.method} | ({} if self.params is None else {"params": self.params})
        return editable(json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass"))

    def edited(self, text: str) -> Again:
        """Return it with another text, which is JSON of the right shape."""
        said = loads(text.encode())
        return self._replace(method=said["method"], params=said.get("params"))


def again(log: Log, row: int | None) -> Again | str:
    """Return what to send for the request of a row, or for its notification; or the words for why there is none."""
    if row is None or row >= len(log):
        return "there is no row to send again"
    index = log.index
    place = row if index.kind(row) is RowKind.NOTIFICATION else index.request(row)
    what = None if place is None else log.message(place)
    if place is None or not isinstance(what, Request | Notification):
        return "this row is no request, and belongs to none: nothing to send again"
    params = loads(what.data).get("params") if isinstance(loads(what.data), dict) else None
    if not isinstance(params, dict | None):
        return "its params are no object: mcpspy cannot send such a request"
    return Again(place, other(what.side), what.method, params, what.frame.stream, isinstance(what, Request))


async def answered(log: Log, id_text: str, begin: int, failed: Callable[[], str | None]) -> int | str:
    """Return the row of our request once its answer is in the log; or the words for why none will be.

    `begin` is how many rows there were when it was sent; `failed` says whether
    the session has given up on it.
    """
    generation, row = log.generation, None
    while log.generation == generation:
        index = log.index
        if row is None:
            for place in range(begin, len(index)):
                if index.kind(place) is RowKind.REQUEST and index.id(place) == id_text:
                    row = place
                    break
            begin = len(index) if row is None else begin
        if row is not None and index.pair(row) is not None:
            return row
        if (why := failed()) is not None:
            return why
        if log.is_over:
            break
        await asyncio.sleep(LOOK)
    return "the session has ended"
