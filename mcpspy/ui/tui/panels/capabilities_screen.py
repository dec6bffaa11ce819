"""What the server offers: who the two are, tools and the rest, and what changed.

Owns the list, its folds and its keys, and that pages are read in a thread,
one after the other. What they hold is `server`'s, how it reads `server_rows`'.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.binding import Binding, BindingType

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.session_model import SessionModel
from mcpspy.ui.tui.detail.layout import Piece
from mcpspy.ui.tui.panels.capabilities import Capabilities, ListPage, ListPages, read, worth_reading
from mcpspy.ui.tui.panels.capabilities_rows import CapabilityRow, Kept, Key, lines
from mcpspy.ui.tui.panels.panel_screen import PanelScreen, leaving
from mcpspy.ui.tui.widgets.columns import Column, PlacedColumn
from mcpspy.ui.tui.widgets.virtual_list import MARGIN, VirtualList

CLIPBOARD = 256_000
"""Bytes that terminals take through OSC 52; tmux 3.3a refused 900 kB."""

UNFOLDED = 2000
"""Lines that come at once."""

COLUMNS = (
    Column("name", "name", 18, 44, 0),
    Column("type", "type", 10, 32, 2),
    Column("need", "", 9, 9, 3),
    Column("about", "about", 12, 400, 1),
)


class CapabilitiesList(VirtualList, inherit_bindings=False):
    """Lines of which some can be folded."""

    COLUMNS: ClassVar[tuple[Column, ...]] = COLUMNS

    # A blank folds here, and is no page down.
    BINDINGS: ClassVar[list[BindingType]] = [
        *(key for key in VirtualList.BINDINGS if not (isinstance(key, Binding) and "pagedown" in key.key)),
        Binding("pagedown", "page(1)", "a page down", show=False, id="server.page-down"),
    ]

    HELP_NAME = "in the list of the server"

    def __init__(self) -> None:
        super().__init__(id="server")
        self.lines: list[CapabilityRow] = []

    @property
    def selected(self) -> CapabilityRow | None:
        return self.lines[self.cursor] if self.cursor < len(self.lines) else None

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        row = self.lines[index]
        if row.is_text:
            return [(row.name, row.role)]
        roles = {"name": row.role, "type": "word", "need": rows.OPEN, "about": rows.QUIET}
        return [(getattr(row, column.name), roles[column.name]) for column, _ in placed]

    def fill(self, lines: list[CapabilityRow]) -> None:
        self.lines = lines
        self.sync(len(lines))
        self.refresh()


class CapabilitiesScreen(PanelScreen[None]):
    """What the server offers."""

    NAME = "server"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "open", "fold", tooltip="fold or unfold", key_display="␣", id="server.fold"),
        Binding("right,l", "unfold(True)", "unfold", show=False, id="server.unfold"),
        Binding("left,h", "unfold(False)", "fold", show=False, id="server.close"),
        Binding("+,=", "unfold_all(True)", "unfold all", show=False, id="server.unfold-all"),
        Binding("-", "unfold_all(False)", "fold all", show=False, id="server.fold-all"),
        Binding("y", "copy", "copy", tooltip="copy its JSON", id="server.copy"),
        *leaving("server"),
    ]

    HELP_NAME = "the server"

    def __init__(self, log: SessionModel) -> None:
        self.source = self._pages = ListPages(log)
        self._list = CapabilitiesList()
        super().__init__(log, self._list)
        self._offer = Capabilities()
        self._opened: set[Key] = set()
        self._taken = 0
        self._generation = self._pages.generation
        self._reading = ""
        self._told = ""
        self._kept: Kept = {}
        self._shown: object = None

    def show(self) -> None:
        """Show what is known, and have read what is not."""
        pages = self._pages
        if pages.generation != self._generation:
            self._generation, self._taken, self._offer, self._shown = (
                pages.generation,
                0,
                Capabilities(),
                None,
            )
            self._opened.clear()
        if not self._reading and not pages.is_behind and self._taken < len(pages.pages):
            self._reading = "reading …"
            self.run_worker(self._read())
        self._fill()
        said = sum(len(listing.things) for listing in self._offer.last.values())
        right: list[Piece] = [(f"{len(pages.pages):,} answers with lists", None)]
        below: Piece = (self._told, None)
        if self._reading:
            below = (self._reading, rows.QUIET)
        elif (behind := self.progress(pages.judged))[0]:
            below = behind
        elif not below[0] and not said and not pages.pages:
            below = ("nothing was listed", rows.QUIET)
        self.say(right, [below], [(f"{self._list.cursor + 1:,}/{self._list.count:,}", rows.QUIET)])

    def opened(self) -> None:
        """Fold what the cursor is in, or unfold it."""
        row = self._list.selected
        if row is not None and row.key is not None:
            self._fold(row.key, {row.key} ^ (self._opened & {row.key}))

    def action_unfold(self, on: bool) -> None:
        row = self._list.selected
        if row is not None and row.key is not None:
            # A list begins unfolded, what is in it folded.
            self._fold(row.key, {row.key} if on == (row.key[1] >= 0) else set())

    def action_unfold_all(self, on: bool) -> None:
        row = self._list.selected
        self._opened, left, whole = set(), UNFOLDED, True
        for method, listing in self._offer.last.items() if on else ():
            for place, thing in enumerate(listing.things):
                left -= len(thing.details) + thing.about.count("\n") + len(thing.about) // 60 + 2
                if left < 0:
                    whole = False
                    break
                self._opened.add((method, place))
        self._fill()
        if row is not None and row.key is not None:
            self._go(row.key)
        if not whole:
            self._tell(f"unfolded the first {len(self._opened):,}: all at once would be too much")

    def action_copy(self) -> None:
        """Put the JSON of what the cursor is in on the clipboard (OSC 52)."""
        row = self._list.selected
        thing = row.thing if row is not None else None
        if thing is None:
            self._tell("nothing to copy here: the cursor is on no tool, resource or prompt")
        elif len(thing.data) > CLIPBOARD:
            self._tell(f"not copied: {rows.size(len(thing.data))}, and terminals take no more than 256k")
        else:
            self.app.copy_to_clipboard(thing.data.decode("utf-8", "backslashreplace"))
            self._tell(f"copied the JSON of {sanitize(thing.name[:100])}, {rows.size(len(thing.data))}")

    def on_virtual_list_moved(self, event: VirtualList.Moved) -> None:
        self._told = ""
        super().on_virtual_list_moved(event)

    def on_resize(self) -> None:
        """Break texts anew."""
        self.call_after_refresh(self._fill)

    async def _read(self) -> None:
        """Read the pages that came, one after the other."""
        generation, offer = self._generation, self._offer
        pages = worth_reading(self._pages.pages[self._taken :])
        self._taken = len(self._pages.pages)
        for number, page in enumerate(pages, 1):
            where = self._log.index.where(page.row)
            self._reading = (
                f"reading {page.method}, {number:,} of {len(pages):,}, {rows.size(where.length)} …"
            )
            contents = await asyncio.to_thread(read, self._line(page), where.item, page.method)
            if generation != self._pages.generation or self._pages.is_another:
                break
            offer.take(page, contents)
        self._reading = ""
        self.show()

    def _line(self, page: ListPage) -> bytes:
        # Here and not in the thread: whoever draws reads the same file.
        where = self._log.index.where(page.row)
        return self._log.read(where.part, where.offset, where.length)

    def _fill(self) -> None:
        width = self._list.scrollable_content_region.width - MARGIN
        index, offer = self._log.index, self._offer
        shown = (
            width,
            frozenset(self._opened),
            {method: (listing, offer.counts[method]) for method, listing in offer.last.items()},
            (index.server, index.client, index.revision, len(offer.streams)),
        )
        if shown != self._shown:
            self._shown = shown
            self._list.fill(lines(index, offer, self._opened, width, self._kept))

    def _fold(self, key: Key, opened: set[Key]) -> None:
        self._opened = (self._opened - {key}) | opened
        self._fill()
        self._go(key)

    def _go(self, key: Key) -> None:
        """Put the cursor on the first line of something."""
        for place, row in enumerate(self._list.lines):
            if row.key == key:
                self._list.move_to(place)
                return

    def _tell(self, text: str) -> None:
        self._told = text
        self.show()
