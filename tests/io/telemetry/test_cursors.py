"""Cursors survive a crash, belong to one process, and are forgotten with their recording."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from mcpspy.io.telemetry.exporter import CursorFolder
from tests.analysis.export.sessions import HEADER


def test_a_cursor_continues_where_it_was_and_is_deleted_at_the_end(tmp_path: Path) -> None:
    folder, recording = CursorFolder(tmp_path, "a"), tmp_path / "x.jsonl"
    recording.touch()
    first = folder.open(recording, HEADER)
    assert first is not None
    first.commit(1000)
    first.commit(70)
    assert folder.open(recording, HEADER) is None, "it is locked"
    first.close()
    again = folder.open(recording, HEADER)
    assert again is not None
    assert again.entries == 70
    assert [*folder.unfinished()] == [recording]
    again.finish()
    assert [*folder.unfinished()] == []


def test_collectors_and_sessions_have_their_own(tmp_path: Path) -> None:
    recording = tmp_path / "x.jsonl"
    places = [("a", HEADER), ("b", HEADER), ("a", replace(HEADER, id="0"))]
    made = [CursorFolder(tmp_path, endpoint).open(recording, header) for endpoint, header in places]

    for cursor in made:
        assert cursor is not None
        cursor.close()


def test_a_damaged_cursor_begins_again_and_one_of_a_deleted_recording_is_forgotten(tmp_path: Path) -> None:
    folder, recording = CursorFolder(tmp_path, "a"), tmp_path / "x.jsonl"
    cursor = folder.open(recording, HEADER)
    assert cursor is not None
    cursor.commit(5)
    cursor.close()
    (path,) = tmp_path.rglob("*.cursor")
    path.write_bytes(b'{"recording":"/x","ent')
    cursor = folder.open(recording, HEADER)
    assert cursor is not None
    assert cursor.entries == 0
    cursor.close()
    assert [*folder.unfinished()] == []
    assert not path.exists()
