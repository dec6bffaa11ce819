"""The list and the detail pane beside or below it.

They share the space according to the width of the screen. The document of a row
is built once the cursor rests.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container
from textual.timer import Timer

from mcpspy.analysis import rows
from mcpspy.core.recording.decode import Note
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.model.notes import oauth_flow, trust_differences, trust_note
from mcpspy.ui.model.row_filter import FilteredView
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.tui.detail.document import Document, DocumentPart
from mcpspy.ui.tui.detail.pane import DetailPane
from mcpspy.ui.tui.session.labels import content, headers, last_stderr, message_header, refusal, replacement
from mcpspy.ui.tui.session.message_list import MessageList
from mcpspy.ui.tui.widgets.columns import Piece
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

SETTLE = 0.06
"""Seconds that the cursor rests before its message is laid out, so that a held key does not open every one."""

SETTLE_LIVE = 0.3
"""The same, while the cursor follows the end."""

NOTHING = Document([DocumentPart("message", [("", None)], b"")])


class Panes(Container):
    DEFAULT_CSS = """
    Panes { height: 1fr; layout: vertical; }
    Panes > * { height: 1fr; width: 1fr; }
    Panes > DetailPane { border-top: solid $panel; }
    Panes > DetailPane:focus-within { border-top: heavy $primary; }
    Panes.-list > DetailPane, Panes.-detail > VirtualList { display: none; }
    """

    def __init__(self, loader: SessionLoader, view: FilteredView) -> None:
        super().__init__()
        self._model = loader.model
        self._view = view
        self.listing = MessageList(loader, view, id="list")
        self.detail = DetailPane(id="detail")
        self._settling: Timer | None = None
        self._shown: object = None

    def compose(self) -> ComposeResult:
        yield self.listing
        yield self.detail

    @property
    def is_reading(self) -> bool:
        return self.detail.has_focus_within

    @property
    def is_zoomed(self) -> bool:
        return self.has_class("-list") or self.has_class("-detail")

    def zoom(self, *, on: bool) -> None:
        detail = self.is_reading
        self.set_class(on and detail, "-detail")
        self.set_class(on and not detail, "-list")

    def swap(self) -> None:
        """Move the focus and the zoom to the other pane."""
        zoomed = self.is_zoomed
        self.zoom(on=False)
        (self.detail if self.listing.has_focus else self.listing).focus()
        if zoomed:
            self.call_after_refresh(self.zoom, on=True)

    def on_virtual_list_moved(self) -> None:
        """Show the message under the cursor once the cursor rests."""
        if self._settling is None:
            self._settling = self.set_timer(SETTLE_LIVE if self.listing.follow else SETTLE, self._settled)

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        event.stop()
        self.detail.focus()

    def show_response(self) -> None:
        """Show the message under the cursor now, from its response on."""
        if self._settling is not None:
            self._settling.stop()
            self._settled()
        self.detail.action_top()
        self.detail.action_other()

    def look(self) -> None:
        """Update the document if the message has changed, for example because its response arrived."""
        if self._settling is None:
            self._show()

    def _settled(self) -> None:
        self._settling = None
        self._show()

    def _show(self) -> None:
        row, model = self.listing.row, self._model
        if row is None or row >= len(model):
            if self._shown is not None:
                self._shown = None
                self.detail.show(NOTHING, None)
            return
        index, exchanges = model.index, self._view.options.exchanges
        place = (model.generation, row, exchanges)
        request = index.request(row)
        note = self.listing.notes.get(row, "")
        found = model.findings.of_both(index, row, exchanges=exchanges)
        pair = (row, index.pair(row))
        done = [index.effects.get(one) for one in pair if one is not None]
        link = self.listing.apps.words(row)
        state = (
            note,
            index.state(row),
            index.answer(row),
            index.progress.get(request or 0),
            found,
            done,
            link,
        )
        if (place, state) == self._shown:
            return
        self._shown = (place, state)
        self.detail.show(document(model, row, exchanges=exchanges, note=note, link=link), place)


def _differences(note: Note) -> DocumentPart:
    lines = [("differences from the lockfile", "title"), *trust_differences(note), ("", None)]
    return DocumentPart("note", lines, b"")


def _name(model: SessionModel, row: int) -> str:
    if model.is_request(row):
        return "request"
    return "response" if model.is_response(row) else "note" if model.note(row) else "message"


def document(model: SessionModel, row: int, *, exchanges: bool, note: str = "", link: str = "") -> Document:
    """Return the document of a row, with the user's note and its link to an app; of an exchange, with both messages
    and their replacements.
    """
    index = model.index
    answer = index.pair(row) if exchanges and model.is_request(row) else None
    shown = [row] if answer is None else [row, answer]
    parts: list[DocumentPart] = []
    heads: list[Piece] = []
    seen: set[int] = set()
    for one in shown:
        change = model.get(one)
        if change is None:
            continue
        head = message_header(change, model.findings.of(one))
        if link and one == row:
            head.insert(1, (sanitize(link), rows.QUIET))
        if note and one == row:
            head.insert(1, (f"note: {sanitize(note)}", "title"))
        if (about := trust_note(model, one)) is not None:
            parts.append(_differences(about))
        if (steps := oauth_flow(model, one)) is not None:
            parts.append(DocumentPart("note", steps, b""))
        parts.append(DocumentPart(_name(model, one), head, content(change)))
        if one in index.crashes and one not in index.last_stderr and (last := last_stderr(model)):
            parts.insert(
                0,
                DocumentPart(
                    "note", [("last lines on stderr", "title"), ("", None)], "\n".join(last).encode()
                ),
            )
        instead = model.message(place) if (place := index.instead.get(one)) is not None else None
        if isinstance(instead, Note):
            parts.append(DocumentPart("sent", *replacement(instead)))
        note_row = index.heads.get(index.http(one) or 0)
        if (
            note_row is not None
            and note_row not in seen
            and isinstance(entry := model.message(note_row), Note)
        ):
            seen.add(note_row)
            heads += [*([("", None)] if heads else []), *headers(entry)]
            end_row = index.refusals.get(index.http(one) or 0)
            if end_row is not None and isinstance(end := model.message(end_row), Note):
                heads += refusal(end)
    return Document(parts, heads)
