"""Fetch the recording of a session from a lake, given `lake:SESSION`."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.extras import require
from mcpspy.io.lake.files import Lake, content, name_of
from mcpspy.io.lake.query import LakeConnection
from mcpspy.io.recording.piped import temporary_folder

_SESSIONS = "SELECT session, id, name, day::VARCHAR, uri FROM sessions ORDER BY started DESC, session"


class StoredSession(NamedTuple):
    """A session in a lake. Can be pickled."""

    lake: str
    key: str
    day: str
    uri: str
    size: int = 0
    """Bytes of its recording."""


def fetched(location: str | None, session: str) -> Path:
    """Return a local copy of a recording in a lake, given `last`, a key, an id or its beginning, or a name.

    It is deleted when the process ends. If the lake has no copy, return the original on this machine. Raise UsageError
    or CannotStart.
    """
    lake = _opened(location, f"lake:{session}: in which lake?")
    return copied(StoredSession(lake.storage.location, *_found(lake, session)), temporary_folder())


def sessions_where(location: str | None, condition: str) -> list[StoredSession]:
    """Return the sessions of a lake for which an SQL condition is true, by time. Raise UsageError or CannotStart."""
    lake = _opened(location, "--where: in which lake?")
    sql = f"SELECT session, day::VARCHAR, uri, bytes FROM sessions WHERE ({condition}\n) ORDER BY started, session"
    return [StoredSession(lake.storage.location, *row) for row in LakeConnection(lake).query(sql).rows]


def copied(stored: StoredSession, folder: Path) -> Path:
    """Return a copy in this folder, or the original, as `fetched` does."""
    lake = Lake(stored.lake)
    name = name_of(stored.day, stored.key)
    path = folder / f"{stored.key}.jsonl"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(content(lake, name), file)
    except FileNotFoundError:
        return _original(stored.key, stored.uri)
    except OSError as error:
        raise CannotStart(
            f"{lake.shown}/{name}: {sanitize(error.strerror or str(error))}",
            "mcpspy lake verify checks the files",
        ) from None
    return path


def _opened(location: str | None, missing: str) -> Lake:
    if location is None:
        raise UsageError(missing, "use --lake LAKE, or set MCPSPY_LAKE")
    for package in ("pyarrow", "duckdb", "pytz"):
        require(package, "lake:")
    return Lake.opened(location)


def _found(lake: Lake, session: str) -> tuple[str, str, str]:
    """Return key, day and URI of the newest session that matches."""
    rows = LakeConnection(lake).run(_SESSIONS).fetchall()
    found = [row for row in rows if session in ("last", *row[:3])]
    if not found and len(session) >= 2:
        found = [row for row in rows if row[0].startswith(session)]
        if len(found) > 1:
            raise UsageError(
                f"lake:{session}: {len(found)} sessions of {lake.shown} start with this", "add characters"
            )
    if not found:
        raise UsageError(
            f"lake:{session}: not in {lake.shown}",
            f"mcpspy query 'SELECT id, name FROM sessions' --lake {lake.shown}",
        )
    key, _, _, day, uri = found[0]
    return key, day, uri


def _original(session: str, uri: str) -> Path:
    parts = urlsplit(uri)
    path = Path(unquote(parts.path))
    if parts.hostname != socket.gethostname().lower() or not path.exists():
        raise UsageError(
            f"lake:{session}: the lake has only its tables", sanitize(f"the recording was {unquote(uri)}")
        )
    return path
