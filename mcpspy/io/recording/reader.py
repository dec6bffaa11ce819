"""Find, summarize, read and delete recordings.

Files are opened read-only. An incomplete last line is skipped and reported. Deleting a session deletes only
files whose own headers belong to it, and never a file that is still being written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from mcpspy.core.protocol.peers import Peer
from mcpspy.core.recording.decode import Entry, Header, Note, read_entry, read_header
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.scan import BLOCK, RecordingScan, opened, part_after
from mcpspy.io.recording.writer import is_live
from mcpspy.io.settings import sessions_folder

HEAD = 1 << 16
"""Bytes at the start of a recording in which a summary looks for the peers."""

TAIL = 1 << 14
"""Bytes at the end of a recording in which a summary looks for the exit."""


class RecordingState(StrEnum):
    LIVE = "live"
    ENDED = "ended"
    """The recording has an exit note."""
    DIED = "died"
    """The recording has neither an exit note nor a writer: mcpspy was killed, or the machine went down."""


class Summary(Struct, frozen=True, kw_only=True):
    """Facts for a list of sessions, found without reading the whole file."""

    path: Path
    header: Header
    state: RecordingState
    exit: Note | None
    size: int
    """Bytes of all parts."""
    entries: int
    """Lines after the header, of all parts."""
    last: float
    """Seconds from `started` to the last entry."""
    client: Peer | None
    server: Peer | None
    revision: str | None

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
        *_, (_, state, _) = _parts(self.path)
        return state


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


def damaged_lines(count: int) -> str:
    """Return a warning about lines in the middle of a recording that are not valid entries."""
    return "1 damaged line skipped" if count == 1 else f"{count} damaged lines skipped"


def find(which: str, folder: str | None = None) -> Path:
    """Return the file of a session, given a path, `last`, an id or its beginning, or a name.

    If several sessions have the name, return the newest. Raises UsageError.
    """
    if os.sep in which or which.endswith(".jsonl") or Path(which).is_file():
        return Path(which)
    home = Path(sessions_folder(folder))
    newest = sorted(_recordings(home), key=lambda pair: start_order(*pair), reverse=True)
    for path, header in newest:
        if which in ("last", header.id, header.name):
            return path
    matching = [path for path, header in newest if len(which) >= 2 and header.id.startswith(which)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UsageError(
            f"{which}: {len(matching)} session ids start with this", "add characters; mcpspy ls lists the ids"
        )
    if Path(which).is_dir():
        raise UsageError(f"{which}: a folder, not a recording", f"mcpspy ls --dir {which} lists its sessions")
    if not newest:
        raise UsageError(
            f"no sessions in {home}", "record one with mcpspy run -- COMMAND, or try mcpspy demo"
        )
    raise UsageError(f"{which}: no such file or session", "mcpspy ls lists the sessions")


def sessions(folder: str | None = None) -> list[Summary]:
    """Return the sessions of a folder, the newest first. Other files are skipped."""
    found = []
    for path, header in _recordings(Path(sessions_folder(folder))):
        try:
            found.append(summarize(path, header))
        except (OSError, UsageError, CannotStart):  # The file was deleted.
            continue
    return sorted(found, key=lambda summary: summary.order, reverse=True)


def start_order(path: Path, header: Header) -> tuple[str, str, str]:
    """Return the key that sorts sessions by start."""
    return header.started, header.id, path.name


def summarize(path: Path, header: Header, *, counts: bool = True) -> Summary:
    """Return the summary of a session, from the start and the end of its file.

    Counting the entries reads the whole file, which takes a second per gigabyte; `counts=False` skips that.
    """
    session = Session(header)
    with opened(path) as file:
        lines = file.read(HEAD).split(b"\n")
        for line in lines[1:-1]:
            session.add(read_entry(line))
            if session.server is not None and session.is_agreed:
                break
    size = entries = 0
    state, last = RecordingState.DIED, None
    for part, state, last in _parts(path):  # noqa: B007 - the last part's values are used.
        size += part.stat().st_size
        entries += _count_lines(part) - 1 if counts else 0
    return Summary(
        path=path,
        header=header,
        state=state,
        exit=last if isinstance(last, Note) and last.kind == "exit" else None,
        size=size,
        entries=entries,
        last=last.at if last is not None else 0.0,
        client=session.client,
        server=session.server,
        revision=session.agreed_revision,
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


def files_of(summary: Summary) -> list[Path]:
    """Return the existing files of a session, the first part first.

    Parts are identified by their headers, because the note that links a part to the next may be missing. If the
    folder has a copy of the session, only parts named after this file are its own.
    """
    first = summary.path
    found = _same_session(first.parent, summary.header)
    own = [path for path, header in found if header.part == 1 and path == first]
    parts = sorted((header.part, path) for path, header in found if header.part != 1)
    if any(header.part == 1 and path != first for path, header in found):
        parts = [(part, path) for part, path in parts if path.name.startswith(f"{first.stem}.part")]
    return [*own, *(path for _, path in parts)]


def delete(summary: Summary) -> None:
    """Delete the files of a session. Raise McpspyError if one cannot be deleted.

    The first part is deleted last: if any file remains, the session stays in the list.
    """
    first = summary.path
    files = files_of(summary)
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


def _recordings(folder: Path) -> list[tuple[Path, Header]]:
    """Return the first parts of the sessions in a folder; of a session without its first part, the next one."""
    try:
        found = sorted(headers(folder), key=lambda pair: pair[1].part)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CannotStart(f"{folder}: {error.strerror}", "use another folder with --dir") from None
    sessions = set()
    first = []
    for path, header in found:
        session = header.id, header.started
        if header.part == 1 or session not in sessions:
            sessions.add(session)
            first.append((path, header))
    return first


def _read_state(path: Path) -> tuple[RecordingState, Entry | None]:
    """Return the state of the last part of a recording, and its last complete entry."""
    with opened(path) as file:
        live = is_live(file.fileno())
        size = file.seek(0, os.SEEK_END)
        back = TAIL
        while True:
            file.seek(max(0, size - back))
            tail = file.read()
            lines = tail[: tail.rfind(b"\n") + 1].split(b"\n")[:-1]
            # Two lines, because the first one may begin before the tail; or there is nothing more to read.
            if len(lines) > 1 or back >= size:
                break
            back *= 16
    last = read_entry(lines[-1]) if len(lines) > 1 else None
    if isinstance(last, Note) and last.kind == "exit":
        return RecordingState.ENDED, last
    return (RecordingState.LIVE if live else RecordingState.DIED), last


def _parts(path: Path) -> Iterator[tuple[Path, RecordingState, Entry | None]]:
    """Yield the files of a session, starting with this one, each with its state and its last complete entry."""
    seen: set[Path] = set()
    following: Path | None = path
    while following is not None and following not in seen:
        state, last = _read_state(following)
        yield following, state, last
        seen.add(following)
        following = part_after(following, last)


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
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
