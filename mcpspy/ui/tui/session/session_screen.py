"""The screen of one session.

Owns how the list, the message, the filter and the two lines work together,
live. Reading is `feed`'s, which rows there are `view`'s, what there is to say
`facts`' and `words`'.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer
from textual.worker import WorkerError

from mcpspy.core.columns import Kind
from mcpspy.errors import McpspyError
from mcpspy.io.folder import slug
from mcpspy.io.store import Summary
from mcpspy.ui.tui.intercept import holding_keys
from mcpspy.ui.tui.intercept.holding import Holding
from mcpspy.ui.tui.line import Line
from mcpspy.ui.tui.listing import Listing
from mcpspy.ui.tui.session.facts import clipping
from mcpspy.ui.tui.session.filterbar import FilterBar
from mcpspy.ui.tui.session.findings import Linting, prepare
from mcpspy.ui.tui.session.merged import feed_of
from mcpspy.ui.tui.session.panes import Panes
from mcpspy.ui.tui.session.session_keys import KEYS
from mcpspy.ui.tui.session.view import MOST_SORTED, Order, View, Wish
from mcpspy.ui.tui.session.words import plural, position, sentence, title

WIDE = 110
"""Columns from which the message stands beside the list."""

TICK = 0.1
"""Seconds between two looks at the log: more often than an eye can use costs a core."""

READING = 0.3
"""Seconds between two looks while a long file is read, which each of them delays."""

LINTED = 50_000
"""Rows up to which what is wrong with them is looked for unasked: that takes some ten seconds."""

SLICE = 0.004
"""Seconds that rows are judged, or looked at, at a time: a key waits no longer."""

PAUSED = 0.5
"""Seconds between two growths of a list whose end is not in view."""

SORTED_EVERY = 1.0
"""Seconds between two times that a growing list is sorted."""

FLASH = 2.5
"""Seconds that the answer to a key is read."""


COMMANDS = {
    binding.action.partition("(")[0]
    for binding in [*holding_keys.KEYS, *KEYS]
    if isinstance(binding, Binding)
}
"""What the keys of this screen do."""


class SessionScreen(Holding):
    """One session, from its file."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - typed so by Screen.

    # Not CSS: for that Textual would read all styles again.
    DEFAULT_CSS = """
    SessionScreen.-wide Panes { layout: horizontal; }
    SessionScreen.-wide Panes > Listing { width: 3fr; }
    SessionScreen.-wide Panes > Detail { width: 2fr; border-top: none; border-left: solid $panel; }
    SessionScreen.-wide Panes > Detail:focus-within { border-top: none; border-left: heavy $primary; }
    """

    BINDINGS: ClassVar[list[BindingType]] = holding_keys.before(KEYS)

    HELP_NAME = "the session"

    def __init__(self, *summaries: Summary, row: int | None = None) -> None:
        """Show a session, or several as one; begin with the cursor on this row of its log."""
        super().__init__()
        self._wanted = row
        self.feed = feed_of(summaries)
        self.view = View(self.feed.log)
        self.linting = Linting(self.feed.log, self.feed.origin)
        self.panes = Panes(self.feed, self.view)
        self.listing = self.panes.listing
        self.view.marked = self.listing.marked
        self.filter = FilterBar()
        self._title = Line(id="title")
        self._status = Line(id="status", classes="-soft")
        self._off = ""
        self._seen = 0
        """Rows of the session that were there when it was last followed."""
        self._ticked = 0.0
        self._synced = 0.0
        self._sorted = 0.0
        self._generation = 0
        self._stood: object = None
        self._is_behind = asyncio.Event()
        self._is_asked = False
        """Whether findings are wanted of a session of any length."""
        self._is_unlinted = asyncio.Event()
        self._flash = ""
        self._flash_until = 0.0

    def compose(self) -> ComposeResult:
        """Put the panes and the lines in place."""
        self.set_class(self.app.size.width >= WIDE, "-wide")  # The breakpoints come after the first frame.
        yield self._title
        yield self._bar
        yield self.panes
        yield self.filter
        yield self._status
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Begin to read."""
        self.listing.can_follow = self.listing.follow = self.feed.is_live
        self.listing.focus()
        self._reading = self.run_worker(self.feed.read())
        self.run_worker(self.feed.watch_name())
        self.run_worker(self._judge())
        self.run_worker(self._lint())
        self.set_interval(TICK, self._beat)
        self._tick()

    def on_screen_resume(self) -> None:
        """Show what has come while another screen was over this one."""
        self._tick()

    async def on_unmount(self) -> None:
        """Stop reading, and wait until the file is closed."""
        if not self._reading.is_cancelled:  # A second time would interrupt the closing.
            self._reading.cancel()
        with suppress(WorkerError):
            await self._reading.wait()
        self.feed.close()

    def on_listing_moved(self, event: Listing.Moved) -> None:
        """Say where the cursor is."""
        event.stop()
        self._tick()

    def on_filter_bar_changed(self, event: FilterBar.Changed) -> None:
        """Show what another filter lets through."""
        event.stop()
        row, log = self.listing.row, self.feed.log
        if (
            not event.query.text and row is not None
        ):  # The last that the filter showed may not be the last there is.
            self.listing.follow &= all(log.other(later) == row for later in range(row + 1, len(log)))
        self._want(replace(self.view.wish, query=event.query))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a filter is typed, a letter is no command, and the last line does not say so."""
        return (not self.filter.is_typed or action not in COMMANDS) and self.is_for(action)

    def action_swap(self) -> None:
        """Move between the list and the message."""
        self.panes.swap()

    def action_follow(self) -> None:
        """Go to the end, and stay there."""
        self.listing.action_last()

    def action_wrong(self, step: int) -> None:
        """Go to the next error, or the one before."""
        self._go(
            self._next_of(self.feed.log.index.wrong, step), f"no error {'below' if step > 0 else 'above'}"
        )

    def action_finding(self, step: int) -> None:
        """Go to the next row that has a finding, or the one before."""
        self._ask_findings()
        which = "below" if step > 0 else "above"
        yet = f", {self._share} of the rows were looked at" if self.linting.is_behind else ""
        self._go(self._next_of(self.feed.log.findings.rows, step), f"no finding {which}{yet}")

    def action_same(self, step: int) -> None:
        """Go to the next row about the same tool, or method; or the one before."""
        place = next(self._same(step), None)
        self._go(place, f"nothing of the same {'below' if step > 0 else 'above'}")

    def action_other(self) -> None:
        """Go from a request to its answer, and back; from progress to its call."""
        row, index = self.listing.row, self.feed.log.index
        if row is None:
            return
        other = index.pair(row)
        if other is not None and self.view.wish.exchanges and index.answer(row) == other:
            self.panes.detail.action_other()
            return
        is_request = index.kind(row) is Kind.REQUEST
        self._go(other, "it has no answer" if is_request else "it belongs to no request")

    def action_chain(self, step: int) -> None:
        """Go along requests that answer each other's questions (input required)."""
        row, index = self.listing.row, self.feed.log.index
        request = None if row is None else index.request(row)
        if request is not None:
            links = index.continued_by if step > 0 else index.continues
            self._go(links.get(request), "no question was asked" if step > 0 else "it answers no question")

    def action_filter(self) -> None:
        """Let a filter be typed."""
        self.filter.open()

    def action_filter_off(self) -> None:
        """Put the filter aside, or in force again."""
        if self.filter.text.strip():
            self._off = self.filter.text
            self.filter.clear()
            self._tell("the filter is off; F puts it back")
        elif self._off:
            self.filter.put(self._off)

    def action_wire(self) -> None:
        """Change between one row an exchange and one row a message."""
        wish = self.view.wish
        self._want(replace(wish, exchanges=not wish.exchanges))
        self._tell("one row a message, in the order of the wire" if wish.exchanges else "one row an exchange")

    def action_show(self, what: str) -> None:
        """Let notifications, asides or HTTP notes in, or keep them out."""
        wish = self.view.wish
        on = not getattr(wish, what)
        self._want(replace(wish, **{what: on}))
        names = {
            "notifications": "notifications",
            "asides": "stderr and other asides",
            "http": "HTTP exchanges",
        }
        self._tell(f"{names[what]} are {'shown' if on else 'hidden'}")

    def action_time(self) -> None:
        """Show the time in the next way."""
        self.listing.time = self.listing.time.following
        self.listing.refresh()
        self._tell(f"time {self.listing.time}")

    def action_sort(self) -> None:
        """Sort by the next column."""
        wish = self.view.wish
        self._sort(replace(wish, order=wish.order.following, reverse=False))

    def action_reverse(self) -> None:
        """Turn the order around."""
        self._sort(replace(self.view.wish, reverse=not self.view.wish.reverse))

    def action_mark(self) -> None:
        """Mark the row, or no longer; go to the next."""
        if (row := self.listing.row) is not None:
            self.listing.marked ^= {row}
            self.view.marked = self.listing.marked
            self.listing.refresh()
            self.listing.select(self.listing.cursor + 1)

    def action_note(self) -> None:
        """Let a note be written on the row; an empty one is none."""
        from mcpspy.ui.tui.session.ask import Ask

        row, notes = self.listing.row, self.listing.notes

        def written(text: str | None) -> None:
            if row is None or text is None:
                return
            notes.pop(row, None)
            if text:
                notes[row] = text
                self.listing.marked.add(row)
            self.listing.refresh()
            self.panes.look()

        if row is not None:
            self.app.push_screen(
                Ask("A note on this row; it is saved with the rows (x):", notes.get(row, "")), written
            )

    def action_marked(self, step: int) -> None:
        """Go to the next marked row, or the one before."""
        row = self.listing.row
        marked = sorted(self.listing.marked)
        if row is not None:
            beyond = [one for one in marked if (one - row) * step > 0]
            self._go(
                (beyond[0] if step > 0 else beyond[-1]) if beyond else None,
                f"no mark {'below' if step > 0 else 'above'} (m marks)",
            )

    def action_only_marked(self) -> None:
        """Show marked rows only, or all."""
        wish = self.view.wish
        if not wish.only_marked and not self.listing.marked:
            self._tell("nothing is marked (m marks)")
            return
        self._want(replace(wish, only_marked=not wish.only_marked))

    def action_timeline(self) -> None:
        """Show which calls overlapped; the one that is chosen there is gone to."""
        from mcpspy.ui.tui.asides.timeline_screen import TimelineScreen

        def chosen(row: int | None) -> None:
            if row is not None:
                self._go(row, "")

        self.app.push_screen(TimelineScreen(self.feed.log, self.listing.row), chosen)

    def action_numbers(self) -> None:
        """Show what each tool cost; the one that is chosen there is filtered by."""
        from mcpspy.ui.tui.asides.numbers_screen import NumbersScreen

        def chosen(text: str | None) -> None:
            if text is not None:
                self.filter.put(text)

        self.app.push_screen(NumbersScreen(self.feed.log), chosen)

    def action_server(self) -> None:
        """Show what the two can do."""
        from mcpspy.ui.tui.asides.server_screen import ServerScreen

        self.app.push_screen(ServerScreen(self.feed.log))

    def action_diff(self) -> None:
        """Show what differs between this exchange and another: the one marked, else the one before like it."""
        self.run_worker(self._diff(), group="diff", exclusive=True)

    async def _diff(self) -> None:
        from mcpspy.ui.tui.diff.choice import two_of

        row = self.listing.row
        if (two := self.resent(row)) is None:
            chosen = await two_of(self.feed.log, row, self.listing.marked)
            if isinstance(chosen, str):
                self._tell(chosen)
                return
            two = chosen
        self.compare(*two)

    def action_export(self) -> None:
        """Save the marked rows, else all that are shown, under a name that is asked for."""
        from mcpspy.ui.tui.session.ask import Ask

        marked = sorted(self.listing.marked)
        rows = marked or list(self.view.rows)
        header = self.feed.log.header
        what = plural(len(rows), "marked row" if marked else "row")
        question = f"Save {what} as .jsonl (a recording) or .md (to read):"
        kind = "md" if len(self.feed.paths) > 1 else "jsonl"

        def named(name: str | None) -> None:
            if name:
                self.run_worker(self._save(Path(name).expanduser(), rows))

        self.app.push_screen(Ask(question, f"{slug(header.name)}-{header.id[:4]}.{kind}"), named)

    async def _save(self, path: Path, rows: list[int]) -> None:
        from mcpspy.io.new_file import save
        from mcpspy.ui.tui.session.export import jsonl, markdown

        log = self.feed.log
        if path.suffix == ".md":
            pieces: Iterable[bytes | str] = markdown(log, rows, self.listing.notes)
        elif path.suffix == ".jsonl" and len(self.feed.paths) == 1:
            pieces = jsonl(log, rows)
        else:
            why = "one recording cannot hold several sessions: .md can" if path.suffix == ".jsonl" else ""
            self._tell(why or "nothing was saved: the name should end in .jsonl or .md")
            return
        try:
            size = await asyncio.to_thread(save, path, pieces)
        except McpspyError as error:
            self._tell(str(error))
        else:
            self._tell(f"saved {size:,} bytes: {path}")

    def action_view(self, view: str) -> None:
        """Look at the message in another way."""
        self.panes.detail.action_view(view)

    def action_copy(self) -> None:
        """Put the message on the clipboard (OSC 52)."""
        row = self.listing.row
        change = None if row is None else self.feed.log.get(row)
        if change is None:
            return
        text, said = clipping(change)
        if text is not None:
            self.app.copy_to_clipboard(text)
        self._tell(said)

    def action_copy_command(self) -> None:
        """Put the command that prints these rows on the clipboard."""
        words = ["mcpspy", "show", *map(str, self.feed.paths)]
        if text := self.view.wish.query.text:
            words += [f"--filter={text}", *(["--lint"] if self.view.wish.query.asks_findings else [])]
        command = shlex.join(words)
        self.app.copy_to_clipboard(command)
        self._tell(f"copied: {command}")

    def action_zoom(self) -> None:
        """Give one pane all the room, or share it again."""
        self.panes.zoom(on=not self.panes.is_zoomed)

    async def action_leave(self) -> None:
        """Step out of the zoom, then of the message, then of the filter, then of the session."""
        if self.panes.is_zoomed:
            self.panes.zoom(on=False)
        elif self.panes.is_reading:
            self.listing.focus()
        elif self.filter.text:
            self.filter.clear()
        else:
            await self.action_back()

    def _want(self, wish: Wish) -> None:
        """Show other rows; the cursor stays on its row, or the next that is shown."""
        self.listing.follow &= not wish.is_sorted
        if wish.query.asks_findings:
            self._ask_findings()
        self.view.want(wish)
        self._judge_some()  # Of most sessions these are all: nothing is seen of it.
        self.listing.empty = []
        self._tick()

    def _sort(self, wish: Wish) -> None:
        if wish.is_sorted and len(self.view) > MOST_SORTED:
            self._tell(f"more than {MOST_SORTED:,} rows: filter first, then sort")
            return
        self._want(wish)
        way = "first" if wish.order is Order.TIME else "smallest" if wish.reverse else "largest"
        way = "last" if wish.order is Order.TIME and wish.reverse else way
        self._tell(f"sorted by {wish.order}, {way} first" if way != "first" else "in the order of time")

    def _go(self, row: int | None, else_say: str) -> None:
        if row is None:
            self._tell(else_say)
            return
        if not self.view.holds(row):
            self._tell("that row is not shown now (v, o, a and h let more in, F puts the filter off)")
            return
        self.listing.follow = False
        self._sync(at_once=True)
        self.listing.go_to(row)

    def _next_of(self, some: Iterable[int], step: int) -> int | None:
        """Return the next row that is one of some, or whose answer is. It may be the answer of a request further up."""
        index, rows, exchanges = self.feed.log.index, self.view.rows, self.view.wish.exchanges
        wrong = set(some)
        end = len(rows) if step > 0 else -1
        for place in range(self.listing.cursor + step, end, step) if wrong else ():
            row = rows[place]
            if row in wrong or (exchanges and index.request(row) == row and index.pair(row) in wrong):
                return row
        return None

    def _same(self, step: int) -> Iterator[int]:
        index, row, rows = self.feed.log.index, self.listing.row, self.view.rows
        if row is not None:
            about = index.method[row], index.subject[row]
            end = len(rows) if step > 0 else -1
            for place in range(self.listing.cursor + step, end, step):
                if (index.method[rows[place]], index.subject[rows[place]]) == about:
                    yield rows[place]

    def _tell(self, text: str) -> None:
        self._flash, self._flash_until = text, time.monotonic() + FLASH
        self._tick()

    async def _judge(self) -> None:
        """Keep the rows that are shown up with the log, a slice at a time."""
        while True:
            self._is_behind.clear()
            self._judge_some()
            await (asyncio.sleep(0) if self.view.is_behind else self._is_behind.wait())

    async def _lint(self) -> None:
        """Look for what is wrong in what was read, a slice at a time, once nothing else is to be done."""
        while True:
            self._is_unlinted.clear()
            if not self._may_lint:
                await self._is_unlinted.wait()
                continue
            if not self.linting.done:
                await asyncio.to_thread(prepare)
            linting = self.linting
            news = (
                await asyncio.to_thread(linting.advance, 0.0) if linting.is_large else linting.advance(SLICE)
            )
            if news:
                self.view.reconsider(news)
                self.listing.refresh()
            await asyncio.sleep(0)

    @property
    def _may_lint(self) -> bool:
        """Whether there is something to look at, and nobody waits for anything else."""
        is_short = len(self.feed.log) <= LINTED
        busy = self.feed.is_behind or self.view.is_behind
        return self.linting.is_behind and not busy and (is_short or self._is_asked)

    @property
    def _share(self) -> str:
        return f"{self.linting.done * 100 // max(len(self.feed.log), 1)} %"

    def _ask_findings(self) -> None:
        self._is_asked = True
        self._is_unlinted.set()

    def _judge_some(self) -> None:
        end = time.perf_counter() + SLICE
        self.view.judge(lambda: time.perf_counter() < end)
        if self.view.is_behind:
            self._is_behind.set()

    def _beat(self) -> None:
        """Show what is new, if anything is, and if this can be seen."""
        if self._may_lint:
            self._is_unlinted.set()
        top, listing = self.app.screen, self.listing
        if self.feed.is_behind and not listing.has_room and time.monotonic() < self._ticked + READING:
            return
        if (top is self or top.is_modal) and (
            self._stood != self._standing()
            or self._flash
            or listing.runs
            or self.is_holding
            or listing.count != len(self.view)
            or self.view.is_stale
        ):
            self._tick()

    def _standing(self) -> object:
        """Return what differs once there is more to show."""
        feed, view, log = self.feed, self.view, self.feed.log
        rows = log.generation, len(log), view.judged, view.version, log.index.unanswered, log.findings.count
        return rows, feed.done, feed.state, feed.trouble, feed.is_gone, log.is_over, self.size

    def _tick(self) -> None:
        self._ticked = time.monotonic()
        self._stood = self._standing()
        self.say_held()
        self._judge_some()  # What came since is shown at once, and not a tick later.
        self._sync()
        if self._wanted is not None and self.view.judged > self._wanted:
            wanted, self._wanted = self._wanted, None
            self._go(wanted, "")
        if self._flash and time.monotonic() > self._flash_until:
            self._flash = ""
        self._say()
        self.panes.look()

    def _sync(self, *, at_once: bool = False) -> None:
        """Give the list the rows that arrived."""
        view, listing = self.view, self.listing
        listing.can_follow = self.feed.is_live and not view.wish.is_sorted
        if view.is_stale and time.monotonic() > self._sorted:
            self._sorted = time.monotonic() + SORTED_EVERY
            view.sort()
        if view.generation != self._generation:
            self._generation = view.generation
            at_once = True
        # Rows that arrive below what is seen, while paused, may wait: each new height is a new layout.
        at_once |= listing.follow or listing.has_room or time.monotonic() > self._synced
        if at_once and (len(view) or not view.is_behind):
            self._synced = time.monotonic() + PAUSED
            listing.sync(len(view))
        if not view.is_behind:  # The last row was gone to.
            listing.follow &= listing.can_follow
        listing.renew()
        if listing.follow or not self.feed.is_live:
            self._seen = view.judged

    def _say(self) -> None:
        feed, listing = self.feed, self.listing
        if not len(self.view) and not self.view.is_behind and len(feed.log):
            listing.empty = [("Nothing to show: esc clears the filter; v, o, a and h let more in.", None)]
        self._title.say(*title(feed, self.size.width - 2))
        view = self.view
        # Rows that a filter lets in again are not new.
        new = 0 if view.wish.is_sorted else len(view) - bisect_left(view.rows, self._seen)
        where = position(feed, self.view, listing.cursor, follows=listing.follow, new=new)
        self._status.say([(self._flash, None)] if self._flash else [sentence(feed)], where)
