"""Check a lake, merge its small files, and delete old days."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from mcpspy.analysis.lake.schema import DETAILS, TABLES
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart
from mcpspy.io.lake.executors import grouped
from mcpspy.io.lake.files import (
    COMPACTED,
    JOURNAL,
    RECORDINGS,
    ROWS,
    CompactionJournal,
    Lake,
    arrow_schema,
    content,
    parquet_writer,
    recordings,
)
from mcpspy.io.lake.storage import TEMPORARY, StoredFile

CHUNK = 1 << 20
"""Bytes per read of a recording."""

TARGET = 256 << 20
"""Bytes of a compacted file. Files of half this size and more are left alone."""

GROUP_ROWS, GROUP_BYTES = 4 * ROWS, 64 << 20
"""Maximum rows and uncompressed bytes of a row group with several sessions.

Readers need as much time for a row group as for 10,000 rows: those of single sessions are too small.
"""


class LakeCheck(NamedTuple):
    sessions: int
    rows: int
    files: int
    size: int
    """Bytes of all files."""
    problems: list[str]


def verify(lake: Lake) -> LakeCheck:
    """Read every file, with its checksums, and compare the rows of each session with its counts."""
    counts: dict[str, Counter[str]] = {table: Counter() for table in TABLES}
    expected: dict[str, dict[str, int]] = {}
    problems, files, size = list[str](), 0, 0
    if lake.is_being_compacted():
        problems.append("an interrupted compaction: run mcpspy lake compact")
    for table in TABLES:
        columns = ["session", *(DETAILS if table == "sessions" else ())]
        for file in lake.files(table):
            files, size = files + 1, size + file.size
            try:
                for row in lake.checked(file.name, table).select(columns).to_pylist():
                    key = row.pop("session")
                    counts[table][key] += 1
                    if table == "sessions":
                        expected[key] = row
            except (OSError, ValueError) as error:  # pyarrow's own errors are subclasses.
                reason = str(error).splitlines()[0]
                problems.append(sanitize(f"{file.name}: {reason}"))
    copies = recordings(lake)
    files, size = files + len(copies), size + sum(file.size for file in copies)
    problems += filter(None, (_damage(lake, file.name) for file in copies))
    problems += [
        f"session {key}: added {count} times" for key, count in counts["sessions"].items() if count > 1
    ]
    for table in DETAILS:
        for key in sorted(counts[table].keys() | expected.keys()):
            found = counts[table][key]
            if key not in expected:
                problems.append(f"session {key}: {found} rows in {table}, but not in sessions: add it again")
            elif found != expected[key][table]:
                problems.append(f"session {key}: {found} rows in {table}, not {expected[key][table]}")
    rows = sum(each.total() for each in counts.values())
    return LakeCheck(len(expected), rows, files, size, problems)


def _damage(lake: Lake, name: str) -> str | None:
    """Return the problem of a recording that cannot be decompressed to its end."""
    try:
        lines = content(lake, name)
        while lines.read(CHUNK):
            pass
    except OSError as error:
        return sanitize(f"{name}: {error}")
    return None


def compact(lake: Lake, target: int = TARGET) -> tuple[int, int]:
    """Merge the small files of each day and server; return the number of files before and after.

    The merged file is complete before the first of its inputs is deleted, and the journal names both.
    """
    with lake.exclusive():
        before = sum(len(lake.files(table)) for table in TABLES)
        for table in TABLES:
            for group in _groups(lake.files(table), target):
                _merge(lake, table, group)
        return before, sum(len(lake.files(table)) for table in TABLES)


def _groups(files: list[StoredFile], target: int) -> Iterator[list[StoredFile]]:
    """Yield the files to merge, of one day and server each, of about the target size together."""
    small: dict[str, list[StoredFile]] = defaultdict(list)
    for file in files:
        if file.size < target // 2:
            small[file.folder].append(file)
    for each in small.values():
        yield from (group for group in grouped(each, lambda file: file.size, target) if len(group) > 1)


def _merge(lake: Lake, table: str, group: list[StoredFile]) -> None:
    digest = hashlib.sha256("/".join(file.base for file in group).encode()).hexdigest()[:16]
    name, folder = f"{COMPACTED}{digest}.parquet", group[0].folder
    journal = CompactionJournal(f"{TEMPORARY}/{name}", f"{folder}/{name}", [file.name for file in group])
    schema = arrow_schema(table, lake.version)
    try:
        with lake.storage.writing(journal.merged) as path, parquet_writer(path, schema) as writer:
            for rows in _row_groups(lake.checked(file.name, table) for file in group):
                writer.write_table(rows, row_group_size=len(rows))
        lake.storage.replace(JOURNAL, msgspec.json.encode(journal))
        lake.finish_compaction()
    except (OSError, ValueError) as error:
        raise CannotStart(
            sanitize(f"{lake.shown}/{folder}: {error}"), "mcpspy lake verify checks the files"
        ) from None


def _row_groups(tables: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of the tables, in their order, as tables for one row group each."""
    import pyarrow as pa

    waiting, rows, size = list[Any](), 0, 0
    for batch in (batch for table in tables for batch in table.to_batches(max_chunksize=ROWS)):
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if waiting and (rows > GROUP_ROWS or size > GROUP_BYTES):
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], batch.num_rows, batch.nbytes
        waiting.append(batch)
    if waiting:
        yield pa.Table.from_batches(waiting)


def remove_before(lake: Lake, day: str) -> int:
    """Delete the days before this one (`2026-11-23`); return the number of deleted days.

    The rows of `sessions` go first: without them, the other rows of a session do not count.
    """
    with lake.exclusive():
        days = set[str]()
        for folder in ("sessions", *DETAILS, RECORDINGS):
            old = {file.name: file.name.split("/")[1] for file in lake.storage.list(folder)}
            old = {name: its for name, its in old.items() if its.removeprefix("day=") < day}
            lake.storage.delete(old)
            days.update(old.values())
        return len(days)
