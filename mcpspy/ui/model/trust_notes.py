"""Differences of a message from the lockfile of `trust`, for the terminal UI and the web page."""

from __future__ import annotations

from mcpspy.core.recording.decode import Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.rule_notes import TRUST
from mcpspy.ui.model.session_model import SessionModel


def trust_note(model: SessionModel, row: int) -> Note | None:
    """Return the note about the differences of a message from the lockfile: it comes next, or is the row itself."""
    index = model.index
    for place in (row, row + 1)[: len(index.at) - row]:
        if model.note(place) == TRUST:
            found = model.message(place)
            return found if isinstance(found, Note) and "trusted" in found.fields else None
    return None


def trust_differences(note: Note) -> list[tuple[str, str | None]]:
    """Return the lines that such a note shows, with their tones."""
    # Not at the top: few sessions have such a note.
    from mcpspy.analysis.diff import ChangeSeverity
    from mcpspy.analysis.trust import noted
    from mcpspy.ui.report.diff_text import terminal

    return [
        (sanitize(line), tone) for line, tone in terminal(noted(note.fields), fail_on=ChangeSeverity.NOTE)
    ]
