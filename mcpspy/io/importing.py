"""Import of another tool's file, and the recording created from it.

Opens the file, or the database, read-only; a database that is being written is read in its current state.
`core.importers` parses the content. The recording is written by `Writer.write`, so it is redacted. It is either
complete or does not exist.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mcpspy.core.importers.base import ImportedSession
from mcpspy.core.importers.formats import DATABASE, FORMATS, HEAD, ImportFormat, recognise
from mcpspy.core.importers.mcphawk import NAME, QUERIES, SCHEMA, McphawkDatabase
from mcpspy.core.recording.origin import IMPORT
from mcpspy.core.redact.redactor import Redactor
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.reader import read_header_of
from mcpspy.io.recording.writer import Writer
from mcpspy.io.session_name import session_name

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value

STDIN = "-"

BATCH = 1 << 20

MAX_SIZE = 1 << 30
"""Bytes of a file to import: it is read into memory as a whole."""


def read(file: str, format_name: str | None) -> tuple[ImportFormat, list[ImportedSession]]:
    """Return the format of a file and its sessions. `format_name` names the format; otherwise the content decides.

    Raise UsageError, with the file's name, if it cannot be read in full.
    """
    label = "stdin" if file == STDIN else file
    try:
        data = _bytes(file)
        format = FORMATS[format_name] if format_name is not None else recognise(data[:HEAD])  # noqa: A001 - it is one.
        if format.opening == DATABASE:
            if file == STDIN:
                raise UsageError("a database cannot be read from a pipe", "name the file")
            sessions = format.importer()(_database(Path(file)))
        else:
            sessions = format.importer()(data)
        if not any(session.messages for session in sessions):
            raise UsageError(f"{format.name} file without messages")
    except UsageError as error:
        raise UsageError(sanitize(f"{label}: {error.args[0]}"), error.hint) from None
    except MemoryError:
        raise CannotStart(f"{label}: does not fit into memory") from None
    return format, sessions


def _bytes(file: str) -> bytes:
    if file == STDIN:
        return _bounded(sys.stdin.buffer, MAX_SIZE)
    try:
        kind = os.stat(file).st_mode
        if stat.S_ISFIFO(kind):
            raise UsageError("a named pipe", f"mcpspy import - < {file} reads it")
        if not stat.S_ISREG(kind):
            raise UsageError("not a regular file", "name a file, or - for stdin")
        with open(file, "rb") as opened:
            head = opened.read(len(DATABASE))
            if head == DATABASE:
                _check_size(os.stat(file).st_size)
                return head
            return head + _bounded(opened, MAX_SIZE - len(head))
    except FileNotFoundError:
        raise UsageError("no such file") from None
    except OSError as error:
        raise CannotStart(f"{file}: {error.strerror}", "check the permissions") from None


def _bounded(source: BinaryIO, size: int) -> bytes:
    """Read to the end; raise UsageError if there are more bytes, before all of them are in memory."""
    data = source.read(size + 1)
    if len(data) > size:
        raise _too_large()
    return data


def _check_size(size: int) -> None:
    if size > MAX_SIZE:
        raise _too_large()


def _too_large() -> UsageError:
    return UsageError(
        f"larger than {MAX_SIZE >> 30} GiB, which import reads at most", "split it, or export fewer sessions"
    )


def _database(path: Path) -> McphawkDatabase:
    # Without a log next to it, no process writes to the database, and `immutable` keeps SQLite from creating one.
    log = path.with_name(path.name + "-wal")
    mode = "mode=ro" if log.exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version != SCHEMA:
                return McphawkDatabase(version, (), ())
            sessions, messages = ([dict(row) for row in connection.execute(query)] for query in QUERIES)
            return McphawkDatabase(version, sessions, messages)
    except (sqlite3.Error, UnicodeError) as error:
        raise UsageError(f"{NAME} database: {error}", "is it incomplete, or from another program?") from None


def check(out: str | None) -> None:
    if out is not None and os.path.lexists(out) and not os.path.isdir(out):
        raise UsageError(f"{out}: file exists", "use another name")


def write(
    head: dict[str, Value], lines: list[bytes], folder: str | None, out: str | None, redactor: Redactor | None
) -> Path:
    """Write a complete recording and return its path. Raise CannotStart if that fails."""
    trouble: list[str] = []
    try:
        writer = Writer(folder, out, {"origin": IMPORT, **head}, redactor, say=trouble.append)
    except OSError as error:
        raise CannotStart(
            f"cannot write {out or error.filename or 'to the sessions folder'}: {error.strerror}",
            "use another file",
        ) from None
    try:
        for batch in _batches(lines):
            if trouble:
                break
            writer.write(batch)
    except BaseException:
        trouble.append("interrupted")
        raise
    finally:
        writer.close()
        if trouble:
            os.unlink(writer.path)
    if trouble:
        raise CannotStart(trouble[0].partition("; ")[0], "this session was not imported")
    return Path(writer.path)


def files_to_import(folder: Path) -> list[Path]:
    """Return the files of a folder by name, without hidden ones and the logs of databases. Raise CannotStart."""
    try:
        found = {path.name: path for path in sorted(folder.iterdir()) if path.is_file()}
    except OSError as error:
        raise CannotStart(sanitize(f"{folder}: {error.strerror}"), "check the permissions") from None
    logs = {name + ending for name in found for ending in ("-wal", "-shm", "-journal")}
    return [path for name, path in found.items() if not name.startswith(".") and name not in logs]


def write_next_to(
    path: Path, head: dict[str, Value], lines: list[bytes], redactor: Redactor | None, number: int
) -> Path:
    """Write session `number` of a file (from 1) that is imported as `path`, and return its path.

    The recording gets its name when it is complete, and its id from its content: after an interruption, it is the same
    and is left alone. Raise CannotStart; UsageError if another recording has this name.
    """
    target = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
    digest = hashlib.blake2b(f"{path.name} {number} ".encode(errors="surrogateescape"), digest_size=4)
    for line in lines:
        digest.update(line)
    head = {"id": digest.hexdigest(), **head}
    if target.exists():
        if read_header_of(target).id != head["id"]:
            raise UsageError(sanitize(f"{target}: another recording has this name"), "use another folder")
        return target
    aside = path.with_name(f".{target.name}.tmp")
    try:
        aside.unlink(missing_ok=True)  # Of a process that was killed.
        write(head, lines, None, str(aside), redactor).replace(target)
    except OSError as error:
        raise CannotStart(sanitize(f"{target}: {error.strerror}"), "this session was not imported") from None
    return target


def header(session: ImportedSession, name: str) -> dict[str, Value]:
    """Return the format-specific header fields of the recording. `name` is the fallback for the session's name."""
    fields: dict[str, Value | None] = {
        "started": _wall_clock(session.started) if session.started is not None else None,
        "transport": session.transport,
        "command": session.command,
        "upstream": session.upstream,
        "cwd": session.cwd,
        "name": session.name or (_name_of(session.command, session.cwd) if session.command else name),
        "imported": {"from": session.format, "lacks": session.lacks, "changed": session.changed},
    }
    return {key: value for key, value in fields.items() if value is not None}


def _name_of(command: list[str], folder: str | None) -> str:
    """Return the name by the words alone: the session may have run on another machine."""
    return session_name(command, folder or "", reads_files=False)


def _wall_clock(seconds: float) -> str:
    """Return a time in the header's format. Raise UsageError if it is out of range."""
    try:
        parts = time.gmtime(seconds)
    except (OverflowError, OSError, ValueError):
        raise UsageError(f"invalid start time: {seconds:g} s after 1970") from None
    return time.strftime("%Y-%m-%dT%H:%M:%S", parts) + f".{int(seconds * 1000) % 1000:03d}Z"


def _batches(lines: list[bytes]) -> list[bytes]:
    batches: list[bytes] = []
    gathered: list[bytes] = []
    size = 0
    for line in lines:
        gathered.append(line)
        size += len(line)
        if size >= BATCH:
            batches.append(b"".join(gathered))
            gathered, size = [], 0
    return [*batches, b"".join(gathered)] if gathered else batches
