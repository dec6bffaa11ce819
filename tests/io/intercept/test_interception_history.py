"""A session that reads a part of its recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpspy.io.intercept import interception
from mcpspy.io.intercept.interception import frames
from mcpspy.io.recording.recorder import Recorder, RecordingTarget

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def recorded(path: Path, count: int, *, max_size: int = 0) -> Recorder:
    where = RecordingTarget()
    where.record = str(path)
    where.redaction.off = True
    where.max_size = max_size
    recorder = Recorder(where, {})
    for n in range(count):
        recorder.write(b'{"t":%d.000000,"from":"client","msg":{"id":%d}}\n' % (n + 1, n))
        recorder.note("stderr", text="noise")
    return recorder


def ids(recorder: Recorder, since: float = 0.0) -> list[int]:
    return [int(frame.data[6:-1]) for frame in frames(recorder, since)]


def test_the_messages_are_those_of_the_file(tmp_path: Path) -> None:
    recorder = recorded(tmp_path / "r.jsonl", 20)
    assert ids(recorder) == list(range(20))
    assert ids(recorder, 15.0) == [15, 16, 17, 18, 19]


def test_of_a_long_session_it_is_the_first_and_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interception, "HEAD", 1000)
    monkeypatch.setattr(interception, "TAIL", 1000)
    found = ids(recorded(tmp_path / "r.jsonl", 1000))
    assert found[0] == 0
    assert found[-1] == 999
    assert found == sorted(set(found))
    assert 10 < len(found) < 40


def test_of_several_parts_it_is_the_first_and_the_current_one(tmp_path: Path) -> None:
    recorder = recorded(tmp_path / "r.jsonl", 100, max_size=2000)
    found = ids(recorder)
    assert len(list(tmp_path.iterdir())) > 2
    assert found[0] == 0
    assert found[-1] == 99
    assert len(found) < 100


def test_the_history_is_empty_without_a_file(tmp_path: Path) -> None:
    nowhere = RecordingTarget()
    nowhere.recording = False
    assert ids(Recorder(nowhere, {})) == []
    recorder = recorded(tmp_path / "r.jsonl", 5)
    (tmp_path / "r.jsonl").unlink()
    assert ids(recorder) == []
