"""The sessions of a folder, looked at again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io import store
from mcpspy.io.store import State
from mcpspy.ui.tui import catalog as module
from mcpspy.ui.tui.catalog import Catalog

Make = Callable[..., Path]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Which files were read."""
    seen: list[Path] = []

    def summarize(path: Path, header: Any) -> Any:
        seen.append(path)
        return store.summarize(path, header)

    monkeypatch.setattr(module, "summarize", summarize)
    return seen


def test_live_ones_come_first_then_the_newest(tmp_path: Path, live: Any, make_recording: Make) -> None:
    old, new = make_recording(name="old"), make_recording(name="new")
    _begin(old, "2001-01-01T00:00:00.000Z")
    _begin(new, "2101-01-01T00:00:00.000Z")

    assert [summary.path for summary in Catalog(str(tmp_path)).look()] == [live.path, new, old]


def test_a_file_that_stays_as_it_is_is_read_once(
    tmp_path: Path, make_recording: Make, reads: list[Path]
) -> None:
    path = make_recording()
    catalog = Catalog(str(tmp_path))

    assert catalog.look() == catalog.look()
    assert reads == [path]


def test_a_session_that_grows_ends_or_goes_is_noticed(tmp_path: Path, live: Any) -> None:
    catalog = Catalog(str(tmp_path))
    assert [summary.entries for summary in catalog.look()] == [0]
    live.calls(1, 2)
    while [summary.entries for summary in catalog.look()] != [4]:
        continue
    live.end(3)
    (summary,) = catalog.look()
    assert summary.state is State.ENDED
    live.path.unlink()
    assert catalog.look() == []


def test_a_large_file_that_grows_is_let_alone_for_a_while(
    tmp_path: Path, live: Any, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST", 1e9)
    catalog = Catalog(str(tmp_path))
    catalog.look()
    live.calls(1, 2)
    catalog.look()
    assert len(reads) == 1

    live.end()
    (summary,) = catalog.look()
    assert (summary.state, summary.entries) == (State.ENDED, 5)


def test_what_is_no_recording_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "else.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "folder.jsonl").mkdir()

    assert Catalog(str(tmp_path)).look() == []
    assert Catalog(str(tmp_path / "missing")).look() == []


def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    catalog = Catalog(str(tmp_path / "file"))

    assert catalog.look() == []
    assert catalog.trouble == f"{tmp_path / 'file'}: Not a directory"


def _begin(path: Path, started: str) -> None:
    head, rest = path.read_bytes().split(b"\n", 1)
    before, _, after = head.partition(b'"started":"')
    path.write_bytes(before + b'"started":"' + started.encode() + after[24:] + b"\n" + rest)
