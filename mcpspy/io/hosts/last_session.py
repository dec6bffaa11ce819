"""The outcome of the last session of each wrapped server, by name."""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.io.settings import sessions_folder

MAX_CHECKED = 5
"""Number of sessions per server that are looked at. Some hosts start a server twice and drop one process, so the
live session may not be the newest; a live session outside the newest five has not been observed.
"""

FINE = frozenset([None, "SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE"])


FINE_CODES = frozenset([None, 0, 130, 143])
"""Exit codes of servers that exited normally or because of one of these signals."""


class SessionOutcome(StrEnum):
    LIVE = "live"
    FINE = "fine"
    """The server exited with code 0, or in the way that hosts end servers."""
    DIED = "died"
    """The server failed, or mcpspy was killed."""


class LastSession(NamedTuple):
    went: SessionOutcome
    summary: Summary


class SessionsByName:
    def __init__(self) -> None:
        self._catalogs: dict[str, Catalog] = {}

    def last(self, name: str, folder: str | None) -> LastSession | None:
        """Return the last session of a server, or a live one among the newest; None if the folder is not readable."""
        path = sessions_folder(folder)
        catalog = self._catalogs.setdefault(path, Catalog(path))
        newest = (each for each in catalog.newest(entries=False) if each.header.name == name)
        found = [_last(summary) for summary in islice(newest, MAX_CHECKED)]
        catalog.save()
        live = (each for each in found if each.went is SessionOutcome.LIVE)
        return next(live, found[0] if found else None)


def _last(summary: Summary) -> LastSession:
    if summary.state is RecordingState.LIVE:
        return LastSession(SessionOutcome.LIVE, summary)
    fields = summary.exit.fields if summary.exit is not None else {"code": -1}
    ended_well = fields.get("code") in FINE_CODES and fields.get("signal") in FINE
    return LastSession(SessionOutcome.FINE if ended_well else SessionOutcome.DIED, summary)
