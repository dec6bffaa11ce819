"""The files of a lake: `TABLE/day=2026-11-23/server=NAME/SESSION.parquet`, and a marker.

A file is written in `_tmp` and renamed, so a name always refers to a complete file. Other engines skip names that
begin with an underscore. Only one process changes a lake at a time; it holds a lock, which ends with the process.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

import msgspec
import orjson
from msgspec import Struct

from mcpspy.analysis.lake.schema import BYTES, TABLES, TEXTS, TIME, UNKNOWN, VERSION, Row
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.cache_file import replace_own

if sys.platform != "win32":
    import fcntl

MARKER = "_mcpspy-lake.json"
INPUTS = "_inputs.jsonl"
"""The files that were added, with their stamps: a run with nothing new does not read them again."""
JOURNAL = "_compaction.json"
TEMPORARY = "_tmp"
LOCK = "_lock"

COMPACTED = "compacted-"
"""Start of the name of a file with several sessions."""

ROWS = 16_384
"""Rows of a row group. A reader decompresses one at a time, per column."""

LONGEST = 200
"""Maximum characters of a server's encoded name in a folder's name: file systems allow 255 bytes."""

_VERBATIM = (
    "request",
    "response",
    "message",
    "definition",
    "fields",
    "request_raw",
    "response_raw",
    "message_raw",
)
"""Columns whose values hardly ever repeat: no dictionary, no statistics."""


def require(package: str, command: str) -> None:
    """Raise CannotStart if a package of the extra `lake` is not installed."""
    if find_spec(package) is None:
        raise CannotStart(f"{command} needs {package}, which is not installed", "pip install 'mcpspy[lake]'")


@cache
def arrow_schema(table: str) -> Any:
    """Return the pyarrow schema of a table, with the version of the lake in its metadata."""
    import pyarrow as pa

    types = {"text": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
    types |= {TIME: pa.timestamp("us", tz="UTC"), BYTES: pa.binary()}
    types[TEXTS] = pa.list_(pa.field("element", pa.string()))  # The name that Parquet gives it.
    fields = [pa.field(column.name, types[column.type]) for column in TABLES[table]]
    return pa.schema(fields, metadata={"mcpspy.lake": str(VERSION)})


class CompactionJournal(Struct):
    """A merged file that replaces others. Paths are relative to the lake."""

    merged: str
    output: str
    inputs: list[str]


class Lake:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def opened(cls, folder: Path) -> Lake:
        """Return an existing lake. Raise UsageError if the folder is not one, or a newer mcpspy made it."""
        shown = sanitize(str(folder))
        try:
            marker = orjson.loads((folder / MARKER).read_bytes())
            version = marker["mcpspy_lake"]
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(f"{shown}: not a lake", "create one with mcpspy lake add LAKE SESSION") from None
        except OSError as error:
            raise CannotStart(f"{shown}: {error.strerror}", "check the permissions") from None
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"{shown}: {MARKER} is damaged", f'it should be {{"mcpspy_lake":{VERSION}}}'
            ) from None
        if not isinstance(version, int) or version > VERSION:
            raise UsageError(
                sanitize(
                    f"{folder}: made by a newer mcpspy (lake {version}, this one reads up to {VERSION})"
                ),
                "upgrade mcpspy and try again",
            )
        return cls(folder)

    @classmethod
    def created(cls, folder: Path) -> Lake:
        """Return the lake of a folder; create it in a folder that is new or empty. Raise UsageError or CannotStart."""
        if (folder / MARKER).exists():
            return cls.opened(folder)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(not path.name.startswith(MARKER) for path in folder.iterdir()):
                raise UsageError(f"{sanitize(str(folder))}: not a lake, and not empty", "use a new folder")
            replace_own(folder / MARKER, [orjson.dumps({"mcpspy_lake": VERSION}), b"\n"])
        except OSError as error:
            raise CannotStart(f"{sanitize(str(folder))}: {error.strerror}", "use another folder") from None
        return cls(folder)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other processes from changing the lake; first finish what a killed one left.

        Raises CannotStart, also for any OSError meanwhile.
        """
        shown, fd = sanitize(str(self.folder)), -1
        try:
            fd = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            if sys.platform != "win32":
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._recover()
            yield
        except BlockingIOError:
            raise CannotStart(f"{shown}: another mcpspy is changing this lake", "try again later") from None
        except OSError as error:
            raise CannotStart(
                f"{shown}: {error.strerror or error}", "run it again when this is solved"
            ) from None
        finally:
            if fd >= 0:
                os.close(fd)

    def _recover(self) -> None:
        """Finish an interrupted compaction, and delete temporary files."""
        if (self.folder / JOURNAL).exists():
            self.finish_compaction()
        shutil.rmtree(self.folder / TEMPORARY, ignore_errors=True)
        (self.folder / TEMPORARY).mkdir(mode=0o700, exist_ok=True)

    def finish_compaction(self) -> None:
        """Replace the inputs in the journal by their merged file: rows may be missing meanwhile, never doubled."""
        try:
            journal = msgspec.json.decode((self.folder / JOURNAL).read_bytes(), type=CompactionJournal)
            for path in map(PurePath, (journal.merged, journal.output, *journal.inputs)):
                if path.is_absolute() or ".." in path.parts or path.suffix != ".parquet":
                    raise ValueError("it names a file that is not of this lake")
        except ValueError as error:
            raise CannotStart(
                sanitize(f"{self.folder / JOURNAL}: {error}"), "delete it, and run lake verify"
            ) from None
        merged = self.folder / journal.merged
        if merged.exists():
            for name in journal.inputs:
                (self.folder / name).unlink(missing_ok=True)
            merged.replace(self.folder / journal.output)
        (self.folder / JOURNAL).unlink()

    def files(self, table: str) -> list[Path]:
        return sorted(self.folder.glob(f"{table}/day=*/server=*/*.parquet"))

    def keys(self) -> set[str]:
        """Return the keys of all sessions: from names, and from compacted files. Raise CannotStart."""
        found: set[str] = set()
        for path in self.files("sessions"):
            if path.name.startswith(COMPACTED):
                try:
                    found.update(checked(path, "sessions")["session"].to_pylist())
                except (OSError, ValueError) as error:
                    reason = str(error).splitlines()[0]
                    raise CannotStart(
                        sanitize(f"{path}: {reason}"), "mcpspy lake verify checks the files"
                    ) from None
            else:
                found.add(path.stem)
        return found

    def put(self, table: str, partition: str, name: str, rows: Iterable[Row]) -> None:
        """Write the rows of a file; write none if there are no rows. Raise OSError."""
        import pyarrow as pa

        schema, rows = arrow_schema(table), iter(rows)
        path = self.folder / table / partition / name
        aside = self.folder / TEMPORARY / f"{table}-{os.getpid()}-{name}"
        if not (batch := [*islice(rows, ROWS)]):
            return
        with parquet_writer(aside, table) as writer:
            while batch:
                columns = zip(zip(*batch, strict=True), schema, strict=True)
                arrays = [pa.array(values, type=field.type) for values, field in columns]
                writer.write_table(pa.table(arrays, schema=schema), row_group_size=ROWS)
                batch = [*islice(rows, ROWS)]
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside.replace(path)


def parquet_writer(path: Path, table: str) -> Any:
    import pyarrow.parquet as pq

    path.touch(mode=0o600)
    names = [column.name for column in TABLES[table] if column.name not in _VERBATIM]
    return pq.ParquetWriter(
        path,
        arrow_schema(table),
        compression="zstd",
        use_dictionary=names,
        write_statistics=names,
        write_page_checksum=True,
    )


def checked(path: Path, table: str) -> Any:
    """Return the rows of a file; raise ValueError or OSError if it is damaged, or of another schema."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        schema, wanted = file.schema_arrow, arrow_schema(table)
        if not schema.equals(wanted) or dict(schema.metadata or {}) != wanted.metadata:
            raise ValueError("its columns are not those of this version of mcpspy")
        return file.read()


def partition(day: str, server: str) -> str:
    """Return the folders of a day and a server; characters that a file name may not have are percent-encoded."""
    encoded = ""
    for character in server:
        encoded_next = encoded + quote(character, safe="", errors="replace")
        if len(encoded_next) > LONGEST:
            break
        encoded = encoded_next
    return f"day={day}/server={encoded or UNKNOWN}"
