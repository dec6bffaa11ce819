"""Recordings, from the reader's side.

Owns finding, reading and following them. Opens every file read-only and leaves
it as it is; a torn last line is left out until it is whole, and said. Writing
is `io.writer`'s.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from enum import Enum, StrEnum
from pathlib import Path
from typing import BinaryIO

import aiofiles
from msgspec import Struct

from mcpspy.core.framing import LineFramer
from mcpspy.core.record import Damaged, Entry, Header, Note, read_entry, read_header
from mcpspy.core.parties import Party
from mcpspy.core.session import Session
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.folder import sessions_folder
from mcpspy.io.writer import is_live

CHUNK = 1 << 18
"""Bytes a read: larger ones gained nothing, and keep a waiting screen waiting."""

POLL = 0.1
"""Seconds between two looks at a file that may grow: 0.13 % of a core, and no watcher to install."""

BEGINS_AGAIN = "the file was cut or replaced: reading it from its start"
"""Why of the `Damaged` entry after which `follow` begins again."""

HEAD = 1 << 16
"""Bytes of a recording's start in which a summary looks for who speaks."""

TAIL = 1 << 14
"""Bytes of its end in which it looks for the exit."""


class State(StrEnum):
    """How a recording stands."""

    LIVE = "live"
    ENDED = "ended"
    """It has its exit note."""
    DIED = "died"
    """Nobody writes to it and it has none: mcpspy was killed, or the machine went down."""


class Summary(Struct, frozen=True, kw_only=True):
    """What a list of sessions shows, read without reading the whole file."""

    path: Path
    header: Header
    state: State
    exit: Note | None
    size: int
    """Bytes, all parts."""
    entries: int
    """Lines after the header, all parts."""
    last: float
    """Seconds from `started` to the last entry."""
    client: Party | None
    server: Party | None
    revision: str | None


class Recording:
    """A recording on disk: its header, and what follows."""

    def __init__(self, path: str | Path) -> None:
        """Open the file and read its header; raise UsageError or CannotStart if that cannot be."""
        self.path = Path(path)
        self.header = read_header_of(self.path)
        self.torn = 0
        """Bytes of a last line that never got its end: left out."""

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries as the file is now, and those of the parts that follow."""
        self.torn = 0
        for path in _parts(self.path):
            for line in self._lines(path):
                yield read_entry(line)

    def _lines(self, path: Path) -> Iterator[bytes]:
        framer = LineFramer()
        first = True
        with _opened(path) as file:
            while chunk := file.read(CHUNK):
                for line in framer.feed(chunk):
                    if first:
                        first = False
                    else:
                        yield line
        self.torn += sum(map(len, framer.close()))

    @property
    def state(self) -> State:
        """How it stands now."""
        *_, last = _parts(self.path)
        return _standing(last)[0]


def read_header_of(path: Path) -> Header:
    """Return the header of a file; raise with its name, what it is instead, and what to do."""
    with _opened(path) as file:
        line = file.readline(1 << 20)
    if not line:
        raise UsageError(f"{path}: empty, so not a recording", "was its disk full when it was made?")
    if not line.endswith(b"\n") and line.startswith(b'{"mcpspy":'):
        raise UsageError(f"{path}: its header is cut off", "nothing can be read without it")
    try:
        return read_header(line.rstrip(b"\n"))
    except UsageError as error:
        raise UsageError(f"{path}: {error.args[0]}", error.hint) from None


def find(which: str, folder: str | None = None) -> Path:
    """Return the file that a person means: a path, `last`, an id (or its beginning), or a name.

    Of several sessions of one name, the newest. Raises UsageError.
    """
    if os.sep in which or which.endswith(".jsonl") or Path(which).is_file():
        return Path(which)
    home = Path(sessions_folder(folder))
    newest = sorted(_recordings(home), key=lambda pair: pair[1].started, reverse=True)
    for path, header in newest:
        if which in ("last", header.id, header.name):
            return path
    matching = [path for path, header in newest if len(which) >= 2 and header.id.startswith(which)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UsageError(
            f"{which}: {len(matching)} sessions have such an id", "give more of it; see mcpspy ls"
        )
    if Path(which).is_dir():
        raise UsageError(
            f"{which}: a folder, not a recording", f"mcpspy ls --dir {which} lists what is in it"
        )
    if not newest:
        raise UsageError(
            f"no session in {home}", "record one: mcpspy run -- COMMAND, or see how it looks: mcpspy demo"
        )
    raise UsageError(f"{which}: no such file or session", "mcpspy ls lists the sessions")


def sessions(folder: str | None = None) -> list[Summary]:
    """Return the sessions of a folder, the newest first. Files that are no recordings are left out."""
    found = []
    for path, header in _recordings(Path(sessions_folder(folder))):
        try:
            found.append(summarize(path, header))
        except (OSError, UsageError, CannotStart):  # Deleted while we looked.
            continue
    return sorted(found, key=lambda summary: summary.header.started, reverse=True)


def summarize(path: Path, header: Header) -> Summary:
    """Return what a list shows of a session, from the start and the end of its file."""
    session = Session(header)
    with _opened(path) as file:
        lines = file.read(HEAD).split(b"\n")
        for line in lines[1:-1]:
            session.add(read_entry(line))
            if session.server is not None:
                break
    size = entries = 0
    last_part = path
    for last_part in _parts(path):
        size += last_part.stat().st_size
        entries += _count_lines(last_part) - 1
    state, last = _standing(last_part)
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
        revision=session.revision,
    )


async def follow(path: Path, *, poll: float = POLL) -> AsyncIterator[Entry]:
    """Yield the entries of a recording as they come, from its start to its end.

    Ends after the exit note, or when nobody writes to the file any more. Goes
    on in the next part. Begins again, after a `Damaged` entry that says so,
    when the file was cut, or another took its name; a deleted file is read to
    the end of what its writer still appends. Raises UsageError or CannotStart
    if there is nothing to open.
    """
    seen: set[Path] = set()
    while True:
        # Opened here and not by aiofiles, which loses a file that it opens while we are cancelled.
        with _opened(path) as opened:
            file = aiofiles.threadpool.wrap(opened)
            framer = LineFramer()
            position = 0
            first = True
            last: Entry | None = None
            while (now := _what_now(file.fileno(), path, position)) is not _Now.OVER:
                if now is _Now.ANOTHER:
                    yield Damaged(b"", BEGINS_AGAIN)
                    break
                if now is _Now.QUIET:
                    if isinstance(last, Note) and last.kind in ("exit", "part"):
                        break
                    await asyncio.sleep(poll)
                    continue
                chunk = await file.read(CHUNK)
                position += len(chunk)
                for line in framer.feed(chunk):
                    entry = read_entry(line)
                    if first and isinstance(entry, Damaged):  # The header; a file that was cut has none.
                        first = False
                        continue
                    first, last = False, entry
                    yield entry
            torn = b"".join(framer.close())
        if torn and now is _Now.OVER:
            yield Damaged(torn, "torn: its writer was stopped while writing")
        if now is _Now.ANOTHER:
            continue
        seen.add(path)
        following = _part_after(path, last)
        if following is None or following in seen:
            return
        path = following


class _Now(Enum):
    """What a look at a followed file shows."""

    MORE = 1
    QUIET = 2
    OVER = 3
    ANOTHER = 4


def _what_now(fd: int, path: Path, position: int) -> _Now:
    live = is_live(fd)  # First: what its writer wrote before it ended is then there to be seen.
    mine = os.fstat(fd)
    if mine.st_size > position:
        return _Now.MORE
    cut = mine.st_size < position
    try:
        named = os.stat(path)
    except OSError:  # Deleted: what its writer still appends is there to be read, what was cut is not.
        if cut:
            return _Now.OVER
        named = mine
    if cut or (named.st_ino, named.st_dev) != (mine.st_ino, mine.st_dev):
        return _Now.ANOTHER
    return _Now.QUIET if live else _Now.OVER


def _recordings(folder: Path) -> Iterator[tuple[Path, Header]]:
    """Yield the first parts of the sessions in a folder."""
    try:
        paths = [path for path in folder.iterdir() if path.suffix == ".jsonl"]
    except FileNotFoundError:
        return
    except OSError as error:
        raise CannotStart(f"{folder}: {error.strerror}", "name another folder with --dir") from None
    for path in paths:
        try:
            header = read_header_of(path)
        except (UsageError, CannotStart):
            continue
        if header.part == 1:
            yield path, header


def _opened(path: Path) -> BinaryIO:
    """Open for reading; raise what a person can act on."""
    try:
        if path.is_dir():
            raise UsageError(
                f"{path}: a folder, not a recording", f"mcpspy ls --dir {path} lists what is in it"
            )
        return path.open("rb")
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file", "mcpspy ls lists the sessions") from None
    except OSError as error:
        raise CannotStart(f"{path}: {error.strerror}", "is it yours to read?") from None


def _standing(path: Path) -> tuple[State, Entry | None]:
    """Return how the last part of a recording stands, and its last whole entry."""
    with _opened(path) as file:
        live = is_live(file.fileno())
        size = file.seek(0, os.SEEK_END)
        back = TAIL
        while True:
            file.seek(max(0, size - back))
            tail = file.read()
            lines = tail[: tail.rfind(b"\n") + 1].split(b"\n")[:-1]
            # Two, as the first may have begun before the tail; or there is no more to read.
            if len(lines) > 1 or back >= size:
                break
            back *= 16
    last = read_entry(lines[-1]) if len(lines) > 1 else None
    if isinstance(last, Note) and last.kind == "exit":
        return State.ENDED, last
    return (State.LIVE if live else State.DIED), last


def _parts(path: Path) -> Iterator[Path]:
    """Yield the files of a session, from this one on; looks for the next once the last was taken."""
    seen: set[Path] = set()
    following: Path | None = path
    while following is not None and following not in seen:
        yield following
        seen.add(following)
        following = _part_after(following, _standing(following)[1])


def _part_after(path: Path, last: Entry | None) -> Path | None:
    """Return the part that the last entry of a file names: a file beside it, or none."""
    if not (isinstance(last, Note) and last.kind == "part"):
        return None
    try:
        following = path.with_name(str(last.fields.get("next")))
    except ValueError:  # A path is not a name: a recording from elsewhere must not choose what we read.
        return None
    return following if following.is_file() else None


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(CHUNK), b""))
