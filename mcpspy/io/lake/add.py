"""Add recordings to a lake: each session once, redacted, in this process or by an executor.

The key of a session is the digest of its recording, so adding it again changes nothing. The files of a session are
deterministic: a process that was killed leaves complete files, and the next one writes the missing ones.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

import msgspec
from msgspec import structs

from mcpspy.analysis.lake.schema import TABLES, StoredRecording
from mcpspy.core.recording.decode import Header, read_entry
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart, McpspyError
from mcpspy.io.lake.executors import mapped
from mcpspy.io.lake.files import Lake, partition
from mcpspy.io.recording.cache import FileStamp, replace_own
from mcpspy.io.recording.reader import RecordingState, Summary, read_header_of
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import RedactionOptions, prepared, redactor
from mcpspy.io.recording.scan import RecordingScan, no_collection, opened
from mcpspy.io.settings import config_file, slug

if TYPE_CHECKING:
    from mcpspy.analysis.lint import Finding

CHUNK = 1 << 20
"""Bytes per read for a digest."""


class AddResult(NamedTuple):
    added: int
    present: int
    """Sessions that the lake had already."""
    live: int
    """Sessions that have not ended, which are not added."""
    failures: list[str]
    keys: set[str]
    """Keys of all sessions that have ended."""


class _Conversion(NamedTuple):
    """A recording to add. Can be pickled."""

    lake: str
    version: int
    """Version of the lake."""
    path: Path
    stored: StoredRecording
    redaction: RedactionOptions
    placeholder_key: bytes
    is_copied: bool
    """True if the lake gets a copy of the recording."""


class _Input(NamedTuple):
    """A recording that was added: the stamps of its files, and its digest."""

    stamps: list[FileStamp]
    digest: str


def add(
    lake: Lake,
    found: Sequence[Summary],
    redaction: RedactionOptions,
    executor: Executor | None = None,
    show: Callable[[int, int, int], None] = lambda _, __, ___: None,
    *,
    copies: bool = True,
) -> AddResult:
    """Add the sessions that have ended; `show` is called with the number of processed sessions, of all, and
    of written rows. With `copies`, the lake gets their recordings too.

    The tasks of the executor are large sessions, and groups of small ones. A session that cannot be read is a
    failure; the others are added.
    """
    redaction = prepared(redaction, say)
    ended = [summary for summary in found if summary.state is not RecordingState.LIVE]
    failures: list[str] = []
    added = rows = 0
    with lake.exclusive(), _Inputs(lake) as inputs:
        new = _conversions(lake, ended, inputs, redaction, failures, copies=copies)
        converted = (
            map(_attempted, new)
            if executor is None
            else mapped(executor, _attempted, new, lambda each: each.stored.size)
        )
        for count, (conversion, result) in enumerate(converted, 1):
            if isinstance(result, int):
                rows += result
                inputs.add(conversion)
                added += 1
            else:
                failures.append(_failure(conversion.path, result))
            show(count, len(ended), rows)
    return AddResult(
        added, len(ended) - added - len(failures), len(found) - len(ended), failures, inputs.keys
    )


def _attempted(conversion: _Conversion) -> tuple[_Conversion, int | McpspyError | OSError]:
    """Return a conversion with its number of rows, or its error."""
    try:
        return conversion, convert(conversion)
    except (McpspyError, OSError) as error:
        return conversion, error


def _conversions(
    lake: Lake,
    ended: Iterable[Summary],
    inputs: _Inputs,
    redaction: RedactionOptions,
    failures: list[str],
    *,
    copies: bool,
) -> Iterator[_Conversion]:
    """Yield the recordings that are not in the lake; add those that cannot be read to `failures`."""
    secret, present = _secret(), lake.keys()
    for summary in ended:
        try:
            files = [summary.path, *(summary.path.with_name(name) for name in summary.parts)]
            source = inputs.source(files, secret, summary.header)
        except (McpspyError, OSError) as error:
            failures.append(_failure(summary.path, error))
            continue
        key = f"{slug(summary.header.id)}-{source.digest[:16]}"
        inputs.keys.add(key)
        if key not in present:
            present.add(key)
            stored = StoredRecording(
                key,
                source.digest,
                _uri(summary.path),
                sum(stamp.size for stamp in source.stamps),
                str(summary.state),
                not redaction.off or bool(summary.header.redacted),
            )
            own = hashlib.blake2b(source.digest.encode(), key=secret).digest()
            location = lake.storage.location
            yield _Conversion(location, lake.version, summary.path.absolute(), stored, redaction, own, copies)


class _Inputs:
    """The recordings that were added before, in a file of the lake. It only saves reading them again."""

    def __init__(self, lake: Lake) -> None:
        self._path = lake.storage.inputs
        self._known: dict[str, _Input] = {}
        decode = msgspec.json.Decoder(tuple[str, list[FileStamp], str]).decode
        for line in self._path.read_bytes().splitlines() if self._path.exists() else ():
            with suppress(ValueError):  # Another process was killed while it wrote the line.
                uri, stamps, digest = decode(line)
                self._known[uri] = _Input(stamps, digest)
        self._sources: dict[str, _Input] = {}
        self.keys: set[str] = set()
        """Keys of the sessions of this run."""

    def __enter__(self) -> Self:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = open(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def source(self, files: list[Path], secret: bytes, header: Header) -> _Input:
        """Return stamps and digest of a recording; read its files if they are not known. Raise McpspyError or OSError.

        The digest of a recording that may contain secrets has a key: it would confirm guesses of them.
        """
        stamps = [FileStamp.of(path) for path in files if path.exists()]
        uri = _uri(files[0])
        known = self._known.get(uri)
        if known is None or known.stamps != stamps:
            digest = hashlib.sha256(b"" if header.redacted else secret)
            for path in files[: len(stamps)]:
                with opened(path) as file:
                    for chunk in iter(partial(file.read, CHUNK), b""):
                        digest.update(chunk)
            known = _Input(stamps, digest.hexdigest())
        self._sources[uri] = known
        return known

    def add(self, conversion: _Conversion) -> None:
        """Remember a recording that is in the lake now."""
        uri = conversion.stored.uri
        self._file.write(msgspec.json.encode((uri, *self._sources[uri])) + b"\n")
        self._file.flush()


def convert(conversion: _Conversion) -> int:
    """Write the files of a session, its row in `sessions` last; return the number of rows.

    Raise McpspyError or OSError.
    """
    # With the lint rules 150 ms, if there is anything new.
    from mcpspy.analysis.export.base import WallClock
    from mcpspy.analysis.lake.tables import SessionTables
    from mcpspy.io.lake.files import writing

    lake, stored = Lake(conversion.lake, conversion.version), conversion.stored
    with no_collection():
        day = WallClock(read_header_of(conversion.path).started).iso(0)[:10]
        with writing(lake, day, stored.key) if conversion.is_copied else nullcontext() as copy:
            session, findings = _read(conversion, copy)
        tables = SessionTables(session, findings, stored)
        where = partition(tables.day, tables.server)
        for table in TABLES:
            lake.put(table, where, f"{stored.key}.parquet", tables.rows(table))
    return tables.count


def _read(conversion: _Conversion, copy: BinaryIO | None) -> tuple[Session, list[Finding]]:
    """Return the redacted session of a recording, and what lint finds in it; write its lines to `copy`."""
    from mcpspy.analysis.lint import EntryPosition, Linter
    from mcpspy.io.lake.files import first_line

    scan = RecordingScan(conversion.path)
    redacting = redactor(conversion.redaction, lambda _: None, key=conversion.placeholder_key)
    header = read_header_of(conversion.path)
    if redacting is not None:
        header = Header(**redacting.header(structs.asdict(header)))  # type: ignore[arg-type]  # The same keys.
    if copy is not None:
        copy.write(first_line(conversion.path, redacting))
    session, linter = Session(header), Linter(header)
    findings: list[Finding] = []
    number = parts = 0
    for block in scan:
        if len(scan.paths) > parts:
            parts, number = len(scan.paths), 1
        lines = block.lines
        if redacting is not None and lines:
            lines = redacting.lines(b"\n".join([*lines, b""])).split(b"\n")[:-1]
        if copy is not None and lines:
            copy.write(b"\n".join([*lines, b""]))
        for line in lines:
            number += 1
            for change in session.add(read_entry(line)):
                findings += linter.add(change, EntryPosition(number, parts))
    session.end()
    return session, [*findings, *linter.end()]


def _uri(path: Path) -> str:
    return path.absolute().as_uri().replace("file://", f"file://{socket.gethostname()}", 1)


def _failure(path: Path, error: McpspyError | OSError) -> str:
    if isinstance(error, McpspyError):
        return sanitize(str(error))
    return sanitize(f"{error.filename or path}: {error.strerror or error}")


def _secret() -> bytes:
    """Return the user's key for placeholders and digests; create it if needed. It never leaves this machine."""
    path = Path(config_file()).parent / "lake.key"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            replace_own(path, [os.urandom(32)])
        return path.read_bytes()[:64]
    except OSError as error:
        raise CannotStart(f"{sanitize(str(path))}: {error.strerror}", "check the permissions") from None
