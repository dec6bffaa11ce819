"""The recordings beside the tables of a lake: `recordings/day=2026-11-23/SESSION.jsonl.zst`, redacted, one per session.

They are what `mcpspy show`, `mock`, `replay` and `diff` read as `lake:SESSION`.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from mcpspy.core.redact.redactor import Redactor
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.lake.files import Lake
from mcpspy.io.lake.query import LakeConnection
from mcpspy.io.lake.storage import StoredFile, require
from mcpspy.io.recording.piped import temporary_folder
from mcpspy.io.recording.redaction import redacted_header
from mcpspy.io.recording.scan import opened

RECORDINGS = "recordings"
"""The folder of the lake."""

_SESSIONS = "SELECT session, id, name, day::VARCHAR, uri FROM sessions ORDER BY started DESC, session"


@contextmanager
def writing(lake: Lake, day: str, key: str) -> Iterator[BinaryIO]:
    """Return a context manager: a file for the lines of a recording, which is in the lake at its end."""
    import pyarrow as pa

    with (
        lake.storage.writing(_name(day, key)) as path,
        pa.OSFile(str(path), "wb") as file,
        pa.CompressedOutputStream(file, "zstd") as lines,
    ):
        yield lines


def first_line(path: Path, redacting: Redactor | None) -> bytes:
    """Return the header line of a recording, redacted. Raise UsageError or CannotStart."""
    with opened(path) as file:
        line = file.readline()
    return line if redacting is None else redacted_header(line, redacting)


def recordings(lake: Lake) -> list[StoredFile]:
    return lake.storage.list(RECORDINGS)


def content(lake: Lake, name: str) -> Any:
    """Return a stream of the lines of a recording. Raise OSError if it is missing; reading does if it is damaged."""
    import pyarrow as pa

    return pa.CompressedInputStream(pa.BufferReader(lake.storage.read(name)), "zstd")


def fetched(location: str | None, session: str) -> Path:
    """Return a local copy of a recording in a lake, given `last`, a key, an id or its beginning, or a name.

    It is deleted when the process ends. If the lake has no copy, return the original on this machine. Raise UsageError
    or CannotStart.
    """
    if location is None:
        raise UsageError(f"lake:{session}: in which lake?", "use --lake LAKE, or set MCPSPY_LAKE")
    for package in ("pyarrow", "duckdb"):
        require(package, "lake:")
    lake = Lake.opened(location)
    key, day, uri = _found(lake, session)
    path = temporary_folder() / f"{key}.jsonl"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(content(lake, _name(day, key)), file)
    except FileNotFoundError:
        return _original(session, uri)
    except OSError as error:
        raise CannotStart(
            f"{lake.shown}/{_name(day, key)}: {sanitize(error.strerror or str(error))}",
            "mcpspy lake verify checks the files",
        ) from None
    return path


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


def _name(day: str, key: str) -> str:
    return f"{RECORDINGS}/day={day}/{key}.jsonl.zst"
