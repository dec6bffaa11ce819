"""The files of a lake: `TABLE/day=2026-11-23/server=NAME/SESSION.parquet`, and a marker.

A name always refers to a complete file. Other engines skip names that begin with an underscore. Only one process
changes a lake at a time (`storage`).

Beside the tables are the recordings, `recordings/day=2026-11-23/SESSION.jsonl.zst`: one of each session, redacted like
the tables. `fetch` reads them as `lake:SESSION`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

import msgspec
import orjson
from msgspec import Struct

from mcpspy.analysis.lake.schema import BYTES, TEXTS, TIME, UNKNOWN, VERSION, Row, columns_of
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.lake.storage import TEMPORARY, StoredFile, storage_of
from mcpspy.io.recording.scan import opened

if TYPE_CHECKING:
    from mcpspy.core.redact.redactor import Redactor

MARKER = "_mcpspy-lake.json"
JOURNAL = "_compaction.json"

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


@cache
def arrow_schema(table: str, version: int) -> Any:
    """Return the pyarrow schema of a table, with the version of the lake in its metadata."""
    import pyarrow as pa

    types = {"text": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
    types |= {TIME: pa.timestamp("us", tz="UTC"), BYTES: pa.binary()}
    types[TEXTS] = pa.list_(pa.field("element", pa.string()))  # The name that Parquet gives it.
    fields = [pa.field(column.name, types[column.type]) for column in columns_of(table, version)]
    return pa.schema(fields, metadata={"mcpspy.lake": str(version)})


class CompactionJournal(Struct):
    """A merged file that replaces others. Paths are relative to the lake."""

    merged: str
    output: str
    inputs: list[str]


class Lake:
    def __init__(self, location: str | Path, version: int = VERSION) -> None:
        self.storage = storage_of(location)
        self.version = version
        """Version of its tables, in which new files are written, too."""
        self.shown = sanitize(self.storage.location)

    @classmethod
    def opened(cls, location: str | Path) -> Lake:
        """Return an existing lake. Raise UsageError if there is none, or a newer mcpspy made it, or CannotStart."""
        lake = cls(location)
        try:
            version = orjson.loads(lake.storage.read(MARKER))["mcpspy_lake"]
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(
                f"{lake.shown}: not a lake", "create one with mcpspy lake add LAKE SESSION"
            ) from None
        except OSError as error:
            raise CannotStart(f"{lake.shown}: {error.strerror}", "check the permissions") from None
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"{lake.shown}: {MARKER} is damaged", f'it should be {{"mcpspy_lake":{VERSION}}}'
            ) from None
        if not isinstance(version, int) or version > VERSION:
            raise UsageError(
                f"{lake.shown}: made by a newer mcpspy"
                f" (lake {sanitize(str(version))}, this one reads up to {VERSION})",
                "upgrade mcpspy and try again",
            )
        lake.version = version
        return lake

    @classmethod
    def created(cls, location: str | Path) -> Lake:
        """Return the lake at a location; create it in a new or empty one. Raise UsageError or CannotStart."""
        lake = cls(location)
        try:
            if not lake.exists():
                if not lake.storage.is_empty(MARKER):
                    raise UsageError(f"{lake.shown}: not a lake, and not empty", "use a new folder")
                with suppress(FileExistsError):  # Another process was faster.
                    lake.storage.create(MARKER, orjson.dumps({"mcpspy_lake": VERSION}) + b"\n")
        except OSError as error:
            raise CannotStart(f"{lake.shown}: {error.strerror}", "use another folder") from None
        return cls.opened(location)

    def exists(self) -> bool:
        """Return whether there is a lake at this location. Raise OSError."""
        with suppress(FileNotFoundError, NotADirectoryError):
            self.storage.read(MARKER)
            return True
        return False

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other processes from changing the lake; first finish what a killed one left.

        Raises CannotStart, also for any OSError meanwhile.
        """
        try:
            with self.storage.exclusive():
                if self.is_being_compacted():
                    self.finish_compaction()
                self.storage.delete(file.name for file in self.storage.list(TEMPORARY))
                yield
        except BlockingIOError:
            raise CannotStart(
                f"{self.shown}: another mcpspy is changing this lake", "try again later"
            ) from None
        except OSError as error:
            raise CannotStart(
                f"{self.shown}: {error.strerror or error}", "run it again when this is solved"
            ) from None

    def is_being_compacted(self) -> bool:
        """Return whether a compaction was interrupted, or runs."""
        try:
            self.storage.read(JOURNAL)
        except FileNotFoundError:
            return False
        return True

    def finish_compaction(self) -> None:
        """Replace the inputs in the journal by their merged file: rows may be missing meanwhile, never doubled."""
        try:
            journal = msgspec.json.decode(self.storage.read(JOURNAL), type=CompactionJournal)
            for path in map(PurePath, (journal.merged, journal.output, *journal.inputs)):
                if path.is_absolute() or ".." in path.parts or path.suffix != ".parquet":
                    raise ValueError("it names a file that is not of this lake")
        except ValueError as error:
            raise CannotStart(
                f"{self.shown}/{JOURNAL}: {sanitize(str(error))}", "delete it, and run lake verify"
            ) from None
        if any(file.name == journal.merged for file in self.storage.list(TEMPORARY)):
            self.storage.delete(journal.inputs)
            self.storage.move(journal.merged, journal.output)
        self.storage.delete([JOURNAL])

    def files(self, table: str) -> list[StoredFile]:
        return [file for file in self.storage.list(table) if file.name.endswith(".parquet")]

    def keys(self) -> set[str]:
        """Return the keys of all sessions: from names, and from compacted files. Raise CannotStart."""
        found: set[str] = set()
        for file in self.files("sessions"):
            if file.base.startswith(COMPACTED):
                try:
                    found.update(self.checked(file.name, "sessions")["session"].to_pylist())
                except (OSError, ValueError) as error:
                    reason = str(error).splitlines()[0]
                    raise CannotStart(
                        f"{self.shown}/{sanitize(file.name)}: {sanitize(reason)}",
                        "mcpspy lake verify checks the files",
                    ) from None
            else:
                found.add(file.base.removesuffix(".parquet"))
        return found

    def put(self, table: str, partition: str, name: str, rows: Iterable[Row]) -> None:
        """Write the rows of a file; write none if there are no rows. Raise OSError."""
        import pyarrow as pa

        schema, rows = arrow_schema(table, self.version), iter(rows)
        if not (batch := [*islice(rows, ROWS)]):
            return
        with (
            self.storage.writing(f"{table}/{partition}/{name}") as path,
            parquet_writer(path, schema) as writer,
        ):
            while batch:
                # A lake of an older version lacks the last columns.
                columns = zip(zip(*batch, strict=True), schema, strict=False)
                arrays = [pa.array(values, type=field.type) for values, field in columns]
                writer.write_table(pa.table(arrays, schema=schema), row_group_size=ROWS)
                batch = [*islice(rows, ROWS)]

    def checked(self, name: str, table: str) -> Any:
        """Return the rows of a file; raise ValueError or OSError if it is damaged, or of another schema."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        data = pa.BufferReader(self.storage.read(name))
        with pq.ParquetFile(data, page_checksum_verification=True) as file:
            schema, wanted = file.schema_arrow, arrow_schema(table, self.version)
            if not schema.equals(wanted) or dict(schema.metadata or {}) != wanted.metadata:
                raise ValueError("its columns are not those of this version of mcpspy")
            # A thread of pyarrow that frees Python's bytes while the interpreter ends would abort the process.
            return file.read(use_threads=False)


def parquet_writer(path: Path, schema: Any) -> Any:
    import pyarrow.parquet as pq

    names = [name for name in schema.names if name not in _VERBATIM]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=names,
        write_statistics=names,
        write_page_checksum=True,
    )


def partition(day: str, server: str) -> str:
    """Return the folders of a day and a server; characters that a file name may not have are percent-encoded."""
    encoded = ""
    for character in server:
        encoded_next = encoded + quote(character, safe="", errors="replace")
        if len(encoded_next) > LONGEST:
            break
        encoded = encoded_next
    return f"day={day}/server={encoded or UNKNOWN}"


RECORDINGS = "recordings"
"""The folder of the lake."""


@contextmanager
def writing(lake: Lake, day: str, key: str) -> Iterator[BinaryIO]:
    """Return a context manager: a file for the lines of a recording, which is in the lake at its end."""
    import pyarrow as pa

    with (
        lake.storage.writing(name_of(day, key)) as path,
        pa.OSFile(str(path), "wb") as file,
        pa.CompressedOutputStream(file, "zstd") as lines,
    ):
        yield lines


def first_line(path: Path, redacting: Redactor | None) -> bytes:
    """Return the header line of a recording, redacted. Raise UsageError or CannotStart."""
    from mcpspy.io.recording.redaction import redacted_header  # Only what adds sessions redacts.

    with opened(path) as file:
        line = file.readline()
    return line if redacting is None else redacted_header(line, redacting)


def recordings(lake: Lake) -> list[StoredFile]:
    return lake.storage.list(RECORDINGS)


def content(lake: Lake, name: str) -> Any:
    """Return a stream of the lines of a recording. Raise OSError if it is missing; reading does if it is damaged."""
    import pyarrow as pa

    return pa.CompressedInputStream(pa.BufferReader(lake.storage.read(name)), "zstd")


def name_of(day: str, key: str) -> str:
    """Return the name of a session's recording in the lake."""
    return f"{RECORDINGS}/day={day}/{key}.jsonl.zst"
