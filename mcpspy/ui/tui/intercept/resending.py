"""Requests of the past that are sent again, and the way from one to its first.

Owns the two keys for that, and what is said until the answer is there. What is
sent is `again`'s.
"""

from __future__ import annotations

from typing import Any

from mcpspy.core.sanitize import sanitize
from mcpspy.ui.tui.intercept.again import Again, again, answered
from mcpspy.ui.tui.intercept.checks import request_troubles
from mcpspy.ui.tui.intercept.drafts import Drafts
from mcpspy.ui.tui.intercept.holds import Holds
from mcpspy.ui.tui.intercept.words import unreachable
from mcpspy.ui.tui.reader.page import Piece
from mcpspy.ui.tui.session.base import SessionBase
from mcpspy.ui.tui.session.words import BETWEEN


class Resending:
    """What was sent again from this screen."""

    def __init__(self, screen: SessionBase, holds: Holds, drafts: Drafts) -> None:
        self._screen = screen
        self._holds = holds
        self._drafts = drafts
        self._originals: dict[int, int] = {}
        """Row of a request that was sent again → that of the original."""

    def resend(self) -> None:
        if (wanted := self._wanted()) is not None:
            self._screen.do(self._send(wanted))

    def edit(self) -> None:
        wanted = self._wanted()
        if wanted is None:
            return
        original = wanted.text
        if original is None:
            self._screen.tell("it cannot be edited: it has half a character (a lone surrogate)")
            return

        async def send(text: str) -> None:
            self._screen.do(self._send(wanted.edited(text)))

        heading: list[Piece] = [
            (f"send again, to the {wanted.to}: {sanitize(wanted.method)}", "title"),
            (f"{BETWEEN}a new request, under an id of its own", "quiet"),
        ]
        key = ("again", self._screen.feed.log.generation, wanted.row)
        self._drafts.edit(key, lambda: heading, original, request_troubles, send)

    def pair(self, row: int | None) -> tuple[int, int] | None:
        """Return the original of what was sent again, and that; None if a row is nothing of the kind."""
        request = None if row is None else self._screen.feed.log.index.request(row)
        if request not in self._originals or self._screen.listing.marked:
            return None
        return self._originals[request], request

    def _wanted(self) -> Again | None:
        """Return what to send again; None if that was answered in words."""
        screen = self._screen
        is_reached = self._holds.reach is not None
        wanted = again(screen.feed.log, screen.listing.row) if is_reached else unreachable(screen.feed)
        if isinstance(wanted, str):
            screen.tell(wanted)
            return None
        return wanted

    async def _send(self, wanted: Again) -> str:
        screen, reach = self._screen, self._holds.reach
        log, row = screen.feed.log, screen.listing.row
        assert reach is not None
        what = (wanted.to, wanted.method, wanted.params, wanted.stream)
        if not wanted.is_request:
            await reach.notify(*what)
            return f"sent again, to the {wanted.to}: {sanitize(wanted.method)}"
        begin = len(log)
        id_text = await reach.request(*what)
        screen.tell(f"sent again, to the {wanted.to}; its answer is waited for …")
        new = await answered(log, id_text, begin, lambda: _why_none(reach.answers.get(id_text)))
        reach.answers.pop(id_text, None)
        if isinstance(new, str):
            return f"no answer: {sanitize(new)}"
        self._originals[new] = wanted.row
        is_here = screen.listing.row == row or screen.listing.follow
        if screen.is_free and is_here:
            screen.compare(wanted.row, new)
            return "sent again, and answered"
        return "what was sent again is answered; d on it says what differs"


def _why_none(answer: dict[str, Any] | None) -> str | None:
    return None if answer is None or "error" not in answer else str(answer["error"])
