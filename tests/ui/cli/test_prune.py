"""`mcpspy prune`: sessions that exceed a limit are deleted."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.recording.decode import Header
from mcpspy.io.recording.catalog import sessions
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.cli import prune
from mcpspy.ui.cli.main import main
from mcpspy.ui.cli.prune import Limits, selected
from tests.io.files import EXIT, note, write

NOW = datetime.now(UTC)


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of four sessions, 1 to 40 days old; that of 20 days has two parts."""
    for days in (1, 10, 40):
        write(tmp_path / f"{days}.jsonl", EXIT, id=f"{days:08}", started=ago(days))
    write(tmp_path / "20.jsonl", note(1, "part", next="20.part2.jsonl"), id="00000020", started=ago(20))
    write(tmp_path / "20.part2.jsonl", note(2, "stderr", text="x"), id="00000020", started=ago(20), part=2)
    return tmp_path


def left(folder: Path) -> set[str]:
    return {path.name.removesuffix(".jsonl") for path in folder.iterdir()}


ALL = {"1", "10", "20", "20.part2", "40"}


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (["--older-than", "30d"], ALL - {"40"}),
        (["--older-than", "3w"], ALL - {"40"}),
        (["--keep", "2"], {"1", "10"}),
        (["--keep", "3"], ALL - {"40"}),
        (["--keep", "0"], set()),
        (["--max-size", "1G"], ALL),
        (["--max-size", "300"], {"1", "10"}),
        (["--keep", "3", "--older-than", "15d"], {"1", "10"}),
    ],
)
def test_sessions_that_exceed_a_limit_are_deleted_with_their_parts(
    folder: Path, limits: list[str], kept: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert main(["prune", "--dir", str(folder), *limits, "--dry-run"]) == 0
    assert left(folder) == ALL
    dry = capsys.readouterr().out
    assert main(["prune", "--dir", str(folder), *limits]) == 0
    assert left(folder) == kept
    done = capsys.readouterr().out
    assert done == dry.replace("would delete", "deleted").replace("would free", "freed")
    freed = sum(size for name, size in before.items() if name.removesuffix(".jsonl") not in kept)
    assert f"freed {freed}B;" in done


def test_json_names_the_files_and_the_bytes(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    sizes = sum(path.stat().st_size for path in folder.glob("20*"))
    assert main(["prune", "--dir", str(folder), "--older-than", "15d", "--keep", "3", "--json"]) == 0
    document = orjson.loads(capfdbinary.readouterr().out)
    two, one = document["deleted"]
    assert (one["id"], two["id"]) == ("00000040", "00000020")
    assert (two["files"], two["size"]) == ([str(folder / "20.jsonl"), str(folder / "20.part2.jsonl")], sizes)
    assert (document["dry_run"], document["kept"], document["failures"]) == (False, 2, [])
    assert document["freed"] == one["size"] + two["size"]


@pytest.mark.parametrize("started", ["soon", "2020-01-01T00:00:00", "2020"])
def test_a_session_without_a_valid_start_is_not_old(tmp_path: Path, started: str) -> None:
    write(tmp_path / "a.jsonl", EXIT, id="0000000a", started=started)
    assert main(["prune", "--dir", str(tmp_path), "--older-than", "1d"]) == 0
    assert left(tmp_path) == {"a"}


def test_a_live_session_is_never_deleted(folder: Path) -> None:
    writer = Writer(str(folder), None, {"name": "live"}, say=pytest.fail, max_size=1)
    for number in range(3):  # Four parts, of which only the last is open.
        writer.note(float(number), "stderr", text="x")
    assert main(["prune", "--dir", str(folder), "--keep", "0"]) == 0
    assert len(left(folder)) == 4
    writer.close()
    assert main(["prune", "--dir", str(folder), "--keep", "0"]) == 0
    assert left(folder) == set()


def test_a_session_whose_part_is_open_stays_as_a_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sessions(str(folder))
    monkeypatch.setattr(prune, "sessions", lambda _: found)
    part = (folder / "20.part2.jsonl").stat().st_ino  # It was opened after the sessions were listed.
    monkeypatch.setattr("mcpspy.io.recording.reader.is_live", lambda fd: os.fstat(fd).st_ino == part)
    assert main(["prune", "--dir", str(folder), "--older-than", "15d"]) == 3
    assert left(folder) == ALL - {"40"}
    assert "20.part2.jsonl: still being written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "no limit (use --older-than, --keep or --max-size)"),
        (["--older-than", "30"], "--older-than 30: not an age"),
        (["--older-than", "0d"], "--older-than 0d: not an age"),
        (["--keep", "-1"], "--keep -1: not a number"),
        (["--max-size", "5 apples"], "--max-size 5 apples: not a size"),
    ],
)
def test_limits_that_are_not_valid_delete_nothing(
    folder: Path, arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [f"{arguments[0]}={arguments[1]}"] if arguments else []
    assert main(["prune", "--dir", str(folder), "--config", str(folder / "none"), *options]) == 2
    assert error in capsys.readouterr().err
    assert left(folder) == ALL


@pytest.mark.parametrize(
    ("table", "code"),
    [("older_than = '15d'\nkeep = 9", 0), ("keep = true", 2), ("days = 3", 2), ("", 2)],
)
def test_the_settings_have_limits(folder: Path, tmp_path_factory: Any, table: str, code: int) -> None:
    config = tmp_path_factory.mktemp("config") / "mcpspy.toml"
    config.write_text(f"[prune]\n{table}\n", encoding="utf-8")
    assert main(["prune", "--dir", str(folder), "--config", str(config)]) == code
    assert left(folder) == (ALL if code else {"1", "10"})


SESSIONS = st.lists(st.tuples(st.floats(0, 100), st.integers(1, 1000), st.sampled_from(RecordingState)))


@given(SESSIONS, st.integers(0, 5), st.floats(0, 100), st.integers(0, 3000))
def test_the_sessions_left_exceed_no_limit_unless_they_are_live(
    made: list[tuple[float, int, RecordingState]], keep: int, days: float, size: int
) -> None:
    found = [
        Summary(
            path=Path(f"{number}"),
            header=Header(mcpspy=1, id=str(number), started=ago(age)),
            state=state,
            exit=None,
            size=each,
            entries=0,
            last=0.0,
            client=None,
            server=None,
            revision=None,
        )
        for number, (age, each, state) in enumerate(sorted(made, key=lambda session: session[0]))
    ]
    gone = [summary for summary, _ in selected(found, Limits(days * 86400, keep, size), NOW)]
    kept = [summary for summary in found if summary not in gone]
    dead = [summary for summary in kept if summary.state is not RecordingState.LIVE]
    assert not any(summary.state is RecordingState.LIVE for summary in gone)
    assert len(dead) <= keep
    assert not dead or sum(summary.size for summary in kept) <= size
    ages = {
        str(number): age for number, (age, _, _) in enumerate(sorted(made, key=lambda session: session[0]))
    }
    assert all(ages[summary.header.id] <= days + 1e-6 for summary in dead)


def test_a_session_of_a_clock_that_was_not_set_is_as_old_as_its_file(tmp_path: Path) -> None:
    for name in ("new", "old"):
        write(tmp_path / f"{name}.jsonl", EXIT, id=name, started="1970-01-01T00:00:07.000Z")
    month = NOW.timestamp() - 31 * 86400
    os.utime(tmp_path / "old.jsonl", (month, month))

    assert main(["prune", "--older-than", "30d", "--dir", str(tmp_path)]) == 0
    assert left(tmp_path) == {"new"}
