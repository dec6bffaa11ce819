"""The screen of one session: its parts, and the actions of its keys."""

from __future__ import annotations

import shlex
import time
from array import array
from bisect import bisect_left
from collections.abc import Awaitable
from contextlib import suppress
from itertools import chain
from typing import ClassVar

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.worker import WorkerError

from mcpspy.core.query.absent import absent_name
from mcpspy.core.query.parser import parse
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.recording.reader import Summary
from mcpspy.io.recording.runs import FollowedRun
from mcpspy.ui.model.intercept_connection import InterceptConnection
from mcpspy.ui.model.row_filter import FilteredView, SortOrder, ViewOptions, changed_options
from mcpspy.ui.model.session_loader import MergedLoader, open_loader
from mcpspy.ui.tui import bindings
from mcpspy.ui.tui.bindings import SESSION_KEYS
from mcpspy.ui.tui.intercept.editor import Drafts
from mcpspy.ui.tui.intercept.held_messages import HeldActions, HeldRows
from mcpspy.ui.tui.intercept.resend import Resend
from mcpspy.ui.tui.session.background import BackgroundTasks, LintPass
from mcpspy.ui.tui.session.base import RunOpener, ServerCaller, SessionBase
from mcpspy.ui.tui.session.filter_bar import FilterBar
from mcpspy.ui.tui.session.labels import StatusBar, clipboard_text, position, sentence, title
from mcpspy.ui.tui.session.message_list import ListUpdates
from mcpspy.ui.tui.session.navigation import Navigation
from mcpspy.ui.tui.session.panes import Panes
from mcpspy.ui.tui.session.subscreens import SUBSCREENS, replay, show_comparison
from mcpspy.ui.tui.widgets.base import SplitLine, allows_unsafe
from mcpspy.ui.tui.widgets.footer import KeyFooter
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

WIDE = 110
TICK = 0.1
"""Seconds between two polls: polling more often uses a whole core and is not visible."""

READING = 0.3
"""Seconds between two updates while a long file is read, as every update delays reading."""

COMMANDS = {
    binding.action.partition("(")[0]
    for binding in [*bindings.INTERCEPT_KEYS, *SESSION_KEYS]
    if isinstance(binding, Binding)
}
WAY = {1: "below", -1: "above"}


class SessionScreen(SessionBase):
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Screen declares its type.

    # Not CSS: Textual would parse all styles again.
    DEFAULT_CSS = """
    SessionScreen.-wide Panes { layout: horizontal; }
    SessionScreen.-wide Panes > VirtualList { width: 16fr; }
    SessionScreen.-wide Panes > DetailPane { width: 9fr; border-top: none; border-left: solid $panel; }
    SessionScreen.-wide Panes > DetailPane:focus-within { border-top: none; border-left: heavy $primary; }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings.before(SESSION_KEYS)

    HELP_NAME = "session"

    def __init__(
        self, *summaries: Summary, row: int | None = None, then: str = "", run: FollowedRun | None = None
    ) -> None:
        """Show one session, or several merged, which may be a run, with the cursor on `row`.

        Once they are read, run the action `then`.
        """
        super().__init__()
        self._wanted = row
        self._then = then
        self._absent = ("", 0), ""
        """The filter and the number of rows for which the text was found, and the text."""
        self.loader = open_loader(summaries, run)
        self.view = FilteredView(self.loader.model)
        self.lint_pass = LintPass(self.loader.model, self.loader.origin)
        self.panes = Panes(self.loader, self.view)
        self.listing = self.panes.listing
        self.view.marked = self.listing.marked
        self.filter = FilterBar(self.loader.model.names)
        self.background = BackgroundTasks(
            self.loader,
            self.view,
            self.lint_pass,
            self.listing.apps,
            processed=self._tick,
            found=self._findings_added,
            report=lambda error: self.notify(error, severity="error", markup=False),
        )
        self.held_rows = HeldRows(self.loader, self.view, self.listing)
        drafts = Drafts(self)
        self.held_actions = HeldActions(self, self.held_rows, drafts)
        self.resending = Resend(self, self.held_rows, drafts)
        self._navigation = Navigation(self.loader.model, self.view, self.listing)
        self._list_updates = ListUpdates(self.loader, self.view, self.listing)
        self._title = SplitLine(id="title")
        self._status = StatusBar()
        self._filter_off = ""
        self._ticked = 0.0
        self._last_snapshot: object = None
        self._keys = KeyFooter()
        self._footer: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        self.set_class(self.app.size.width >= WIDE, "-wide")  # The breakpoints apply after the first frame.
        yield self._title
        yield self.held_rows.bar
        yield self.panes
        yield self.filter
        yield self._status
        yield self._keys

    def on_mount(self) -> None:
        """Start reading, and connect to a live session."""
        loader = self.loader
        loader.uses_cache = not loader.model.is_merged and bool(getattr(self.app, "uses_cache", False))
        self.listing.can_follow = self.listing.follow = loader.is_live
        self.listing.focus()
        self._reading = self.run_worker(loader.read())
        self.run_worker(loader.watch_name())
        self.run_worker(self.background.filter_rows())
        self.run_worker(self.background.lint())
        if not loader.model.is_merged and loader.is_live:
            self.held_rows.connection = InterceptConnection(loader.paths[0], self.held_actions.released)
            self.run_worker(self.held_rows.connection.keep(lambda: loader.is_live))
        self.set_interval(TICK, self._poll)
        self._tick()

    def on_screen_resume(self) -> None:
        self._tick()

    async def on_unmount(self) -> None:
        """Stop reading and wait until the file is closed."""
        if not self._reading.is_cancelled:  # A second cancel would interrupt closing.
            self._reading.cancel()
        with suppress(WorkerError):
            await self._reading.wait()
        self.loader.close()

    def on_virtual_list_moved(self, event: VirtualList.Moved) -> None:
        event.stop()
        self._tick()

    def on_filter_bar_changed(self, event: FilterBar.Changed) -> None:
        event.stop()
        row, model = self.listing.row, self.loader.model
        if self.filter.active:
            self._filter_off = ""
        self.panes.detail.mark_filter(event.query.text or self._filter_off)
        if not event.query.text and row is not None:  # The last filtered row may not be the last row.
            self.listing.follow &= all(model.other(later) == row for later in range(row + 1, len(model)))
        self.want(replace(self.view.options, query=event.query, problems=self.filter.problems))

    def on_virtual_list_heading_clicked(self, event: VirtualList.HeadingClicked) -> None:
        """Sort by a column; the latency bar is the latency."""
        event.stop()
        column = "latency" if event.column == "bar" else event.column
        if column in list(SortOrder):
            self.action_change_view(column)
        else:
            self.flash_message("rows can be sorted by time, latency and size")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable keys while a filter is typed, and those for held messages on other rows."""
        if self.filter.is_typed and action in COMMANDS:
            return False
        if action != "held" or parameters == ("hold",):
            return True
        if parameters[0] in ("accept_all", "next"):
            return bool(self.held_rows.all)
        return self.held_rows.here is not None

    # The interface for its parts.

    @property
    def leave_question(self) -> str:
        return self.held_rows.leave_question

    @property
    def footer(self) -> tuple[str, ...]:
        """The tables of FOOTERS for the selected row, most important first."""
        row, index = self.listing.row, self.loader.model.index
        if row is None or row >= len(index):
            return ("session",)
        states = ["held"] if self.held_rows.here is not None else []
        states += ["problems"] if self.filter.problems else []
        if self.focused is not self.listing:
            return *states, "message", "session"
        answer = index.answer(row) if self.view.options.exchanges else None
        places = ((one, bisect_left(index.wrong, one)) for one in (row, answer) if one is not None)
        if any(index.wrong[place : place + 1] == array("I", [one]) for one, place in places):
            states.append("failed")
        elif row in index.crashes:
            states.append("crash")
        if self.loader.model.findings.of_both(index, row, exchanges=answer is not None):
            states.append("finding")
        connection = self.held_rows.connection
        if connection is not None and connection.is_open and not self.resending.refusal:
            states.append("request")
        states += ["watched"] if connection is not None and connection.may_restart else []
        states += ["live"] if self.loader.is_live else []
        return *states, "session"

    @property
    def accepts_screen(self) -> bool:
        return self.app.screen is self and not self.filter.is_typed

    def flash_message(self, text: str) -> None:
        self._status.flash(text)
        self._tick()

    def go(self, row: int | None, otherwise: str) -> None:
        if row is None:
            self.flash_message(otherwise)
            return
        if not self.view.contains(row):
            self.flash_message("that row is hidden (F toggles the filter; v and V show more rows)")
            return
        self.listing.follow = False
        self._list_updates.show(at_once=True)
        self.listing.go_to(row)

    def do(self, work: Awaitable[str]) -> None:

        async def done() -> None:
            try:
                self.flash_message(await work)
            except McpspyError as error:
                self.flash_message(sanitize(str(error)))

        self.run_worker(done())

    def want(self, options: ViewOptions) -> None:
        """Show the rows of these options. The cursor stays on its row or moves to the next one shown."""
        self.listing.follow &= not options.is_sorted
        if options.query.asks_findings:
            self.background.force_lint()
        self.view.want(options)
        self.background.filter_slice()  # For most sessions one slice is enough.
        self.listing.empty = []
        self._tick()

    def compare(self, old: int, new: int) -> None:
        show_comparison(self, old, new)

    def resent(self, row: int | None) -> tuple[int, int] | None:
        return self.resending.pair(row)

    # Actions of keys.

    def action_swap(self) -> None:
        """Change between the list and the message; of a failed exchange, go to its response."""
        row, index = self.listing.row, self.loader.model.index
        explains = "failed" in self.footer and row is not None and index.answer(row) not in (None, row)
        self.panes.swap()
        if explains and self.view.options.exchanges:
            self.panes.show_response()

    def action_follow(self) -> None:
        self.listing.action_last()

    def action_error(self, step: int) -> None:
        index = self.loader.model.index
        self.go(
            self._navigation.next_of(chain(index.wrong, index.crashes), step),
            f"no error or protocol issue {WAY[step]}",
        )

    def action_first_error(self) -> None:
        index = self.loader.model.index
        if index.wrong or index.crashes:
            self.listing.select(0)
        if "failed" not in self.footer:
            self.action_error(1)

    def action_finding(self, step: int) -> None:
        self.background.force_lint()
        share = self.background.lint_share
        progress = f" ({share} of the rows linted)" if share else ""
        self.go(
            self._navigation.next_of(self.loader.model.findings.rows, step),
            f"no finding {WAY[step]}{progress}",
        )

    def action_same(self, step: int) -> None:
        self.go(self._navigation.same_target(step), f"no call of the same tool or method {WAY[step]}")

    def action_other(self) -> None:
        """Go from a request to its response and back, or from progress to its request."""
        row, index = self.listing.row, self.loader.model.index
        if row is None:
            return
        other = index.pair(row)
        if other is not None and self.view.options.exchanges and index.answer(row) == other:
            self.panes.detail.action_other()
            return
        is_request = self.loader.model.is_request(row)
        self.go(other, "no response" if is_request else "no matching request")

    def action_chain(self, step: int) -> None:
        self.go(
            self._navigation.linked(step),
            f"no {'next' if step > 0 else 'previous'} request: no input_required here, and no app",
        )

    def action_marked(self, step: int) -> None:
        self.go(self._navigation.marked(step), f"no marked row {WAY[step]} (m to mark)")

    def action_filter(self) -> None:
        self.filter.open()

    def action_filter_off(self) -> None:
        if self.filter.text.strip():
            self._filter_off = self.filter.active  # The text may be invalid.
            self.filter.clear()
            self.flash_message("filter off (F to restore)")
        elif self._filter_off:
            self.filter.put(self._filter_off)

    def action_match(self, step: int) -> None:
        """Go to the next row that matches the filter, which may be off."""

        async def go() -> None:
            here = self.listing.row
            row = await self._navigation.next_match(query, step)
            if self.listing.row == here:
                self.go(row, f"no row that matches the filter {WAY[step]}")

        query = self.view.options.query
        if not query.text and self._filter_off:
            query = parse(self._filter_off, linted=True, allow_unsafe=allows_unsafe(self))
        if query.text:
            self.run_worker(go(), group="match", exclusive=True)
        else:
            self.flash_message("no filter (/ to filter)")

    def action_problems(self) -> None:
        """Show only problems, or all rows again. The cursor stays on its row, or returns to it."""
        self.filter.limit(to_problems=not self.filter.problems)

    def action_change_view(self, what: str) -> None:
        options, text = changed_options(self.view.options, what, len(self.view))
        self.want(options)
        self.flash_message(text)

    def action_time(self) -> None:
        self.listing.time = self.listing.time.following
        self.listing.refresh()
        self.flash_message(f"time: {self.listing.time}")

    def action_mark(self) -> None:
        """Toggle the mark of the row and go to the next row."""
        if (row := self.listing.row) is not None:
            self.listing.marked ^= {row}
            self.view.marked = self.listing.marked
            self.listing.refresh()
            self.listing.select(self.listing.cursor + 1)

    def action_only_marked(self) -> None:
        options = self.view.options
        if not options.only_marked and not self.listing.marked:
            self.flash_message("no marked rows (m to mark)")
            return
        self.want(replace(options, only_marked=not options.only_marked))

    def action_show(self, what: str) -> None:
        SUBSCREENS[what](self)

    def action_view(self, view: str) -> None:
        self.panes.detail.action_view(view)

    def action_copy(self) -> None:
        row = self.listing.row
        change = None if row is None else self.loader.model.get(row)
        if change is None:
            return
        text, label = clipboard_text(change)
        if text is not None:
            self.app.copy_to_clipboard(text)
        self.flash_message(label)

    def action_copy_command(self) -> None:
        words = ["mcpspy", "show", *self.loader.names]
        if text := self.view.options.query.text:
            words += [f"--filter={text}", *(["--lint"] if self.view.options.query.asks_findings else [])]
        command = shlex.join(words)
        self.app.copy_to_clipboard(command)
        self.flash_message(f"copied: {command}")

    def action_held(self, what: str) -> None:
        """Call a method of HeldActions by its name."""
        getattr(self.held_actions, what)()

    def action_restart(self) -> None:
        """Restart the server; what became of it is in the list."""

        async def restarted(connection: InterceptConnection) -> str:
            await connection.restart()
            return "restarting the server"

        connection = self.held_rows.connection
        if connection is None or not connection.may_restart:
            self.flash_message("the server cannot be restarted (start it with mcpspy run or http --watch)")
        else:
            self.do(restarted(connection))

    def action_replay(self, what: str) -> None:
        replay(self, what)

    def action_resend(self, edited: bool) -> None:
        (self.resending.edit if edited else self.resending.resend)()

    def action_call(self) -> None:
        """Call a tool: in this live session, or in a new session of its server."""

        async def call() -> str:
            connection, model = self.held_rows.connection, self.loader.model
            if connection is None or not self.loader.is_live or not await connection.reached():
                await call_server(model.header)
                return ""
            from mcpspy.ui.model.live_call import LiveCall
            from mcpspy.ui.tui.call.targets import CallTargetsScreen

            self.app.push_screen(CallTargetsScreen(await LiveCall(connection, model).start()))
            return ""

        call_server: ServerCaller = self.app.call_server  # type: ignore[attr-defined]
        if self.loader.model.is_merged:
            self.flash_message("several sessions are open: open one alone (O) to call a tool")
        else:
            self.do(call())

    def action_serve(self) -> None:
        """Serve this session; in a run, the session of the selected row."""

        async def served() -> None:
            if trouble := await serve(path):
                self.flash_message(sanitize(trouble))

        serve: RunOpener = self.app.serve  # type: ignore[attr-defined]
        loader, row = self.loader, self.listing.row
        path = (
            loader.alone(row)[0].path
            if isinstance(loader, MergedLoader) and row is not None
            else loader.paths[0]
        )
        self.run_worker(served(), group="serve", exclusive=True)

    def action_run(self) -> None:
        """Open the run of this session; from a run, the session of the selected row, at that row."""

        async def open_run() -> None:
            if trouble := await opener(loader.paths[0]):
                self.flash_message(sanitize(trouble))

        opener: RunOpener = self.app.open_run  # type: ignore[attr-defined]
        loader, row = self.loader, self.listing.row
        if not isinstance(loader, MergedLoader):
            self.run_worker(open_run(), group="run", exclusive=True)
        elif row is not None:
            session, number = loader.alone(row)
            self.app.push_screen(SessionScreen(session, row=number))

    def action_zoom(self) -> None:
        self.panes.zoom(on=not self.panes.is_zoomed)

    async def action_leave(self) -> None:
        if self.panes.is_zoomed:
            self.panes.zoom(on=False)
        elif self.panes.is_reading:
            self.listing.focus()
        elif self.filter.problems:
            self.action_problems()
        elif self.filter.text:
            self.filter.clear()
        else:
            await self._back("Leave this live session? It is still recorded." if self.loader.is_live else "")

    async def action_back(self) -> None:
        await self._back()

    async def _back(self, question: str = "") -> None:
        """Go to the list of sessions, after a confirmation if this viewer holds messages or there is a question."""
        from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt

        async def leave(yes: bool | None) -> None:
            if yes and self.is_active:  # Otherwise it would close the screen that covers it.
                await self.run_action("app.back")

        if question := self.leave_question or question:
            self.app.push_screen(ConfirmPrompt(question, "leave", "stay"), leave)
        else:
            await leave(True)

    # Updates.

    def _findings_added(self) -> None:
        self.listing.refresh()

    def _poll(self) -> None:
        """Update the screen if there is anything new to show."""
        self.background.look()
        top, listing = self.app.screen, self.listing
        if self.loader.is_behind and not listing.has_room and time.monotonic() < self._ticked + READING:
            return
        if (top is self or top.is_modal) and (
            self._last_snapshot != self._snapshot()
            or self._status.is_flashing
            or listing.runs
            or self.held_rows.has_news
            or listing.count != len(self.view)
            or self.view.is_stale
        ):
            self._tick()

    def _snapshot(self) -> object:
        """Return a value that changes whenever there is more to show."""
        loader, view, model = self.loader, self.view, self.loader.model
        rows = (
            model.generation,
            len(model),
            view.processed,
            view.version,
            model.index.unanswered,
            model.findings.count,
        )
        return rows, loader.done, loader.state, loader.trouble, loader.is_deleted, model.is_over, self.size

    def _tick(self) -> None:
        if not self._keys.is_attached:  # The screen is being closed.
            return
        self._ticked = time.monotonic()
        self._last_snapshot = self._snapshot()
        is_held_changed = self.held_rows.show()
        self.background.filter_slice()  # Show new rows now instead of at the next tick.
        self._list_updates.show()
        if is_held_changed:
            self.refresh_bindings()
        elif self.footer != self._footer:  # The keys of the row that is selected now.
            self._footer = self.footer
            self._keys.show_state()
        if self._wanted is not None and self.view.processed > self._wanted:
            wanted, self._wanted = self._wanted, None
            self.go(wanted, "")
        if self._then and len(self.view) and not (self.loader.is_behind or self.view.is_behind):
            self.call_later(self.run_action, self._then)
            self._then = ""
        self._update_status()
        self.panes.look()

    def _absent_name(self, text: str) -> str:
        """Return which name of the filter the session does not have; found again after more was read."""
        key = text, len(self.loader.model)
        if self._absent[0] != key:
            self._absent = key, sanitize(absent_name(text, self.loader.model.names()))
        return self._absent[1]

    def _update_status(self) -> None:
        loader, view, listing = self.loader, self.view, self.listing
        if not len(view) and not view.is_behind and len(loader.model):
            hint = "Press esc to clear the filter, or v or V to show more rows."
            listing.empty = [("No matching rows.", None), (hint, None)]
            if absent := self._absent_name(self.filter.active):
                listing.empty = [("No matching rows.", None), (absent, None), (hint, None)]
            if self.filter.problems:
                found = "No problems match the filter." if self.filter.active else "No problems."
                listing.empty = [(found, None), ("Press P or esc to show all rows.", None)]
        self._title.set_text(*title(loader, view, self.size.width - 2))
        unseen = self._list_updates.unseen
        self._status.show_status(
            sentence(loader), position(loader, view, listing.cursor, follows=listing.follow, new=unseen)
        )
