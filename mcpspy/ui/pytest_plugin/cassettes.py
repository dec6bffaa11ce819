"""The files of a test's recording: their names, and writing sessions to them.

The files are `mcp_recordings/<module>/<test>.jsonl` beside the test's file unless the test names another file, and
`<test>.2.jsonl` … for more sessions. A file is written under a temporary name, redacted, and renamed, so that other
processes see it complete or not at all. Sessions that cannot be served are discarded.

Several tests may share a recording, in one process or in several workers of pytest-xdist. `RunRecordings` knows which
recordings this run of pytest has written: to those, further tests add, and replace nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import count, takewhile
from pathlib import Path
from time import sleep
from uuid import uuid4

from mcpspy.core.jsontools import Pointer, canonical
from mcpspy.core.mock.matching import compared_request
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.redact.placeholder import untagged
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart
from mcpspy.io.recording.reader import Recording, read_header_of, start_order
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import RedactionOptions, clean, redactor
from mcpspy.io.recording.writer import try_lock

FOLDER = "mcp_recordings"

LONGEST = 120
"""Characters of a test's name in a file name: file systems allow 255 bytes, including a suffix."""

LOCK_POLL = 0.01
"""Seconds between two attempts to write a recording that another worker is writing."""

_UNSAFE = re.compile(r"[^\w.,=+@\[\]-]")
"""Characters that a file system forbids in file names, or that are hard to type."""


def recording_path(test_file: Path, test: str, path: str | None = None) -> Path:
    """Return the file of a test's recording. `path` is relative to the folder of the test's file."""
    if path is not None:
        return test_file.parent / Path(path).expanduser()
    return test_file.parent / FOLDER / test_file.stem / f"{_file_name(test)}.jsonl"


def recorded(path: Path) -> list[Path]:
    """Return the existing files of a recording, in order."""
    return list(takewhile(Path.is_file, numbered(path)))


def numbered(path: Path) -> Iterator[Path]:
    """Yield the names of a recording's files: `x.jsonl`, `x.2.jsonl` …"""
    yield path
    for number in count(2):
        yield path.with_name(f"{path.stem}.{number}{path.suffix}")


def unused(places: Iterable[str], used: Iterable[str]) -> list[Path]:
    """Return the recordings in folders `mcp_recordings` below some places that are not among the used ones.

    Virtual environments and hidden folders are not searched, as pytest searches no tests there.
    """
    files = {path.resolve() for name in used for path in recorded(Path(name))}
    found = set()
    for place in places:
        for folder, below, names in os.walk(place):
            below[:] = [
                name
                for name in below
                if not name.startswith(".")
                and name != "node_modules"
                and not Path(folder, name, "pyvenv.cfg").exists()
            ]
            if FOLDER in Path(folder).parts:
                found |= {Path(folder, name) for name in names if name.endswith(".jsonl") and name[0] != "."}
    return sorted(path for path in found if path.resolve() not in files)


def shown_path(path: Path) -> str:
    """Return a path relative to the working directory if it is below it, sanitized."""
    cwd = Path.cwd()
    return sanitize(str(path.relative_to(cwd) if path.is_relative_to(cwd) else path))


def _file_name(test: str) -> str:
    """Return the file name of a test; a hash keeps changed names distinct."""
    safe = _UNSAFE.sub("-", test)
    if safe == test and len(safe) <= LONGEST:
        return safe
    return f"{safe[:LONGEST]}-{blake2b(test.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"


def sessions(folder: Path) -> list[Path]:
    """Return the non-empty recordings of a folder, in the order of their start."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.glob("*.jsonl") if path.stat().st_size]
    return sorted(found, key=lambda path: start_order(path, read_header_of(path)))


def replace(new_sessions: Sequence[Path], target: Path, redaction: RedactionOptions) -> list[Path]:
    """Replace a recording by sessions; return its files."""
    existing = recorded(target)
    paths = [path for _, path in zip(new_sessions, numbered(target), strict=False)]
    for source, path in zip(new_sessions, paths, strict=True):
        _redacted(source, path, redaction).replace(path)
    for path in existing[len(paths) :]:
        path.unlink(missing_ok=True)
    return paths


def add(new_sessions: Sequence[Path], target: Path, redaction: RedactionOptions) -> list[Path]:
    """Add sessions to a recording without overwriting the files of other processes; return the new files."""
    return [_add(_redacted(source, target, redaction), target) for source in new_sessions]


def missing(new_sessions: Sequence[Path], existing: Sequence[Path], ignored: Sequence[Pointer]) -> list[Path]:
    """Return the sessions with a request or a response that the existing files do not contain.

    Two tests that share a new recording and send the same requests need it once. Handshakes are not compared, nor are
    the tags of secrets, which differ from session to session: a placeholder of a recorded request matches any text.
    """
    known = {exchange for path in existing for exchange in _exchanges(path, ignored)}
    return [path for path in new_sessions if not known or not _exchanges(path, ignored) <= known]


def _exchanges(path: Path, ignored: Sequence[Pointer]) -> set[tuple[str, str]]:
    found = set()
    for exchange in Recording(path).session().exchanges:
        request, answer = exchange.request, exchange.answer
        if request.side == CLIENT and request.method not in HANDSHAKE_METHODS:
            value = answer.result if isinstance(answer, Result) else None
            if isinstance(answer, Failure):
                value = {"": answer.text}
            found.add((untagged(canonical(compared_request(request, ignored))), untagged(canonical(value))))
    return found


class RunRecordings:
    """The recordings that this run of pytest has written, in all its workers: one file each in a common folder."""

    def __init__(self, folder: Path) -> None:
        """`folder` is one of the run, which its workers share."""
        self._folder = folder / "mcpspy-written"

    def has_written(self, target: Path) -> bool:
        return bool(self._marker(target).exists() and self._marker(target).stat().st_size)

    @contextmanager
    def writing(self, target: Path) -> Iterator[bool]:
        """Exclude other workers; yield whether this run has written the recording already. It has afterwards."""
        self._folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._marker(target), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not try_lock(fd):  # The kernel frees the lock of a worker that was killed.
                sleep(LOCK_POLL)
            is_written = bool(os.fstat(fd).st_size)
            os.write(fd, b"1")  # Before the files: a test that finds them knows that they are of this run.
            yield is_written
        finally:
            os.close(fd)

    def _marker(self, target: Path) -> Path:
        return self._folder / blake2b(os.fsencode(target.absolute()), digest_size=16).hexdigest()


def is_served(path: Path) -> bool:
    """Return whether a recording contains a message of the server and a request of the client."""
    session = Recording(path).session()
    has_server = any(getattr(change.what, "side", None) == SERVER for change in session.changes)
    return has_server and any(exchange.request.side == CLIENT for exchange in session.exchanges)


def _add(new: Path, target: Path) -> Path:
    for path in numbered(target):
        try:
            os.link(new, path)
        except FileExistsError:
            continue
        except OSError:  # A file system without links.
            if path.exists():
                continue
            return new.replace(path)
        new.unlink()
        return path
    raise AssertionError("unreachable: the numbers do not end")


def _redacted(source: Path, target: Path, redaction: RedactionOptions) -> Path:
    new = target.with_name(f".{target.stem}.{uuid4().hex}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        redacting = redactor(redaction, say)
        assert redacting is not None, "recordings of tests are always redacted"
        clean(str(source), str(new), redacting)
    except OSError as error:
        raise CannotStart(f"{target}: {error.strerror}", f"the session is still in {source}") from None
    return new
