"""Adding sessions to a lake: once each, redacted, by one process or several, also after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor, Executor, Future
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.lake import add as module
from mcpspy.io.lake import executors
from mcpspy.io.lake.add import add
from mcpspy.io.lake.executors import pool
from mcpspy.io.lake.files import Lake
from mcpspy.io.lake.maintenance import verify
from mcpspy.io.lake.storage import INPUTS
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.io.recording.writer import Writer
from tests.io.files import EXIT, POSIX, frame, note, write
from tests.io.lake.lakes import content, filled, folder_of, generated, paths, summaries

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.io.recording.reader import Summary
    from tests.io.conftest import Processes

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}


class Inline(Executor):
    """Runs each task at once, and keeps its sessions."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    def submit(self, run: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        self.tasks.append(arguments[-1])
        future: Future[Any] = Future()
        future.set_result(run(*arguments))
        return future


def test_a_lake_is_the_same_by_one_process_and_by_two(
    found: list[Summary], whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "TASK_BYTES", 1 << 15)
    with pool(2) as executor:
        lake, result = filled(tmp_path / "two", found, executor=executor)
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]  # Its process would outlive the test.

    assert result[:4] == (12, 0, 0, [])
    assert content(lake) == content(Lake(whole))
    assert len(content(lake)["exchanges"]) > 250


def test_adding_again_changes_nothing_and_reads_no_recording(
    lake: Lake, found: list[Summary], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder_of(lake).rglob("*.parquet")}
    monkeypatch.setattr(module, "opened", lambda path: pytest.fail(f"{path} was read"))
    _, again = filled(folder_of(lake), found)

    assert again[:4] == (0, 12, 0, [])
    assert {path: path.stat().st_mtime_ns for path in folder_of(lake).rglob("*.parquet")} == before


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_only_the_user_can_read_the_list_of_inputs(lake: Lake) -> None:
    assert (folder_of(lake) / INPUTS).stat().st_mode & 0o777 == 0o600


def test_a_copy_of_a_session_is_the_same_session(lake: Lake, found: list[Summary], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "other.jsonl").write_bytes(found[0].path.read_bytes())
    _, result = filled(folder_of(lake), summaries(copy))

    assert result[:2] == (0, 1)
    assert len(lake.keys()) == 12


@pytest.mark.parametrize("damage", [b"", b'["file:', b"[1,2]\n"])
def test_the_list_of_inputs_may_be_lost_or_incomplete(
    lake: Lake, found: list[Summary], damage: bytes
) -> None:
    (folder_of(lake) / INPUTS).write_bytes(damage)

    assert filled(folder_of(lake), found)[1][:2] == (0, 12)


def test_a_changed_recording_is_another_session(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    (summary,) = generated(folder, 1, 20)
    lake, _ = filled(tmp_path / "lake", [summary])
    lines = summary.path.read_bytes().splitlines(keepends=True)
    summary.path.write_bytes(b"".join([*lines[:-1], note(99, "stderr", text="more"), lines[-1]]))
    _, result = filled(tmp_path / "lake", summaries(folder))

    assert result.added == 1
    assert len(lake.keys()) == 2


@POSIX
def test_a_live_session_is_added_when_it_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "recordings" / "live.jsonl"
    path.parent.mkdir()
    writer = Writer(None, str(path), {"transport": "stdio", "command": ["server"], "name": "x"}, say=print)
    writer.write(frame(0.1, "client", CALL))
    assert filled(tmp_path / "lake", summaries(path.parent))[1][:3] == (0, 0, 1)
    writer.close()

    lake, result = filled(tmp_path / "lake", summaries(path.parent))
    assert result[:3] == (1, 0, 0)
    assert "died" in content(lake)["sessions"][0]


def test_secrets_do_not_reach_the_lake(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    call = {**CALL, "params": {"name": "t", "arguments": {"password": "swordfish-1"}}}
    command = ["server", "--token", "swordfish-2"]
    write(folder / "a.jsonl", frame(0.1, "client", call), note(0.2, "stderr", text="PASSWORD=swordfish-3"), EXIT,
          command=command)  # fmt: skip
    lakes = [filled(tmp_path / name, summaries(folder))[0] for name in ("one", "two")]

    assert "swordfish" not in json.dumps(content(lakes[0]))
    assert "[redacted:" in json.dumps(content(lakes[0]))
    assert content(lakes[0]) == content(lakes[1])


def test_the_digest_of_a_recording_with_secrets_confirms_no_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    write(folder / "a.jsonl", frame(0.1, "client", CALL), EXIT)
    write(folder / "b.jsonl", frame(0.1, "client", CALL), EXIT, redacted=True)
    names = []
    for user in ("one", "two"):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / user))
        names.append(filled(tmp_path / f"lake-{user}", summaries(folder))[0].keys())

    assert len(names[0] & names[1]) == 1


def test_redaction_can_be_off(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    call = {**CALL, "params": {"name": "t", "arguments": {"password": "swordfish-1"}}}
    write(folder / "a.jsonl", frame(0.1, "client", call), EXIT)
    options = RedactionOptions()
    options.off = True
    lake = Lake.created(tmp_path / "lake")
    add(lake, summaries(folder), options)

    assert "swordfish-1" in content(lake)["exchanges"][0]


def test_a_recording_that_cannot_be_read_does_not_stop_the_others(
    found: list[Summary], tmp_path: Path
) -> None:
    folder = tmp_path / "recordings"
    generated(folder, 4, 60)
    listed = summaries(folder)
    listed[1].path.write_bytes(b"not a recording\n")
    listed[2].path.unlink()
    lake, result = filled(tmp_path / "lake", listed)

    assert result.added == 2
    gone, damaged = sorted(result.failures, key=lambda failure: "not an mcpspy recording" in failure)
    assert gone.startswith(f"{listed[2].path}: no such file")
    assert listed[1].path.name in damaged
    assert "not an mcpspy recording" in damaged
    assert verify(lake).problems == []


def test_a_folder_of_settings_that_cannot_be_written_is_one_line(
    found: list[Summary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    with pytest.raises(CannotStart, match=r"/lake\.key: Not a directory \(check the permissions\)"):
        filled(tmp_path / "lake", found)


def test_small_sessions_are_one_task_and_fail_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, executor = tmp_path / "recordings", Inline()
    listed = generated(folder, 5, 300)
    listed[1].path.write_bytes(b"not a recording\n")
    sizes = [summary.path.stat().st_size for summary in listed]
    monkeypatch.setattr(executors, "TASK_BYTES", sum(sizes[:3]))
    lake, result = filled(tmp_path / "lake", listed, executor=executor)

    assert [len(task) for task in executor.tasks] == [3, 2]
    assert (result.added, len(result.failures)) == (4, 1)
    assert len(content(lake)["sessions"]) == 4
    assert filled(tmp_path / "lake", listed, executor=executor)[1][:2] == (0, 4)


def test_all_parts_of_a_session_are_one_session(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    write(folder / "s.jsonl", frame(0.1, "client", CALL), note(0.2, "part", next="s.part2.jsonl"))
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    write(folder / "s.part2.jsonl", frame(0.3, "server", answer), EXIT, part=2)
    lake, result = filled(tmp_path / "lake", summaries(folder))

    assert result.added == 1
    (row,) = content(lake)["exchanges"]
    assert "'status': 'ok'" in row


def test_a_damaged_compacted_file_is_one_line(lake: Lake, found: list[Summary]) -> None:
    (first, *_) = paths(lake, "sessions")
    first.rename(first.with_name("compacted-1.parquet")).write_bytes(b"half")
    with pytest.raises(CannotStart, match="mcpspy lake verify checks the files"):
        filled(folder_of(lake), found)


def test_a_killed_worker_ends_the_run_with_one_line(found: list[Summary], tmp_path: Path) -> None:
    class Broken(Executor):
        def submit(self, *_: Any, **__: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor())
            return future

    with pytest.raises(CannotStart, match="a worker process was killed"):
        filled(tmp_path / "lake", found, executor=Broken())


@POSIX
@pytest.mark.parametrize("moment", [(1, 0), (1, 30), (2, 15)])
def test_a_killed_run_and_the_next_one_make_the_same_lake(
    recordings: Path, whole: Path, tmp_path: Path, processes: Processes, moment: tuple[int, int]
) -> None:
    """The run is killed as soon as it has written more than N files of 70."""
    found, (workers, files) = summaries(recordings), moment
    code = (
        "import sys; from mcpspy.io.lake import executors; from mcpspy.ui.cli.main import main;"
        " executors.TASK_BYTES = 1 << 15; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, "lake", "add", str(tmp_path / "lake"), str(recordings)]
    with subprocess.Popen([*command, "--workers", str(workers)], stdout=subprocess.DEVNULL) as process:
        processes.eventually(lambda: len([*(tmp_path / "lake").glob("*/*/*/*.parquet")]) > files)
        children = processes.children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    processes.gone(*children)
    lake, result = filled(tmp_path / "lake", found)

    assert result.added + result.present == len(found)
    assert content(lake) == content(Lake(whole))
    assert verify(lake).problems == []
    assert list((folder_of(lake) / "_tmp").iterdir()) == []


def test_progress_counts_sessions_and_rows(found: list[Summary], tmp_path: Path) -> None:
    shown: list[tuple[int, int, int]] = []
    lake, _ = filled(tmp_path / "lake", found[:3], show=lambda *each: shown.append(each))

    assert [each[:2] for each in shown] == [(1, 3), (2, 3), (3, 3)]
    assert shown[-1][2] == sum(map(len, content(lake).values()))
