"""The table of `mcpspy runs`, and a run as an argument of other commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpspy.ui.cli.main import main
from tests.ui.web.recordings import RUN, request, write, write_run


def printed(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments])
    out, err = capfd.readouterr()
    return code, out, err


def test_a_run_is_one_line_with_its_servers_and_the_totals_of_its_sessions(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path)
    write(tmp_path / "alone.jsonl", [request(0.0, 1)])
    code, out, _ = printed(capfd, "runs", "--dir", str(tmp_path))
    _, document, _ = printed(capfd, "runs", "--dir", str(tmp_path), "--format", "json")
    run = json.loads(document)

    head, line = out.splitlines()
    assert code == 0
    assert head.split() == "id host client started time sessions messages errors unanswered servers".split()
    assert line.split()[:2] == [run["id"], "claude"]
    assert line.endswith(", ".join(RUN))
    counts = line.removesuffix(", ".join(RUN)).split()[-4:]
    numbers = run["messages"], run["errors"], run["unanswered"]
    assert [int(count) for count in counts] == [len(RUN), *numbers]


def test_a_folder_without_runs_is_reported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "alone.jsonl", [request(0.0, 1)])
    assert printed(capfd, "runs", "--dir", str(tmp_path))[:2] == (
        0,
        "No runs yet: no session names the process of its host (see docs/runs.md).\n",
    )


def test_a_run_is_an_argument_for_all_its_sessions(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path)
    write(tmp_path / "alone.jsonl", [request(0.0, 1)])
    _, out, _ = printed(capfd, "stats", "run:last", "--dir", str(tmp_path), "--format", "json")
    assert sorted(json.loads(line)["name"] for line in out.splitlines()) == sorted(RUN)


def test_a_run_cannot_be_followed_as_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path)
    code, _, err = printed(capfd, "show", "run:last", "--follow", "--dir", str(tmp_path))
    assert code == 2
    assert err == "mcpspy: show: --follow prints one session (use a session of the run: mcpspy runs)\n"


def test_findings_at_the_end_of_a_session_are_in_the_list_of_its_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path)
    for path in tmp_path.glob("*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(
            b"".join(line for line in lines if b'"result":' not in line and b'"note":' not in line)
        )
    code, out, _ = printed(capfd, "show", "run:last", "--lint", "--dir", str(tmp_path))
    assert code == 0
    assert "LIFE201 warning: no response to " in out
