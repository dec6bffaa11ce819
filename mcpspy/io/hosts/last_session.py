"""The outcome of the last session of each wrapped server, by name.

Reads the first line of each recording in a folder, but the end of only a few: `hosts` runs often, and
recordings are large.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from mcpspy.core.recording.decode import Header
from mcpspy.errors import McpspyError
from mcpspy.io.recording.reader import RecordingState, Summary, read_header_of, start_order, summarize
from mcpspy.io.settings import sessions_folder

MAX_CHECKED = 5
"""Number of sessions per server whose ends are read. Some hosts start a server twice and drop one process, so the
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
        self._folders: dict[Path, dict[str, list[tuple[Path, Header]]]] = {}

    def last(self, name: str, folder: str | None) -> LastSession | None:
        """Return the last session of a server, or a live one among the newest."""
        found = None
        for path, header in self._named(Path(sessions_folder(folder))).get(name, [])[:MAX_CHECKED]:
            try:
                last = _last(summarize(path, header, counts=False))
            except (OSError, McpspyError):  # The file was deleted in the meantime.
                continue
            if last.went is SessionOutcome.LIVE:
                return last
            found = found or last
        return found

    def _named(self, folder: Path) -> dict[str, list[tuple[Path, Header]]]:
        if folder not in self._folders:
            named: dict[str, list[tuple[Path, Header]]] = {}
            try:
                paths = list(folder.glob("*.jsonl"))
            except OSError:
                paths = []  # This user cannot read the folder, so its sessions are unknown.
            for path in paths:
                try:
                    header = read_header_of(path)
                except (OSError, McpspyError):  # Not a recording, or deleted.
                    continue
                if header.part == 1:
                    named.setdefault(header.name, []).append((path, header))
            for sessions in named.values():
                sessions.sort(key=lambda pair: start_order(*pair), reverse=True)
            self._folders[folder] = named
        return self._folders[folder]


def _last(summary: Summary) -> LastSession:
    if summary.state is RecordingState.LIVE:
        return LastSession(SessionOutcome.LIVE, summary)
    fields = summary.exit.fields if summary.exit is not None else {"code": -1}
    ended_well = fields.get("code") in FINE_CODES and fields.get("signal") in FINE
    return LastSession(SessionOutcome.FINE if ended_well else SessionOutcome.DIED, summary)
