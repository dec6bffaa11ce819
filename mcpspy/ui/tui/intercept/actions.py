"""What a person makes of messages that are held.

Owns holding and letting go, and what each of the keys on a held message asks
before it does it. What is held is `holds`', the way there is `reach`'s.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

from mcpspy.ui.tui.detail.layout import Piece
from mcpspy.ui.tui.intercept.connection import HeldMessage, InterceptConnection
from mcpspy.ui.tui.intercept.editor import Drafts
from mcpspy.ui.tui.intercept.held_rows import HeldRows
from mcpspy.ui.tui.intercept.labels import RELEASED, countdown, named, unreachable
from mcpspy.ui.tui.intercept.validation import editable, troubles
from mcpspy.ui.tui.session.base import SessionBase
from mcpspy.ui.tui.session.labels import BETWEEN, plural

_ALL = "Hold which messages? A filter, as in tool:write_file; nothing holds all:"


class HeldActions:
    """What becomes of them."""

    def __init__(self, screen: SessionBase, holds: HeldRows, drafts: Drafts) -> None:
        self._screen = screen
        self._holds = holds
        self._drafts = drafts

    def hold(self) -> None:
        """Hold what the filter wants, from now on; or nothing any more."""
        from mcpspy.ui.tui.widgets.prompts import TextPrompt

        reach, screen = self._holds.reach, self._screen
        if reach is None:
            screen.tell(unreachable(screen.feed))
        elif reach.query is not None:
            screen.do(self._hold_no_more(reach))
        elif text := screen.view.wish.query.text.strip():
            screen.do(self._hold(reach, text))
        else:
            screen.app.push_screen(
                TextPrompt(_ALL), lambda text: None if text is None else screen.do(self._hold(reach, text))
            )

    def next(self) -> None:
        held, here = self._holds.all, self._holds.here
        place = held.index(here) + 1 if here in held else 0
        row = self._holds.row_of(held[place % len(held)]) if held else None
        self._screen.go(row, "nothing is held")

    def accept_all(self) -> None:
        async def all_(reach: InterceptConnection) -> str:
            return f"let go: {plural(await reach.accept_all(), 'message')}"

        if self._holds.reach is not None:
            self._screen.do(all_(self._holds.reach))

    def accept(self) -> None:
        self._decide("let go", lambda reach, held: reach.accept(held))

    def drop(self) -> None:
        self._decide("dropped", lambda reach, held: reach.drop(held))

    def refuse(self) -> None:
        from mcpspy.ui.tui.widgets.prompts import ErrorPrompt

        held = self._holds.here
        if held is None:
            return
        if not held.is_request:
            self._screen.tell("only a request can be answered; enter edits this, d drops it")
            return

        def chosen(error: tuple[int, str] | None) -> None:
            if error is not None:
                self._decide(
                    f"answered with error {error[0]}", lambda reach, it: reach.answer(it, *error), held
                )

        self._screen.app.push_screen(ErrorPrompt(named(held)), chosen)

    def edit(self) -> None:
        held, reach = self._holds.here, self._holds.reach
        if held is None or reach is None:
            return
        original = editable(held.data)
        if original is None:
            self._screen.tell("it is not UTF-8, so it cannot be edited: a lets it go on, d drops it")
            return

        async def send(text: str) -> None:
            await (reach.accept(held) if text == original else reach.edit(held, text))
            self._screen.tell(
                f"{named(held)}: {'let go as it came' if text == original else 'went on as edited'}"
            )

        self._drafts.edit(
            held.ticket,
            partial(self._heading, held),
            original,
            lambda text: [] if text == original else troubles(text, held.side, held.data),
            send,
        )

    def released(self, held: HeldMessage, why: str) -> None:
        """Say that a message is not held any more, and nobody here wanted it so."""
        self._drafts.forget(held.ticket)
        self._screen.tell(f"{named(held)} {RELEASED.get(why, 'is not held any more')}")

    def _heading(self, held: HeldMessage) -> list[Piece]:
        line: list[Piece] = [(named(held), "title")]
        if held.ticket not in {one.ticket for one in self._holds.all}:
            return [*line, (f"{BETWEEN}it has gone on already; esc goes back, R sends a new one", "bad")]
        host = self._holds.patience(held)
        for piece in ([host] if host is not None else []) + [countdown(held, time.monotonic())]:
            line += [(BETWEEN, "quiet"), piece]
        return line

    def _decide(
        self,
        did: str,
        act: Callable[[InterceptConnection, HeldMessage], Awaitable[None]],
        held: HeldMessage | None = None,
    ) -> None:
        reach, held = self._holds.reach, held or self._holds.here
        if reach is None or held is None:
            return

        async def decided() -> str:
            await act(reach, held)
            return f"{named(held)}: {did}"

        self._screen.do(decided())

    async def _hold(self, reach: InterceptConnection, text: str) -> str:
        await reach.hold(text)
        return "what comes from now on is held until you decide, or the time is over; i lets go"

    async def _hold_no_more(self, reach: InterceptConnection) -> str:
        count = len(reach.mine)
        await reach.hold(None)
        more = f"; let go: {plural(count, 'message')}" if count else ""
        return f"nothing is held any more{more}"
