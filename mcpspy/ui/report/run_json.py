"""A run of a host as JSON: `mcpspy runs --format json` and the web page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.io.recording.runs import RecordedRun


def members(found: RecordedRun, count: Callable[[Summary, str], int | None]) -> dict[str, Any]:
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
