"""A new session in place of an old recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.recording.atomic import Replacement

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.jsonl"
    path.write_bytes(b"old")
    path.chmod(0o640)
    return path


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir())


def test_the_new_one_takes_the_place_and_the_rights_and_the_old_one_is_kept(old: Path) -> None:
    replacement = Replacement(old)
    replacement.new.write_bytes(b"new")
    replacement.new.chmod(0o600)

    assert replacement.put_in_place(None) == old.with_name("old.jsonl.bak")
    replacement.discard()
    assert names(old) == ["old.jsonl", "old.jsonl.bak"]
    assert (old.read_bytes(), old.with_name("old.jsonl.bak").read_bytes()) == (b"new", b"old")
    assert old.stat().st_mode & 0o777 == 0o640


def test_a_discarded_replacement_leaves_no_file_behind(old: Path) -> None:
    replacement = Replacement(old)
    replacement.new.write_bytes(b"new")
    replacement.discard()
    replacement.discard()

    assert names(old) == ["old.jsonl"]


def test_if_there_is_no_new_one_the_old_one_stays_as_it_is(old: Path) -> None:
    with pytest.raises(CannotStart, match="the recording was not updated"):
        Replacement(old).put_in_place(None)

    assert old.read_bytes() == b"old"
