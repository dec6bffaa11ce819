"""A recording may fail without any other effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.io.recording.writer import Writer


def target(record: Path) -> RecordingTarget:
    chosen = RecordingTarget()
    chosen.record = str(record)
    return chosen


def test_the_file_contains_frames_notes_and_the_exit_note(tmp_path: Path) -> None:
    recorder = Recorder(target(tmp_path / "x.jsonl"), {"transport": "stdio", "name": "x"})
    recorder.write(b'{"t":0.1,"from":"client","msg":{}}\n')
    recorder.note("stderr", text="hello")
    recorder.finish(3, None)

    recording = Recording(tmp_path / "x.jsonl")
    assert (recording.header.name, recording.header.transport) == ("x", "stdio")
    assert recording.header.cwd == str(Path.cwd())
    assert [type(entry).__name__ for entry in recording] == ["Frame", "Note", "Note"]


def test_no_file_is_written_if_recording_is_off(tmp_path: Path) -> None:
    chosen = target(tmp_path / "x.jsonl")
    chosen.recording = False

    recorder = Recorder(chosen, {})
    recorder.note("stderr", text="hello")
    recorder.finish(0, None)

    assert not list(tmp_path.iterdir())
    assert (recorder.id, recorder.path) == (None, None)


def test_the_id_and_the_path_stay_after_the_recording_breaks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder(target(tmp_path / "x.jsonl"), {})
    recorder.broke(ZeroDivisionError("oops"))

    assert recorder.id == Recording(tmp_path / "x.jsonl").header.id
    assert recorder.path == str(tmp_path / "x.jsonl")


def test_an_impossible_path_is_reported_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    recorder = Recorder(target(tmp_path / "file" / "x.jsonl"), {})
    recorder.write(b"{}\n")
    recorder.finish(0, None)

    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("method", ["__init__", "write", "note"])
def test_a_bug_in_mcpspy_is_one_line_and_ends_the_recording(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(Writer, method, fail)
    recorder = Recorder(target(tmp_path / "x.jsonl"), {})
    for _ in range(2):
        recorder.write(b"{}\n")
        recorder.note("stderr", text="hello")
    recorder.finish(0, None)

    assert capfd.readouterr().err == (
        "mcpspy: recording stopped by a bug in mcpspy: ZeroDivisionError: oops; traffic continues unrecorded\n"
    )
