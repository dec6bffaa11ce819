"""The files of a lake: its marker, its folders, its lock, and an interrupted compaction."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec
import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.lake.files import JOURNAL, MARKER, CompactionJournal, Lake, partition
from tests.io.files import POSIX
from tests.io.lake.lakes import folder_of


def test_a_folder_without_a_marker_is_not_a_lake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a lake"):
        Lake.opened(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="not a lake"):
        Lake.opened(tmp_path / "file")


def test_a_lake_is_not_created_in_a_folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("x")
    with pytest.raises(UsageError, match="not a lake, and not empty"):
        Lake.created(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_lake_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CannotStart, match=r"file/lake: Not a directory \(use another folder\)"):
        Lake.created(tmp_path / "file" / "lake")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_lake_that_may_not_be_written_is_an_error(lake: Lake) -> None:
    folder_of(lake).chmod(0o500)
    with pytest.raises(CannotStart, match="Permission denied"), lake.exclusive():
        pass


@pytest.mark.parametrize(
    ("marker", "error"),
    [
        (b'{"mcpspy_lake":4}', r"made by a newer mcpspy \(lake 4, this one reads up to 3\)"),
        (b'{"mcpspy_la', "is damaged"),
        (b"[]", "is damaged"),
    ],
)
def test_a_newer_or_damaged_marker_is_refused(tmp_path: Path, marker: bytes, error: str) -> None:
    (tmp_path / MARKER).write_bytes(marker)
    for reader in (Lake.opened, Lake.created):
        with pytest.raises(UsageError, match=error):
            reader(tmp_path)


@POSIX
def test_only_one_process_changes_a_lake(lake: Lake) -> None:
    with (
        lake.exclusive(),
        pytest.raises(CannotStart, match="another mcpspy is changing this lake"),
        Lake(folder_of(lake)).exclusive(),
    ):
        pass
    with lake.exclusive():
        pass


def test_a_failure_of_the_disk_is_one_line(lake: Lake) -> None:
    with pytest.raises(CannotStart) as error, lake.exclusive():
        raise OSError(errno.EROFS, "Read-only file system")
    assert str(error.value) == f"{folder_of(lake)}: Read-only file system (run it again when this is solved)"


@pytest.mark.parametrize(
    ("server", "folder"),
    [
        ("weather", "server=weather"),
        ("files/local", "server=files%2Flocal"),
        ("größe x", "server=gr%C3%B6%C3%9Fe%20x"),
        ("..", "server=.."),
        ("\ud800", "server=%3F"),
        ("", "server=unknown"),
        ("é" * 300, "server=" + "%C3%A9" * 33),
    ],
)
def test_the_name_of_a_server_is_a_valid_name_of_a_folder(server: str, folder: str) -> None:
    assert partition("2026-11-23", server) == f"day=2026-11-23/{folder}"


@pytest.mark.parametrize("deleted", [0, 1, 2])
@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_compaction_that_was_killed_is_finished(tmp_path: Path, deleted: int, is_renamed: bool) -> None:
    lake = Lake.created(tmp_path / "lake")
    (tmp_path / "lake" / "_tmp").mkdir()
    inputs = [folder_of(lake) / name for name in ("a.parquet", "b.parquet")]
    for path in inputs[deleted:] if not is_renamed else ():
        path.write_text("row")
    (folder_of(lake) / ("out.parquet" if is_renamed else "_tmp/merged.parquet")).write_text("row row")
    journal = CompactionJournal("_tmp/merged.parquet", "out.parquet", ["a.parquet", "b.parquet"])
    (folder_of(lake) / JOURNAL).write_bytes(msgspec.json.encode(journal))
    with lake.exclusive():
        assert not any(path.exists() for path in (*inputs, folder_of(lake) / JOURNAL))
        assert (folder_of(lake) / "out.parquet").read_text() == "row row"


@pytest.mark.parametrize("name", ["../letter.parquet", "/letter.parquet", "letter.txt"])
def test_a_journal_from_elsewhere_deletes_no_other_file(lake: Lake, tmp_path: Path, name: str) -> None:
    others = [tmp_path / "letter.parquet", folder_of(lake) / "letter.txt"]
    for path in (*others, folder_of(lake) / "_tmp" / "m.parquet"):
        path.write_text("x")
    journal = CompactionJournal("_tmp/m.parquet", "out.parquet", [name])
    (folder_of(lake) / JOURNAL).write_bytes(msgspec.json.encode(journal))
    with pytest.raises(CannotStart, match="it names a file that is not of this lake"), lake.exclusive():
        pass
    assert all(path.exists() for path in others)
    (folder_of(lake) / JOURNAL).write_bytes(b"{")
    with pytest.raises(CannotStart, match=r"truncated.*delete it, and run lake verify"), lake.exclusive():
        pass


def test_a_lake_is_created_beside_a_marker_that_was_half_written(tmp_path: Path) -> None:
    (tmp_path / f"{MARKER}.0123456789abcdef").write_bytes(b'{"mcp')

    assert Lake.created(tmp_path).keys() == set()
