"""The recordings of a mock, read slice by slice while it answers.

Owns the check that the files are of one server. Reads the last recording first, as it counts most. Messages stay
in the files, which are open as long as the mock runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO
from weakref import finalize

from mcpspy.core.jsontools import Pointer
from mcpspy.core.mock.loader_fast import FastInteractionLoader
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.store import InteractionStore
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.scan import RecordingScan, opened

SLICE = 1 << 16
"""Bytes that are read at a time while a client may be waiting: a few milliseconds."""

HEAD = 1 << 18
"""Bytes of recordings that are read before the first response: some hundredths of a second."""

PART = 1 << 48
"""An offset counts this for each part of a recording before its own."""


class RecordingsLoader:
    def __init__(self, paths: Sequence[Path], ignored: Sequence[Pointer], *, merge: bool) -> None:
        """Read the headers; raise UsageError or CannotStart."""
        self.warnings: list[str] = []
        """Messages for the user since the last call, one line each."""
        self._merge = merge
        recordings = [Recording(path) for path in paths]
        self._files = [_RecordingFile(each, _label(each, recordings), ignored) for each in recordings]
        self._recordings = Recordings([file.loader.store for file in self._files], ignored)
        self._is_over = False

    def begin(self) -> Recordings:
        """Read the beginning of the recordings, and small ones whole; raise UsageError if they make no server.

        The recordings grow with `read_on`.
        """
        most = HEAD // len(self._files)
        for file in self._files:
            while not file.is_over and (file.bytes < most or not file.loader.exchanges):
                file.read()
        self._same_server()
        if self._recordings.is_whole:
            self.read_on()
        return self._recordings

    def read_on(self) -> bool:
        """Read one more slice; return whether there was one. Raise UsageError if the recordings make no server."""
        for file in reversed(self._files):
            if not file.is_over:
                file.read()
                return True
        if not self._is_over:
            self._is_over = True
            for file in self._files:
                self.warnings += file.warnings
            self._same_server()
            self.warnings += self._recordings.conflicts
        return False

    def take_warnings(self) -> list[str]:
        taken, self.warnings = self.warnings, []
        return taken

    def recordings(self) -> Recordings:
        """Read all of it; raise UsageError if that makes no server."""
        self.begin()
        while self.read_on():
            pass
        return self._recordings

    def _same_server(self) -> None:
        """Raise UsageError if the recordings are certainly of two servers."""
        if self._merge:
            return
        first = self._files[0]
        for file in self._files[1:]:
            if first.server is not None and file.server is not None:
                one, other = first.server, file.server
            elif first.loader.store.is_whole and file.loader.store.is_whole:
                one, other = first.command, file.command
            else:
                continue
            if one != other:
                raise UsageError(
                    f"{self._files[0].path.name} is of {one}, {file.path.name} of {other}",
                    "--merge makes one server of them",
                )
            first = file if first.server is None else first


class _RecordingFile:
    def __init__(self, recording: Recording, label: str, ignored: Sequence[Pointer]) -> None:
        self.path = recording.path
        header = recording.header
        self.command = " ".join(header.command or ()) or header.upstream or header.name
        self.loader = FastInteractionLoader(InteractionStore(label, ignored, self._message), header)
        self.bytes = 0
        self.is_over = False
        self.warnings: list[str] = []
        self._files: list[BinaryIO] = []
        self._scan = RecordingScan(self.path, SLICE)
        finalize(self, self._scan.close)

    @property
    def server(self) -> str | None:
        server = self.loader.store.server
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
        self.loader.add_lines(block.lines, (len(self._files) - 1) * PART + block.offset)
        self.bytes = scan.read
        self.is_over = False

    def _end(self) -> None:
        self._scan.close()
        if torn := self._scan.torn:
            self.warnings.append(f"{self.path}: the last line is torn ({torn} bytes, left out)")
        if not self.loader.exchanges:
            raise UsageError(f"{self.path}: nobody asked anything in it", "so there is nothing to answer")
        if not self.loader.has_server:
            raise UsageError(f"{self.path}: no server says anything in it", "did its command start?")
        self.loader.end()

    def _message(self, place: int, length: int) -> bytes:
        part, offset = divmod(place, PART)
        return _read(self._files[part], offset, length)


def _read(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


def _label(recording: Recording, recordings: Sequence[Recording]) -> str:
    """Return the name of a recording: its file's name, if no other has it."""
    name = recording.path.name
    alone = [other.path.name for other in recordings].count(name) == 1
    return name if alone else str(recording.path)
