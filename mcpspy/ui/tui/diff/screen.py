"""The screen that shows the differences between two sessions or two exchanges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import ClassVar

from msgspec.structs import replace
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from mcpspy.analysis import rows
from mcpspy.analysis.diff import ChangePosition, DiffOptions
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError
from mcpspy.io.recording.reader import Summary
from mcpspy.ui.report.diff import short
from mcpspy.ui.text.width import cut_middle
from mcpspy.ui.tui.bindings import DIFF_KEYS
from mcpspy.ui.tui.diff.comparison import ComparablePair, ComparisonRun
from mcpspy.ui.tui.diff.rows import DiffList, change_counts, diff_rows, whole
from mcpspy.ui.tui.session.filter_bar import FilterInput
from mcpspy.ui.tui.widgets.base import CLIPBOARD, DismissibleScreen, SplitLine
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.footer import KeyFooter
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

TICK = 0.1
FLASH = 2.5
PLACE = 24
"""Columns of the status line that are not for the pointer."""

NARROW = 60
"""Below this many columns, lines show only their left part."""

EXAMPLE = "breaking tools/call -description"

SAME: list[Piece] = [
    ("No differences.", rows.OK),
    ("", None),
    ("Ids, progress tokens, cursors and other values that change from run to run", rows.QUIET),
    ("are not compared.", rows.QUIET),
]

_COMMANDS = {binding.action.partition("(")[0] for binding in DIFF_KEYS if isinstance(binding, Binding)}


class DiffScreen(DismissibleScreen[int | None]):
    """A diff. With two exchanges of the session below, it is dismissed with the row to go to."""

    # Not CSS: Textual would parse all styles again.
    DEFAULT_CSS = """
    DiffScreen FilterInput { display: none; height: 1; border: none; padding: 0 1; background: $surface; }
    DiffScreen FilterInput.-open { display: block; }
    """

    BINDINGS: ClassVar[list[BindingType]] = DIFF_KEYS

    HELP_NAME = "diff"

    AUTO_FOCUS = "#diff"

    def __init__(
        self, pair: ComparablePair, opened: Callable[[Summary, int], None] = lambda session, row: None
    ) -> None:
        """`opened` shows a row of one of the two sessions."""
        super().__init__()
        self._pair = pair
        self._opened = opened
        self._options = DiffOptions()
        self._compared: ComparisonRun | None = None
        self._trouble: list[Piece] = []
        self._counts: list[Piece] = []
        self._left = ""
        self._title = SplitLine(id="title")
        self._list = DiffList()
        self._filter = FilterInput(lambda _: ())
        self._filter.placeholder = EXAMPLE
        self._status = SplitLine(id="status", classes="-soft")
        self._shown: object = None
        self._is_filling = False
        self._flash, self._flash_until = "", 0.0

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._list
        yield self._filter
        yield self._status
        yield KeyFooter()

    def on_mount(self) -> None:
        self.set_interval(TICK, self._look)
        self.action_reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys of the screen, and hide them from the footer, while the user types a filter."""
        return not self._filter.has_focus or action not in _COMMANDS

    def on_resize(self) -> None:
        self.call_after_refresh(self._fill)

    def on_virtual_list_moved(self, event: VirtualList.Moved) -> None:
        event.stop()
        self._update_status()

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        event.stop()
        self.action_open("new")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._fill()

    def on_filter_input_left(self, event: FilterInput.Left) -> None:
        event.stop()
        self._filter.keep()
        if event.clear or not self._filter.value.strip():
            self._clear()
        self._list.focus()

    def action_filter(self) -> None:
        self._filter.add_class("-open")
        self._filter.focus()

    def action_leave(self) -> None:
        if self._filter.has_class("-open"):
            self._clear()
        else:
            self.action_back()

    def action_back(self) -> None:
        self.dismiss(None)

    def action_change(self, step: int) -> None:
        place = self._list.following(self._list.cursor, step)
        if place is None:
            self._flash_message(f"no change {'below' if step > 0 else 'above'}")
        else:
            self._list.move_to(place)

    def action_open(self, side: str) -> None:
        """Go to the change under the cursor on the chosen side, or on the other side if it is missing there."""
        row = self._list.selected
        if row is None or self._compared is None:
            return
        old, new = (
            self._found(row.case.old, self._compared.old),
            self._found(row.case.new, self._compared.new),
        )
        is_new = new is not None and (side == "new" or old is None)
        there = new if is_new else old
        if there is None:
            self._flash_message("this change concerns the whole session, not one message")
        elif (summaries := self._pair.summaries) is None:
            self.dismiss(there)
        else:
            self._opened(summaries[is_new], there)

    def action_reverse(self) -> None:
        self._pair = self._pair.reversed
        self.action_reload()

    def action_dates(self) -> None:
        self._options = replace(self._options, dates=not self._options.dates)
        self._flash_message(f"dates and times are {'ignored' if self._options.dates else 'compared'}")
        self.action_reload()

    def action_volatile(self) -> None:
        self._options = replace(self._options, volatile=not self._options.volatile)
        self._flash_message(f"ids, times and ports are {'ignored' if self._options.volatile else 'compared'}")
        self.action_reload()

    def action_reload(self) -> None:
        self._compared, self._trouble, self._counts = None, [], []
        self._list.titles = self._pair.titles
        self._compare()
        self._fill()

    def action_copy(self) -> None:
        """Copy the whole value on this line (OSC 52), else the line."""
        if self._list.selected is not None:
            self.run_worker(self._copy(), group="copy", exclusive=True)

    async def _copy(self) -> None:
        row = self._list.selected
        assert row is not None
        text = await asyncio.to_thread(whole, row)
        size = len(text.encode())
        if size > CLIPBOARD:
            self._flash_message(f"not copied: {rows.size(size)}B is too large for the clipboard")
        else:
            self.app.copy_to_clipboard(text)
            self._flash_message(f"copied {size:,} bytes")

    # Not run_worker(self._compare()): a coroutine whose screen is closed before it starts is never awaited.
    @work(group="compare", exclusive=True)
    async def _compare(self) -> None:
        try:
            self._compared = compared = await self._pair.compare(self._options)
            self._counts = change_counts(compared.difference)
        except McpspyError as error:
            self._trouble = [
                (sanitize(str(error.args[0])), rows.BAD),
                *([(sanitize(error.hint), None)] if error.hint else []),
                ("", None),
                ("ctrl-r reloads both, q goes back", rows.QUIET),
            ]
        self._fill()

    def _fill(self) -> None:
        wanted = (self._compared, self._trouble, self._list.room, self._filter.value)
        if wanted != self._shown and not self._is_filling:
            self._is_filling = True
            self.run_worker(self._fill_all())

    async def _fill_all(self) -> None:
        """Build the lines in a thread: it is slow for a large diff."""
        while (wanted := (self._compared, self._trouble, self._list.room, self._filter.value)) != self._shown:
            compared, trouble, room, text = wanted
            if compared is None:
                lines, self._list.empty = [], trouble
            else:
                difference = compared.difference
                lines = await asyncio.to_thread(diff_rows, difference, room, text)
                count = len(difference.changes)
                left = f"{sum(row.begins for row in lines):,} of {counted(count, 'change')}"
                self._left = left if text else ""
                self._list.empty = [(f"{left}: esc clears the filter", None)] if count else SAME
            self._shown = wanted
            self._list.fill(lines)
        self._is_filling = False
        self._update_status()

    def _clear(self) -> None:
        self._filter.value = ""
        self._filter.remove_class("-open")
        self._list.focus()
        self._fill()

    def _flash_message(self, text: str) -> None:
        self._flash, self._flash_until = text, time.monotonic() + FLASH
        self._update_status()

    def _look(self) -> None:
        if self._compared is None or self._flash:
            self._update_status()

    def _update_status(self) -> None:
        listing, is_wide = self._list, self.size.width >= NARROW
        if time.monotonic() > self._flash_until:
            self._flash = ""
        options = self._options
        kind = " · volatile ignored" if options.volatile else " · dates ignored" if options.dates else ""
        kind += " · two exchanges" if self._pair.summaries is None else " · two sessions"
        name: list[Piece] = [("Diff", "title"), (kind if is_wide else "", None)]
        self._title.set_text(name, self._counts)
        below: Piece = (self._flash, None)
        if not self._flash:
            below = self._status_line()
        place = f"{listing.cursor + 1:,}/{listing.count:,}" if listing.count else ""
        if place and self._left:
            place = f"{self._left}  {place}"
        self._status.set_text([below], [(place, rows.QUIET)] if place and is_wide else [])

    def _status_line(self) -> Piece:
        """Return the progress, the warning, or the pointer under the cursor."""
        if self._compared is None:
            return ("" if self._trouble else self._pair.progress), rows.QUIET
        if self._compared.warning:
            return self._compared.warning, rows.ISSUE
        row = self._list.selected
        change = None if row is None else row.change
        return (
            "" if change is None else cut_middle(short(change.pointer), self.size.width - PLACE)
        ), rows.QUIET

    @staticmethod
    def _found(place: ChangePosition | None, known: dict[ChangePosition, int]) -> int | None:
        return None if place is None else known.get(place)
