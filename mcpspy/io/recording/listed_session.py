"""A session as a list of sessions shows it: state, counts, item for a filter; and a run as JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mcpspy.analysis import rows
from mcpspy.core.recording.origin import IMPORT
from mcpspy.core.session.outcome import WITH_NUMBERS, SessionCounts, Verdict, verdict_words
from mcpspy.errors import McpspyError
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.reader import RecordingState, Summary, read_time
from mcpspy.io.recording.session_counts import is_too_large

if TYPE_CHECKING:
    from mcpspy.core.query.sessions import SessionItem, SessionQuery
    from mcpspy.io.recording.runs import RecordedRun


FAILED = "failed"
"""State of a session that has ended and whose server was never started or reached."""


class ListedSession:
    """A session to filter, to sort and to list."""

    def __init__(
        self,
        summary: Summary,
        catalog: Catalog,
        counts: Callable[[Summary], SessionCounts | None] | None = None,
    ) -> None:
        """`counts` returns the counts that are known; without it, the session is read to count it."""
        self.summary = summary
        self._counts = counts or catalog.counts
        self._item: SessionItem | None = None
        self.lacks_counts = False
        """True if a count was asked for that is not known."""

    @property
    def state(self) -> str:
        return FAILED if self.summary.has_failed else str(self.summary.state)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the session; None if that depends on counts that are not known."""
        end = self.summary.end
        return end.verdict(None) or (None if is_too_large(self.summary) else end.verdict(self.counts()))

    @property
    def words(self) -> str:
        """The verdict in words."""
        verdict = self.verdict
        is_counted = verdict in WITH_NUMBERS and not is_too_large(self.summary)
        return _words(self.summary, verdict, self.counts() if is_counted else None)

    @property
    def unanswered(self) -> int:
        """Requests without a response at the end; 0 for a session that is live or too large to count."""
        if self.summary.state is RecordingState.LIVE or is_too_large(self.summary):
            return 0
        return self.count("unanswered") or 0

    def count(self, name: str) -> int | None:
        """Return one of the counts; None if it is not known, or if the session was deleted in the meantime."""
        counts = self.counts()
        return None if counts is None else int(getattr(counts, name))

    def counts(self) -> SessionCounts | None:
        """Return the counts; None if they are not known, or if the session was deleted in the meantime."""
        try:
            counts = self._counts(self.summary)
        except (OSError, McpspyError):
            return None
        self.lacks_counts |= counts is None
        return counts

    def item(self) -> SessionItem:
        if self._item is not None:
            return self._item
        from mcpspy.core.query.sessions import SessionItem  # Few lists have a filter.

        summary, header = self.summary, self.summary.header
        texts = {
            "id": header.id,
            "name": header.name,
            "server": str(summary.server or ""),
            "client": str(summary.client or ""),
            "revision": summary.revision or "",
            "command": " ".join(header.command or ()) or header.upstream or "",
            "state": self.state,
            "origin": header.origin,
        }
        self._item = SessionItem(
            texts, read_time(header.started), summary.size, self.count, lambda: self.verdict
        )
        return self._item


def short_words(summary: Summary, counts: SessionCounts | None) -> str:
    """Return the verdict of a session in words without its numbers, for a list that has columns of these.

    `…` if it depends on counts that are not known yet.
    """
    verdict = summary.end.verdict(counts)
    return "…" if verdict is None and not is_too_large(summary) else _words(summary, verdict, None)


def _words(summary: Summary, verdict: Verdict | None, counts: SessionCounts | None) -> str:
    header = summary.header
    is_http, is_imported = header.transport == "http", header.origin == IMPORT
    ending = rows.ending(summary.exit)
    return verdict_words(verdict, counts, ending, is_http=is_http, is_imported=is_imported)


def values_of_fields(summaries: Sequence[Summary]) -> dict[str, Iterable[str]]:
    """Return the values of the fields of a filter of sessions; those of texts are of these sessions."""
    from mcpspy.core.query.sessions import CHOICES

    return {
        **CHOICES,
        "name": [each.header.name for each in summaries],
        "server": [each.server.name for each in summaries if each.server is not None],
        "client": [each.client.name for each in summaries if each.client is not None],
        "revision": [each.revision for each in summaries if each.revision],
    }


def read_sessions_filter(text: str) -> SessionQuery:
    """Return a filter of sessions. Raise QueryError."""
    from mcpspy.core.query.sessions import parse_sessions

    return parse_sessions(text, time.time, read_time)


def matching(text: str, listed: Sequence[ListedSession]) -> tuple[list[ListedSession], str]:
    """Return the sessions that match a filter, and if there are none, the reason. Raise QueryError."""
    query = read_sessions_filter(text)
    items = [each.item() for each in listed]
    found = [each for each, item in zip(listed, items, strict=True) if query.matches(item)]
    return found, "" if found else query.no_match(items)


def run_members(found: RecordedRun, count: Callable[[Summary, str], int | None]) -> dict[str, Any]:
    """Return a run as `mcpspy runs --format json` prints it; `count` returns one of the counts of a session."""
    run = found.run
    clients = dict.fromkeys(str(each.client) for each in found.sessions if each.client is not None)
    return {
        "id": run.id,
        "host": run.host.program or None,
        "pid": run.host.pid,
        "clients": list(clients),
        "started": datetime.fromtimestamp(run.began, UTC).isoformat(timespec="milliseconds"),
        "seconds": round(run.ended - run.began, 3),
        "live": any(each.state is RecordingState.LIVE for each in found.sessions),
        "messages": sum(count(each, "messages") or 0 for each in found.sessions),
        "errors": sum(count(each, "errors") or 0 for each in found.sessions),
        "unanswered": sum(count(each, "unanswered") or 0 for each in found.sessions),
        "sessions": [
            {
                "id": each.header.id,
                "name": each.header.name,
                "server": str(each.server) if each.server is not None else None,
                "transport": each.header.transport,
                "path": str(each.path),
            }
            for each in found.sessions
        ],
    }
