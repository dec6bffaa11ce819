"""The sessions of a folder: their summaries and counts, cached in memory and in a file of the folder.

An unchanged file is not read again; a large file that grows is read at growing intervals.

The cache file has the summaries of sessions that are not live, with the size, times and inode of each of their files.
It is a JSON line with a checksum, then a JSON line per file. It is ignored if it is damaged, if another user or another
version of mcpspy wrote it, and for each session with a file that differs. A summary in it is decoded on first use.
"""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter, eq
from pathlib import Path
from typing import Any, overload

import msgspec
from msgspec import Raw, Struct

from mcpspy import __version__
from mcpspy.core.recording.origin import HOST
from mcpspy.core.session.outcome import SessionCounts
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording import cache
from mcpspy.io.recording.cache import RECENT, FileStamp, read_own, replace_own
from mcpspy.io.recording.reader import Recording, RecordingState, Summary, read_header_of, summarize
from mcpspy.io.recording.scan import no_collection
from mcpspy.io.recording.session_counts import count
from mcpspy.io.settings import sessions_folder

CACHE = ".mcpspy-catalog"
"""Name of the cache file."""

_FORM = 3
"""Number of the meaning of the counts: higher if a count of the same session may differ."""

WORTH = 0.3
"""Seconds of reading that are worth a cache file."""

REST = 20
"""Factor for the pause between two reads of a file, relative to the duration of the last read."""


class _Known(Struct, array_like=True, gc=False, eq=False):
    """A file of the folder, as in the cache: one line per file, without the last two fields."""

    stamps: dict[str, FileStamp | None]
    """Of all files of the session, by name; None if a file is missing."""
    order: tuple[str, str, str] | None
    """Order of the summary; None if the file is not a recording, or is part of one that begins in another file."""
    encoded: Raw
    """The summary in the cache file; empty if it is not from there."""
    has_entries: bool
    """False if the entries were not counted."""
    is_of_host: bool = True
    counts: SessionCounts | None = None
    summary: Summary | None = None
    """None if it was not decoded yet, or without an order."""
    again: float = 0.0
    """Monotonic time before which a changed file is not read again."""

    @property
    def name(self) -> str:
        return next(iter(self.stamps))

    @property
    def is_live(self) -> bool:
        """Return whether the session is live; none in the cache file is."""
        return self.summary is not None and self.summary.state is RecordingState.LIVE

    def is_lasting(self, now: int) -> bool:
        """Return whether the cache may keep it at this time, in nanoseconds."""
        until = now - RECENT
        return not self.is_live and all(
            stamp is None or max(stamp.modified, stamp.changed) < until for stamp in self.stamps.values()
        )


class Sessions(Sequence[Summary]):
    """Summaries that are decoded on first use."""

    def __init__(self, known: list[_Known], decode: Callable[[_Known], Summary]) -> None:
        self._known = known
        self._decode = decode

    def __len__(self) -> int:
        return len(self._known)

    @overload
    def __getitem__(self, index: int) -> Summary: ...
    @overload
    def __getitem__(self, index: slice) -> list[Summary]: ...
    def __getitem__(self, index: int | slice) -> Summary | list[Summary]:
        if isinstance(index, int):
            return self._decode(self._known[index])
        with no_collection():
            return [*map(self._decode, self._known[index])]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sessions) and self._known == other._known:
            return True  # Without decoding them.
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return len(self)

    def names(self) -> Iterator[str]:
        """Yield the names of their files."""
        return (known.name for known in self._known)

    @property
    def has_origins(self) -> bool:
        """Return whether a session was made by something else than a host, without decoding them."""
        return not all(known.is_of_host for known in self._known)

    def uncounted(self) -> Iterator[Summary]:
        """Yield the sessions whose counts the catalog does not have."""
        return (self._decode(known) for known in self._known if known.counts is None)


class Catalog:
    def __init__(self, folder: str | None = None) -> None:
        self.folder = Path(sessions_folder(folder))
        self.trouble = ""
        """Reason why the folder cannot be read, or an empty string."""
        self._known: dict[str, _Known] = {}
        self._decoder = msgspec.json.Decoder(
            Summary, dec_hook=lambda _, name: Path(f"{self.folder}{os.sep}{name}")
        )
        self._decoding = threading.Lock()
        self._saved: set[str] | None = None
        """Names of the files in the cache file; None before it was read."""
        self._is_outdated = False
        """True if the cache file has sessions that have changed or were deleted."""
        self._spent = 0.0
        """Seconds of reading that the cache file would save."""

    def look(self, *, reread: bool = False) -> Sessions:
        """Return the current sessions: live ones first, then the newest. `reread` reads every file again."""
        found = self._find(reread=reread)
        found.sort(key=lambda known: not known.is_live)
        return Sessions(found, self._summary)

    def newest(self, *, entries: bool = True) -> Sessions:
        """Return the current sessions, the newest first.

        Without `entries`, new sessions are not read as a whole to count them.
        """
        return Sessions(self._find(entries=entries), self._summary)

    def _find(self, *, reread: bool = False, entries: bool = True) -> list[_Known]:
        with no_collection():
            if self._saved is None:
                self._known = self._load()
                self._saved = set(self._known)
            if reread:
                self._known = {}
            stamps = self._stamps()
            known = {}
            for name in stamps:
                try:
                    known[name] = self._look_at(name, stamps, entries=entries)
                except (OSError, CannotStart):  # The file was deleted, or cannot be read.
                    continue
            self._known = known
            self._is_outdated |= not self._saved <= known.keys()
            found = [each for each in known.values() if each.order is not None]
            found.sort(key=attrgetter("order"), reverse=True)
            return found

    def counted(self, summary: Summary) -> SessionCounts | None:
        """Return the counts of a session that `look` returned, if they are known."""
        known = self._known.get(summary.path.name)
        return known.counts if known is not None and known.summary is summary else None

    def counts(self, summary: Summary) -> SessionCounts:
        """Return the counts of a session that `look` returned. Raise OSError or McpspyError if it cannot be read."""
        counts = self.counted(summary)
        if counts is None:
            began = time.monotonic()
            counts = count(summary)
            self.remember(summary, counts, time.monotonic() - began)
        return counts

    def remember(self, summary: Summary, counts: SessionCounts, seconds: float) -> None:
        """Keep the counts of a session that is not live, which took N seconds."""
        known = self._known.get(summary.path.name)
        if known is not None and known.summary is summary and summary.state is not RecordingState.LIVE:
            known.counts = counts
            self._spent += seconds

    def save(self) -> None:
        """Write the cache file if it saves time, or if it has sessions that have changed or were deleted."""
        if not self._is_outdated and self._spent < WORTH:
            return
        now = time.time_ns()
        lasting = [known for known in self._known.values() if known.is_lasting(now)]
        self._saved, self._is_outdated, self._spent = {known.name for known in lasting}, False, 0.0
        with suppress(OSError):  # A folder that cannot be written, or a full disk.
            replace_own(self.folder / CACHE, [_encoded(lasting)])
            cache.sweep(self.folder)

    def _stamps(self) -> dict[str, FileStamp]:
        """Return the stamps of the files that may be recordings; set `trouble`."""
        self.trouble = ""
        folder, stamps = str(self.folder), {}
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.trouble = f"{self.folder}: {error.strerror}"
            return {}
        for name in names:
            if name.endswith(".jsonl"):
                try:
                    stamps[name] = FileStamp.of(folder + os.sep + name)
                except OSError:  # The file was deleted.
                    continue
        return stamps

    def _summary(self, known: _Known) -> Summary:
        with self._decoding:  # A summary has one object, whatever thread needs it.
            if known.summary is None:
                known.summary = self._decoder.decode(known.encoded)
            return known.summary

    def _look_at(self, name: str, stamps: dict[str, FileStamp], *, entries: bool) -> _Known:
        known = self._known.get(name)
        if known is not None and not self._is_stale(name, known, stamps, entries=entries):
            return known
        if self._saved is not None and name in self._saved:
            self._is_outdated |= known is None or known.stamps[name] != stamps[name]
        path = self.folder / name
        began = time.monotonic()
        summary, earlier = None, list[str]()
        try:
            header = read_header_of(path)
            earlier = _earlier_parts(name, header.part)
            # Of a session whose first part was deleted, the first part that is left.
            if header.part == 1 or (earlier and not any(part in stamps for part in earlier)):
                summary = summarize(path, header, counts=entries)
        except UsageError:  # It is not a recording.
            pass
        now = time.monotonic()
        # The stamps are older than what was read: a file that has changed since then is read again.
        files = [name, *earlier, *(summary.parts if summary is not None else ())]
        known = _Known({file: stamps.get(file) for file in files}, None, Raw(), entries)
        known.again = now + REST * (now - began)
        if summary is not None:
            known.order, known.summary = summary.order, summary
            known.is_of_host = summary.header.origin == HOST
        if not known.is_live:
            self._spent += now - began
        return known

    def _is_stale(self, name: str, known: _Known, stamps: dict[str, FileStamp], *, entries: bool) -> bool:
        if entries and not known.has_entries:
            return True
        before = known.stamps[name]
        if not known.is_live:
            if before == stamps[name] and (
                len(known.stamps) == 1
                or all(stamps.get(file) == stamp for file, stamp in known.stamps.items())
            ):
                return False
        else:
            try:
                if Recording(self.folder / name).state is not RecordingState.LIVE:
                    return True  # Show the end of a session at once.
            except UsageError:  # The file was truncated or replaced.
                return True
        return before is None or before.inode != stamps[name].inode or time.monotonic() >= known.again

    def _load(self) -> dict[str, _Known]:
        """Return the content of the cache file; nothing if it is not valid."""
        try:
            head, _, body = read_own(self.folder / CACHE).partition(b"\n")
            if head + b"\n" != _head(body):
                return {}
            found = msgspec.json.Decoder(_Known).decode_lines(body)
            if first := next((known for known in found if known.order is not None), None):
                self._summary(first)  # Does this version have summaries of this form?
            return {known.name: known for known in found}
        except (OSError, ValueError):
            return {}


def has_origins(found: Sequence[Summary]) -> bool:
    """Return whether a session was made by something else than a host."""
    if isinstance(found, Sessions):
        return found.has_origins
    return any(summary.header.origin != HOST for summary in found)


def sessions(folder: str | None = None, *, entries: bool = True) -> Sessions:
    """Return the sessions of a folder, the newest first. Other files are skipped.

    Without `entries`, new sessions are not read as a whole to count them. Raises CannotStart if the folder cannot be
    read.
    """
    catalog = Catalog(folder)
    found = sessions_of(catalog, entries=entries)
    catalog.save()
    return found


def sessions_of(catalog: Catalog, *, entries: bool = True) -> Sessions:
    """Return the sessions like `sessions`, without saving the cache."""
    found = catalog.newest(entries=entries)
    if catalog.trouble:
        raise CannotStart(catalog.trouble, "use another folder with --dir")
    return found


def _earlier_parts(name: str, part: int) -> list[str]:
    """Return the names of the parts before this one; empty if the file is not named as a later part."""
    stem = name.removesuffix(f".part{part}.jsonl")
    if part == 1 or stem == name:
        return []
    return [f"{stem}.jsonl", *(f"{stem}.part{number}.jsonl" for number in range(2, part))]


def _head(body: bytes) -> bytes:
    """Return the first line of a cache file."""
    return (
        msgspec.json.encode({"mcpspy_catalog": f"{__version__} {_FORM}", "crc32": zlib.crc32(body)}) + b"\n"
    )


def _encoded(found: list[_Known]) -> bytes:
    encoder = msgspec.json.Encoder(enc_hook=_name_of)
    body = encoder.encode_lines(
        (
            *(known.stamps, known.order, known.encoded or known.summary, known.has_entries),
            *(known.is_of_host, known.counts),
        )
        for known in found
    )
    return _head(body) + body


def _name_of(path: Any) -> str:
    assert isinstance(path, Path)
    return path.name
