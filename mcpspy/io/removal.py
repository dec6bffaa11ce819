"""Deleting a session, with all its parts.

Owns which files those are: beside the first, of the same session by their own
headers, and no part of another one. Refuses to delete what is still written
to, and whatever has taken a session's name meanwhile.
"""

from __future__ import annotations

import os
from pathlib import Path

from mcpspy.core.recording.decode import Header
from mcpspy.errors import CannotStart
from mcpspy.io.blocks import opened
from mcpspy.io.store import Summary, headers
from mcpspy.io.writer import is_live


def files_of(summary: Summary) -> list[Path]:
    """Return the files of a session that are there, the first one first.

    Parts are known by their headers: the note that leads from one to the next
    may be missing. Where a copy of the session lies in the same folder, only
    those are its own that are named after it.
    """
    first = summary.path
    found = _same_session(first.parent, summary.header)
    ours = [path for path, header in found if header.part == 1 and path == first]
    parts = sorted((header.part, path) for path, header in found if header.part != 1)
    if any(header.part == 1 and path != first for path, header in found):
        parts = [(part, path) for part, path in parts if path.name.startswith(f"{first.stem}.part")]
    return [*ours, *(path for _, path in parts)]


def delete(summary: Summary) -> None:
    """Delete a session's files; raise McpspyError with what cannot be.

    The first goes last: if anything stays, the session stays in the list.
    """
    first = summary.path
    files = files_of(summary)
    if first not in files and os.path.lexists(first):
        raise CannotStart(f"{first}: another file took its name", "look again")
    for path in files:
        with opened(path) as file:
            if is_live(file.fileno()):
                raise CannotStart(f"{path}: still written to", "its server runs")
    for path in reversed(files):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise CannotStart(f"cannot delete {path}: {error.strerror}") from None


def _same_session(folder: Path, mine: Header) -> list[tuple[Path, Header]]:
    try:
        return [
            (path, header)
            for path, header in headers(folder)
            if (header.id, header.started) == (mine.id, mine.started)
        ]
    except OSError as error:
        raise CannotStart(f"{folder}: {error.strerror}") from None
