"""Recordings, read for being served, slice by slice.

Owns which files make one server: that there is one in them, and that it is the
same in all. Reads the last recording first, as its word counts, and between
the slices whoever called serves what has been read. Messages stay in the files,
which are open as long as they are served.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO
from weakref import finalize

from mcpspy.core.jsontools import Pointer
from mcpspy.core.mock.loader_fast import QuickScript
from mcpspy.core.mock.recordings import Library
from mcpspy.core.mock.store import Shelf
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.scan import RecordingScan, opened

SLICE = 1 << 16
"""Bytes that are read at a time while a client may be waiting: a few milliseconds' worth."""

HEAD = 1 << 18
"""Bytes of recordings that are read before anything is served: some hundredths of a second's worth."""

PART = 1 << 48
"""What a place counts for each part of a recording before its own; the rest of it is an offset."""


class Served:
    """Recordings, read for being served."""

    def __init__(self, paths: Sequence[Path], ignored: Sequence[Pointer], *, merge: bool) -> None:
        """Read the headers; raise UsageError or CannotStart."""
        self.remarks: list[str] = []
        """What a person should know of them and was not told yet, one line each."""
        self._merge = merge
        recordings = [Recording(path) for path in paths]
        self._books = [_Book(each, _label(each, recordings), ignored) for each in recordings]
        self._library = Library([book.script.shelf for book in self._books], ignored)
        self._is_over = False

    def begin(self) -> Library:
        """Read how the recordings begin, and small ones whole; raise UsageError if they make no server.

        The library goes on growing with `read_on`.
        """
        most = HEAD // len(self._books)
        for book in self._books:
            while not book.is_over and (book.bytes < most or not book.script.exchanges):
                book.read()
        self._same_server()
        if self._library.is_whole:
            self.read_on()
        return self._library

    def read_on(self) -> bool:
        """Read a slice more; return whether there is any after it. Raises UsageError if that makes no server."""
        for book in reversed(self._books):
            if not book.is_over:
                book.read()
                return True
        if not self._is_over:
            self._is_over = True
            for book in self._books:
                self.remarks += book.remarks
            self._same_server()
            self.remarks += self._library.conflicts
        return False

    def take_remarks(self) -> list[str]:
        """Return what a person should know of them since the last call, one line each."""
        said, self.remarks = self.remarks, []
        return said

    def library(self) -> Library:
        """Read all of it; raise UsageError if that makes no server."""
        self.begin()
        while self.read_on():
            pass
        return self._library

    def _same_server(self) -> None:
        """Raise UsageError if it is sure that they are of two servers."""
        if self._merge:
            return
        first = self._books[0]
        for book in self._books[1:]:
            if first.server is not None and book.server is not None:
                one, other = first.server, book.server
            elif first.script.shelf.is_whole and book.script.shelf.is_whole:
                one, other = first.command, book.command
            else:
                continue
            if one != other:
                raise UsageError(
                    f"{self._books[0].path.name} is of {one}, {book.path.name} of {other}",
                    "--merge makes one server of them",
                )
            first = book if first.server is None else first


class _Book:
    """One recording: its files, and the script that is made of it."""

    def __init__(self, recording: Recording, label: str, ignored: Sequence[Pointer]) -> None:
        self.path = recording.path
        header = recording.header
        self.command = " ".join(header.command or ()) or header.upstream or header.name
        self.script = QuickScript(Shelf(label, ignored, self._message), header)
        self.bytes = 0
        """Read so far."""
        self.is_over = False
        """Whether there is no more to read."""
        self.remarks: list[str] = []
        self._files: list[BinaryIO] = []
        self._scan = RecordingScan(self.path, SLICE)
        finalize(self, self._scan.close)

    @property
    def server(self) -> str | None:
        """What the server called itself."""
        server = self.script.shelf.server
        return server.name if server is not None else None

    def read(self) -> None:
        """Read a slice; raise UsageError if there is no server in all of it."""
        self.is_over = True  # An error is the end of it, too.
        scan = self._scan
        block = scan.next()
        if block is None:
            self._end()
            return
        if len(scan.paths) > len(self._files):
            self._files.append(opened(block.path))
            finalize(self, self._files[-1].close)
        self.script.add_lines(block.lines, (len(self._files) - 1) * PART + block.offset)
        self.bytes = scan.read
        self.is_over = False

    def _end(self) -> None:
        self._scan.close()
        if torn := self._scan.torn:
            self.remarks.append(f"{self.path}: the last line is torn ({torn} bytes, left out)")
        if not self.script.exchanges:
            raise UsageError(f"{self.path}: nobody asked anything in it", "so there is nothing to answer")
        if not self.script.has_server:
            raise UsageError(f"{self.path}: no server says anything in it", "did its command start?")
        self.script.end()

    def _message(self, place: int, length: int) -> bytes:
        part, offset = divmod(place, PART)
        return _read(self._files[part], offset, length)


def _read(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


def _label(recording: Recording, recordings: Sequence[Recording]) -> str:
    """Return what to call a recording: its file's name, if no other has it."""
    name = recording.path.name
    alone = [other.path.name for other in recordings].count(name) == 1
    return name if alone else str(recording.path)
