"""The screen of all sessions, which scans the folder about once per second in a thread.

Its filter line has the language of `mcpspy ls`. An invalid filter is reported and not applied.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import Worker, WorkerError

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.query.completion import completed
from mcpspy.core.query.lexer import QueryError
from mcpspy.core.query.sessions import FIELDS, SessionQuery
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.recording.catalog import Catalog, Sessions
from mcpspy.io.recording.listed_session import ListedSession, read_sessions_filter, values_of_fields
from mcpspy.io.recording.reader import RecordingState, Summary, delete, files_of
from mcpspy.io.recording.session_counts import CountCache
from mcpspy.ui.demo.client import record
from mcpspy.ui.tui.bindings import SESSIONS_KEYS
from mcpspy.ui.tui.session.base import RunOpener, ServerCaller
from mcpspy.ui.tui.session.filter_bar import FilterInput, FilterLine
from mcpspy.ui.tui.sessions.session_list import (
    SessionList,
    about,
    command,
    nothing,
    question,
    refusal,
    title,
    undecided,
)
from mcpspy.ui.tui.widgets.base import SplitLine
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.footer import KeyFooter
from mcpspy.ui.tui.widgets.prompts import ConfirmPrompt
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

EXAMPLE = "weather errors>0 since:1d -state:live"


class SessionFilterBar(FilterLine):
    DEFAULT_CSS = "SessionFilterBar.-open { display: block; }"

    class Changed(Message):
        """The active filter has changed."""

    class Left(Message):
        """The user left the filter line."""

    def __init__(self, values: Callable[[], Mapping[str, Iterable[str]]]) -> None:
        """`values` returns the names, servers … of the sessions, which complete a filter."""
        super().__init__(lambda text: completed(text, FIELDS.names, values()))
        self.active = SessionQuery()
        """The active filter: the last valid one."""
        self._input.placeholder = EXAMPLE

    def open(self) -> None:
        self.add_class("-open")
        self._input.focus()

    def clear(self) -> None:
        self._input.keep()
        self._input.value = ""
        self.remove_class("-open")
        self._apply()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._apply()

    def on_filter_input_left(self, event: FilterInput.Left) -> None:
        event.stop()
        if event.clear or not self._input.value.strip():
            self.clear()
        self._input.keep()
        self.post_message(self.Left())

    def _apply(self) -> None:
        try:
            query = read_sessions_filter(self._input.value)
        except QueryError as error:
            self._show_error(sanitize(str(error.args[0])))
            return
        self._show_error("")
        if query.text != self.active.text:
            self.active = query
            self.post_message(self.Changed())


NEWEST = 200
"""Number of sessions whose names complete a filter."""

EVERY = 1.0

SESSION_SCREEN = "mcpspy.ui.tui.session.screen"
FLASH = 4.0

REST = 10
"""Factor for the pause between two filterings while sessions are counted, relative to the duration of the last one."""


class SessionsScreen(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = SESSIONS_KEYS

    HELP_NAME = "sessions"

    AUTO_FOCUS = "#list"

    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self._catalog = catalog
        self._counts = CountCache(catalog)
        self._sessions: Sequence[Summary] = []
        self._has_looked = False
        self._listed: dict[Path, ListedSession] = {}
        """The sessions that were filtered last."""
        self._undecided: list[Summary] = []
        """Sessions whose counts decide whether they match the filter, and are not known."""
        self._hint = ""
        """The reason why no session matches the filter."""
        self._filtered_again = 0.0
        """Monotonic time before which new counts do not make the sessions be filtered again."""
        self._elsewhere: list[str] = []
        """Other folders that have live sessions, searched once, if this folder has no sessions."""
        self._wanted = asyncio.Event()
        self._force_reload = False
        self._demo: Worker[None] | None = None
        self._flash: Piece | None = None
        self._flash_until = 0.0
        self._title = SplitLine(id="title")
        self._keys = KeyFooter()
        self._list = SessionList(self._counts.of, id="list")
        self._bar = SessionFilterBar(self._values)
        self._status = SplitLine(id="status", classes="-soft")

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._list
        yield self._bar
        yield self._status
        yield self._keys

    def on_mount(self) -> None:
        self._update_status()
        self.run_worker(self._look())

    async def on_unmount(self) -> None:
        if self._demo is not None:
            self._demo.cancel()
            with suppress(WorkerError):
                await self._demo.wait()

    @property
    def footer(self) -> tuple[str, ...]:
        return ("sessions",) if self._list.count else ("no-sessions",)

    def on_screen_resume(self) -> None:
        self._wanted.set()

    def action_open(self, then: str = "") -> None:
        """Open the session, and run an action of its screen once it is read."""
        if wanted := self._list.wanted:
            self._open(*wanted, then=then)

    def action_filter(self) -> None:
        self._bar.open()

    def action_leave(self) -> None:
        if self._bar.active.text or self._bar.has_class("-open"):
            self._bar.clear()
        else:
            self._list.unmark()

    def action_diff(self) -> None:
        """Compare the two marked sessions, or this one with the chosen one; otherwise choose this one."""
        here, marked = self._list.chosen, self._list.marked
        other = next((one for one in self._sessions if one.path == self._list.compared), None)
        if len(marked) > 2:
            self._flash_message(f"{len(marked)} sessions marked; a diff needs two (m to unmark)", rows.BAD)
        elif len(marked) == 2:
            self._compare(*marked)
        elif here is None:
            return
        elif other is None and len(marked) == 1 and marked[0].path != here.path:
            self._compare(marked[0], here)
        elif other is None or other.path == here.path:
            self._choose(None if other else here)
        else:
            self._compare(other, here)

    def action_forget(self) -> None:
        self._choose(None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let `escape` cancel a pending diff before anything else; `/` is text while a filter is typed."""
        if action == "filter" and isinstance(self.focused, Input):
            return False
        return action != "forget" or self._list.compared is not None

    def _choose(self, session: Summary | None) -> None:
        self._list.compared = None if session is None else session.path
        self._list.refresh()
        self.refresh_bindings()
        self._flash = None
        self._update_status()

    def _compare(self, *two: Summary) -> None:
        from mcpspy.ui.tui.diff.comparison import SessionPair
        from mcpspy.ui.tui.diff.screen import DiffScreen

        self._choose(None)
        old, new = sorted(two, key=lambda summary: summary.order)

        pair = SessionPair(old, new)
        self.app.push_screen(DiffScreen(pair, lambda session, row: self._open(session, row=row)))

    def _open(self, *sessions: Summary, row: int | None = None, then: str = "") -> None:
        from mcpspy.ui.tui.session.screen import SessionScreen

        self.app.push_screen(SessionScreen(*sessions, row=row, then=then))

    def action_run(self) -> None:
        async def open_run() -> None:
            if chosen is not None and (trouble := await opener(chosen.path)):
                self._flash_message(sanitize(trouble), rows.QUIET)

        opener: RunOpener = self.app.open_run  # type: ignore[attr-defined]
        chosen = self._list.chosen
        self.run_worker(open_run(), group="run", exclusive=True)

    def action_serve(self) -> None:
        async def served() -> None:
            if chosen is not None and (trouble := await serve(chosen.path)):
                self._flash_message(sanitize(trouble), rows.BAD)

        serve: RunOpener = self.app.serve  # type: ignore[attr-defined]
        chosen = self._list.chosen
        self.run_worker(served(), group="serve", exclusive=True)

    def action_call(self) -> None:
        """Call a tool: in a live session, or in a new session of a server that the user chooses."""
        call_server: ServerCaller = self.app.call_server  # type: ignore[attr-defined]
        chosen = self._list.chosen
        if chosen is not None and chosen.state is RecordingState.LIVE:
            self._open(chosen, then="call")
        else:
            header = None if chosen is None else chosen.header
            self.run_worker(call_server(header), group="call", exclusive=True)

    def action_delete(self) -> None:
        if getattr(self.app, "is_remote", False):
            self._flash_message("cannot delete sessions of another machine", rows.BAD)
            return
        wanted = self._list.wanted
        dead = [summary for summary in wanted if summary.state is not RecordingState.LIVE]
        if dead:
            self.run_worker(self._delete(dead, len(wanted) - len(dead)))
        elif wanted:
            self._flash_message(refusal(wanted), rows.BAD)

    def action_copy_path(self) -> None:
        if (chosen := self._list.chosen) is not None:
            self._copy(sanitize(str(chosen.path)))

    def action_copy_command(self) -> None:
        if (chosen := self._list.chosen) is not None:
            self._copy(command(chosen, self._sessions, str(self._catalog.folder)))

    def action_reload(self) -> None:
        self._force_reload = True
        self._wanted.set()

    def action_demo(self) -> None:
        if self._demo is None and not getattr(self.app, "is_remote", False):
            self._demo = self.run_worker(self._record_demo())
            self._update_status()

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        event.stop()
        self.action_open()

    def on_virtual_list_moved(self, event: VirtualList.Moved) -> None:
        event.stop()
        self._update_status()

    def on_session_filter_bar_changed(self, event: SessionFilterBar.Changed) -> None:
        event.stop()
        self._show()

    def on_session_filter_bar_left(self, event: SessionFilterBar.Left) -> None:
        event.stop()
        self._list.focus()

    async def _look(self) -> None:
        while True:
            began = time.monotonic()
            until = began + EVERY
            # Textual considers a screen current that an opaque one covers; each update would draw both.
            if self.is_current and (self.app.screen is self or self.app.screen.is_modal):
                forced, self._force_reload = self._force_reload, False
                self._sessions = sessions = await asyncio.to_thread(self._catalog.look, reread=forced)
                self._elsewhere = [] if self._sessions else self._elsewhere
                is_first, self._has_looked = not self._has_looked, True
                self._show()
                await asyncio.to_thread(self._counts.keep, sessions.names())
                if is_first and not self._sessions:
                    self._elsewhere = await asyncio.to_thread(_other_folders, str(self._catalog.folder))
                    self._show()
                until = time.monotonic() + max(EVERY, 10 * (time.monotonic() - began))
                if await self._count(sessions, until) or is_first:
                    await asyncio.to_thread(self._catalog.save)
                if is_first:  # Importing it takes a tenth of a second: not before the list is shown.
                    await asyncio.to_thread(import_module, SESSION_SCREEN)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), max(until - time.monotonic(), 0.0))
            self._wanted.clear()

    async def _count(self, sessions: Sessions, until: float) -> bool:
        """Count the messages of the visible sessions, then of the others, while there is no other work.

        Return whether nothing is left to count.
        """
        is_done = False
        while not is_done and time.monotonic() < until and not self._wanted.is_set():
            before = self._counts.news
            wanted = chain(self._list.by_interest(), sessions.uncounted())
            is_done = await asyncio.to_thread(self._counts.work, wanted)
            if self._counts.news != before:
                self._list.refresh()
                if self._undecided and time.monotonic() > self._filtered_again:
                    self._show()
        return is_done

    async def _delete(self, sessions: list[Summary], live: int) -> None:
        try:
            files = [path for summary in sessions for path in await asyncio.to_thread(files_of, summary)]
            asked = ConfirmPrompt(question(sessions, len(files), live), "delete for good", "keep")
            if not await self.app.push_screen_wait(asked):
                return
            for summary in sessions:
                await asyncio.to_thread(delete, summary)
        except McpspyError as error:
            self._flash_message(sanitize(str(error)), rows.BAD)
        else:
            name = (
                sanitize(sessions[0].header.name) if len(sessions) == 1 else counted(len(sessions), "session")
            )
            self._flash_message(f"deleted {name}")
        self._wanted.set()

    async def _record_demo(self) -> None:
        trouble = await record(str(self._catalog.folder))
        self._demo = None
        self._flash_message(f"demo failed: {trouble}", rows.BAD) if trouble else self._update_status()
        self._wanted.set()

    def _copy(self, text: str) -> None:
        self.app.copy_to_clipboard(text)
        self._flash_message(f"copied {text}")

    def _flash_message(self, text: str, role: str | None = None) -> None:
        self._flash, self._flash_until = (text, role), time.monotonic() + FLASH
        self._update_status()
        self.set_timer(FLASH, self._update_status)

    def _show(self) -> None:
        shown = self._matching()
        has_rest = not self._has_looked or self._catalog.trouble
        self._list.empty = [] if has_rest else nothing(len(self._sessions), self._elsewhere, self._hint)
        compared = self._list.compared
        self._list.forget_all_but(self._sessions)
        if self._list.compared != compared:
            self.refresh_bindings()
        self._list.show(shown)
        self._update_status()

    def _matching(self) -> Sequence[Summary]:
        """Return the sessions that match the filter; one whose counts decide on that and are not known does not."""
        query, self._undecided, self._hint = self._bar.active, [], ""
        if not query.text:
            return self._sessions
        began = time.monotonic()
        known = self._listed  # Their items take longer to make than to test.
        listed = [
            each
            if (each := known.get(summary.path)) is not None and each.summary is summary
            else ListedSession(summary, self._catalog, self._counts.of)
            for summary in self._sessions
        ]
        self._listed = {each.summary.path: each for each in listed}
        found = []
        for each in listed:
            each.lacks_counts = False
            if query.matches(each.item()) and not each.lacks_counts:
                found.append(each.summary)
        self._undecided = [each.summary for each in listed if each.lacks_counts]
        if not found:
            self._hint = query.no_match(each.item() for each in listed)
        self._filtered_again = time.monotonic() + REST * (time.monotonic() - began)
        return found

    def _values(self) -> Mapping[str, Iterable[str]]:
        """Return the values of the fields of a filter; those of texts are of the newest sessions."""
        return values_of_fields(self._sessions[:NEWEST])

    def _update_status(self) -> None:
        if self._keys.is_attached:  # Else the screen is being closed.
            self._keys.show_state()
        names, counts = title(self._list.count, self._sessions, len(self._list.marked))
        self._title.set_text(names, counts if self._has_looked else [("reading …", rows.QUIET)])
        is_choosing = self._list.compared is not None
        self._status.set_text([self._status_line()], [] if is_choosing else about(self._list.chosen))

    def _status_line(self) -> Piece:
        """Return the message, problem or activity to show."""
        if self._flash is not None and time.monotonic() < self._flash_until:
            return self._flash
        if self._catalog.trouble:
            return sanitize(self._catalog.trouble), rows.BAD
        if (path := self._list.compared) is not None:
            name = next((sanitize(one.header.name) for one in self._sessions if one.path == path), "")
            return f"diff {name or 'this session'} with … (d on another session, esc to cancel)", rows.OPEN
        if self._demo is not None:
            return "recording a demo session …", rows.OPEN
        if self._undecided:
            return undecided(self._undecided), rows.OPEN
        return sanitize(f"watching {self._catalog.folder}"), rows.QUIET


def _other_folders(folder: str) -> list[str]:
    """Return the folders of live sessions, without this one."""
    from mcpspy.io.control.client import live_sessions

    others = (session.folder for session in live_sessions() if not session.is_in(folder))
    return list(dict.fromkeys(filter(None, others)))
