"""HTTP Archive 1.2: HTTP sessions as they were (`http`), stdio sessions as pseudo-requests (`stdio`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy import __version__
from mcpspy.analysis.export.base import RecordedSession, WallClock, dumps
from mcpspy.analysis.export.har import http, stdio
from mcpspy.core.sanitize import sanitize

COMMENT = (
    "Made by mcpspy. POST stdio://NAME/METHOD is no HTTP: it stands for a JSON-RPC message on a pipe, "
    "and its status for what became of it (docs/export.md)."
)


def export(sessions: Iterable[RecordedSession]) -> Iterator[str]:
    """Yield the archive: one page per session, written while its entries are read."""
    creator = {"name": "mcpspy", "version": __version__}
    pages: list[dict[str, Any]] = []
    yield f'{{"log":{{"version":"1.2","creator":{dumps(creator)},"comment":{dumps(COMMENT)},"entries":['
    before = ""
    for session in sessions:
        page = f"{session.header.id}-{len(pages) + 1}"
        pages.append(
            {
                "startedDateTime": WallClock(session.header.started).iso(0.0),
                "id": page,
                "title": sanitize(session.name),
                "pageTimings": {},
            }
        )
        entries = http.entries if session.header.transport == "http" else stdio.entries
        for entry in entries(session):
            yield f"{before}\n{dumps({'pageref': page, **entry})}"
            before = ","
    yield f'\n],"pages":{dumps(pages)}}}}}\n'
