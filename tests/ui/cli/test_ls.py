"""`mcpspy ls`: the list of recorded sessions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from mcpspy.io.recording.reader import sessions
from mcpspy.ui.cli import ls
from mcpspy.ui.cli.main import main

Make = Callable[..., Path]


def test_sessions_are_listed_with_peers_and_state(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_recording(exit_code=3)

    assert main(["ls", "--dir", str(tmp_path)]) == 0

    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == "id name server started state client revision time entries size".split()
    assert line.startswith("○")
    for part in ("tested", "ended, exit 3", "tested 2", "tested 2", "2025-11-25"):
        assert part in line


def test_a_session_without_exit_died(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_recording(exit_code=None)

    main(["ls", "--dir", str(tmp_path)])

    assert "died" in capsys.readouterr().out


def test_the_newest_is_nearest_to_the_prompt(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = make_recording(name="first"), make_recording(name="second")
    for path, started in ((first, b"2026-01-01T00:00:00.000Z"), (second, b"2026-01-02T00:00:00.000Z")):
        head, rest = path.read_bytes().split(b"\n", 1)
        header = orjson.loads(head) | {"started": started.decode()}
        path.write_bytes(orjson.dumps(header) + b"\n" + rest)

    main(["ls", "--dir", str(tmp_path)])

    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()[1:]] == ["first", "second"]


def test_json_has_one_object_per_session(
    make_recording: Make, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = make_recording()

    main(["ls", "--dir", str(tmp_path), "--format", "json"])

    printed = orjson.loads(capfdbinary.readouterr().out)
    assert printed["path"] == str(path)
    assert (printed["state"], printed["exit"], printed["entries"]) == ("ended", 0, 6)
    assert printed["server"] == {"name": "tested", "version": "2"}


def test_messages_errors_and_pending_requests_are_counted_on_request(
    make_recording: Make, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    make_recording()

    main(["ls", "--dir", str(tmp_path), "--count"])
    head, line = capfdbinary.readouterr().out.splitlines()
    assert head.split()[-4:] == [b"messages", b"errors", b"pending", b"unanswered"]
    assert line.split()[-4:] == [b"5", b"1", b"0", b"0"]

    main(["ls", "--dir", str(tmp_path), "--count", "--json"])
    printed = orjson.loads(capfdbinary.readouterr().out)
    assert (printed["messages"], printed["errors"], printed["pending"]) == (5, 1, 0)


def test_a_session_deleted_while_it_is_counted_has_no_counts(
    make_recording: Make,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = make_recording()
    found = sessions(str(tmp_path))
    path.unlink()
    monkeypatch.setattr(ls, "sessions", lambda _: found)

    assert main(["ls", "--dir", str(tmp_path), "--count"]) == 0
    assert "tested" in capsys.readouterr().out


def test_an_empty_folder_suggests_how_to_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--dir", str(tmp_path)]) == 0

    out = capsys.readouterr().out
    assert str(tmp_path) in out
    assert "mcpspy run -- COMMAND" in out
    assert "mcpspy demo" in out


def test_a_missing_folder_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--dir", str(tmp_path / "nowhere")]) == 0
    assert "No sessions" in capsys.readouterr().out


def test_the_name_of_the_server_is_beside_that_of_the_session(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_recording(name="weather-dev")

    assert main(["ls", "--dir", str(tmp_path)]) == 0
    assert "  weather-dev  tested 2  " in capsys.readouterr().out
