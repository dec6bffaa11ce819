"""Gaps of a recording, and the four commands that then exit with 4."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspy.analysis.completeness import gaps
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.cli.main import main

HEADER = {"mcpspy": 1, "id": "0" * 8, "started": "2026-11-28T08:00:00.000Z", "transport": "stdio", "command": ["x"], "cwd": "/", "name": "weather", "pid": 1}  # fmt: skip
EXIT = {"t": 9, "note": "exit", "code": 0, "signal": None}
TOOL = {"name": "a", "description": "b", "inputSchema": {"type": "object"}}


def to(server: bool, **message: Any) -> dict[str, Any]:
    return {"t": 1, "from": "client" if server else "server", "msg": {"jsonrpc": "2.0", **message}}


HELLO = [
    to(True, id=1, method="initialize", params={"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}),
    to(False, id=1, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}),
    to(True, method="notifications/initialized"),
]  # fmt: skip
PAGE = [to(True, id=2, method="tools/list"), to(False, id=2, result={"tools": [TOOL], "nextCursor": "p2"})]
LAST = [
    to(True, id=3, method="tools/list", params={"cursor": "p2"}),
    to(False, id=3, result={"tools": [{**TOOL, "name": "z"}]}),
]
CALL = to(True, id=4, method="tools/call", params={"name": "a"})
LOST = {"t": 2, "note": "lost", "entries": 3, "since": 1.0, "why": "ENOSPC"}


def write(folder: Path, *entries: dict[str, Any], end: str = "") -> Path:
    path = folder / "weather.jsonl"
    lines = "".join(json.dumps(entry) + "\n" for entry in (HEADER, *HELLO, *entries))
    path.write_text(lines + end, encoding="utf-8")
    return path


def lacks(path: Path) -> list[str]:
    recording = Recording(path)
    session = recording.session()
    return [gap.text for gap in gaps(session, torn=recording.torn, is_cut=recording.state == "died")]


@pytest.mark.parametrize(
    ("entries", "end", "expected"),
    [
        ([*PAGE, *LAST, EXIT], "", []),
        ([*PAGE, EXIT], "", ["tools/list: the page with the cursor 'p2' was not requested"]),
        ([*PAGE, *LAST, *PAGE, EXIT], "", []),
        ([LOST, EXIT], "", ["3 entries were not recorded"]),
        ([CALL], "", ["the recording ends while 1 request had no response"]),
        ([CALL, EXIT], "", []),
        ([], '{"t":', ["the last line is incomplete (5 bytes skipped)"]),
        ([], "{nonsense}\n", ["1 damaged line skipped"]),
    ],
)
def test_a_recording_lacks_what_was_cut_lost_damaged_or_never_requested(
    entries: list[dict[str, Any]], end: str, expected: list[str], tmp_path: Path
) -> None:
    assert lacks(write(tmp_path, *entries, end=end)) == expected


def test_lint_without_findings_in_an_incomplete_recording_exits_4_and_names_the_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, *PAGE, EXIT)
    gap = "tools/list: the page with the cursor 'p2' was not requested"

    assert main(["lint", str(path), "--host", "none"]) == 4
    assert f"weather: incomplete: {gap}\n" in capsys.readouterr().out
    assert main(["lint", str(path), "--format", "json"]) == 4
    assert [each["why"] for each in json.loads(capsys.readouterr().out)["incomplete"]] == [gap]
    assert main(["lint", str(path), "--format", "sarif"]) == 4
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert gap in note["message"]["text"]
    assert main(["lint", str(path), "--format", "junit"]) == 4
    assert f"incomplete: {gap}" in capsys.readouterr().out
    assert main(["lint", str(path), "--format", "github"]) == 4
    assert "::warning file=" in capsys.readouterr().out


def test_findings_count_more_than_an_incomplete_recording(tmp_path: Path) -> None:
    wrong = to(True, id=None, method="ping")

    assert main(["lint", str(write(tmp_path, *PAGE, wrong, EXIT))]) == 1


def test_a_finding_begins_with_the_name_of_its_session_and_reports_have_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, to(True, id=None, method="ping"), EXIT)

    assert main(["lint", str(path)]) == 1
    assert capsys.readouterr().out.startswith("weather:5 ENV201 error: ")
    assert main(["lint", str(path), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["path"] == path.as_posix()


def test_findings_of_two_sessions_of_one_server_begin_with_the_names_of_their_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, to(True, id=None, method="ping"), EXIT)
    (tmp_path / "other.jsonl").write_bytes(path.read_bytes())

    main(["lint", str(path), str(tmp_path / "other.jsonl")])
    starts = {line.partition(" ")[0] for line in capsys.readouterr().out.splitlines() if "ENV201" in line}
    assert starts == {"weather:5", "other:5"}


def test_check_exits_4_if_every_term_is_met_in_a_recording_that_was_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = write(tmp_path, CALL)

    assert main(["check", str(cut), "--forbid-tool", "b"]) == 4
    assert "  incomplete: the recording ends while 1 request had no response\n" in capsys.readouterr().out
    assert main(["check", str(cut), "--forbid-tool", "b", "--format", "json"]) == 4
    assert len(json.loads(capsys.readouterr().out)["sessions"][0]["incomplete"]) == 1
    assert main(["check", str(cut), "--forbid-tool", "b", "--format", "junit"]) == 4
    assert "<skipped" in capsys.readouterr().out
    assert main(["check", str(cut), "--forbid-tool", "a"]) == 1


def test_check_does_not_mind_pages_that_were_not_requested(tmp_path: Path) -> None:
    assert main(["check", str(write(tmp_path, *PAGE, EXIT)), "--forbid-tool", "b"]) == 0


def test_trust_check_exits_4_if_the_session_does_not_show_every_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = ["--lock", str(tmp_path / "mcp.lock")]
    assert main(["trust", str(write(tmp_path, *PAGE, *LAST, EXIT)), *lock]) == 0
    check = ["trust", "--check", str(write(tmp_path, *PAGE, EXIT)), *lock]
    capsys.readouterr()

    assert main(check) == 4
    assert "incomplete: the session does not show the list of tools\n" in capsys.readouterr().out
    assert main([*check, "--format", "json"]) == 4
    assert len(json.loads(capsys.readouterr().out)["incomplete"]) == 1
    for form in ("sarif", "junit"):
        assert main([*check, "--format", form]) == 4
        assert "incomplete: " in capsys.readouterr().out
