"""Export of rows as a recording or as Markdown.

A partial recording also gets the other lines that it needs. Both formats are
produced in pieces, so that the writer can yield to other tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path

from mcpspy.analysis.export.markdown import document
from mcpspy.core.recording import encode
from mcpspy.core.recording.decode import Header
from mcpspy.core.session.columns import NOTE
from mcpspy.core.session.index import Index
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.atomic import save
from mcpspy.ui.session_loader import SessionLoader
from mcpspy.ui.session_model import SessionModel

PAUSE = 4096
_HEADER = ("id", "started", "transport", "command", "upstream", "cwd", "name", "pid")

_HTTP = ("http", "http-end")


def jsonl(model: SessionModel, rows: Iterable[int]) -> Iterator[bytes]:
    """Yield a recording of these rows, their complete exchanges, and the end of the session."""
    index = model.index
    yield _header(model.header)
    wanted = set(rows)
    requests = {request for row in wanted if (request := index.request(row)) is not None}
    both = {row for request in requests for row in (request, index.pair(request)) if row is not None}
    carriers = {carrier for row in both if (carrier := index.http(row)) is not None}
    last: tuple[int, int] | None = None
    for row in range(len(index)):
        if row % PAUSE == 0:
            yield b""
        if model.index is not index:
            raise CannotStart("the recording was truncated or replaced during the export", "try again")
        if not (row in wanted or index.request(row) in requests or _is_needed(index, row, carriers)):
            continue
        where = index.where(row)
        # A batch is one line. Notes of parts are left out: the exported file has no other part.
        if last == (where.part, where.offset) or _note(index, row) == "part":
            continue
        last = (where.part, where.offset)
        line = model.read(*where[:3])
        if len(line) < where.length:
            raise CannotStart(
                f"row {row + 1:,} is missing from the recording file", "check whether it was deleted"
            )
        yield line + b"\n"


def markdown(model: SessionModel, rows: Iterable[int], notes: Mapping[int, str]) -> Iterator[str]:
    """Yield a document with one section per row, each followed by the user's note."""
    found = ((model.get(row), notes.get(row, "")) for row in rows)
    return document(model.header, ((change, note) for change, note in found if change is not None))


def free_name(stem: str, kind: str) -> str:
    """Return a file name that does not exist in the current folder."""
    names = chain([f"{stem}.{kind}"], (f"{stem}-{number}.{kind}" for number in count(2)))
    return next(name for name in names if not Path(name).exists())


async def saved(loader: SessionLoader, path: Path, rows: Sequence[int], notes: Mapping[int, str]) -> str:
    """Save rows in the format of the suffix; return the result. Raises UsageError or CannotStart."""
    if path.suffix == ".md":
        pieces: Iterable[bytes | str] = markdown(loader.model, rows, notes)
    elif path.suffix == ".jsonl" and not loader.model.is_merged:
        pieces = jsonl(loader.model, rows)
    elif path.suffix == ".jsonl":
        raise UsageError("a .jsonl recording holds one session", "use .md")
    else:
        raise UsageError(f"{path.name}: the file name must end in .jsonl or .md")
    size = await asyncio.to_thread(save, path, pieces)
    return f"saved {size:,} bytes to {path}"


def _header(header: Header) -> bytes:
    fields = {name: value for name in _HEADER if (value := getattr(header, name)) is not None}
    return encode.header(fields)


def _is_needed(index: Index, row: int, carriers: set[int]) -> bool:
    """Return whether the outcome of the exchanges or of the session depends on a note."""
    note = _note(index, row)
    return note == "exit" or (note in _HTTP and index.http(row) in carriers)


def _note(index: Index, row: int) -> str:
    return index.texts[index.method[row]] if index.kind(row) == NOTE else ""
