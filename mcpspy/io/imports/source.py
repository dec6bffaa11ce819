"""A file of another tool: its bytes, or the rows of its database.

Owns opening it, to read and never to write: a database that somebody still
writes to is read as it stands. What is in it `core.importers` says.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from mcpspy.core.importers.base import ImportedSession
from mcpspy.core.importers.formats import DATABASE, FORMATS, HEAD, ImportFormat, recognise
from mcpspy.core.importers.mcphawk import NAME, QUERIES, SCHEMA, McphawkDatabase
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError

STDIN = "-"


def read(file: str, asked: str | None) -> tuple[ImportFormat, list[ImportedSession]]:
    """Return the format of a file and the sessions in it; `asked` names the format, else what is in it says.

    Raises UsageError, with the file's name, for one that cannot be read in full.
    """
    shown = "stdin" if file == STDIN else file
    try:
        data = _bytes(file)
        format = FORMATS[asked] if asked is not None else recognise(data[:HEAD])  # noqa: A001 - it is one.
        if format.opening == DATABASE:
            if file == STDIN:
                raise UsageError("a database cannot be read from a pipe", "name the file")
            sessions = format.importer()(_database(Path(file)))
        else:
            sessions = format.importer()(data)
        if not any(session.messages for session in sessions):
            raise UsageError(f"{format.name}, but there is no message in it")
    except UsageError as error:
        raise UsageError(sanitize(f"{shown}: {error.args[0]}"), error.hint) from None
    except MemoryError:
        raise CannotStart(f"{shown}: larger than the memory there is") from None
    return format, sessions


def _bytes(file: str) -> bytes:
    if file == STDIN:
        return sys.stdin.buffer.read()
    path = Path(file)
    if path.is_dir():
        raise UsageError("a folder", "name a file in it")
    try:
        with path.open("rb") as opened:
            head = opened.read(len(DATABASE))
            return head if head == DATABASE else head + opened.read()
    except FileNotFoundError:
        raise UsageError("no such file") from None
    except OSError as error:
        raise CannotStart(f"{file}: {error.strerror}", "is it yours to read?") from None


def _database(path: Path) -> McphawkDatabase:
    # Without a log beside it nobody writes to it, and `immutable` leaves no file of SQLite's beside it either.
    log = path.with_name(path.name + "-wal")
    mode = "mode=ro" if log.exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version != SCHEMA:
                return McphawkDatabase(version, (), ())
            sessions, messages = (_rows(connection, query) for query in QUERIES)
            return McphawkDatabase(version, sessions, messages)
    except (sqlite3.Error, UnicodeError) as error:
        raise UsageError(f"{NAME}'s database, but {error}", "half a file, or another program's?") from None


def _rows(connection: sqlite3.Connection, query: str) -> list[dict[str, object]]:
    return [dict(row) for row in connection.execute(query)]
