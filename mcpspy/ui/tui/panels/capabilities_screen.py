"""The capabilities panel: peers, their capabilities, lists, and changes between listings.

A thread reads the pages one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

from textual.binding import Binding, BindingType

from mcpspy.analysis import rows
from mcpspy.analysis.context import DEFAULT_WINDOW, share
from mcpspy.analysis.negotiation import negotiated
from mcpspy.core.counted import counted
from mcpspy.core.protocol.extensions import EXTENSION_LISTINGS
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.index import Index
from mcpspy.ui.model.interface import (
    TITLES,
    Capabilities,
    Capability,
    CapabilityListing,
    ListingChange,
    ListPage,
    ListPages,
    read,
    recent_pages,
)
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.text.width import wrap
from mcpspy.ui.tui.detail.layout import FOLDED, OPEN
from mcpspy.ui.tui.panels.panel_screen import PanelScreen, leaving
from mcpspy.ui.tui.widgets.base import CLIPBOARD
from mcpspy.ui.tui.widgets.columns import Column, Piece, PlacedColumn
from mcpspy.ui.tui.widgets.virtual_list import MARGIN, VirtualList

LONG = 4000
NAMES = 20

Key = tuple[str, int]
"""Key of a foldable row: a method, and the position of an item in its list or -1 for the list itself."""


class CapabilityRow(NamedTuple):
    name: str
    type: str = ""
    need: str = ""
    about: str = ""
    role: str | None = None
    key: Key | None = None
    capability: Capability | None = None
    is_text: bool = False
    """True if the name takes the whole line."""


FoldedRows = dict[str, tuple[CapabilityListing, list[CapabilityRow]]]
"""Method → its listing, and the rows of that listing with all items folded."""


def lines(
    index: Index, offer: Capabilities, opened: Collection[Key], width: int, cache: FoldedRows
) -> list[CapabilityRow]:
    """Return all rows of the panel; only items in `opened` take more than one row."""
    return [
        *_peers(index, width),
        *(row for method in TITLES for row in _listing(method, offer, opened, width, cache)),
        *_changes(offer, width),
    ]


def _peers(index: Index, width: int) -> Iterator[CapabilityRow]:
    yield CapabilityRow("Peers", role="title", is_text=True)
    for side, peer in (("server", index.server), ("client", index.client)):
        yield _text(f"  {side:<9}{_clean(str(peer)) if peer else 'not identified'}")
    yield _text(f"  {'revision':<9}{_clean(index.revision or 'unknown')}")
    yield CapabilityRow("Capabilities", role="title", is_text=True)
    for side, capabilities in (
        ("server", index.server_capabilities),
        ("client", index.client_capabilities),
    ):
        for number, part in enumerate(_wrapped(_capabilities(capabilities), width - 11)):
            yield _text(f"  {'' if number else side:<9}{part}")
    extensions = negotiated(index.client_capabilities, index.server_capabilities, set(index.texts))
    if extensions:
        yield CapabilityRow("Extensions", role="title", is_text=True)
    for each in extensions:
        state = "" if each.state == "final" else f" ({each.state})"
        for part in _wrapped(_clean(f"{each.title}{state}: {each.status}"), width - 2):
            yield _text(f"  {part}")


def _capabilities(capabilities: dict[str, Any]) -> str:
    parts = []
    for name, value in capabilities.items():
        inner = ", ".join(key for key, on in value.items() if on) if isinstance(value, dict) else ""
        parts.append(f"{name} ({inner})" if inner else name)
    return ", ".join(parts) or "none declared"


def _listing(
    method: str, offer: Capabilities, opened: Collection[Key], width: int, cache: FoldedRows
) -> Iterator[CapabilityRow]:
    listing = offer.last.get(method)
    if listing is None and method in EXTENSION_LISTINGS:
        return
    yield _text("")
    if listing is None:
        yield CapabilityRow(f"{TITLES[method]}: not listed", role=rows.QUIET, is_text=True)
        return
    key = (method, -1)
    mark = FOLDED if key in opened else OPEN  # Lists start unfolded.
    yield CapabilityRow(
        f"{mark} {TITLES[method]} ({_heading(listing, offer)})", role="title", key=key, is_text=True
    )
    if listing.trouble:
        yield _text(f"  {_clean(listing.trouble)}", rows.BAD)
    if key in opened:
        return
    folded, begin = _folded(listing, cache), 0
    for place in sorted(place for of, place in opened if of == method and place < len(folded)):
        yield from folded[begin:place]
        yield from _opened((method, place), listing.capabilities[place], width)
        begin = place + 1
    yield from folded[begin:]


def _folded(listing: CapabilityListing, cache: FoldedRows) -> list[CapabilityRow]:
    known = cache.get(listing.method)
    if known is None or known[0] is not listing:
        known = cache[listing.method] = (
            listing,
            [
                CapabilityRow(
                    f"  {FOLDED} {capability.name}",
                    capability.type,
                    capability.need,
                    capability.line,
                    None,
                    (listing.method, place),
                    capability,
                )
                for place, capability in enumerate(listing.capabilities)
            ],
        )
    return known[1]


def _heading(listing: CapabilityListing, offer: Capabilities) -> str:
    parts = [f"{len(listing.capabilities):,}", f"listed at {rows.moment(listing.at)} s"]
    if tokens := sum(capability.tokens for capability in listing.capabilities):
        parts.insert(1, f"{tokens:,} tokens, {share(tokens, DEFAULT_WINDOW)} of {DEFAULT_WINDOW:,}")
    if (count := offer.counts[listing.method]) > 1:
        parts.append(f"listed {count:,} times")
    if not listing.begins:
        parts.append("first page not recorded")
    elif listing.has_more:
        parts.append("further pages not requested")
    if len(offer.streams) > 1:
        parts.append(f"last requested by HTTP session {_clean(listing.stream) or '(no id)'}")
    return ", ".join(parts)


def _opened(key: Key, capability: Capability, width: int) -> Iterator[CapabilityRow]:
    yield CapabilityRow(f"  {OPEN} {capability.name}", capability.type, key=key, capability=capability)
    for paragraph in capability.about[:LONG].split("\n"):
        yield from (
            _text(f"      {part}", rows.QUIET, capability, key) for part in _wrapped(paragraph, width - 6)
        )
    for field in capability.details:
        yield CapabilityRow(
            f"      {_clean(field.name)}",
            _clean(field.type),
            "required" if field.required else "",
            _clean(field.about),
            "key",
            key,
            capability,
        )


def _changes(offer: Capabilities, width: int) -> Iterator[CapabilityRow]:
    changes = offer.changes
    if not changes and not any(count > 1 for count in offer.counts.values()):
        return
    yield _text("")
    yield CapabilityRow(
        "Changes between listings" if changes else "No changes between listings", role="title", is_text=True
    )
    for change in changes:
        for part in _wrapped(_change(change), width - 2):
            yield _text(f"  {part}", rows.ISSUE)


def _change(change: ListingChange) -> str:
    parts = [f"{TITLES[change.method]} at {rows.moment(change.at)} s:"]
    if change.added:
        parts.append(f"added {_names(change.added)};")
    if change.removed:
        parts.append(f"removed {_names(change.removed)};")
    if change.changed:
        differing = (f"{key} ({', '.join(keys)})" for key, keys in change.changed)
        parts.append(f"changed {_names(differing)};")
    return " ".join(parts).rstrip(";")


def _names(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - NAMES:,} more" if len(every) > NAMES else ""
    return ", ".join(every[:NAMES]) + more


def _wrapped(text: str, width: int) -> list[str]:
    shown = _clean(text)
    return [shown[begin:end].rstrip() for begin, end in wrap(shown, max(width, 10))]


def _text(
    text: str, role: str | None = None, capability: Capability | None = None, key: Key | None = None
) -> CapabilityRow:
    return CapabilityRow(text, role=role, capability=capability, key=key, is_text=True)


def _clean(text: str) -> str:
    return sanitize(text[:LONG])


UNFOLDED = 2000
CAPABILITIES_COLUMNS = (
    Column("name", "name", 18, 120, 0),
    Column("type", "type", 6, 32, 2),
    Column("need", "", 11, 11, 3),
    Column("about", "description", 12, 400, 1),
)


class CapabilitiesList(VirtualList, inherit_bindings=False):
    COLUMNS: ClassVar[tuple[Column, ...]] = CAPABILITIES_COLUMNS

    # The space key folds here; in other lists it pages down.
    BINDINGS: ClassVar[list[BindingType]] = [
        *(key for key in VirtualList.BINDINGS if not (isinstance(key, Binding) and "pagedown" in key.key)),
        Binding("pagedown", "page(1)", "page down", show=False, id="server.page-down"),
    ]

    HELP_NAME = "capabilities list"

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

    def growing(self, index: int) -> Iterable[tuple[str, str]]:
        """Yield the name and the type of an item or a field."""
        row = self.lines[index]
        if not row.is_text:
            yield "name", row.name
            yield "type", row.type
            yield "need", row.need

    def fill(self, lines: list[CapabilityRow]) -> None:
        self.lines = lines
        self.sync(len(lines))
        self.refresh()


class CapabilitiesScreen(PanelScreen[None]):
    NAME = "Capabilities"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "open", "fold", tooltip="fold or unfold", id="server.fold"),
        Binding("right,l", "unfold(True)", "unfold", show=False, id="server.unfold"),
        Binding("left,h", "unfold(False)", "fold", show=False, id="server.close"),
        Binding("+,=", "unfold_all(True)", "unfold all", show=False, id="server.unfold-all"),
        Binding("-", "unfold_all(False)", "fold all", show=False, id="server.fold-all"),
        Binding("y", "copy", "copy", tooltip="copy the JSON of the item", id="server.copy"),
        *leaving("server"),
    ]

    HELP_NAME = "capabilities"

    def __init__(self, model: SessionModel) -> None:
        self.source = self._pages = ListPages(model)
        self._list = CapabilitiesList()
        super().__init__(model, self._list)
        self._offer = Capabilities()
        self._opened: set[Key] = set()
        self._taken = 0
        self._generation = self._pages.generation
        self._reading = ""
        self._notice = ""
        self._cache: FoldedRows = {}
        self._shown: object = None

    def show(self) -> None:
        """Show the pages read so far, and start reading new ones."""
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
        listed = sum(len(listing.capabilities) for listing in self._offer.last.values())
        right: list[Piece] = [(counted(len(pages.pages), "list response"), None)]
        below: Piece = (self._notice, None)
        if self._reading:
            below = (self._reading, rows.QUIET)
        elif (behind := self.progress(pages.processed))[0]:
            below = behind
        elif not below[0] and not listed and not pages.pages:
            below = ("no lists recorded", rows.QUIET)
        self.set_lines(right, [below], [(f"{self._list.cursor + 1:,}/{self._list.count:,}", rows.QUIET)])

    def action_open(self) -> None:
        row = self._list.selected
        if row is not None and row.key is not None:
            self._fold(row.key, {row.key} ^ (self._opened & {row.key}))

    def action_unfold(self, on: bool) -> None:
        row = self._list.selected
        if row is not None and row.key is not None:
            # Lists start unfolded, their items folded.
            self._fold(row.key, {row.key} if on == (row.key[1] >= 0) else set())

    def action_unfold_all(self, on: bool) -> None:
        row = self._list.selected
        self._opened, left, whole = set(), UNFOLDED, True
        for method, listing in self._offer.last.items() if on else ():
            for place, capability in enumerate(listing.capabilities):
                left -= (
                    len(capability.details) + capability.about.count("\n") + len(capability.about) // 60 + 2
                )
                if left < 0:
                    whole = False
                    break
                self._opened.add((method, place))
        self._fill()
        if row is not None and row.key is not None:
            self._go(row.key)
        if not whole:
            self._flash_message(
                f"unfolded the first {len(self._opened):,} items; the rest is too long to show"
            )

    def action_copy(self) -> None:
        row = self._list.selected
        capability = row.capability if row is not None else None
        if capability is None:
            self._flash_message("nothing to copy: move the cursor to a tool, resource or prompt")
        elif len(capability.data) > CLIPBOARD:
            self._flash_message(
                f"not copied: {rows.size(len(capability.data))}B is too large for the clipboard"
            )
        else:
            self.app.copy_to_clipboard(capability.data.decode("utf-8", "backslashreplace"))
            self._flash_message(
                f"copied the JSON of {sanitize(capability.name[:100])}, {rows.size(len(capability.data))}B"
            )

    def on_virtual_list_moved(self, event: VirtualList.Moved) -> None:
        self._notice = ""
        super().on_virtual_list_moved(event)

    def on_resize(self) -> None:
        self.call_after_refresh(self._fill)

    async def _read(self) -> None:
        generation, offer = self._generation, self._offer
        pages = recent_pages(self._pages.pages[self._taken :])
        self._taken = len(self._pages.pages)
        for number, page in enumerate(pages, 1):
            if generation != self._pages.generation or self._pages.is_replaced:
                break
            where = self._model.index.where(page.row)
            self._reading = (
                f"reading {page.method}, {number:,} of {len(pages):,}, {rows.size(where.length)} …"
            )
            offer.take(page, await asyncio.to_thread(read, self._line(page), where.item, page.method))
        self._reading = ""
        self.show()

    def _line(self, page: ListPage) -> bytes:
        # Not in the thread: the screen reads the same file while drawing.
        where = self._model.index.where(page.row)
        return self._model.read(where.part, where.offset, where.length)

    def _fill(self) -> None:
        width = self._list.scrollable_content_region.width - MARGIN
        index, offer = self._model.index, self._offer
        shown = (
            width,
            frozenset(self._opened),
            {method: (listing, offer.counts[method]) for method, listing in offer.last.items()},
            (index.server, index.client, index.revision, len(offer.streams)),
        )
        if shown != self._shown:
            self._shown = shown
            self._list.fill(lines(index, offer, self._opened, width, self._cache))

    def _fold(self, key: Key, opened: set[Key]) -> None:
        self._opened = (self._opened - {key}) | opened
        self._fill()
        self._go(key)

    def _go(self, key: Key) -> None:
        for place, row in enumerate(self._list.lines):
            if row.key == key:
                self._list.move_to(place)
                return

    def _flash_message(self, text: str) -> None:
        self._notice = text
        self.show()
