"""What the lines around the lists say.

Owns titles, counts, states and the sentences for what can be amiss, and which
parts go when a line gets narrow. Takes values and the time, returns inert
text. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from rich.cells import cell_len

from mcpspy.core.record import Note
from mcpspy.core.session import Session
from mcpspy.io.store import State, Summary
from mcpspy.ui import rows
from mcpspy.ui.inert import inert
from mcpspy.ui.tui.feed import Feed
from mcpspy.ui.tui.page import Piece
from mcpspy.ui.tui.text import steady

BETWEEN = " · "

GLYPHS = {State.LIVE: "●", State.ENDED: "○", State.DIED: "✗"}
TONES: dict[State, str | None] = {State.LIVE: rows.OK, State.ENDED: None, State.DIED: rows.BAD}


class SessionRow(NamedTuple):
    """One session of the list."""

    state: str
    name: str
    server: str
    client: str
    revision: str
    started: str
    entries: str
    exit: str
    tone: str | None
    exit_tone: str | None


def session_row(summary: Summary, now: datetime) -> SessionRow:
    """Return the cells of one session."""
    header = summary.header
    return SessionRow(
        state=f"{GLYPHS[summary.state]} {summary.state}",
        name=inert(header.name),
        server=inert(str(summary.server or "")),
        client=inert(str(summary.client or "")),
        revision=inert(summary.revision or ""),
        started=moment(header.started, now),
        entries=str(summary.entries),
        exit=rows.ending(summary.exit),
        tone=TONES[summary.state],
        exit_tone=_exit_tone(summary.exit),
    )


def moment(started: str, now: datetime) -> str:
    """Return when a session began, as short as today allows; local time."""
    try:
        at = datetime.fromisoformat(started).astimezone(now.tzinfo)
    except ValueError:
        return inert(started)
    if at.date() == now.date():
        return at.strftime("%H:%M:%S")
    return at.strftime("%b %d %H:%M" if at.year == now.year else "%Y-%m-%d")


def standing(state: State, session: Session) -> Piece:
    """Return how a session stands, with its glyph."""
    if state is State.LIVE:
        return f"{GLYPHS[state]} LIVE", rows.OK
    if state is State.DIED:
        return f"{GLYPHS[state]} died", rows.BAD
    end = rows.ending(session.exit)
    return f"{GLYPHS[state]} ended {end}".rstrip(), _exit_tone(session.exit)


def title(feed: Feed, width: int) -> tuple[list[Piece], list[Piece]]:
    """Return the title of a session: who and how it stands on the left, counts on the right."""
    log, session = feed.log, feed.log.session
    parts: list[tuple[int, Piece]] = [
        (0, (inert(log.header.name) or "session", "title")),
        (4, (inert(str(session.server or "")), None)),
        (6, (inert(str(session.client or "")), None)),
        (5, (inert(session.revision or ""), None)),
        (1, standing(feed.state, session)),
    ]
    counts: list[tuple[int, Piece]] = [(2, (plural(log.messages, "message"), None))]
    if log.failed:
        counts.append((1, (plural(log.failed, "error"), rows.BAD)))
    if log.odd:
        counts.append((3, (f"{log.odd} odd", rows.ODD)))
    if log.pending:
        counts.append((3, (f"{log.pending} pending", rows.OPEN)))
    while len(parts) + len(counts) > 1 and _long(parts) + _long(counts) + 2 > width:
        rank = max(rank for rank, _ in [*parts, *counts])
        parts = [part for part in parts if part[0] != rank]
        counts = [part for part in counts if part[0] != rank]
    return _joined(parts), _joined(counts)


def sentence(feed: Feed) -> Piece:
    """Return the one line that says how a session is, or what is amiss."""
    log, session = feed.log, feed.log.session
    if feed.trouble:
        return inert(feed.trouble), rows.BAD
    if feed.is_gone:
        more = "what its writer still appends is shown" if feed.is_live else "what was read of it is shown"
        return f"the file was deleted while it was open: {more}", rows.ODD
    if not log.is_over:
        if log.restarted:
            return inert(log.restarted), rows.ODD
        if feed.state is not State.LIVE:
            return "reading …", rows.QUIET
        return ("waiting for the first message", rows.OPEN) if not log.messages else ("", None)
    rest = f"; {plural(log.unanswered, 'request')} got no answer" if log.unanswered else ""
    rest += "; the file was cut or replaced while it was open" if log.restarted else ""
    rest += f"; its last line is torn ({feed.torn} bytes, left out)" if feed.torn else ""
    if session.exit is None:
        return f"died: mcpspy was stopped before the server{rest}", rows.BAD
    nothing = "" if log.messages else "; no message was sent"
    return (
        f"ended: {rows.ending(session.exit)} after {rows.duration(session.last_at)}{nothing}{rest}",
        rows.QUIET,
    )


def position(feed: Feed, cursor: int, *, follows: bool, new: int) -> list[Piece]:
    """Return where the cursor is, and whether it follows what comes."""
    count = len(feed.log)
    place: list[Piece] = [(f"{cursor + 1:,}/{count:,}", rows.QUIET)] if count else []
    if not feed.is_live:
        return place
    if follows:
        return [*place, ("  following", rows.OK)]
    badge = f"  paused, +{new:,} new (End)" if new else "  paused (End follows)"
    return [*place, (badge, rows.OPEN)]


def plural(count: int, noun: str) -> str:
    """Return `1 error`, `2 errors`."""
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
