"""Resend a recorded request to a live session, and find its response.

The text comes from the recording, as it was forwarded; the session replaces the id and the progress
token in it.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs

from mcpspy.core.protocol.message import AnyMessage, Notification, Request, read_frame
from mcpspy.core.protocol.spec import other
from mcpspy.core.recording.decode import Note
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.model.live_call import wait_for_response
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.tui.intercept.assistance import editable, read_listings, request_problems
from mcpspy.ui.tui.intercept.editor import Drafts
from mcpspy.ui.tui.intercept.held_messages import HeldRows
from mcpspy.ui.tui.session.base import SessionBase
from mcpspy.ui.tui.session.labels import BETWEEN, replacement
from mcpspy.ui.tui.widgets.columns import Piece


class ResendRequest(NamedTuple):
    row: int
    to: str
    method: str
    text: str
    """The message as it was forwarded: JSON."""
    stream: str | None
    is_request: bool


def resend_source(model: SessionModel, row: int | None) -> int | str:
    """Return the row of the request or notification that a row belongs to, or the reason why there is none."""
    if row is None or row >= len(model):
        return "nothing to resend: no row is selected"
    source = row if model.is_notification(row) else model.index.request(row)
    return "nothing to resend: this row belongs to no request" if source is None else source


def resend_request(model: SessionModel, row: int | None) -> ResendRequest | str:
    """Return the request or notification to resend for a row, or the reason why there is none."""
    source = resend_source(model, row)
    if isinstance(source, str):
        return source
    entry = model.message(source)
    if not isinstance(entry, Request | Notification):
        return "nothing to resend: this row belongs to no request"
    entry = _forwarded(model, source, entry)
    if not isinstance(entry, Request | Notification):
        return "cannot resend: what was forwarded instead is not a request"
    try:
        text = entry.data.decode()
    except UnicodeDecodeError:
        return "cannot resend: the message is not UTF-8"
    is_request = isinstance(entry, Request)
    return ResendRequest(source, other(entry.side), entry.method, text, entry.frame.stream, is_request)


def _forwarded(model: SessionModel, row: int, entry: Request | Notification) -> AnyMessage:
    """Return the message that was forwarded: a rule or a user may have changed it."""
    place = model.index.instead.get(row)
    note = None if place is None else model.message(place)
    if not isinstance(note, Note) or not (sent := replacement(note)[1]):
        return entry
    return read_frame(structs.replace(entry.frame, data=sent))[0]


class Resend:
    def __init__(self, screen: SessionBase, held_rows: HeldRows, drafts: Drafts) -> None:
        self._screen = screen
        self._held_rows = held_rows
        self._drafts = drafts
        self._originals: dict[int, int] = {}
        """Row of a resent request → row of the original."""

    def resend(self) -> None:
        if (wanted := self._wanted()) is not None:
            self._screen.do(self._resent(wanted))

    def edit(self) -> None:
        wanted = self._wanted()
        if wanted is None:
            return
        original = editable(wanted.text.encode()) or wanted.text

        async def send(text: str) -> None:
            """Send the recorded bytes if they were not edited."""
            edited = wanted if text == original else wanted._replace(text=text)
            self._screen.do(self._response(edited, *await self._send(edited)))

        heading: list[Piece] = [
            (f"resend to the {wanted.to}: {sanitize(wanted.method)}", "title"),
            (f"{BETWEEN}{'a new request with a new id' if wanted.is_request else 'a notification'}", "quiet"),
        ]
        key = ("again", self._screen.loader.model.generation, wanted.row)
        model = self._screen.loader.model
        self._drafts.edit(
            key, lambda: heading, original, request_problems, send, lambda: read_listings(model)
        )

    @property
    def refusal(self) -> str:
        """The reason why the selected row cannot be resent; empty if it can be."""
        screen = self._screen
        if screen.loader.model.is_merged:
            return "several sessions are open: open one alone (O) to resend"
        if self._held_rows.connection is None or not screen.loader.is_live:
            return "cannot resend: the session has ended; use mcpspy replay"
        source = resend_source(screen.loader.model, screen.listing.row)
        return source if isinstance(source, str) else ""

    def pair(self, row: int | None) -> tuple[int, int] | None:
        """Return the rows of the original and of a resent request; None for other rows."""
        request = None if row is None else self._screen.loader.model.index.request(row)
        if request not in self._originals or self._screen.listing.marked:
            return None
        return self._originals[request], request

    def _wanted(self) -> ResendRequest | None:
        """Return the request to resend, or None after showing the reason why there is none."""
        screen = self._screen
        wanted = self.refusal or resend_request(screen.loader.model, screen.listing.row)
        if isinstance(wanted, str):
            screen.flash_message(wanted)
            return None
        return wanted

    async def _resent(self, wanted: ResendRequest) -> str:
        return await self._response(wanted, *await self._send(wanted))

    async def _send(self, wanted: ResendRequest) -> tuple[int, str]:
        """Send the message; return the number of rows before, and its id as JSON text (empty: a notification)."""
        connection, begin = self._held_rows.connection, len(self._screen.loader.model)
        assert connection is not None
        if wanted.is_request:
            return begin, await connection.request(wanted.to, wanted.text, wanted.stream)
        await connection.notify(wanted.to, wanted.text, wanted.stream)
        return begin, ""

    async def _response(self, wanted: ResendRequest, begin: int, id_text: str) -> str:
        """Wait for the response, and compare it with the original one."""
        screen, connection = self._screen, self._held_rows.connection
        model, row = screen.loader.model, screen.listing.row
        assert connection is not None
        if not id_text:
            return f"resent to the {wanted.to}: {sanitize(wanted.method)}"
        screen.flash_message(f"resent to the {wanted.to}; waiting for the response …")
        new = await wait_for_response(model, id_text, begin, lambda: connection.error(id_text))
        connection.answers.pop(id_text, None)
        if isinstance(new, str):
            return f"no response: {sanitize(new)}"
        self._originals[new] = wanted.row
        is_here = screen.listing.row == row or screen.listing.follow
        if screen.accepts_screen and is_here:
            screen.compare(wanted.row, new)
            return "resent; response received"
        return "the resent request has its response; press d on it to compare"
