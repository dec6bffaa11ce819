"""Old sessions are deleted, and new ones exported, in the background when a session starts, if the settings say so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mcpspy.io.recording import background
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from tests.io.conftest import Processes
from tests.io.files import BOUND, EXIT, POSIX, write


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str | None]]:
    """The folders, and settings, for which it was started."""
    found: list[tuple[list[str], str | None]] = []
    monkeypatch.setattr(background, "start", lambda *arguments: found.append(arguments))
    return found


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordingTarget:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    target = RecordingTarget()
    target.folder = str(tmp_path / "sessions")
    return target


def settings(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config" / "mcpspy" / "mcpspy.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


def record(target: RecordingTarget) -> None:
    recorder = Recorder(target, {"transport": "stdio", "command": ["x"], "name": "x"})
    assert recorder.writer is not None
    recorder.finish(0, None)


def test_without_settings_nothing_is_started(
    target: RecordingTarget, started: list[tuple[list[str], str | None]], tmp_path: Path
) -> None:
    record(target)
    settings(tmp_path, "[redact]\nkeys = ['x']\n")
    record(target)
    assert started == []


@POSIX
def test_with_a_table_it_is_started_for_the_sessions_folder(
    target: RecordingTarget, started: list[tuple[list[str], str | None]], tmp_path: Path
) -> None:
    path = settings(tmp_path, "[prune]\nkeep = 3\n")
    record(target)
    target.redaction.config = str(path)
    record(target)
    prune = ["prune", "--dir", target.folder]
    assert started == [(prune, None), (prune, str(path))]


@POSIX
def test_a_recording_at_a_chosen_path_starts_nothing(
    target: RecordingTarget, started: list[tuple[list[str], str | None]], tmp_path: Path
) -> None:
    settings(tmp_path, "[prune]\nkeep = 0\n")
    target.record = str(tmp_path / "own.jsonl")
    record(target)
    assert started == []


@pytest.mark.parametrize(("environment", "count"), [(None, 1), ("off", 0), ("http://127.0.0.1:9", 2)])
def test_a_recording_registers_for_telemetry_by_the_settings_or_the_environment(
    target: RecordingTarget,
    started: list[tuple[list[str], str | None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    environment: str | None,
    count: int,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("MCPSPY_TELEMETRY", raising=False)
    if environment is not None:
        monkeypatch.setenv("MCPSPY_TELEMETRY", environment)
    target.record = str(tmp_path / "own.jsonl")
    record(target)
    settings(tmp_path, '[telemetry]\nendpoint = "http://127.0.0.1:9"\n')
    target.record = str(tmp_path / "second.jsonl")
    record(target)
    assert started == [(["export", "--follow", "--background"], None)] * count
    assert sum(1 for _ in (tmp_path / "state").rglob("new/*")) == count


@POSIX
def test_a_failure_does_not_stop_the_recording(
    target: RecordingTarget,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    settings(tmp_path, "[prune]\nkeep = 3\n")

    def refuse(*_: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(background, "start", refuse)
    record(target)
    assert "cannot delete old sessions: Resource temporarily unavailable" in capfd.readouterr().err


@POSIX
def test_a_session_of_run_deletes_old_sessions_and_forwards_everything(
    tmp_path: Path, processes: Processes
) -> None:
    before = set(processes.children(os.getpid()))
    settings(tmp_path, "[prune]\nkeep = 1\n")
    folder = tmp_path / "sessions"
    folder.mkdir()
    old = [write(folder / f"{number}.jsonl", EXIT, id=f"{number:08}") for number in range(5)]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "MCPSPY_DIR": str(folder)}
    command = [sys.executable, "-m", "mcpspy", "run", "--", "cat"]
    (tmp_path / "mcpspy").mkdir()  # Must not be imported in place of the package.
    (tmp_path / "mcpspy" / "__init__.py").write_text("raise SystemExit('not this one')", encoding="utf-8")
    process = subprocess.Popen(
        [command[0], "-P", *command[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=tmp_path,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    message = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    process.stdin.write(message)
    process.stdin.flush()
    assert process.stdout.readline() == message
    until = time.monotonic() + BOUND
    while any(path.exists() for path in old):
        assert time.monotonic() < until
        process.stdin.write(message)
        process.stdin.flush()
        assert process.stdout.readline() == message
    out, error = process.communicate(timeout=BOUND)
    assert (process.returncode, out, error) == (0, b"", b"")
    assert len(list(folder.glob("*.jsonl"))) == 1
    # The tests adopt orphans: the process that deletes has to be waited for.
    while left := set(processes.children(os.getpid())) - before:
        for pid in left:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        assert time.monotonic() < until
