"""Check, merge and delete the files of a lake."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.lake import maintenance
from mcpspy.io.lake.files import JOURNAL, Lake
from mcpspy.io.lake.maintenance import compact, remove_before, verify
from tests.io.lake.lakes import content, filled, folder_of, paths, summaries

if TYPE_CHECKING:
    from mcpspy.io.recording.reader import Summary


def test_a_whole_lake_has_no_problems(lake: Lake) -> None:
    result = verify(lake)

    assert result.problems == []
    assert result.sessions == 12
    assert result.rows == sum(map(len, content(lake).values()))


@pytest.fixture
def same_day(found: list[Summary], tmp_path: Path) -> list[Summary]:
    """Four sessions of the same server and day."""
    folder = tmp_path / "same-day"
    folder.mkdir()
    for number in range(4):
        text = found[0].path.read_text(encoding="utf-8")
        (folder / f"{number}.jsonl").write_text(
            text.replace('"id":"0', f'"id":"{number}a', 1), encoding="utf-8"
        )
    return summaries(folder)


def test_compaction_changes_no_row_and_no_answer_of_add(same_day: list[Summary], tmp_path: Path) -> None:
    lake, _ = filled(tmp_path / "lake", same_day)
    before = content(lake)

    assert compact(lake) == (24, 6)
    assert content(lake) == before
    assert verify(lake).problems == []
    assert filled(folder_of(lake), same_day)[1][:2] == (0, 4)
    assert compact(lake) == (6, 6)


def test_compaction_makes_large_row_groups_up_to_their_limits(
    same_day: list[Summary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def groups(name: str) -> list[int]:
        lake, _ = filled(tmp_path / name, same_day)
        compact(lake)
        (path,) = paths(lake, "exchanges")
        metadata = pq.read_metadata(path)
        return [metadata.row_group(each).num_rows for each in range(metadata.num_row_groups)]

    (all_rows,) = groups("one")
    rows = all_rows // 4
    monkeypatch.setattr(maintenance, "GROUP_ROWS", 2 * rows)
    assert groups("rows") == [2 * rows, 2 * rows]
    monkeypatch.setattr(maintenance, "GROUP_BYTES", 1)
    assert groups("bytes") == [rows] * 4


def test_a_session_that_was_added_twice_is_found(lake: Lake) -> None:
    (first, *_) = paths(lake, "sessions")
    shutil.copy(first, first.with_name("copy.parquet"))

    assert verify(lake).problems == [f"session {first.stem}: added 2 times"]


def test_large_files_are_not_merged(same_day: list[Summary], tmp_path: Path) -> None:
    lake, _ = filled(tmp_path / "lake", same_day)

    assert compact(lake, target=10) == (24, 24)


def test_merged_files_have_about_the_target_size(same_day: list[Summary], tmp_path: Path) -> None:
    lake, _ = filled(tmp_path / "lake", same_day)
    before, sizes = content(lake), [file.size for file in lake.files("exchanges")]

    compact(lake, target=2 * max(sizes) + 2)
    assert len(lake.files("exchanges")) == 2  # Three of them, and the last one.
    assert content(lake) == before
    assert verify(lake).problems == []


@pytest.mark.parametrize("table", ["exchanges", "tools"])
def test_missing_rows_are_found(lake: Lake, table: str) -> None:
    (first, *_) = paths(lake, table)
    count = pq.read_metadata(first).num_rows
    first.unlink()

    assert verify(lake).problems == [f"session {first.stem}: 0 rows in {table}, not {count}"]


def test_rows_without_their_session_are_found(lake: Lake) -> None:
    (first, *_) = paths(lake, "sessions")
    first.unlink()

    problems = verify(lake).problems
    assert problems
    assert all(f"session {first.stem}: " in problem and "add it again" in problem for problem in problems)


def test_a_damaged_file_is_found_and_not_compacted(lake: Lake) -> None:
    (first, *_) = paths(lake, "exchanges")
    data = bytearray(first.read_bytes())
    data[len(data) // 3] ^= 0xFF
    first.write_bytes(data)
    shutil.copy(first, first.with_name("0-copy.parquet"))
    before = {path: path.read_bytes() for path in folder_of(lake).rglob("*.parquet")}

    assert any(str(first.relative_to(folder_of(lake))) in problem for problem in verify(lake).problems)
    with pytest.raises(CannotStart, match="mcpspy lake verify checks the files"):
        compact(lake)
    assert first.exists()
    assert {path: path.read_bytes() for path in paths(lake, "exchanges")}.items() <= before.items()


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not parquet at all, and longer than a footer"])
def test_half_a_file_is_found(lake: Lake, data: bytes) -> None:
    (first, *_) = paths(lake, "notes")
    first.write_bytes(data)

    assert any(str(first.relative_to(folder_of(lake))) in problem for problem in verify(lake).problems)


def test_a_file_of_another_program_is_found(lake: Lake) -> None:
    (first, *_) = paths(lake, "notes")
    pq.write_table(pa.table({"a": [1]}), first.with_name("other.parquet"))

    assert any("its columns are not those of this version" in problem for problem in verify(lake).problems)


def test_an_interrupted_compaction_is_reported(lake: Lake) -> None:
    (folder_of(lake) / JOURNAL).write_bytes(b"{}")

    assert verify(lake).problems == ["an interrupted compaction: run mcpspy lake compact"]


def test_days_before_a_day_are_deleted_from_all_tables(lake: Lake, found: list[Summary]) -> None:
    days = sorted({path.parent.parent.name.removeprefix("day=") for path in paths(lake, "sessions")})
    deleted = remove_before(lake, days[5])

    assert deleted == 5
    left = {path.parent.parent.name for path in folder_of(lake).rglob("*.parquet")}
    assert left == {f"day={day}" for day in days[5:]}
    assert verify(lake).problems == []
    assert filled(folder_of(lake), found)[1][:2] == (5, 7)
