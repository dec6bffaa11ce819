"""The sessions of a folder, read repeatedly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io.recording import catalog as module
from mcpspy.io.recording import reader
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.reader import RecordingState
from mcpspy.io.recording.writer import Writer
from tests.io.files import EXIT, note, write


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read."""
    seen: list[Path] = []

    def summarize(path: Path, header: Any, *, counts: bool) -> Any:
        seen.append(path)
        return reader.summarize(path, header, counts=counts)

    monkeypatch.setattr(module, "summarize", summarize)
    return seen


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Writer]:
    """Start a session that is still being written."""
    writer = Writer(str(tmp_path), None, {"name": "live"}, say=pytest.fail)
    writer._is_file = False  # It is deleted below, and does not continue in a part.
    yield writer
    writer.close()


def test_live_ones_come_first_then_the_newest(tmp_path: Path, live: Writer) -> None:
    old = write(tmp_path / "b.jsonl", EXIT, started="2001-01-01T00:00:00.000Z")
    new = write(tmp_path / "a.jsonl", EXIT, started="2101-01-01T00:00:00.000Z")

    assert [summary.path for summary in Catalog(str(tmp_path)).look()] == [Path(live.path), new, old]


def test_a_file_that_stays_as_it_is_is_read_once(tmp_path: Path, reads: list[Path]) -> None:
    path = write(tmp_path / "a.jsonl", EXIT)
    catalog = Catalog(str(tmp_path))

    assert catalog.look() == catalog.look()
    assert reads == [path]
    assert catalog.look(reread=True)
    assert reads == [path, path]


def test_a_session_that_grows_ends_or_goes_is_noticed(
    tmp_path: Path, live: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST", 0)
    catalog = Catalog(str(tmp_path))
    assert [summary.entries for summary in catalog.look()] == [0]
    live.note(1.0, "stderr", text="x")
    assert [summary.entries for summary in catalog.look()] == [1]
    live.note(2.0, "exit", code=3)
    (summary,) = catalog.look()
    assert summary.state is RecordingState.ENDED
    Path(live.path).unlink()
    assert catalog.look() == []


def test_a_live_session_whose_file_is_emptied_is_no_longer_listed(tmp_path: Path, live: Writer) -> None:
    catalog = Catalog(str(tmp_path))
    assert len(catalog.look()) == 1

    Path(live.path).write_bytes(b"")

    assert len(catalog.look()) == 0


def test_a_large_file_that_grows_is_let_alone_for_a_while(
    tmp_path: Path, live: Writer, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST", 1e9)
    catalog = Catalog(str(tmp_path))
    catalog.look()
    live.note(1.0, "stderr", text="x")
    catalog.look()
    assert len(reads) == 1

    live.note(2.0, "exit", code=0)
    (summary,) = catalog.look()
    assert (summary.state, summary.entries) == (RecordingState.ENDED, 2)


def test_a_later_part_is_not_a_separate_session(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", note(1, "part", next="a.part2.jsonl"))
    write(tmp_path / "a.part2.jsonl", EXIT, part=2)

    assert [summary.path for summary in Catalog(str(tmp_path)).look()] == [path]


def test_files_that_are_not_recordings_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "else.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "folder.jsonl").mkdir()

    assert Catalog(str(tmp_path)).look() == []
    assert Catalog(str(tmp_path / "missing")).look() == []


def test_a_folder_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    catalog = Catalog(str(tmp_path / "file"))

    assert catalog.look() == []
    assert catalog.trouble == f"{tmp_path / 'file'}: Not a directory"
