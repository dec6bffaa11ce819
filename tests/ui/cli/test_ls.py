"""`mcpspy ls`: the list of recorded sessions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from mcpspy.io.recording.catalog import sessions
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.cli import ls
from mcpspy.ui.cli.main import main
from tests.io.files import EXIT, frame, note, write

Make = Callable[..., Path]


def test_sessions_are_listed_with_peers_and_state(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_recording(exit_code=3)

    assert main(["ls", "--dir", str(tmp_path)]) == 0

    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == "id name server started verdict client revision time entries size".split()
    assert line.startswith(("○", "✗"))
    for part in ("tested", "crashed, exit 3", "tested 2", "tested 2", "2025-11-25"):
        assert part in line


def test_a_session_without_exit_died(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_recording(exit_code=None)

    main(["ls", "--dir", str(tmp_path)])

    assert "mcpspy was killed" in capsys.readouterr().out


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
    assert head.split()[-5:] == [b"messages", b"errors", b"unanswered", b"pending", b"issues"]
    assert line.split()[-5:] == [b"5", b"1", b"0", b"0", b"1"]

    main(["ls", "--dir", str(tmp_path), "--count", "--json"])
    printed = orjson.loads(capfdbinary.readouterr().out)
    assert (printed["messages"], printed["errors"], printed["unanswered"], printed["pending"]) == (5, 1, 0, 0)


def test_a_session_deleted_while_it_is_counted_has_no_counts(
    make_recording: Make,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = make_recording()
    found = sessions(str(tmp_path))
    path.unlink()
    monkeypatch.setattr(ls, "sessions_of", lambda _: found)

    assert main(["ls", "--dir", str(tmp_path), "--count"]) == 0
    assert "tested" in capsys.readouterr().out


def test_an_empty_folder_suggests_how_to_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--dir", str(tmp_path)]) == 0

    out = capsys.readouterr().out
    assert str(tmp_path) in out
    assert f"mcpspy run --dir {tmp_path} -- COMMAND" in out
    assert f"mcpspy demo --dir {tmp_path} " in out


def test_a_missing_folder_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "--dir", str(tmp_path / "nowhere")]) == 0
    assert "No sessions" in capsys.readouterr().out


def test_the_name_of_the_server_is_beside_that_of_the_session(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_recording(name="weather-dev")

    assert main(["ls", "--dir", str(tmp_path)]) == 0
    assert "  weather-dev  tested 2  " in capsys.readouterr().out


CALL = frame(0.1, "client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
REASON = "mcpspy: cannot reach http://127.0.0.1:9/mcp: refused"
UNREACHED = note(0.2, "http", http=1, stream="1", status=502, error=REASON)


@pytest.mark.parametrize(
    ("end", "verdict"), [((EXIT,), "never answered, exit 0"), ((), "mcpspy was killed, 1 unanswered")]
)
def test_requests_without_a_response_are_shown_if_the_session_is_over(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], end: tuple[bytes, ...], verdict: str
) -> None:
    write(tmp_path / "a.jsonl", CALL, *end)
    assert main(["ls", "--dir", str(tmp_path)]) == 0
    assert f"  {verdict}  " in capfdbinary.readouterr().out.decode()
    main(["ls", "--dir", str(tmp_path), "--json"])
    assert orjson.loads(capfdbinary.readouterr().out)["unanswered"] == 1


def test_requests_of_a_live_session_are_not_unanswered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = Writer(str(tmp_path), None, {"name": "live"}, say=pytest.fail)
    writer.write(CALL)
    main(["ls", "--dir", str(tmp_path)])
    writer.close()
    assert "unanswered" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        ((CALL, UNREACHED, UNREACHED, EXIT), "failed"),
        ((CALL, UNREACHED, note(0.3, "http", http=2, status=200), EXIT), "ended"),
        ((CALL, note(0.3, "http", http=2, status=200), UNREACHED, EXIT), "ended"),
        ((EXIT,), "ended"),
        ((CALL, UNREACHED), "died"),
        ((note(0.1, "error", text=REASON), EXIT), "failed"),
        ((note(0.1, "error", text=REASON), note(0.3, "http", http=2, status=200), EXIT), "ended"),
    ],
)
def test_a_session_over_http_that_never_reached_its_server_has_failed(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], lines: tuple[bytes, ...], state: str
) -> None:
    write(tmp_path / "a.jsonl", *lines, transport="http")
    main(["ls", "--dir", str(tmp_path), "--json"])
    printed = orjson.loads(capfdbinary.readouterr().out)
    assert (printed["state"], printed["failure"]) == (state, REASON if state == "failed" else None)
    main(["ls", "--dir", str(tmp_path), "-q", "state:failed"])
    listed = capfdbinary.readouterr().out.decode()
    assert ("server not reached" in listed) == (state == "failed")


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Return a folder of 60 sessions, one per minute; every fifth has an unanswered request."""
    for number in range(60):
        started = f"2026-01-01T10:{number:02}:00.000Z"
        lines = (CALL, EXIT) if number % 5 == 0 else (EXIT,)
        write(tmp_path / f"{number}.jsonl", *lines, id=f"{number:08}", name=f"n{number % 3}", started=started)
    return tmp_path


def ids(out: str) -> list[int]:
    return [int(found) for found in re.findall(r"[○✗]  (\d{8})", out)]


def test_the_newest_sessions_are_listed_on_a_terminal_and_all_elsewhere(
    many: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["ls", "--dir", str(many)]
    main(command)
    assert ids(capsys.readouterr().out) == [*range(60)]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    main(command)
    out = capsys.readouterr().out
    assert ids(out) == [*range(10, 60)]
    assert "50 of 60 sessions; --all lists all" in out
    main([*command, "--all"])
    assert ids(capsys.readouterr().out) == [*range(60)]
    main([*command, "-n", "3"])
    assert ids(capsys.readouterr().out) == [57, 58, 59]


def test_sessions_are_filtered_and_sorted(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["ls", "--dir", str(many), "-q", "unanswered>0 name:n1 since:2026-01-01"])
    assert ids(capsys.readouterr().out) == [10, 25, 40, 55]
    main(["ls", "--dir", str(many), "--sort", "unanswered", "-n", "12"])
    assert all(number % 5 == 0 for number in ids(capsys.readouterr().out))
    main(["ls", "--dir", str(many), "-q", "name:other"])
    assert capsys.readouterr().out == (
        'None of 60 sessions match. No name matches "other". The names are n2, n1, n0.\n'
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["-n", "0"], "--limit 0: not a number of sessions (use 1 or more)"),
        (["-n", "3", "--all"], "--limit and --all exclude each other"),
        (["-q", "state:ran"], 'character 7: unknown state "ran"'),
        (["--sort", "colour"], "--sort colour: not one of started, name"),
    ],
)
def test_options_that_are_not_valid_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], error: str
) -> None:
    assert main(["ls", "--dir", str(tmp_path), *arguments]) == 2
    line = capsys.readouterr().err
    assert error in line
    assert line.count("\n") == 1
