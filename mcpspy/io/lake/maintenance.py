"""Check a lake, merge its small files, and delete old days."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from mcpspy.analysis.lake.schema import DETAILS, TABLES
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart
from mcpspy.io.lake.files import (
    COMPACTED,
    JOURNAL,
    TEMPORARY,
    CompactionJournal,
    Lake,
    checked,
    parquet_writer,
)
from mcpspy.io.recording.cache_file import replace_own

TARGET = 256 << 20
"""Bytes of a compacted file. Files of half this size and more are left alone."""


class LakeCheck(NamedTuple):
    sessions: int
    rows: int
    files: int
    size: int
    """Bytes of all Parquet files."""
    problems: list[str]


def verify(lake: Lake) -> LakeCheck:
    """Read every file, with its checksums, and compare the rows of each session with its counts."""
    counts: dict[str, Counter[str]] = {table: Counter() for table in TABLES}
    expected: dict[str, dict[str, int]] = {}
    problems, files, size = list[str](), 0, 0
    if (lake.folder / JOURNAL).exists():
        problems.append("an interrupted compaction: run mcpspy lake compact")
    for table in TABLES:
        columns = ["session", *(DETAILS if table == "sessions" else ())]
        for path in lake.files(table):
            files, size = files + 1, size + path.stat().st_size
            try:
                for row in checked(path, table).select(columns).to_pylist():
                    key = row.pop("session")
                    counts[table][key] += 1
                    if table == "sessions":
                        expected[key] = row
            except (OSError, ValueError) as error:  # pyarrow's own errors are subclasses.
                reason = str(error).splitlines()[0]
                problems.append(sanitize(f"{path.relative_to(lake.folder)}: {reason}"))
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


def _groups(files: list[Path], target: int) -> Iterator[list[Path]]:
    """Yield the files to merge, of one day and server each, of about the target size together."""
    small: dict[Path, list[Path]] = defaultdict(list)
    for path in files:
        if path.stat().st_size < target // 2:
            small[path.parent].append(path)
    for paths in small.values():
        group, size = list[Path](), 0
        for path in paths:
            group.append(path)
            size += path.stat().st_size
            if size >= target:
                yield group
                group, size = [], 0
        if len(group) > 1:
            yield group


def _merge(lake: Lake, table: str, group: list[Path]) -> None:
    name = f"{COMPACTED}{hashlib.sha256('/'.join(path.name for path in group).encode()).hexdigest()[:16]}.parquet"
    merged = lake.folder / TEMPORARY / name
    try:
        with parquet_writer(merged, table) as writer:
            for path in group:
                writer.write_table(checked(path, table))
        journal = CompactionJournal(
            str(merged.relative_to(lake.folder)),
            str(group[0].with_name(name).relative_to(lake.folder)),
            [str(path.relative_to(lake.folder)) for path in group],
        )
        replace_own(lake.folder / JOURNAL, [msgspec.json.encode(journal)])
        lake.finish_compaction()
    except (OSError, ValueError) as error:
        raise CannotStart(
            sanitize(f"{group[0].parent}: {error}"), "mcpspy lake verify checks the files"
        ) from None


def remove_before(lake: Lake, day: str) -> int:
    """Delete the days before this one (`2026-11-23`); return the number of deleted days.

    The rows of `sessions` go first: without them, the other rows of a session do not count.
    """
    with lake.exclusive():
        days = set()
        for table in ("sessions", *DETAILS):
            for folder in sorted(lake.folder.glob(f"{table}/day=*")):
                if folder.name.removeprefix("day=") < day:
                    days.add(folder.name)
                    shutil.rmtree(folder)
        return len(days)
