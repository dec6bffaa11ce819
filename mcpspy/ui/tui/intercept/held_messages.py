"""Held messages on the screen: their rows, the status line, and the actions of the keys."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

from mcpspy.core.counted import counted
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.rule_notes import RULE
from mcpspy.ui.model.intercept_connection import HeldMessage, InterceptConnection
from mcpspy.ui.model.row_filter import FilteredView
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.tui.intercept.assistance import editable, problems, read_listings
from mcpspy.ui.tui.intercept.editor import Drafts
from mcpspy.ui.tui.intercept.labels import RELEASED, bar, countdown, host_timeout, short_name, unreachable
from mcpspy.ui.tui.session.base import SessionBase
from mcpspy.ui.tui.session.labels import BETWEEN
from mcpspy.ui.tui.session.message_list import MessageList
from mcpspy.ui.tui.widgets.base import SplitLine
from mcpspy.ui.tui.widgets.columns import Piece

CLOCK = 0.5


class HeldRows:
    def __init__(self, loader: SessionLoader, view: FilteredView, listing: MessageList) -> None:
        self._loader = loader
        self._view = view
        self._listing = listing
        self.connection: InterceptConnection | None = None
        """None if the session is over, or several are shown."""
        self.bar = SplitLine(id="held")
        self.bar.display = False
        self._updated_at = 0.0
        self._last_snapshot: object = None

    @property
    def has_news(self) -> bool:
        """True if something changed, or the clock needs an update."""
        if self.connection is None:
            return False
        is_due = bool(self.connection.held) and time.monotonic() > self._updated_at + CLOCK
        return is_due or self._last_snapshot != self._snapshot(self.connection)

    @property
    def leave_question(self) -> str:
        """The question before leaving; empty if this viewer holds no messages."""
        held_here = [] if self.connection is None else self.connection.held_here
        if not held_here:
            return ""
        return f"Leave and release {counted(len(held_here), 'held message')}?"

    @property
    def all(self) -> list[HeldMessage]:
        return [] if self.connection is None else list(self.connection.held.values())

    @property
    def here(self) -> HeldMessage | None:
        """The held message under the cursor, on its own row or on the row of its note."""
        row, model = self._listing.row, self._loader.model
        if self.connection is None or not self.connection.held or row is None or row >= len(model):
            return None
        if (held := self._listing.held.get(row)) is not None:
            return self.connection.held.get(held.ticket)
        if model.note(row) == RULE:
            note = model.message(row)
            return self.connection.held.get(note.fields.get("ticket", 0)) if isinstance(note, Note) else None
        return None

    def row_of(self, held: HeldMessage) -> int | None:
        """Return the row of a held message, or of its request in the exchange view; None if not read yet."""
        index = self._loader.model.index
        row = index.held.get(held.ticket)
        request = None if row is None or not self._view.options.exchanges else index.request(row)
        return row if request is None else request

    def host_timeout_of(self, held: HeldMessage) -> Piece | None:
        """Return the time until the host's timeout for the message; None if unknown."""
        index = self._loader.model.index
        return host_timeout(index, index.held.get(held.ticket), self._loader.now)

    def show(self) -> bool:
        """Mark the held rows and update the line; return True if other keys may apply now."""
        connection, now = self.connection, time.monotonic()
        if connection is None:
            return False
        self._updated_at = now
        rows: dict[int, HeldMessage] = {}
        for held in connection.held.values():
            if (row := self.row_of(held)) is not None:
                rows.setdefault(row, held)
        here = self.here
        first = here or next(iter(connection.held.values()), None)
        host = None if first is None else self.host_timeout_of(first)
        hint = "H goes to it" if first is not None and here is None else ""
        width = self.bar.screen.size.width - 2 - (len(hint) + 2 if hint else 0)
        line = bar(connection.query, len(connection.held), first, host, now=now, width=width)
        self.bar.set_text(line, [(hint, "quiet")] if hint else [])
        self.bar.display = bool(line)
        self._listing.hold(rows)
        if changed := rows.keys() ^ self._view.held:
            self._view.held = rows.keys()
            self._view.reconsider(changed)
        previous, self._last_snapshot = self._last_snapshot, self._snapshot(connection)
        return previous != self._last_snapshot

    def _snapshot(self, connection: InterceptConnection) -> object:
        """Return a value that changes whenever something else must be shown."""
        here = self.here
        return (
            connection.is_open,
            connection.query,
            len(connection.held),
            next(reversed(connection.held), 0),
            here and here.ticket,
        )


_ALL = "Filter of messages to intercept, such as tool:write_file (empty: all):"


class HeldActions:
    def __init__(self, screen: SessionBase, held_rows: HeldRows, drafts: Drafts) -> None:
        self._screen = screen
        self._held_rows = held_rows
        self._drafts = drafts

    def hold(self) -> None:
        """Hold messages that match the filter, or stop holding."""
        from mcpspy.ui.tui.widgets.prompts import TextPrompt

        connection, screen = self._held_rows.connection, self._screen
        if connection is None:
            screen.flash_message(unreachable(screen.loader))
        elif connection.query is not None:
            screen.do(self._stop_holding(connection))
        elif text := screen.filter.active:
            screen.do(self._hold(connection, text))
        else:
            screen.app.push_screen(
                TextPrompt(_ALL, done="intercept"),
                lambda text: None if text is None else screen.do(self._hold(connection, text)),
            )

    def next(self) -> None:
        held, here = self._held_rows.all, self._held_rows.here
        place = held.index(here) + 1 if here in held else 0
        row = self._held_rows.row_of(held[place % len(held)]) if held else None
        self._screen.go(row, "no message is held")

    def accept_all(self) -> None:
        async def all_(connection: InterceptConnection) -> str:
            return f"released {counted(await connection.accept_all(), 'message')}"

        if self._held_rows.connection is not None:
            self._screen.do(all_(self._held_rows.connection))

    def accept(self) -> None:
        self._decide("released", lambda connection, held: connection.accept(held))

    def drop(self) -> None:
        self._decide("dropped", lambda connection, held: connection.drop(held))

    def refuse(self) -> None:
        from mcpspy.ui.tui.widgets.prompts import ErrorPrompt

        held = self._held_rows.here
        if held is None:
            return
        if not held.is_request:
            self._screen.flash_message("only requests can be answered; enter edits this message, X drops it")
            return

        def chosen(error: tuple[int, str] | None) -> None:
            if error is not None:
                self._decide(
                    f"answered with error {error[0]}",
                    lambda connection, it: connection.answer(it, *error),
                    held,
                )

        self._screen.app.push_screen(ErrorPrompt(short_name(held)), chosen)

    def edit(self) -> None:
        held, connection = self._held_rows.here, self._held_rows.connection
        if held is None or connection is None:
            return
        original = editable(held.data)
        if original is None:
            self._screen.flash_message("cannot edit: not UTF-8; a forwards it unchanged, X drops it")
            return

        async def send(text: str) -> None:
            await (connection.accept(held) if text == original else connection.edit(held, text))
            self._screen.flash_message(
                f"{short_name(held)}: {'forwarded unchanged' if text == original else 'forwarded as edited'}"
            )

        self._drafts.edit(
            held.ticket,
            partial(self._heading, held),
            original,
            lambda text: [] if text == original else problems(text, held.side, held.data),
            send,
            partial(read_listings, self._screen.loader.model) if held.is_request else None,
        )

    def released(self, held: HeldMessage, why: str) -> None:
        """Report a message that was released for other reasons than a key here."""
        self._drafts.forget(held.ticket)
        self._screen.flash_message(f"{short_name(held)}: {RELEASED.get(why, 'no longer held')}")

    def _heading(self, held: HeldMessage) -> list[Piece]:
        line: list[Piece] = [(short_name(held), "title")]
        if held.ticket not in {one.ticket for one in self._held_rows.all}:
            return [*line, (f"{BETWEEN}already forwarded; esc goes back, R sends a new request", "bad")]
        host = self._held_rows.host_timeout_of(held)
        for piece in ([host] if host is not None else []) + [countdown(held, time.monotonic())]:
            line += [(BETWEEN, "quiet"), piece]
        return line

    def _decide(
        self,
        did: str,
        act: Callable[[InterceptConnection, HeldMessage], Awaitable[None]],
        held: HeldMessage | None = None,
    ) -> None:
        connection, held = self._held_rows.connection, held or self._held_rows.here
        if connection is None or held is None:
            return

        async def decided() -> str:
            await act(connection, held)
            return f"{short_name(held)}: {did}"

        self._screen.do(decided())

    async def _hold(self, connection: InterceptConnection, text: str) -> str:
        await connection.hold(text)
        return "matching messages are held; i stops"

    async def _stop_holding(self, connection: InterceptConnection) -> str:
        count = len(connection.held_here)
        await connection.hold(None)
        more = f"; released {counted(count, 'message')}" if count else ""
        return f"interception off{more}"
