"""Deleting a session deletes all of its files and nothing else."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.recording.reader import Summary, delete, files_of, read_header_of, summarize
from mcpspy.io.recording.writer import Writer
from tests.io.files import EXIT, note, write


def summary_of(path: Path) -> Summary:
    return summarize(path, read_header_of(path))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def in_parts(path: Path, name: str = "srv") -> Path:
    """Record a session of several parts with the product's own writer."""
    writer = Writer(None, str(path), {"name": name}, say=pytest.fail, max_size=200)
    for number in range(8):
        writer.note(float(number), "stderr", text="x" * 60)
    writer.note(9.0, "exit", code=0)
    writer.close()
    return path


def test_a_session_goes_and_the_others_stay(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", EXIT, id="aa")
    write(tmp_path / "b.jsonl", EXIT, id="bb")
    delete(summary_of(path))
    assert names(tmp_path) == ["b.jsonl"]


def test_all_parts_go_with_it(tmp_path: Path) -> None:
    path = in_parts(tmp_path / "a.jsonl")
    in_parts(tmp_path / "b.jsonl")
    others = [name for name in names(tmp_path) if name.startswith("b")]
    summary = summary_of(path)
    assert len(files_of(summary)) > 2
    assert files_of(summary)[0] == path
    delete(summary)
    assert names(tmp_path) == others


def test_a_part_goes_even_if_no_note_leads_to_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", note(1, "stderr", text="disk full"))
    write(tmp_path / "a.part2.jsonl", EXIT, part=2)
    delete(summary_of(path))
    assert names(tmp_path) == []


def test_parts_are_found_under_any_name(tmp_path: Path) -> None:
    path = write(tmp_path / "renamed.jsonl", note(1, "part", next="a.part2-2.jsonl"))
    write(tmp_path / "a.part2-2.jsonl", EXIT, part=2)
    assert [found.name for found in files_of(summary_of(path))] == ["renamed.jsonl", "a.part2-2.jsonl"]


@pytest.mark.parametrize("following", ["b.jsonl", "../secret.jsonl", "b.part2.jsonl"])
def test_a_recording_does_not_choose_what_is_deleted(tmp_path: Path, following: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    write(tmp_path / "secret.jsonl", EXIT, part=2)
    write(home / "b.jsonl", note(1, "part", next="b.part2.jsonl"), id="bb")
    write(home / "b.part2.jsonl", EXIT, part=2, id="bb")
    path = write(home / "a.jsonl", note(1, "part", next=following))
    delete(summary_of(path))
    assert names(home) == ["b.jsonl", "b.part2.jsonl"]
    assert (tmp_path / "secret.jsonl").exists()


def test_a_copy_leaves_the_original_its_parts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", note(1, "part", next="a.part2.jsonl"))
    write(tmp_path / "a.part2.jsonl", EXIT, part=2)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(path.read_bytes())
    delete(summary_of(copy))
    assert names(tmp_path) == ["a.jsonl", "a.part2.jsonl"]


def test_a_live_session_is_refused(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path), None, {"name": "x"}, say=pytest.fail)
    with pytest.raises(CannotStart, match="still being written"):
        delete(summary_of(Path(writer.path)))
    assert len(names(tmp_path)) == 1
    writer.close()


def test_a_file_that_was_deleted_meanwhile_is_not_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", note(1, "part", next="a.part2.jsonl"))
    write(tmp_path / "a.part2.jsonl", EXIT, part=2)
    summary = summary_of(path)
    path.unlink()
    delete(summary)
    assert names(tmp_path) == []
    delete(summary)


def test_another_file_that_took_the_name_meanwhile_is_not_deleted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", EXIT, id="aa")
    summary = summary_of(path)
    write(path, EXIT, id="bb")
    with pytest.raises(CannotStart, match="another file has this name now"):
        delete(summary)
    assert names(tmp_path) == ["a.jsonl"]


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    elsewhere = write(tmp_path / "a.jsonl", EXIT)
    home = tmp_path / "home"
    home.mkdir()
    (home / "a.jsonl").symlink_to(elsewhere)
    delete(summary_of(home / "a.jsonl"))
    assert names(home) == []
    assert elsewhere.exists()


def test_if_a_part_stays_the_first_one_does_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.jsonl", note(1, "part", next="a.part2.jsonl"))
    part = write(tmp_path / "a.part2.jsonl", EXIT, part=2)
    unlink = Path.unlink

    def refuse(self: Path, missing_ok: bool = False) -> None:
        if self == part:
            raise PermissionError(13, "Permission denied")
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(CannotStart, match=r"cannot delete .*a\.part2\.jsonl: Permission denied"):
        delete(summary_of(path))
    assert names(tmp_path) == ["a.jsonl", "a.part2.jsonl"]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may delete anything")
def test_a_folder_that_is_read_only_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", EXIT)
    summary = summary_of(path)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(CannotStart, match="Permission denied"):
            delete(summary)
    finally:
        tmp_path.chmod(0o700)
    assert names(tmp_path) == ["a.jsonl"]
