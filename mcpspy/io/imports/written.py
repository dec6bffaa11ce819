"""A session that came from another tool, written as a recording.

Owns the file: as every recording it goes through `Writer.write`, redacted, and
is new; other than one that is being recorded, it is whole or it is not there.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mcpspy.core.importers.base import ImportedSession
from mcpspy.core.redact.redactor import Redactor
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.folder import session_name
from mcpspy.io.writer import Writer

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value

BATCH = 1 << 20
"""Bytes written at a time."""


def check(out: str | None) -> None:
    """Raise UsageError if there is a file already where one is to be written."""
    if out is not None and os.path.lexists(out) and not os.path.isdir(out):
        raise UsageError(f"{out} exists, and no file is overwritten", "name another")


def write(
    head: dict[str, Value], lines: list[bytes], folder: str | None, out: str | None, redactor: Redactor | None
) -> Path:
    """Return the file that was written, whole; raise CannotStart if it cannot be."""
    trouble: list[str] = []
    try:
        writer = Writer(folder, out, head, redactor, say=trouble.append)
    except OSError as error:
        raise CannotStart(
            f"cannot write {out or error.filename or 'to the folder of sessions'}: {error.strerror}",
            "name another with -o",
        ) from None
    try:
        for batch in _batches(lines):
            if trouble:
                break
            writer.write(batch)
    except BaseException:
        trouble.append("interrupted")
        raise
    finally:
        writer.close()
        if trouble:
            os.unlink(writer.path)
    if trouble:
        raise CannotStart(trouble[0].partition("; ")[0], "this session was not imported")
    return Path(writer.path)


def header(session: ImportedSession, name: str) -> dict[str, Value]:
    """Return the header of the recording, without what every header has. `name` is for one that has none."""
    fields: dict[str, Value | None] = {
        "started": _wall_clock(session.started) if session.started is not None else None,
        "transport": session.transport,
        "command": session.command,
        "upstream": session.upstream,
        "cwd": session.cwd,
        "name": session.name or (session_name(session.command) if session.command else name),
        "imported": {"from": session.format, "lacks": session.lacks, "changed": session.changed},
    }
    return {key: value for key, value in fields.items() if value is not None}


def _wall_clock(seconds: float) -> str:
    """Return an instant as a header has it; raise UsageError if no calendar has it."""
    try:
        parts = time.gmtime(seconds)
    except (OverflowError, OSError, ValueError):
        raise UsageError(f"it began {seconds:g} s after 1970, which is no date") from None
    return time.strftime("%Y-%m-%dT%H:%M:%S", parts) + f".{int(seconds * 1000) % 1000:03d}Z"


def _batches(lines: list[bytes]) -> list[bytes]:
    batches: list[bytes] = []
    gathered: list[bytes] = []
    size = 0
    for line in lines:
        gathered.append(line)
        size += len(line)
        if size >= BATCH:
            batches.append(b"".join(gathered))
            gathered, size = [], 0
    return [*batches, b"".join(gathered)] if gathered else batches
