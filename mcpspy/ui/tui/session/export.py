"""Rows of a session as a file of their own: a recording, or Markdown.

Owns which lines a part of a recording needs to be read as the whole is, and
how a message looks in a document. Both come in pieces, so that whoever writes
them may look up in between. Refuses to overwrite a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from mcpspy.core import envelope
from mcpspy.core.columns import NOTE
from mcpspy.core.exchange import State
from mcpspy.core.index import Index
from mcpspy.core.message import Failure, Request, Result
from mcpspy.core.record import Damaged, Header, Note
from mcpspy.core.session import Change
from mcpspy.errors import CannotStart, UsageError
from mcpspy.ui import rows as words
from mcpspy.ui.body import Body
from mcpspy.ui.inert import inert
from mcpspy.ui.tui.session.log import Log

LARGEST = 64_000
"""Bytes of a body that a document shows."""

PAUSE = 4096
"""Rows that are looked at between two pieces, though there is nothing to say."""

_HEADER = ("id", "started", "transport", "command", "upstream", "cwd", "name", "pid")

_HTTP = ("http", "http-end")


def jsonl(log: Log, rows: Iterable[int]) -> Iterator[bytes]:
    """Yield a recording of these rows, of all that belongs to their exchanges, and of how the session ended."""
    index = log.index
    yield _header(log.header)
    wanted, requests, carriers = set(rows), set[int](), set[int]()
    requests = {request for row in wanted if (request := index.request(row)) is not None}
    for request in requests:
        for row in (request, index.pair(request)):
            if row is not None and (carrier := index.http(row)) is not None:
                carriers.add(carrier)
    last: tuple[int, int] | None = None
    for row in range(len(index)):
        if row % PAUSE == 0:
            yield b""
        if log.index is not index:
            raise CannotStart("the recording was cut or replaced while it was exported", "try again")
        if not (row in wanted or index.request(row) in requests or _stands_around(index, row, carriers)):
            continue
        where = index.where(row)
        # All messages of a batch are in one line. And no reader shall look for another part beside this file.
        if last == (where.part, where.offset) or _note(index, row) == "part":
            continue
        last = (where.part, where.offset)
        line = log.read(*where[:3])
        if len(line) < where.length:
            raise CannotStart(f"row {row + 1:,} is not in the recording's file any more", "was it deleted?")
        yield line + b"\n"


def markdown(log: Log, rows: Iterable[int], notes: Mapping[int, str] | None = None) -> Iterator[str]:
    """Yield a document: a section for each row, and below it what a person noted there."""
    header = log.header
    yield f"# {_code(inert(header.name) or 'session')}, recorded {inert(header.started)}\n"
    for row in rows:
        change = log.get(row)
        if change is not None:
            yield from _section(change, (notes or {}).get(row, ""))


def save(path: str | Path, pieces: Iterable[bytes | str]) -> int:
    """Write a new file that only its owner may read; return its bytes. Raise UsageError or CannotStart."""
    size = 0
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except FileExistsError:
        raise UsageError(f"{inert(str(path))}: there is such a file already", "name another") from None
    except OSError as error:
        raise CannotStart(f"{inert(str(path))}: {error.strerror}", "name another file") from None
    try:
        with open(fd, "wb") as file:
            for piece in pieces:
                size += file.write(
                    piece.encode("utf-8", "backslashreplace") if isinstance(piece, str) else piece
                )
    except BaseException as error:
        with suppress(OSError):  # Half of an export is none.
            os.unlink(path)
        if isinstance(error, OSError):
            raise CannotStart(f"{inert(str(path))}: {error.strerror}", "nothing was exported") from None
        raise
    return size


def _header(header: Header) -> bytes:
    fields = {name: value for name in _HEADER if (value := getattr(header, name)) is not None}
    return envelope.header(fields)


def _stands_around(index: Index, row: int, carriers: set[int]) -> bool:
    """Whether it is a note without which the exchanges, or the session, would be said to have ended otherwise."""
    note = _note(index, row)
    return note == "exit" or (note in _HTTP and index.http(row) in carriers)


def _note(index: Index, row: int) -> str:
    """Return the kind of a note; of a message it is empty."""
    return index.texts[index.method[row]] if index.what[row] & 7 == NOTE else ""


def _section(change: Change, note: str) -> Iterator[str]:
    said, exchange = words.row(change), change.exchange
    subject = f" {_code(said.subject)}" if said.subject else ""
    yield f"\n## {_code(said.method or 'answer')}{subject}\n\n"
    latency, status = said.latency, said.status
    if exchange is not None and isinstance(change.what, Request):
        latency = "" if exchange.latency is None else words.duration(exchange.latency)
        status = inert(words.outcome(exchange)[0])
    facts = [f"{words.moment(change.what.at)} s", latency, status]
    yield f"{said.arrow} " + " · ".join(_code(fact) for fact in facts if fact) + "\n"
    for line in note.splitlines():
        yield f"\n> {inert(line)}\n" if line is note.splitlines()[0] else f"> {inert(line)}\n"
    yield from _bodies(change)


def _bodies(change: Change) -> Iterator[str]:
    what, exchange = change.what, change.exchange
    if isinstance(what, Note):
        if what.text:
            yield _fenced("text", inert(what.text[:LARGEST]))
        return
    if isinstance(what, Damaged) or exchange is None or not isinstance(what, Request | Result | Failure):
        yield _body(what.data)
        return
    yield "\n### request\n" + _body(exchange.request.data)
    if exchange.answer is not None:
        yield "\n### response\n" + _body(exchange.answer.data)
    elif exchange.state is State.PENDING:
        yield "\nNo response yet.\n"


def _body(data: bytes) -> str:
    body = Body(data)
    lines, size = [], 0
    for line in body:
        size += len(line.encode()) + 1
        if size > LARGEST:
            break
        lines.append(line)
    cut = "" if size <= LARGEST else f"\nCut: the first {len(lines):,} of {len(body):,} lines.\n"
    return _fenced("json" if body.is_json else "text", "\n".join(lines)) + cut


def _fenced(language: str, text: str) -> str:
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"\n{fence}{language}\n{text}\n{fence}\n"


def _code(text: str) -> str:
    """Return a text in which no Markdown means anything."""
    ticks = "`" * (_longest_run(text) + 1)
    room = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{ticks}{room}{text}{room}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
