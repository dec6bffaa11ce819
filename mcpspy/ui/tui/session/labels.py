"""What the lines around the lists say.

Owns titles, counts, states and the sentences for what can be amiss, and which
parts go when a line gets narrow. Takes values and the time, returns inert
text. Pure.

The line at the end of a session's screen: how it stands, or the answer to a key.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from rich.cells import cell_len

from mcpspy.analysis import rows
from mcpspy.core.recording.decode import Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.index import Index
from mcpspy.io.recording.reader import RecordingState
from mcpspy.ui.tui.detail.layout import Piece
from mcpspy.ui.tui.session.loader import SessionLoader
from mcpspy.ui.tui.session.row_filter import FilteredView
from mcpspy.ui.tui.widgets.base import SplitLine
from mcpspy.ui.tui.widgets.cells import steady

BETWEEN = " · "

GLYPHS = {RecordingState.LIVE: "●", RecordingState.ENDED: "○", RecordingState.DIED: "✗"}
TONES: dict[RecordingState, str | None] = {
    RecordingState.LIVE: rows.OK,
    RecordingState.ENDED: None,
    RecordingState.DIED: rows.BAD,
}


def moment(started: str, now: datetime) -> str:
    """Return when a session began, as short as today allows; local time."""
    try:
        at = datetime.fromisoformat(started).astimezone(now.tzinfo)
    except ValueError:
        return sanitize(started)
    if at.date() == now.date():
        return at.strftime("%H:%M:%S")
    return at.strftime("%b %d %H:%M" if at.year == now.year else "%Y-%m-%d")


def standing(state: RecordingState, session: Index) -> Piece:
    """Return how a session stands, with its glyph."""
    if state is RecordingState.LIVE:
        return f"{GLYPHS[state]} LIVE", rows.OK
    if state is RecordingState.DIED:
        return f"{GLYPHS[state]} died", rows.BAD
    end = rows.ending(session.exit)
    return f"{GLYPHS[state]} ended {end}".rstrip(), _exit_tone(session.exit)


def title(feed: SessionLoader, width: int) -> tuple[list[Piece], list[Piece]]:
    """Return the title of a session: who and how it stands on the left, counts on the right."""
    log, session = feed.log, feed.log.index
    parts: list[tuple[int, Piece]] = [
        (0, (sanitize(log.header.name) or "session", "title")),
        (4, (sanitize(str(session.server or "")), None)),
        (6, (sanitize(str(session.client or "")), None)),
        (5, (sanitize(session.revision or ""), None)),
        (1, standing(feed.state, session)),
    ]
    counts: list[tuple[int, Piece]] = [(2, (plural(session.messages, "message"), None))]
    if session.failed:
        counts.append((1, (plural(session.failed, "error"), rows.BAD)))
    if session.odd:
        counts.append((3, (f"{session.odd} odd", rows.ODD)))
    if log.findings.count:
        counts.append((4, (plural(log.findings.count, "finding"), rows.ODD)))
    if session.pending:
        counts.append((3, (f"{session.pending} pending", rows.OPEN)))
    while len(parts) + len(counts) > 1 and _long(parts) + _long(counts) + 2 > width:
        rank = max(rank for rank, _ in [*parts, *counts])
        parts = [part for part in parts if part[0] != rank]
        counts = [part for part in counts if part[0] != rank]
    return _joined(parts), _joined(counts)


def sentence(feed: SessionLoader) -> Piece:
    """Return the one line that says how a session is, or what is amiss."""
    log, session = feed.log, feed.log.index
    if feed.trouble:
        return sanitize(feed.trouble), rows.BAD
    if feed.is_gone:
        more = "what its writer still appends is shown" if feed.is_live else "what was read of it is shown"
        return f"the file was deleted while it was open: {more}", rows.ODD
    if not log.is_over:
        if log.restarted:
            return sanitize(log.restarted), rows.ODD
        if feed.state is not RecordingState.LIVE or feed.is_behind:
            share = f" {min(feed.done * 100 // feed.size, 99)} %" if feed.size else ""
            return f"reading …{share}", rows.QUIET
        return ("waiting for the first message", rows.OPEN) if not session.messages else ("", None)
    rest = f"; {plural(session.unanswered, 'request')} got no answer" if session.unanswered else ""
    rest += "; the file was cut or replaced while it was open" if log.restarted else ""
    rest += f"; its last line is torn ({feed.torn} bytes, left out)" if feed.torn else ""
    if session.exit is None:
        return f"died: mcpspy was stopped before the server{rest}", rows.BAD
    nothing = "" if session.messages else "; no message was sent"
    return (
        f"ended: {rows.ending(session.exit)} after {rows.duration(session.last_at)}{nothing}{rest}",
        rows.QUIET,
    )


def position(feed: SessionLoader, view: FilteredView, cursor: int, *, follows: bool, new: int) -> list[Piece]:
    """Return where the cursor is, how much the filter leaves, and whether what comes is followed."""
    count = len(view)
    text = f"{cursor + 1:,}/{count:,}" if count else ""
    if view.wish.query.text:
        text = f"{text or 0} shown of {len(feed.log):,} rows"
        if view.is_behind and len(feed.log):
            text += f" · searching {view.judged * 100 // len(feed.log)} %"
    place: list[Piece] = [(text, rows.QUIET)] if text else []
    if not feed.is_live:
        return place
    if follows:
        return [*place, ("  following", rows.OK)]
    badge = f"  paused, +{new:,} new (End)" if new else "  paused (End follows)"
    return [*place, (badge, rows.OPEN)]


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _long(parts: Sequence[tuple[int, Piece]]) -> int:
    return max(sum(cell_len(steady(text)) + len(BETWEEN) for _, (text, _) in parts if text) - len(BETWEEN), 0)


def _joined(parts: Sequence[tuple[int, Piece]]) -> list[Piece]:
    joined: list[Piece] = []
    for _, piece in parts:
        if piece[0]:
            joined += [(BETWEEN, rows.QUIET), piece] if joined else [piece]
    return joined


def _exit_tone(note: Note | None) -> str | None:
    return None if note is None or note.fields.get("code") == 0 else rows.BAD


FLASH = 2.5
"""Seconds that the answer to a key is read."""


class StatusBar(SplitLine):
    """A line that is lent to answers."""

    def __init__(self) -> None:
        super().__init__(id="status", classes="-soft")
        self._flash = ""
        self._until = 0.0

    @property
    def is_lent(self) -> bool:
        """Whether there is an answer on it, which has to go in time."""
        return bool(self._flash)

    def lend(self, text: str) -> None:
        """Have an answer said with the next words, and for a while."""
        self._flash, self._until = text, time.monotonic() + FLASH

    def stand(self, sentence: Piece, where: list[Piece]) -> None:
        """Say how things stand, if no answer is being read, and where the cursor is."""
        if time.monotonic() > self._until:
            self._flash = ""
        self.say([(self._flash, None)] if self._flash else [sentence], where)
