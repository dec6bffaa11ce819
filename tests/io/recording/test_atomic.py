"""No file is overwritten unless requested, none is incomplete, and other users may not read it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.atomic import save


def broken() -> Iterator[str]:
    yield "half"
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("force", [False, True])
def test_a_file_is_its_owners_and_utf_8(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "new"
    assert save(path, [b"a", "é\ud800"], force=force) == 9
    assert path.read_bytes() == b"a\xc3\xa9\\ud800"
    assert list(tmp_path.iterdir()) == [path]
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_is_never_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"file exists \(use force\)"):
        save(path, ["x"], way_out="use force")
    assert path.read_text() == "mine"
    assert save(path, ["yours"], force=True) == 5
    assert path.read_text() == "yours"


@pytest.mark.parametrize("force", [False, True])
def test_half_a_file_is_not_left(tmp_path: Path, force: bool) -> None:
    with pytest.raises(CannotStart, match=r"No space left on device \(nothing was written\)"):
        save(tmp_path / "new", broken(), force=force)
    assert list(tmp_path.iterdir()) == []


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.write_text("mine")
    with pytest.raises(CannotStart):
        save(path, broken(), force=True)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path, force: bool) -> None:
    with pytest.raises(CannotStart, match="No such file or directory"):
        save(tmp_path / "no" / "x", [], force=force)


def test_force_replaces_files_and_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a regular file"):
        save(tmp_path, ["x"], force=True)
    with pytest.raises(UsageError, match="not a regular file"):
        save(os.devnull, ["x"], force=True)


@pytest.mark.skipif(os.name == "nt", reason="needs a privilege on Windows")
def test_a_link_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    save(link, ["new"], force=True)
    assert link.is_symlink()
    assert target.read_text() == "new"
