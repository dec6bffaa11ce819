"""The recordings beside the tables: redacted, whole, and fetched by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.lake.fetch import fetched
from mcpspy.io.lake.files import Lake, recordings
from mcpspy.io.lake.maintenance import remove_before, verify
from mcpspy.io.recording.reader import Recording
from tests.io.files import EXIT, frame, note, write
from tests.io.lake.lakes import filled, folder_of, summaries

if TYPE_CHECKING:
    from mcpspy.io.recording.reader import Summary

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}


def messages(path: Path) -> list[object]:
    session = Recording(path).session()
    return [(change.what.at, getattr(change.what, "data", None)) for change in session.changes]


def test_a_session_is_found_by_its_key_id_name_and_as_the_last(lake: Lake, found: list[Summary]) -> None:
    location = lake.storage.location
    newest = max(found, key=lambda summary: summary.header.started)
    keys = lake.keys()
    (key,) = (key for key in keys if key.startswith(newest.header.id))
    expected = messages(newest.path)

    assert len(expected) > 20
    for name in (key, newest.header.id, key[:10], "last"):
        assert messages(fetched(location, name)) == expected
    named = fetched(location, newest.header.name)
    assert Recording(named).header.name == newest.header.name


def test_a_copy_is_redacted_and_has_all_parts(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    call = {**CALL, "params": {"name": "t", "arguments": {"password": "swordfish-1"}}}
    command = ["server", "--token", "swordfish-2"]
    write(
        folder / "s.jsonl",
        frame(0.1, "client", call),
        note(0.2, "part", next="s.part2.jsonl"),
        command=command,
    )
    answer = {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "text", "text": "PASSWORD=swordfish-3"}]},
    }
    write(folder / "s.part2.jsonl", frame(0.3, "server", answer), EXIT, part=2, command=command)
    lake, _ = filled(tmp_path / "lake", summaries(folder))
    copy = fetched(lake.storage.location, "last")

    text = copy.read_text(encoding="utf-8")
    assert "swordfish" not in text
    assert json.loads(text.splitlines()[0])["redacted"] is True
    (exchange,) = Recording(copy).session().exchanges
    assert exchange.answer is not None


def test_without_a_copy_the_original_is_read_or_named(found: list[Summary], tmp_path: Path) -> None:
    lake, _ = filled(tmp_path / "lake", found[:2], copies=False)
    assert recordings(lake) == []
    assert fetched(lake.storage.location, found[0].header.id) == found[0].path

    moved = tmp_path / "moved.jsonl"
    moved.write_bytes(found[0].path.read_bytes())
    (only,) = summaries(tmp_path)
    lake, _ = filled(tmp_path / "other", [only], copies=False)
    moved.unlink()
    with pytest.raises(
        UsageError, match=r"the lake has only its tables \(the recording was file://.*/moved.jsonl\)"
    ):
        fetched(lake.storage.location, "last")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nothing", "not in "),
        ("0", "not in "),
        ("00", r"12 sessions of .*/lake start with this \(add characters\)"),
    ],
)
def test_a_name_that_is_not_in_the_lake_is_one_line(lake: Lake, name: str, error: str) -> None:
    with pytest.raises(UsageError, match=f"lake:{name}: {error}"):
        fetched(lake.storage.location, name)


def test_without_a_lake_the_option_is_named() -> None:
    with pytest.raises(UsageError, match=r"use --lake LAKE, or set MCPSPY_LAKE"):
        fetched(None, "last")


def test_a_damaged_copy_is_found(lake: Lake, found: list[Summary]) -> None:
    file = next(file for file in recordings(lake) if file.base.startswith(found[0].header.id))
    path = folder_of(lake) / file.name
    path.write_bytes(path.read_bytes()[:-40])

    assert [problem.split(":")[0] for problem in verify(lake).problems] == [file.name]
    with pytest.raises(CannotStart, match="mcpspy lake verify checks the files"):
        fetched(lake.storage.location, found[0].header.id)


def test_old_days_are_deleted_with_their_recordings(lake: Lake) -> None:
    remove_before(lake, "2100-01-01")

    assert recordings(lake) == []
    assert lake.keys() == set()
