"""One exporter in the background per user, and no registered session is lost between two of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpspy.io.recording import background
from mcpspy.io.telemetry.exporter import lock_background, registered


def test_the_exporter_is_started_unless_one_holds_the_lock(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[list[str], str | None]] = []
    monkeypatch.setattr(background, "start", lambda *arguments: started.append(arguments))
    background.export("a.jsonl", "id1", "settings.toml")
    lock = lock_background(state)
    assert lock is not None
    assert lock_background(state) is None
    background.export("b.jsonl", "id2", None)
    assert started == [(["export", "--follow", "--background"], "settings.toml")]
    os.close(lock)
    background.export("c.jsonl", "id3", None)

    assert len(started) == 2
    assert [each.name for each in registered(state / "new")] == ["id1", "id2", "id3"]
    assert (state / "new" / "id1").read_text() == str(Path("a.jsonl").absolute())
