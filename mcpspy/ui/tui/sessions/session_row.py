"""What a row of the list of sessions says.

Owns the words and tones of its cells. Pure: values and the time in, inert text
out.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.io.recording.catalog import SessionCounts, is_too_large
from mcpspy.io.recording.reader import Summary
from mcpspy.ui.tui.session.words import GLYPHS, TONES, moment

UNKNOWN = "…"
"""Of what is still to be counted."""

NEVER = "?"
"""Of what is not counted: the session is too large."""


class SessionRow(NamedTuple):
    """One session of the list."""

    state: str
    name: str
    server: str
    client: str
    revision: str
    started: str
    messages: str
    errors: str
    pending: str
    exit: str
    tones: dict[str, str | None]
    """Cell → its tone."""


def session_row(summary: Summary, counts: SessionCounts | None, now: datetime) -> SessionRow:
    """Return the cells of one session; `counts` are None until they are known."""
    header, note = summary.header, summary.exit
    messages, errors, pending = _counted(summary, counts)
    return SessionRow(
        state=f"{GLYPHS[summary.state]} {summary.state}",
        name=sanitize(header.name),
        server=sanitize(str(summary.server or "")),
        client=sanitize(str(summary.client or "")),
        revision=sanitize(summary.revision or ""),
        started=moment(header.started, now),
        messages=messages,
        errors=errors,
        pending=pending,
        exit=rows.ending(note),
        tones={
            "state": TONES[summary.state],
            "messages": None if counts else rows.QUIET,
            "errors": rows.BAD if counts and counts.errors else rows.QUIET,
            "pending": rows.OPEN if counts and counts.pending else rows.QUIET,
            "exit": rows.BAD if note is not None and rows.ended_badly(note) else None,
        },
    )


def _counted(summary: Summary, counts: SessionCounts | None) -> tuple[str, str, str]:
    if counts is not None:
        return str(counts.messages), str(counts.errors), str(counts.pending)
    if is_too_large(summary):
        return f"~{summary.entries}", NEVER, NEVER
    return UNKNOWN, UNKNOWN, UNKNOWN
