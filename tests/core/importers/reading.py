"""Decoded entries of imported sessions."""

from __future__ import annotations

from typing import Any

from mcpspy.core.importers.base import ImportedSession
from mcpspy.core.recording.decode import Entry, Frame, Note, read_entry


def entries(session: ImportedSession) -> list[Entry]:
    """Return the decoded entries of a session."""
    return [read_entry(line[:-1]) for line in session.lines]


def frames(session: ImportedSession) -> list[tuple[float, str, bytes]]:
    """Return time, side and data of each frame."""
    return [(entry.at, entry.side, entry.data) for entry in entries(session) if isinstance(entry, Frame)]


def notes(session: ImportedSession, kind: str) -> list[dict[str, Any]]:
    """Return the fields of the notes of a kind."""
    return [entry.fields for entry in entries(session) if isinstance(entry, Note) and entry.kind == kind]
