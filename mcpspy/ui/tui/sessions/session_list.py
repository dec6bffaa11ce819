"""The list of sessions, and the texts around it.

The cursor and the marks stay on their sessions when others appear, vanish or move.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, takewhile
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.recording.origin import HOST
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.outcome import SessionCounts, verdict_mark, verdict_tone
from mcpspy.io.recording.catalog import has_origins
from mcpspy.io.recording.listed_session import short_words
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.io.recording.session_counts import is_too_large
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.text.width import pad
from mcpspy.ui.tui.session.labels import moment
from mcpspy.ui.tui.widgets.columns import SESSIONS, Column, Piece, PlacedColumn
from mcpspy.ui.tui.widgets.virtual_list import VirtualList

UNKNOWN = "…"
"""Placeholder for counts that are not known yet."""

NEVER = "?"
"""Placeholder for counts of a session that is too large."""


class SessionRow(NamedTuple):
    state: str
    name: str
    origin: str
    server: str
    client: str
    revision: str
    started: str
    messages: str
    errors: str
    unanswered: str
    issues: str
    pending: str
    verdict: str
    tones: dict[str, str | None]


def session_row(summary: Summary, counts: SessionCounts | None, now: datetime) -> SessionRow:
    """Return the cells of one session; `counts` is None until counted."""
    header, verdict = summary.header, summary.end.verdict(counts)
    messages, errors, unanswered, issues, pending = _counted(summary, counts)
    return SessionRow(
        state=verdict_mark(verdict),
        name=sanitize(header.name),
        origin="" if header.origin == HOST else sanitize(header.origin),
        server=sanitize(str(summary.server or "")),
        client=sanitize(str(summary.client or "")),
        revision=sanitize(summary.revision or ""),
        started=moment(header.started, now),
        messages=messages,
        errors=errors,
        unanswered=unanswered,
        issues=issues,
        pending=pending,
        verdict=short_words(summary, counts),
        tones={
            "state": verdict_tone(verdict),
            "messages": None if counts else rows.QUIET,
            "errors": rows.BAD if counts and counts.errors else rows.QUIET,
            "unanswered": rows.BAD if counts and counts.unanswered else rows.QUIET,
            "issues": rows.ISSUE if counts and counts.issues else rows.QUIET,
            "pending": rows.OPEN if counts and counts.pending else rows.QUIET,
            "origin": rows.QUIET,
            "verdict": verdict_tone(verdict),
        },
    )


def _counted(summary: Summary, counts: SessionCounts | None) -> tuple[str, ...]:
    if counts is not None:
        return tuple(
            map(str, (counts.messages, counts.errors, counts.unanswered, counts.issues, counts.pending))
        )
    return (f"~{summary.entries}", *[NEVER] * 4) if is_too_large(summary) else (UNKNOWN,) * 5


MARKED = "*"

COMPARED = "±"
"""Mark of the session chosen for a diff."""


class SessionList(VirtualList, inherit_bindings=False):
    BINDINGS: ClassVar[list[BindingType]] = [
        *VirtualList.BINDINGS,
        Binding("m", "mark", "mark or unmark session", show=False, id="sessions.mark"),
    ]

    HELP_NAME = "list of sessions"

    def __init__(self, counts: Callable[[Summary], SessionCounts | None], *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._counts = counts
        self._sessions: Sequence[Summary] = []
        self._has_origins = False
        self._marks: set[Path] = set()
        self.compared: Path | None = None
        """The session chosen for a diff."""

    @property
    def columns(self) -> Sequence[Column]:
        """The columns; only live sessions have pending requests, and most are those of hosts."""
        is_live = bool(self._sessions) and self._sessions[0].state is RecordingState.LIVE  # They come first.
        absent = {"" if is_live else "pending", "" if self._has_origins else "origin"}
        return [column for column in SESSIONS if column.name not in absent]

    def growing(self, index: int) -> Iterable[tuple[str, str]]:
        """Yield the names and the verdict of a session."""
        summary = self._sessions[index]
        row_text = session_row(summary, self._counts(summary), datetime.now().astimezone())
        return ((name, getattr(row_text, name)) for name in ("name", "server", "client", "verdict"))

    @property
    def chosen(self) -> Summary | None:
        return self._sessions[self.cursor] if self.cursor < len(self._sessions) else None

    @property
    def marked(self) -> list[Summary]:
        return [summary for summary in self._sessions if summary.path in self._marks] if self._marks else []

    @property
    def wanted(self) -> list[Summary]:
        """The marked sessions, or else the one under the cursor."""
        return self.marked or ([self.chosen] if self.chosen else [])

    def by_interest(self) -> Iterator[Summary]:
        """Return the sessions to count first: under the cursor, then in view."""
        top = self.scroll_offset.y
        view = self._sessions[top : top + self.size.height]
        return chain([self.chosen] if self.chosen else [], view)

    def show(self, sessions: Sequence[Summary]) -> None:
        """Show sessions; the cursor stays on its session."""
        chosen, is_new = self.chosen, sessions != self._sessions
        self._sessions = sessions
        self._has_origins = has_origins(sessions)
        self.sync(len(sessions))
        if chosen is not None:
            place = next(
                (i for i, summary in enumerate(sessions) if summary.path == chosen.path), self.cursor
            )
            if place != self.cursor:
                self.move_to(place)
        if is_new:
            self.refresh()
        self.post_message(self.Moved())

    def forget_all_but(self, sessions: Sequence[Summary]) -> None:
        if not self._marks and self.compared is None:
            return
        paths = {summary.path for summary in sessions}
        self._marks &= paths
        if self.compared not in paths:
            self.compared = None

    def unmark(self) -> None:
        self._marks.clear()
        self.refresh()
        self.post_message(self.Moved())

    def action_mark(self) -> None:
        if self.chosen is None:
            return
        self._marks ^= {self.chosen.path}
        self.refresh()
        self.action_move(1)
        self.post_message(self.Moved())

    def mark(self, index: int) -> str:
        path = self._sessions[index].path
        own = COMPARED if path == self.compared else MARKED if path in self._marks else " "
        return super().mark(index) + own

    def cells(self, index: int, placed: list[PlacedColumn]) -> list[Piece]:
        summary = self._sessions[index]
        row_text = session_row(summary, self._counts(summary), datetime.now().astimezone())
        cells: list[Piece] = []
        for column, width in placed:
            text = getattr(row_text, column.name)
            # The list left-aligns the last cell, which is a number if the list is narrow.
            text = pad(text, width, right=True) if column.right else text
            cells.append((text, row_text.tones.get(column.name)))
        return cells


EMPTY: list[Piece] = [
    ("No sessions yet. Run a server through mcpspy, in your host's config or shell:", None),
    ("", None),
    ("    mcpspy run -- npx -y @modelcontextprotocol/server-memory", "title"),
    ("    mcpspy http --upstream http://localhost:3001/mcp", "title"),
    ("", None),
    ("Its sessions then appear here. To see a sample, press D or run:", None),
    ("", None),
    ("    mcpspy demo", "title"),
]

NAMED = 5


def title(shown: int, sessions: Sequence[Summary], marked: int) -> tuple[list[Piece], list[Piece]]:
    """Return the title of the list of sessions, of which live ones come first."""
    live = sum(1 for _ in takewhile(lambda summary: summary.state is RecordingState.LIVE, sessions))
    of = f"{shown:,} of " if shown != len(sessions) else ""
    counts: list[Piece] = [(f"{of}{counted(len(sessions), 'session')}", None)]
    if live:
        counts += [(" · ", rows.QUIET), (f"{live} live", rows.OK)]
    if marked:
        counts += [(" · ", rows.QUIET), (f"{marked} marked", "title")]
    return [("mcpspy", "title"), (" · sessions", None)], counts


def nothing(sessions: int, elsewhere: Sequence[str] = (), hint: str = "") -> list[Piece]:
    """Return the text of an empty list.

    `elsewhere` are other folders that have live sessions; `hint` is why no session matches the filter.
    """
    if sessions:
        none: list[Piece] = [
            (f"0 of {counted(sessions, 'session')} match. Press esc to clear the filter.", None)
        ]
        return [*none, ("", None), (sanitize(hint), rows.QUIET)] if hint else none
    if not elsewhere:
        return EMPTY
    options: list[Piece] = [
        (sanitize(f"    mcpspy tui --dir {shlex.quote(one)}"), "title") for one in elsewhere
    ]
    return [("No sessions in this folder. Sessions of another folder are live:", None), ("", None), *options]


def undecided(sessions: Sequence[Summary]) -> str:
    """Return the status while a filter depends on counts that are not known; there is at least one such session."""
    large = sum(map(is_too_large, sessions))
    parts = [
        f"counting the messages of {counted(len(sessions) - large, 'session')} …"
        if len(sessions) > large
        else "",
        f"{counted(large, 'session')} too large to count here: mcpspy ls -q counts them" if large else "",
    ]
    return " · ".join(filter(None, parts))


def about(summary: Summary | None) -> list[Piece]:
    """Return the details of a session that have no column."""
    if summary is None:
        return []
    large = "too large to count · " if is_too_large(summary) else ""
    end = f" · {rows.ending(summary.exit)}" if summary.exit else ""
    return [(f"{large}{sanitize(summary.header.id)} · {size(summary)}{end}", rows.QUIET)]


def question(sessions: Sequence[Summary], files: int, live: int) -> str:
    """Return the question before deleting; `live` sessions are not deleted."""
    stay = f" ({counted(live, 'live session')} will be kept.)" if live else ""
    if len(sessions) == 1:
        (one,) = sessions
        parts = f", {files} parts" if files > 1 else ""
        return f"Delete {_name(one)} ({sanitize(one.header.id)}, {size(one)}{parts})?{stay}"
    whole = sum(summary.size for summary in sessions)
    names = ", ".join(map(_name, sessions[:NAMED])) + (", …" if len(sessions) > NAMED else "")
    return f"Delete {len(sessions)} sessions ({names}; {_bytes(whole)}, {counted(files, 'file')})?{stay}"


def refusal(live: Sequence[Summary]) -> str:
    if len(live) == 1:
        return f"cannot delete {_name(live[0])}: it is live; stop its server first"
    return f"cannot delete {len(live)} live sessions: stop their servers first"


def command(summary: Summary, sessions: Sequence[Summary], folder: str) -> str:
    wanted = summary.header.id
    if [other.header.id for other in sessions].count(wanted) != 1:  # A copy has the same id.
        return shlex.join(["mcpspy", "show", str(summary.path)])
    elsewhere = [] if folder == sessions_folder() else ["--dir", folder]
    return shlex.join(["mcpspy", "show", sanitize(wanted), *elsewhere])


def size(summary: Summary) -> str:
    return _bytes(summary.size)


def _bytes(count: int) -> str:
    return f"{rows.size(count)}B"


def _name(summary: Summary) -> str:
    return sanitize(summary.header.name) or "session"
