"""What is held in the session that is shown: which rows it is in, and which the cursor is on.

Owns the marks in the list, and the line that says what is held. How the
session is reached is `reach`'s, what a person makes of it `decisions`'.

What a person makes of messages that are held.

Owns holding and letting go, and what each of the keys on a held message asks
before it does it. What is held is `holds`', the way there is `reach`'s.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

from mcpspy.core.recording.decode import Note
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.rule_notes import RULE
from mcpspy.ui.tui.intercept.connection import HeldMessage, InterceptConnection
from mcpspy.ui.tui.intercept.editor import Drafts, editable, troubles
from mcpspy.ui.tui.intercept.labels import RELEASED, bar, countdown, gives_up, named, unreachable
from mcpspy.ui.tui.session.base import SessionBase
from mcpspy.ui.tui.session.labels import BETWEEN, plural
from mcpspy.ui.tui.session.loader import SessionLoader
from mcpspy.ui.tui.session.message_list import MessageList
from mcpspy.ui.tui.session.row_filter import FilteredView
from mcpspy.ui.tui.widgets.base import SplitLine
from mcpspy.ui.tui.widgets.columns import Piece

CLOCK = 0.5
"""Seconds between two words on how much time is left."""


class HeldRows:
    """What is held, as the screen shows it."""

    def __init__(self, feed: SessionLoader, view: FilteredView, listing: MessageList) -> None:
        self._feed = feed
        self._view = view
        self._listing = listing
        self.reach: InterceptConnection | None = None
        """The way into the session; None if it cannot be reached, because it is over or is several."""
        self.bar = SplitLine(id="held")
        self.bar.display = False
        self._said_at = 0.0
        self._stood: object = None

    @property
    def has_news(self) -> bool:
        """Whether there is something to say, by its change or by the clock."""
        if self.reach is None:
            return False
        is_due = bool(self.reach.held) and time.monotonic() > self._said_at + CLOCK
        return is_due or self._stood != self._standing(self.reach)

    @property
    def farewell(self) -> str:
        """What to ask before the screen is left; empty if nothing depends on it."""
        mine = [] if self.reach is None else self.reach.mine
        if not mine:
            return ""
        is_one = len(mine) == 1
        return f"{plural(len(mine), 'message')} {'is' if is_one else 'are'} held here and will go on. Leave?"

    @property
    def all(self) -> list[HeldMessage]:
        return [] if self.reach is None else list(self.reach.held.values())

    @property
    def here(self) -> HeldMessage | None:
        """The held message under the cursor: in its own row, or in the note that says that it is held."""
        row, log = self._listing.row, self._feed.log
        if self.reach is None or not self.reach.held or row is None or row >= len(log):
            return None
        if (held := self._listing.held.get(row)) is not None:
            return self.reach.held.get(held.ticket)
        if log.index.kind(row) is RowKind.NOTE and log.index.texts[log.index.method[row]] == RULE:
            note = log.message(row)
            return self.reach.held.get(note.fields.get("ticket", 0)) if isinstance(note, Note) else None
        return None

    def row_of(self, held: HeldMessage) -> int | None:
        """Return the row that tells of it: that of its request, where each exchange has one row; None if it is to come."""
        index = self._feed.log.index
        row = index.held.get(held.ticket)
        request = None if row is None or not self._view.wish.exchanges else index.request(row)
        return row if request is None else request

    def patience(self, held: HeldMessage) -> Piece | None:
        """Return when the host gives up on it; None if that is not known."""
        index = self._feed.log.index
        return gives_up(index, index.held.get(held.ticket), self._feed.now)

    def show(self) -> bool:
        """Mark the rows, and say what is held; return whether other keys count now."""
        reach, now = self.reach, time.monotonic()
        if reach is None:
            return False
        self._said_at = now
        rows: dict[int, HeldMessage] = {}
        for held in reach.held.values():
            if (row := self.row_of(held)) is not None:
                rows.setdefault(row, held)
        here = self.here
        first = here or next(iter(reach.held.values()), None)
        host = None if first is None else self.patience(first)
        line = bar(reach.query, len(reach.held), first, host, now=now, width=self.bar.screen.size.width - 2)
        self.bar.say(line, [("H goes there", "quiet")] if first is not None and here is None else [])
        self.bar.display = bool(line)
        self._listing.hold(rows)
        if changed := rows.keys() ^ self._view.held:
            self._view.held = rows.keys()
            self._view.reconsider(changed)
        stood, self._stood = self._stood, self._standing(reach)
        return stood != self._stood

    def _standing(self, reach: InterceptConnection) -> object:
        """Return what differs once there is something else to say, or to do."""
        here = self.here
        return reach.query, len(reach.held), next(reversed(reach.held), 0), here and here.ticket


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
