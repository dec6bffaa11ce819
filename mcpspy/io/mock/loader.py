"""The recordings of a mock, read in slices while the mock serves.

Checks that all files are of one server. Reads the last recording first, because it has the highest priority.
Messages stay in the files, which are open as long as the mock runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO
from weakref import finalize

from mcpspy.core.counted import counted, damaged_lines
from mcpspy.core.jsontools import Pointer
from mcpspy.core.mock.answer_rules import AnswerRules
from mcpspy.core.mock.loader import InteractionLoader
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.store import NOTED, InteractionStore
from mcpspy.core.recording import encode
from mcpspy.core.recording.decode import Note, read_entry
from mcpspy.core.redact.display import redacted_command, redacted_url
from mcpspy.core.redact.placeholder import untagged
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.scan import RecordingScan, opened

SLICE = 1 << 16
"""Bytes read at a time while a client may be waiting: a few milliseconds of work."""

HEAD = 1 << 18
"""Bytes of recordings that are read before the first response, in some hundredths of a second."""

COPIED = ("started", "transport", "command", "upstream", "cwd", "name", "redacted")
"""Fields of the header that a recording with other messages keeps."""

PART = 1 << 48
"""Base of offsets in a multi-part recording: each earlier part adds this number."""


class RecordingsLoader:
    def __init__(
        self,
        paths: Sequence[Path],
        ignored: Sequence[Pointer],
        *,
        merge: bool,
        rules: AnswerRules | None = None,
        has_noise: bool = False,
    ) -> None:
        """Read the headers. `rules` decide before the recordings, or alone. Raise UsageError or CannotStart.

        With `has_noise`, lines on the server's stdout that are not messages are played as well.
        """
        self.warnings: list[str] = []
        """Messages for the user since the last call, one line each."""
        self._merge = merge
        recordings = [Recording(path) for path in paths]
        self._files = [
            _RecordingFile(each, _label(each, recordings), ignored, has_noise) for each in recordings
        ]
        stores = [file.loader.store for file in self._files]
        self._recordings = Recordings(
            [*stores, *([rules.store] if rules is not None else [])], ignored, rules
        )
        self._is_over = False

    def begin(self) -> Recordings:
        """Read the start of the recordings, and small ones completely. Raise UsageError if they contain no server.

        `read_on` adds to the recordings that this returns.
        """
        most = HEAD // max(1, len(self._files))
        for file in self._files:
            while not file.is_over and (file.bytes < most or not file.loader.exchanges):
                file.read()
        self._same_server()
        if self._recordings.is_whole:
            self.read_on()
        return self._recordings

    def read_on(self) -> bool:
        """Read one more slice. Return whether there was one. Raise UsageError if the recordings contain no server."""
        for file in reversed(self._files):
            if not file.is_over:
                file.read()
                return True
        if not self._is_over:
            self._is_over = True
            for file in self._files:
                self.warnings += file.warnings
            self._count_redacted()
            self._same_server()
            self.warnings += self._recordings.conflicts
        return False

    def _count_redacted(self) -> None:
        """Add one warning for all recordings: a client that starts several processes has one of each."""
        files = [file for file in self._files if file.loader.redacted]
        if files:
            number = sum(file.loader.redacted for file in files)
            where = files[0].path if len(files) == 1 else counted(len(files), "recording")
            self.warnings.append(
                f"{where}: {counted(number, 'response')} with redacted values: clients receive "
                "[redacted:…] in their place (to keep them, record with --no-redact)"
            )

    def take_warnings(self) -> list[str]:
        taken, self.warnings = self.warnings, []
        return taken

    def recordings(self) -> Recordings:
        """Read everything. Raise UsageError if the recordings contain no server."""
        self.begin()
        while self.read_on():
            pass
        return self._recordings

    def _same_server(self) -> None:
        """Raise UsageError if the recordings are certainly of two servers."""
        if self._merge or not self._files:
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
                    f"{self._files[0].path.name} is a recording of {one}, {file.path.name} of {other}",
                    "use --merge to serve them as one server",
                )
            first = file if first.server is None else first


class _RecordingFile:
    def __init__(self, recording: Recording, label: str, ignored: Sequence[Pointer], has_noise: bool) -> None:
        self.path = recording.path
        header = recording.header
        self._header = header
        store = InteractionStore(label, ignored, self._message)
        self.loader = InteractionLoader(store, header, has_noise=has_noise)
        self.bytes = 0
        self.is_over = False
        self.warnings: list[str] = []
        self._files: list[BinaryIO] = []
        self._scan = RecordingScan(self.path, SLICE)
        finalize(self, self._scan.close)

    @property
    def command(self) -> str:
        """The command or URL of the server, or the name of the session; redacted."""
        words = self._header.command
        shown = " ".join(redacted_command(words)) if words else redacted_url(self._header.upstream or "")
        return untagged(shown or self._header.name)

    @property
    def server(self) -> str | None:
        server = self.loader.store.server
        return server.name if server is not None else None

    def read(self) -> None:
        """Read a slice. Raise UsageError if the complete recording contains no server."""
        self.is_over = True  # An error ends the reading too.
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
            self.warnings.append(f"{self.path}: the last line is incomplete ({torn} bytes, skipped)")
        if damaged := self.loader.damaged:
            self.warnings.append(f"{self.path}: {damaged_lines(damaged)}")
        if not self.loader.exchanges:
            raise UsageError(f"{self.path}: contains no requests", "so there is nothing to answer")
        if not self.loader.has_server:
            raise UsageError(f"{self.path}: contains no messages from a server", "did its command start?")
        self.loader.finish()

    def _message(self, place: int, length: int) -> bytes:
        part, offset = divmod(place, PART)
        return _read(self._files[part], offset, length)


def with_messages(path: Path, changes: Mapping[int, tuple[int, bytes]]) -> Iterator[bytes]:
    """Yield the pieces of a recording, as a new one in one part, in which some messages are others.

    `changes` are locations of an `InteractionStore` → bytes of the message there, and the new message on one line.
    Raise UsageError if a location is not that of a message in the file, or the errors of a `Recording`.
    """
    if any(place >= NOTED for place in changes):
        raise UsageError(
            "a rule or a viewer changed this response when it was recorded", "it cannot be edited"
        )
    header = Recording(path).header
    fields = {name: value for name in COPIED if (value := getattr(header, name)) is not None}
    yield encode.header({"id": os.urandom(4).hex(), **fields})
    scan, left = RecordingScan(path), dict(changes)
    for block in scan:
        offset = (len(scan.paths) - 1) * PART + block.offset
        for line in block.lines:
            size = len(line) + 1
            for place in [place for place in left if offset <= place < offset + size]:
                length, message = left.pop(place)
                at = place - offset
                line = line[:at] + message + line[at + length :]  # noqa: PLW2901 - the line as it is written.
            entry = read_entry(line) if b'"note":"part"' in line else None
            if not (isinstance(entry, Note) and entry.kind == "part"):
                yield line + b"\n"
            offset += size
    if left:
        raise UsageError(
            f"{path}: a response was not found at its place in the file", "was the file replaced?"
        )


def _read(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


def _label(recording: Recording, recordings: Sequence[Recording]) -> str:
    """Return the name of a recording: its file name if that is unique, else its path."""
    name = recording.path.name
    alone = [other.path.name for other in recordings].count(name) == 1
    return name if alone else str(recording.path)
