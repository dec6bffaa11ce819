"""The recordings beside the tables of a lake: `recordings/day=2026-11-23/SESSION.jsonl.zst`.

Each session has one, redacted like the tables. `fetch` reads them as `lake:SESSION`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from mcpspy.core.redact.redactor import Redactor
from mcpspy.io.lake.files import Lake
from mcpspy.io.lake.storage import StoredFile
from mcpspy.io.recording.redaction import redacted_header
from mcpspy.io.recording.scan import opened

RECORDINGS = "recordings"
"""The folder of the lake."""


@contextmanager
def writing(lake: Lake, day: str, key: str) -> Iterator[BinaryIO]:
    """Return a context manager: a file for the lines of a recording, which is in the lake at its end."""
    import pyarrow as pa

    with (
        lake.storage.writing(name_of(day, key)) as path,
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


def name_of(day: str, key: str) -> str:
    """Return the name of a session's recording in the lake."""
    return f"{RECORDINGS}/day={day}/{key}.jsonl.zst"
