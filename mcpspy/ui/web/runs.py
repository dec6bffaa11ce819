"""The runs of hosts for the page: found among the sessions of the folder, and as JSON."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from mcpspy.core.sanitize import sanitize
from mcpspy.io.recording import listed_session
from mcpspy.io.recording.reader import Summary
from mcpspy.io.recording.runs import RecordedRun, Runs

KEPT = 1.0
"""Seconds for which the runs that were found are valid; longer if it takes long to find them."""

SHARE = 10
"""Times as long as a search takes, no other one begins: recordings of HTTP are read as a whole."""


class RecentRuns:
    """The runs of the latest sessions."""

    def __init__(self) -> None:
        self._found = Runs()
        self._runs: list[RecordedRun] = []
        self._valid_until = 0.0
        self._finding = asyncio.Lock()

    async def among(self, sessions: Sequence[Summary]) -> list[RecordedRun]:
        """Return the runs, the oldest first."""
        async with self._finding:
            began = time.monotonic()
            if began >= self._valid_until:
                self._runs = await asyncio.to_thread(self._found.among, sessions)
                ended = time.monotonic()
                self._valid_until = ended + max(KEPT, SHARE * (ended - began))
            return self._runs


def described(
    found: RecordedRun, count: Callable[[Summary, str], int | None], key: Callable[[Summary], str]
) -> dict[str, Any]:
    """Return a run as the page lists it; `key` returns the key of a session in addresses."""
    listed = listed_session.run_members(found, count)
    return {
        **listed,
        "host": sanitize(listed["host"] or f"pid {listed['pid']}"),
        "clients": list(map(sanitize, listed["clients"])),
        "sessions": [
            {"key": key(summary), "name": sanitize(summary.header.name) or "session"}
            for summary in found.sessions
        ],
    }


def facts(found: RecordedRun, listed: dict[str, Any]) -> dict[str, Any]:
    """Return what the head of the page shows of a run, instead of the facts of its first session."""
    return {
        "id": found.run.id,
        "name": f"run of {listed['host']}",
        "client": ", ".join(listed["clients"]),
        "redacted": all(summary.header.redacted is True for summary in found.sessions),
        "sessions": listed["sessions"],
        **dict.fromkeys(("transport", "target", "server", "revision", "ending"), ""),
    }
