"""Summarize, read and delete recordings.

Files are opened read-only. An incomplete last line is skipped and reported. Deleting a session deletes only
files whose own headers belong to it, and never a file that is still being written.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mcpspy.core.protocol.message import Result, read_frame
from mcpspy.core.protocol.peers import Peer
from mcpspy.core.protocol.spec import SERVER
from mcpspy.core.recording.decode import Entry, Frame, Header, Note, read_entry, read_header
from mcpspy.core.recording.origin import HOST, MOCK
from mcpspy.core.session.outcome import Reply, VerdictFacts, reply_of
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording import cache
from mcpspy.io.recording.scan import BLOCK, RecordingScan, opened, part_after
from mcpspy.io.recording.writer import is_live

HEAD = 1 << 16
"""Bytes at the start of a recording in which a summary looks for the peers; shorter files are read once."""

TAIL = 1 << 14
"""Bytes at the end of a recording in which a summary looks for the exit."""


LAKE_CACHE = ".mcpspy-lake"
"""Name of the folder with the sessions as tables, for `mcpspy query`; it may have the content of any of them."""


_MOCK_NOTE = re.compile(rb'\n\{"t": ?[0-9.]+, ?"note": ?"mock"')


class RecordingState(StrEnum):
    LIVE = "live"
    ENDED = "ended"
    """The recording has an exit note."""
    DIED = "died"
    """The recording has neither an exit note nor a writer: mcpspy was killed, or the machine went down."""


class Summary(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Facts for a list of sessions, found without reading the whole file."""

    path: Path
    header: Header
    state: RecordingState
    exit: Note | None
    size: int
    """Bytes of all parts."""
    entries: int
    """Lines after the header, of all parts; 0 if they were not counted."""
    last: float
    """Seconds from `started` to the last entry."""
    client: Peer | None
    server: Peer | None
    revision: str | None
    parts: tuple[str, ...] = ()
    """Names of the files after the first; the last one may be missing."""
    failure: str | None = None
    """The reason why the server could not be started, or over HTTP was never reached."""
    reply: Reply = Reply.NOT_ASKED
    """The best response that the client got."""

    @property
    def has_failed(self) -> bool:
        """Return True if the session has ended and its server was never started or reached."""
        return self.state is RecordingState.ENDED and self.failure is not None

    @property
    def end(self) -> VerdictFacts:
        """The facts on which its verdict depends, except the counts."""
        fields = self.exit.fields if self.exit is not None else {}
        return VerdictFacts(
            self.state is RecordingState.LIVE,
            not self.has_failed,
            self.reply,
            self.state is RecordingState.DIED,
            fields.get("code"),
            fields.get("signal"),
        )

    @property
    def order(self) -> tuple[str, str, str]:
        return start_order(self.path, self.header)


class Recording:
    """A recording on disk: its header and its entries."""

    def __init__(self, path: str | Path) -> None:
        """Open the file and read its header. Raise UsageError or CannotStart."""
        self.path = Path(path)
        self.header = read_header_of(self.path)
        self.torn = 0
        """Bytes of incomplete last lines, which are skipped."""

    def __iter__(self) -> Iterator[Entry]:
        """Yield the current entries of the file and of the parts that follow."""
        self.torn = 0
        scan = RecordingScan(self.path)
        for block in scan:
            yield from map(read_entry, block.lines)
        self.torn = scan.torn

    def session(self) -> Session:
        """Return the whole session. Unless it is live, its end is included."""
        session = Session(self.header).add_all(self)
        if self.state is not RecordingState.LIVE:
            session.end()
        return session

    @property
    def state(self) -> RecordingState:
        *_, last = _parts(self.path)
        return last.state


def read_header_of(path: Path) -> Header:
    """Return the header of a file. Raise UsageError or CannotStart, with a hint, if it has none."""
    with opened(path) as file:
        line = file.readline(1 << 20)
    if not line:
        raise UsageError(f"{path}: empty, so not a recording", "was the disk full when it was written?")
    if not line.endswith(b"\n") and line.startswith(b'{"mcpspy":'):
        raise UsageError(f"{path}: its header is incomplete", "a recording cannot be read without its header")
    try:
        return read_header(line.rstrip(b"\n"))
    except UsageError as error:
        raise UsageError(f"{path}: {error.args[0]}", error.hint) from None


def read_time(text: str) -> float | None:
    """Return the seconds since the epoch; None for text that is not a time. Without a zone, it is local."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def start_order(path: Path, header: Header) -> tuple[str, str, str]:
    """Return the key that sorts sessions by start."""
    return header.started, header.id, path.name


def summarize(path: Path, header: Header, *, counts: bool = True) -> Summary:
    """Return the summary of a session, from the start and the end of its file.

    Counting the entries reads the whole file, which takes a second per gigabyte; `counts=False` skips that.
    """
    failure: str | None = None
    parts = list(_parts(path))
    if header.origin == HOST and _MOCK_NOTE.search(parts[0].head):  # An older recording of a mock's clients.
        header = replace(header, origin=MOCK)
    session = Session(header)
    for line in parts[0].head.split(b"\n")[1:-1]:
        entry = read_entry(line)
        failure = failure or _failure(entry)
        session.add(entry)
        if session.server is not None and session.is_agreed:
            break
    reply = reply_of(session.exchanges)
    if (
        reply in (Reply.SILENCE, Reply.REFUSED)
        and parts[0].size >= HEAD
        and any(map(_is_result, Recording(path)))
    ):
        reply = Reply.ANSWERED
    names = [part.path.name for part in parts]
    last = parts[-1].last
    if isinstance(last, Note) and last.kind == "part":
        names.append(str(last.fields.get("next")))
    if failure is not None and header.transport == "http" and any(map(_is_reached, Recording(path))):
        failure = None
    return Summary(
        path=path,
        header=header,
        state=parts[-1].state,
        exit=parts[-1].exit,
        size=sum(part.size for part in parts),
        entries=sum(_count_lines(part) - 1 for part in parts) if counts else 0,
        last=last.at if last is not None else 0.0,
        client=session.client,
        server=session.server,
        revision=session.agreed_revision,
        parts=tuple(names[1:]),
        failure=failure if reply is not Reply.ANSWERED else None,
        reply=reply,
    )


def headers(folder: Path) -> Iterator[tuple[Path, Header]]:
    """Yield the recordings in a folder, including later parts. Raise OSError if the folder cannot be read."""
    for path in folder.iterdir():
        if path.suffix == ".jsonl":
            try:
                header = read_header_of(path)
            except (UsageError, CannotStart):
                continue
            yield path, header


def files_of(summary: Summary, found: list[tuple[Path, Header]] | None = None) -> list[Path]:
    """Return the existing files of a session, the first part first; `found` are files with its id, if known.

    Parts are identified by their headers, because the note that links a part to the next may be missing. If the
    folder has a copy of the session, only parts named after this file are its own.
    """
    first = summary.path
    found = _same_session(first.parent, summary.header) if found is None else found
    own = [path for path, header in found if header.part == 1 and path == first]
    parts = sorted((header.part, path) for path, header in found if header.part != 1)
    if any(header.part == 1 and path != first for path, header in found):
        parts = [(part, path) for part, path in parts if path.name.startswith(f"{first.stem}.part")]
    return [*own, *(path for _, path in parts)]


def delete(summary: Summary, files: list[Path] | None = None) -> None:
    """Delete the files of a session, `files_of` by default. Raise McpspyError if one cannot be deleted.

    The first part is deleted last: if any file remains, the session stays in the list.
    """
    first = summary.path
    files = files_of(summary) if files is None else files
    if first not in files and os.path.lexists(first):
        raise CannotStart(f"{first}: another file has this name now", "list the sessions again")
    for path in files:
        with opened(path) as file:
            if is_live(file.fileno()):
                raise CannotStart(f"{path}: still being written", "its server is running")
    for path in reversed(files):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise CannotStart(f"cannot delete {path}: {error.strerror}") from None
    cache.remove(first)
    shutil.rmtree(first.parent / LAKE_CACHE, ignore_errors=True)


class _Part(NamedTuple):
    path: Path
    state: RecordingState
    last: Entry | None
    """The last complete entry."""
    exit: Note | None
    """The exit of the server, if it is known."""
    size: int
    head: bytes
    """The first bytes, at most HEAD."""


def _read_part(path: Path) -> _Part:
    with opened(path) as file:
        live = is_live(file.fileno())
        head = tail = file.read(HEAD)
        size, back = len(head), TAIL
        while size >= HEAD:  # Else it was read as a whole.
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - back))
            tail = file.read()
            # Two lines, because the first one may begin before the tail; or there is nothing more to read.
            if tail.count(b"\n") > 1 or back >= size:
                break
            back *= 16
    lines = tail[: tail.rfind(b"\n") + 1].split(b"\n")[:-1]
    last = read_entry(lines[-1]) if len(lines) > 1 else None
    end = last if isinstance(last, Note) and last.is_end else None
    if end is None and not live:  # The server has exited, and what forwarded for the rest was killed.
        end = next((note for line in reversed(lines) if (note := _exit_in(line)) is not None), None)
    state = RecordingState.LIVE if live else RecordingState.DIED
    if end is not None:
        state = RecordingState.ENDED
    return _Part(path, state, last, end, size, head)


def _exit_in(line: bytes) -> Note | None:
    """Return the note of this line if it is the exit of a server that left its pipes to other processes."""
    if b'"note":"exit"' not in line:
        return None
    entry = read_entry(line)
    return entry if isinstance(entry, Note) and entry.kind == "exit" and not entry.is_end else None


def _parts(path: Path) -> Iterator[_Part]:
    """Yield the files of a session, starting with this one."""
    seen: set[Path] = set()
    following: Path | None = path
    while following is not None and following not in seen:
        part = _read_part(following)
        yield part
        seen.add(following)
        following = part_after(following, part.last)


def _failure(entry: Entry) -> str | None:
    """Return the reason why the server of an HTTP exchange, or of a bridge, was not reached."""
    if not isinstance(entry, Note):
        return None
    if entry.kind == "error":
        return entry.text
    return str(entry.fields["error"]) if entry.kind == "http" and "error" in entry.fields else None


def _is_result(entry: Entry) -> bool:
    return (
        isinstance(entry, Frame)
        and entry.side == SERVER
        and any(isinstance(message, Result) for message in read_frame(entry))
    )


def _is_reached(entry: Entry) -> bool:
    return isinstance(entry, Note) and entry.kind == "http" and "error" not in entry.fields


def _count_lines(part: _Part) -> int:
    if part.size < HEAD:
        return part.head.count(b"\n")
    with opened(part.path) as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(BLOCK), b""))


def _same_session(folder: Path, wanted: Header) -> list[tuple[Path, Header]]:
    try:
        return [
            (path, header)
            for path, header in headers(folder)
            if (header.id, header.started) == (wanted.id, wanted.started)
        ]
    except OSError as error:
        raise CannotStart(f"{folder}: {error.strerror}") from None
