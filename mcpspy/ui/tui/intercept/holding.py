"""What a session's screen does with messages that are held, and with requests that are sent again.

Owns the keys for that, the line that says what is held, and which rows are
marked; the way into the session is `reach`'s. A screen inherits it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from textual.binding import Binding
from textual.screen import Screen

from mcpspy.core.columns import Kind
from mcpspy.core.effects import RULE
from mcpspy.core.inert import inert
from mcpspy.core.record import Note
from mcpspy.errors import McpspyError
from mcpspy.ui.tui.intercept.again import Again, again, answered
from mcpspy.ui.tui.intercept.checks import editable, request_troubles, troubles
from mcpspy.ui.tui.intercept.held import Held, row_of
from mcpspy.ui.tui.intercept.holding_keys import KEYS
from mcpspy.ui.tui.intercept.reach import Reach
from mcpspy.ui.tui.intercept.words import RELEASED, bar, countdown, gives_up, named
from mcpspy.ui.tui.line import Line
from mcpspy.ui.tui.reader.page import Piece
from mcpspy.ui.tui.session.feed import Feed
from mcpspy.ui.tui.session.filterbar import FilterBar
from mcpspy.ui.tui.session.messages import MessageList
from mcpspy.ui.tui.session.view import View
from mcpspy.ui.tui.session.words import BETWEEN, plural

_ON_ONE = {binding.action for binding in KEYS if isinstance(binding, Binding)} - {"accept_all", "next_held"}
"""What is done to one held message."""

CLOCK = 0.5
"""Seconds between two words on how much time is left."""

_ALL = "Hold which messages? A filter, as in tool:write_file; nothing holds all:"


class Holding(Screen[None]):
    """The part of a session's screen that reaches into the session."""

    feed: Feed
    view: View
    listing: MessageList
    filter: FilterBar

    def __init__(self) -> None:
        super().__init__()
        self._bar = Line(id="held")
        self._bar.display = False
        self._reach: Reach | None = None
        self._rows: dict[int, int] = {}
        """Ticket → row, as far as they were found."""
        self._log_generation = 0
        self._said_at = 0.0
        self._drafts: dict[object, str] = {}
        """What was typed and not sent, by ticket, or by row."""
        self._resent: dict[int, int] = {}
        """Row of a request that was sent again → that of the original."""
        self._stands: object = None

    def on_mount(self) -> None:
        """Reach into the session, if it is one and goes on."""
        if len(self.feed.paths) == 1 and self.feed.is_live:
            self._reach = Reach(self.feed.paths[0], self._released)
            self.run_worker(self._reach.keep(lambda: self.feed.is_live))

    @property
    def is_holding(self) -> bool:
        """Whether there is something to say that changes with the time."""
        reach = self._reach
        if reach is None:
            return False
        is_due = bool(reach.held) and time.monotonic() > self._said_at + CLOCK
        return is_due or self._stands != self._standing_now(reach)

    @property
    def farewell(self) -> str:
        """What to ask before it is left; empty if nothing depends on it."""
        mine = [] if self._reach is None else self._reach.mine
        if not mine:
            return ""
        is_one = len(mine) == 1
        return f"{plural(len(mine), 'message')} {'is' if is_one else 'are'} held here and will go on. Leave?"

    def is_for(self, action: str) -> bool:
        """Whether an action is for the row under the cursor: those on a held message are for no other."""
        if action in _ON_ONE:
            return self._here() is not None
        return action not in ("accept_all", "next_held") or bool(self._reach is not None and self._reach.held)

    def say_held(self) -> None:
        """Mark the rows, and say what is held."""
        reach, now = self._reach, time.monotonic()
        if reach is None:
            return
        self._said_at = now
        rows: dict[int, Held] = {}
        index = self.feed.log.index
        for held in reach.held.values():
            if (row := self._row_of(held)) is not None:
                rows.setdefault(self._shown(row), held)
        here = self._here()
        first = here or next(iter(reach.held.values()), None)
        host = None if first is None else gives_up(index, self._rows.get(first.ticket), self.feed.now)
        line = bar(reach.query, len(reach.held), first, host, now=now, width=self.size.width - 2)
        self._bar.say(line, [("H goes there", "quiet")] if first is not None and here is None else [])
        self._bar.display = bool(line)
        self.listing.hold(rows)
        if changed := rows.keys() ^ self.view.held:
            self.view.held = rows.keys()
            self.view.reconsider(changed)
        if (stands := self._standing_now(reach)) != self._stands:
            self._stands = stands
            self.refresh_bindings()

    def action_hold(self) -> None:
        """Hold what the filter wants, from now on; or nothing any more."""
        from mcpspy.ui.tui.session.ask import Ask

        reach = self._reach
        if reach is None:
            self._tell(self._unreachable)
        elif reach.query is not None:
            self._do(self._hold_no_more(reach))
        elif text := self.view.wish.query.text.strip():
            self._do(self._hold(reach, text))
        else:
            self.app.push_screen(
                Ask(_ALL), lambda text: None if text is None else self._do(self._hold(reach, text))
            )

    def action_next_held(self) -> None:
        """Go to the next held message: from the last one to the first."""
        held = list(self._reach.held.values()) if self._reach is not None else []
        here = self._here()
        place = held.index(here) + 1 if here in held else 0
        row = self._rows.get(held[place % len(held)].ticket) if held else None
        self._go(None if row is None else self._shown(row), "nothing is held")

    def action_accept(self) -> None:
        """Let the held message go on as it came."""
        self._decide("let go", lambda reach, held: reach.accept(held))

    def action_drop(self) -> None:
        """Have the held message not go on."""
        self._decide("dropped", lambda reach, held: reach.drop(held))

    def action_accept_all(self) -> None:
        """Let all that is held go on."""

        async def all_() -> str:
            assert self._reach is not None
            return f"let go: {plural(await self._reach.accept_all(), 'message')}"

        if self._reach is not None:
            self._do(all_())

    def action_refuse(self) -> None:
        """Answer the held request with an error."""
        from mcpspy.ui.tui.intercept.refusal import Refusal

        held = self._here()
        if held is None:
            return
        if not held.is_request:
            self._tell("only a request can be answered; enter edits this, d drops it")
            return

        def chosen(error: tuple[int, str] | None) -> None:
            if error is not None:
                self._decide(
                    f"answered with error {error[0]}", lambda reach, it: reach.answer(it, *error), held
                )

        self.app.push_screen(Refusal(named(held)), chosen)

    def action_edit(self) -> None:
        """Edit the held message."""
        from mcpspy.ui.tui.intercept.editor import EditorScreen

        held, reach = self._here(), self._reach
        if held is None or reach is None:
            return
        original = editable(held.data)
        if original is None:
            self._tell("it is not UTF-8, so it cannot be edited: a lets it go on, d drops it")
            return

        async def send(text: str) -> None:
            await (reach.accept(held) if text == original else reach.edit(held, text))
            self._tell(f"{named(held)}: {'let go as it came' if text == original else 'went on as edited'}")

        self.app.push_screen(
            EditorScreen(
                partial(self._heading, held),
                original,
                lambda text: [] if text == original else troubles(text, held.side, held.data),
                send,
                self._drafts.get(held.ticket),
            ),
            partial(self._keep, held.ticket, original),
        )

    def action_resend(self) -> None:
        """Send the request of this row again."""
        wanted = self._again()
        if wanted is not None:
            self._do(self._send_again(wanted))

    def action_resend_edited(self) -> None:
        """Send the request of this row again, edited first."""
        from mcpspy.ui.tui.intercept.editor import EditorScreen

        wanted = self._again()
        if wanted is None:
            return
        original = wanted.text
        if original is None:
            self._tell("it cannot be edited: it has half a character (a lone surrogate)")
            return

        async def send(text: str) -> None:
            self._do(self._send_again(wanted.edited(text)))

        heading: list[Piece] = [
            (f"send again, to the {wanted.to}: {inert(wanted.method)}", "title"),
            (f"{BETWEEN}a new request, under an id of its own", "quiet"),
        ]
        key = ("again", self.feed.log.generation, wanted.row)
        self.app.push_screen(
            EditorScreen(lambda: heading, original, request_troubles, send, self._drafts.get(key)),
            partial(self._keep, key, original),
        )

    async def action_back(self) -> None:
        """Go to the list of sessions; ask first if that lets go of something."""
        from mcpspy.ui.tui.sessions.confirm import Confirm

        async def sure(yes: bool | None) -> None:
            if yes:
                await self.run_action("app.back")

        if self.farewell:
            self.app.push_screen(Confirm(self.farewell), sure)
        else:
            await self.run_action("app.back")

    def resent(self, row: int | None) -> tuple[int, int] | None:
        """Return the original of what was sent again, and that; None if a row is nothing of the kind."""
        request = None if row is None else self.feed.log.index.request(row)
        if request not in self._resent or self.listing.marked:
            return None
        return self._resent[request], request

    def compare(self, old: int, new: int) -> None:
        """Show what differs between two exchanges."""
        from mcpspy.ui.tui.diff.compared import Exchanges
        from mcpspy.ui.tui.diff.diff_screen import DiffScreen

        def chosen(row: int | None) -> None:
            if row is not None:
                self._go(row, "")

        self.app.push_screen(DiffScreen(Exchanges(self.feed.log, old, new)), chosen)

    def _tell(self, text: str) -> None:
        """Answer a key."""
        raise NotImplementedError

    def _go(self, row: int | None, else_say: str) -> None:
        """Go to a row."""
        raise NotImplementedError

    @property
    def _unreachable(self) -> str:
        if len(self.feed.paths) > 1:
            return "these are several sessions: open one alone to hold or send something"
        return "the session is over: nothing can be held, and nobody is there to answer"

    def _standing_now(self, reach: Reach) -> object:
        """Return what differs once there is something else to say, or to do."""
        here = self._here()
        return reach.query, len(reach.held), next(reversed(reach.held), 0), here and here.ticket

    def _row_of(self, held: Held) -> int | None:
        """Return the row of a held message; None if it has not been read yet."""
        log = self.feed.log
        if self._log_generation != log.generation:  # The file is another one.
            self._log_generation = log.generation
            self._rows = {}
        row = self._rows.get(held.ticket)
        if row is None and (row := row_of(log.index, held)) is not None:
            self._rows[held.ticket] = row
        return row

    def _shown(self, row: int) -> int:
        """Return the row that tells of a message: that of its request, where each exchange has one row."""
        index = self.feed.log.index
        request = index.request(row) if self.view.wish.exchanges else None
        return row if request is None else request

    def _here(self) -> Held | None:
        """Return the held message under the cursor: in its own row, or in the note that says that it is held."""
        row, log = self.listing.row, self.feed.log
        if self._reach is None or not self._reach.held or row is None or row >= len(log):
            return None
        if (held := self.listing.held.get(row)) is not None:
            return self._reach.held.get(held.ticket)
        if log.index.kind(row) is Kind.NOTE and log.index.texts[log.index.method[row]] == RULE:
            note = log.message(row)
            return self._reach.held.get(note.fields.get("ticket", 0)) if isinstance(note, Note) else None
        return None

    def _heading(self, held: Held) -> list[Piece]:
        now = time.monotonic()
        line: list[Piece] = [(named(held), "title")]
        if self._reach is None or held.ticket not in self._reach.held:
            return [*line, (f"{BETWEEN}it has gone on already; esc goes back, R sends a new one", "bad")]
        host = gives_up(self.feed.log.index, self._rows.get(held.ticket), self.feed.now)
        for piece in ([host] if host is not None else []) + [countdown(held, now)]:
            line += [(BETWEEN, "quiet"), piece]
        return line

    def _keep(self, key: object, original: str, text: str | None) -> None:
        """Keep what was typed and not sent."""
        self._drafts.pop(key, None)
        if text is not None and text != original:
            self._drafts[key] = text
            self._tell("nothing was sent; what you typed is still there")

    def _decide(
        self, did: str, act: Callable[[Reach, Held], Awaitable[None]], held: Held | None = None
    ) -> None:
        reach, held = self._reach, held or self._here()
        if reach is None or held is None:
            return

        async def decided() -> str:
            await act(reach, held)
            return f"{named(held)}: {did}"

        self._do(decided())

    def _do(self, work: Coroutine[Any, Any, str]) -> None:
        """Have something done in the session, and say what came of it."""

        async def done() -> None:
            try:
                self._tell(await work)
            except McpspyError as error:
                self._tell(inert(str(error)))

        self.run_worker(done())

    async def _hold(self, reach: Reach, text: str) -> str:
        await reach.hold(text)
        return "what comes from now on is held until you decide, or the time is over; i lets go"

    async def _hold_no_more(self, reach: Reach) -> str:
        count = len(reach.mine)
        await reach.hold(None)
        more = f"; let go: {plural(count, 'message')}" if count else ""
        return f"nothing is held any more{more}"

    def _released(self, held: Held, why: str) -> None:
        """Say that a message is not held any more, and nobody here wanted it so."""
        self._drafts.pop(held.ticket, None)
        self._tell(f"{named(held)} {RELEASED.get(why, 'is not held any more')}")

    def _again(self) -> Again | None:
        """Return what to send again; None if that was answered in words."""
        wanted = self._unreachable if self._reach is None else again(self.feed.log, self.listing.row)
        if isinstance(wanted, str):
            self._tell(wanted)
            return None
        return wanted

    async def _send_again(self, wanted: Again) -> str:
        reach, log, row = self._reach, self.feed.log, self.listing.row
        assert reach is not None
        what = (wanted.to, wanted.method, wanted.params, wanted.stream)
        if not wanted.is_request:
            await reach.notify(*what)
            return f"sent again, to the {wanted.to}: {inert(wanted.method)}"
        begin = len(log)
        id_text = await reach.request(*what)
        self._tell(f"sent again, to the {wanted.to}; its answer is waited for …")
        new = await answered(log, id_text, begin, lambda: _why_none(reach.answers.get(id_text)))
        reach.answers.pop(id_text, None)
        if isinstance(new, str):
            return f"no answer: {inert(new)}"
        self._resent[new] = wanted.row
        is_here = self.listing.row == row or self.listing.follow
        if self.app.screen is self and is_here and not self.filter.is_typed:
            self.compare(wanted.row, new)
            return "sent again, and answered"
        return "what was sent again is answered; d on it says what differs"


def _why_none(answer: dict[str, Any] | None) -> str | None:
    return None if answer is None or "error" not in answer else str(answer["error"])
