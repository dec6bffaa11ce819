"""The lists of the mock screen: requests of clients, recorded interactions, clients."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import mock_notes
from mcpspy.ui.model.intercept_connection import HeldMessage
from mcpspy.ui.model.mock_model import InteractionText, MockedClient, MockModel, RecordedInteractions
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.text.width import elide, shorten_subject
from mcpspy.ui.tui.intercept.labels import clock
from mcpspy.ui.tui.widgets.columns import Column, Piece, PlacedColumn
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

LONG = 400
"""Maximum characters of a cell."""

REQUEST_COLUMNS = (
    Column("time", "time", 7, 9, 5, right=True),
    Column("client", "client", 6, 6, 6, right=True),
    Column("method", "method", 12, 40, 1, enough=12, shorten=elide),
    Column("subject", "target", 8, LONG, 3, enough=16, shorten=shorten_subject),
    Column("got", "got", 14, LONG, 2, enough=36),
)

INTERACTION_COLUMNS = (
    Column("number", "#", 4, 6, 4, right=True),
    Column("method", "recorded", 12, 40, 1, enough=12, shorten=elide),
    Column("subject", "target", 8, LONG, 3, enough=16, shorten=shorten_subject),
    Column("arguments", "arguments", 8, LONG, 5, enough=20),
    Column("outcome", "response", 8, 11, 6),
    Column("asked", "asked", 5, 7, 2, right=True),
    Column("left", "left", 5, 6, 3, right=True),
    Column("given", "now", 6, 30, 2),
)

CLIENT_COLUMNS = (
    Column("number", "#", 4, 6, 4, right=True),
    Column("name", "client", 12, LONG, 1, enough=24),
    Column("requests", "requests", 8, 9, 2, right=True),
    Column("misses", "misses", 6, 8, 3, right=True),
    Column("state", "state", 9, 20, 2),
)

WAITING = "…"


class RequestList(VirtualList):
    """The requests of all clients, and the recorded interaction that each got."""

    HELP_NAME = "requests"
    COLUMNS: ClassVar[tuple[Column, ...]] = REQUEST_COLUMNS

    def __init__(self, session: SessionModel, model: MockModel) -> None:
        super().__init__(id="requests")
        self._session = session
        self._model = model
        self.held: Mapping[int, HeldMessage] = {}
        """Row → the request that waits."""
        self.can_follow = self.follow = True
        self.empty = [("no requests yet: connect a client (c shows how)", rows.QUIET)]

    @property
    def row(self) -> int | None:
        """The row of the selected request; None without one."""
        return self._model.requests[self.cursor] if self.cursor < len(self._model.requests) else None

    @property
    def held_here(self) -> HeldMessage | None:
        return None if self.row is None else self.held.get(self.row)

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        if index >= len(self._model.requests) or self._model.is_replaced:
            return [("", None)]
        row, columns, note = self._model.requests[index], self._session.index, self._model.note(index)
        fields: dict[str, Piece] = {
            "time": (rows.moment(columns.at[row]), rows.QUIET),
            "client": (str(note.get("client", "")), rows.QUIET),
            "method": (sanitize(columns.texts[columns.method[row]][:LONG]), None),
            "subject": (sanitize(columns.texts[columns.subject[row]][:LONG]), None),
            "got": self.got(index),
        }
        return [fields[column.name] for column, _ in placed]

    def growing(self, index: int) -> Iterable[tuple[str, str]]:
        """Yield method and target."""
        if index < len(self._model.requests) and not self._model.is_replaced:
            row, columns = self._model.requests[index], self._session.index
            yield "method", columns.texts[columns.method[row]][:LONG]
            yield "subject", columns.texts[columns.subject[row]][:LONG]

    def got(self, index: int) -> Piece:
        """Return what a request got: its place in the recording, or the miss, or that it waits."""
        row = self._model.requests[index]
        if (held := self.held.get(row)) is not None:
            return f"WAITS {clock(time.monotonic() - held.since)}", rows.OPEN
        if (effect := self._session.index.effects.get(row)) is not None and not self._model.note(index):
            return sanitize(effect), rows.ISSUE
        fields = dict(self._model.note(index))
        if not fields:
            return WAITING, rows.OPEN
        fields.pop("recording", None)  # There is one.
        return sanitize(mock_notes.words(fields)[:LONG]), tone(fields)

    def hold(self, held: Mapping[int, HeldMessage]) -> None:
        """Mark these rows as waiting, and no others."""
        if held or self.held:
            self.held = held
            self.refresh()


class InteractionList(VirtualList):
    """The recorded interactions: how often each was asked, and how many equal ones are left."""

    HELP_NAME = "recorded interactions"
    COLUMNS: ClassVar[tuple[Column, ...]] = INTERACTION_COLUMNS

    def __init__(self, model: MockModel) -> None:
        super().__init__(id="interactions")
        self._model = model
        self._recorded: RecordedInteractions | None = None
        self._texts: dict[int, InteractionText] = {}
        self.given: Mapping[int, str] = {}
        """Number of an interaction → the answer that the user has set, in words."""
        self.empty = [("reading the recording …", rows.QUIET)]

    def fill(self, recorded: RecordedInteractions) -> None:
        self._recorded = recorded
        self.empty = [("the recording has no requests but handshakes", rows.QUIET)]
        self.sync(len(recorded))
        self.refresh()

    @property
    def number(self) -> int | None:
        """The number of the selected interaction; None without one."""
        return self.text(self.cursor).number if self.cursor < self.count else None

    def text(self, index: int) -> InteractionText:
        """Return an interaction as text, from the file if it is not known."""
        assert self._recorded is not None
        if (found := self._texts.get(index)) is None:
            if len(self._texts) > LONG:
                self._texts.clear()
            found = self._texts[index] = self._recorded.text(index)
        return found

    def go_to(self, number: object) -> None:
        """Move to the interaction with this number."""
        place = None if self._recorded is None else self._recorded.place_of(number)
        if place is not None:
            self.move_to(place)

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        text = self.text(index)
        asked, left = self._model.asked[text.number], self._model.left.get(text.number)
        tone = None if asked else rows.QUIET
        fields: dict[str, Piece] = {
            "number": (str(text.number), rows.QUIET),
            "method": (sanitize(text.method[:LONG]), tone),
            "subject": (sanitize(text.subject[:LONG]), tone),
            "arguments": (text.arguments, rows.QUIET),
            "outcome": (text.outcome, rows.QUIET if text.outcome == "result" else rows.ISSUE),
            "asked": (f"{asked:,}" if asked else "·", tone),
            "left": ("" if left is None else f"{left:,}", rows.OPEN if left == 0 else rows.QUIET),
            "given": (self.given.get(text.number, ""), rows.ISSUE),
        }
        return [fields[column.name] for column, _ in placed]

    def growing(self, index: int) -> Iterable[tuple[str, str]]:
        """Yield method, target, arguments, and the user's answer."""
        text = self.text(index)
        yield "method", text.method[:LONG]
        yield "subject", text.subject[:LONG]
        yield "arguments", text.arguments
        yield "given", self.given.get(text.number, "")


class ClientList(VirtualList):
    HELP_NAME = "clients"
    COLUMNS: ClassVar[tuple[Column, ...]] = CLIENT_COLUMNS

    def __init__(self, model: MockModel) -> None:
        super().__init__(id="clients")
        self._model = model
        self._clients: list[MockedClient] = []
        self.empty = [("no client is connected", rows.QUIET)]

    def show_clients(self) -> None:
        """Show the clients as they are now, the connected ones first."""
        self._clients = sorted(self._model.clients.values(), key=lambda each: (each.has_left, each.number))
        self.sync(len(self._clients))
        self.refresh()

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        client = self._clients[index]
        tone = rows.QUIET if client.has_left else None
        fields: dict[str, Piece] = {
            "number": (str(client.number), rows.QUIET),
            "name": (sanitize(client.name) or "(no name)", tone),
            "requests": (f"{client.requests:,}", tone),
            "misses": (f"{client.misses:,}" if client.misses else "·", rows.ISSUE if client.misses else tone),
            "state": ("left" if client.has_left else "connected", rows.QUIET if client.has_left else rows.OK),
        }
        return [fields[column.name] for column, _ in placed]


def tone(fields: Mapping[str, Any]) -> str | None:
    """Return the role of a request by its note: misses and answers of the user stand out."""
    did = fields.get("did")
    if did == "missed":
        return rows.BAD
    return rows.ISSUE if did in ("answered", *mock_notes.UNRECORDED) else None
