"""The last session of each wrapped server, by name, and how it went."""

from __future__ import annotations

from itertools import islice

from mcpspy.core.recording.origin import HOST
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.listed_session import ListedSession
from mcpspy.io.recording.reader import RecordingState
from mcpspy.io.settings import sessions_folder

MAX_CHECKED = 5
"""Number of sessions per server that are looked at. Some hosts start a server twice and drop one process, so the
live session may not be the newest; a live session outside the newest five has not been observed.
"""


class SessionsByName:
    def __init__(self) -> None:
        self._catalogs: dict[str, Catalog] = {}

    def last(self, name: str, folder: str | None) -> ListedSession | None:
        """Return the last session of a host with a server, or a live one among the newest.

        None if there is none, or if the folder is not readable.
        """
        path = sessions_folder(folder)
        catalog = self._catalogs.setdefault(path, Catalog(path))
        of_host = (
            each
            for each in catalog.newest(entries=False)
            if each.header.name == name and each.header.origin == HOST
        )
        found = list(islice(of_host, MAX_CHECKED))
        catalog.save()
        live = (each for each in found if each.state is RecordingState.LIVE)
        last = next(live, found[0] if found else None)
        return None if last is None else ListedSession(last, catalog)
