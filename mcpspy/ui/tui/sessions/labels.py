"""What the lines around the list of sessions say, and its questions.

Owns titles, the sentences for an empty list, and what is asked before a
deletion. Takes values, returns inert text. Pure.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.io.recording.catalog import is_too_large
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.tui.detail.layout import Piece
from mcpspy.ui.tui.session.labels import plural

EMPTY: list[Piece] = [
    ("No session yet. Put mcpspy before a server, in your host's config or a shell:", None),
    ("", None),
    ("    mcpspy run -- npx -y @modelcontextprotocol/server-memory", "title"),
    ("    mcpspy http --upstream http://localhost:3001/mcp", "title"),
    ("", None),
    ("and it appears here by itself. See how it looks first: press D, or run", None),
    ("", None),
    ("    mcpspy demo", "title"),
]

NAMED = 5
"""Sessions that a question names; of more it says how many."""


def title(shown: int, sessions: Sequence[Summary], marked: int) -> tuple[list[Piece], list[Piece]]:
    """Return the title: what this is on the left, counts on the right."""
    live = sum(summary.state is RecordingState.LIVE for summary in sessions)
    of = f"{shown:,} of " if shown != len(sessions) else ""
    counts: list[Piece] = [(f"{of}{plural(len(sessions), 'session')}", None)]
    if live:
        counts += [(" · ", rows.QUIET), (f"{live} live", rows.OK)]
    if marked:
        counts += [(" · ", rows.QUIET), (f"{marked} marked", "title")]
    return [("mcpspy", "title"), (" · sessions", None)], counts


def nothing(sessions: int) -> list[Piece]:
    return [(f"0 of {plural(sessions, 'session')}: esc clears the filter", None)] if sessions else EMPTY


def about(summary: Summary | None) -> list[Piece]:
    """Return what there is no column for, of the session under the cursor."""
    if summary is None:
        return []
    large = "too large to be counted · " if is_too_large(summary) else ""
    end = f" · {rows.ending(summary.exit)}" if summary.exit else ""
    return [(f"{large}{sanitize(summary.header.id)} · {size(summary)}{end}", rows.QUIET)]


def question(sessions: Sequence[Summary], files: int, live: int) -> str:
    """Return what is asked before these are deleted; so many live ones are not among them."""
    stay = f" ({plural(live, 'live one')} will stay.)" if live else ""
    if len(sessions) == 1:
        (one,) = sessions
        parts = f", {files} parts" if files > 1 else ""
        return f"Delete {_name(one)} ({sanitize(one.header.id)}, {size(one)}{parts})?{stay}"
    whole = sum(summary.size for summary in sessions)
    names = ", ".join(map(_name, sessions[:NAMED])) + (", …" if len(sessions) > NAMED else "")
    return f"Delete {len(sessions)} sessions ({names}; {_bytes(whole)}, {plural(files, 'file')})?{stay}"


def refusal(live: Sequence[Summary]) -> str:
    """Return why live sessions are not deleted."""
    if len(live) == 1:
        return f"{_name(live[0])} is live: it can be deleted once its server has stopped"
    return f"all {len(live)} are live: they can be deleted once their servers have stopped"


def command(summary: Summary, sessions: Sequence[Summary], folder: str) -> str:
    """Return what prints a session in a shell."""
    wanted = summary.header.id
    if [other.header.id for other in sessions].count(wanted) != 1:  # A copy lies beside it.
        return shlex.join(["mcpspy", "show", str(summary.path)])
    elsewhere = [] if folder == sessions_folder() else ["--dir", folder]
    return shlex.join(["mcpspy", "show", sanitize(wanted), *elsewhere])


def size(summary: Summary) -> str:
    return _bytes(summary.size)


def _bytes(count: int) -> str:
    return f"{rows.size(count)}B"


def _name(summary: Summary) -> str:
    return sanitize(summary.header.name) or "session"
