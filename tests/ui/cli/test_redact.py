"""`mcpspy redact`: its output, its report and its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import orjson
import pytest

from mcpspy.ui.cli.main import main

HEADER = b'{"mcpspy":1,"id":"00000000","started":"2026-11-21T08:00:00.000Z","command":["s"]}\n'
REPORT = (
    b'{"t":0.1,"from":"client","msg":{"a":[{"password":"swordfish"},{"password":"trout-1"}],"pin":"x"}}\n'
)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_bytes(HEADER + REPORT + b'{"t":0.2,"note":"stderr","text":"PASSWORD=swordfish"}\n{"t"')
    return path


def test_the_report_lists_rules_and_places_but_never_values(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["redact", str(recorded), "-o", str(out), "--redact-key", "pin"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines() == [
        f"{out}: 4 secrets redacted",
        "      2  key                   /a/*/password",
        "      1  key                   /pin",
        "      1  assigned              /text",
        "the last line is incomplete (4 bytes skipped): mcpspy was stopped while writing it",
    ]
    remaining = out.read_bytes()
    assert b"swordfish" not in remaining
    assert b"trout" not in remaining
    assert main(["redact", "--check", str(out), "--redact-key", "pin"]) == 0
    assert capsys.readouterr().out == f"{out}: 0 secrets\n"


def test_a_check_finds_and_writes_nothing(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.iterdir())
    assert main(["redact", "--check", str(recorded), "--format", "json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == {
        "in": str(recorded),
        "out": None,
        "secrets": 3,
        "found": [
            {"rule": "key", "pointer": "/a/*/password", "count": 2},
            {"rule": "assigned", "pointer": "/text", "count": 1},
        ],
        "lost": 0,
        "torn": 4,
    }
    assert sorted(tmp_path.iterdir()) == before


def test_messages_that_cannot_be_redacted_are_skipped_and_counted(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("mcpspy.core.redact.placeholder.placeholder")
    out = tmp_path / "out.jsonl"
    assert main(["redact", str(recorded), "--output", str(out)]) == 1
    assert "2 could not be redacted and were skipped" in capsys.readouterr().out
    assert b"swordfish" not in out.read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ["IN"],
        ["--check", "IN", "-o", "OUT"],
        ["--check", "IN", "OUT"],
        ["IN", "-o", "IN"],
        ["IN", "OUT", "-o", "OUT"],
        ["IN", "-o", "OUT", "--redact-pointer", "x"],
    ],
)
def test_invalid_arguments_are_a_usage_error(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    named = {"IN": str(recorded), "OUT": str(tmp_path / "out.jsonl")}
    assert main(["redact", *(named.get(word, word) for word in arguments)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_redacted_recording_is_written_to_stdout_and_the_report_to_stderr(
    recorded: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["redact", str(recorded), "-o", "out.jsonl"]) == 0
    capfdbinary.readouterr()

    assert main(["redact", str(recorded), "-o", "-"]) == 0

    printed = capfdbinary.readouterr()
    placeholder = re.compile(rb"\[redacted:[^]]*\]")
    assert placeholder.sub(b"", printed.out) == placeholder.sub(b"", Path("out.jsonl").read_bytes())
    assert b"3 secrets redacted" in printed.err
    assert not Path("-").exists()


def test_a_damaged_line_is_left_out_since_its_secret_may_have_lost_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = b'{"t":0.1,"from":"client","msg":{"jsonrpc":"2.0","id":1,"result":{"password":"swordfish\n'
    path = tmp_path / "in.jsonl"
    path.write_bytes(HEADER + cut + b'word":"swordfish"}}\n' + REPORT)
    out = tmp_path / "out.jsonl"

    assert main(["redact", str(path), "-o", str(out)]) == 1

    assert "2 could not be redacted and were skipped" in capsys.readouterr().out
    _, *lines = out.read_bytes().splitlines()
    assert [orjson.loads(line).get("note") for line in lines] == ["lost", "lost", None]
    assert b"swordfish" not in out.read_bytes()


def test_a_folder_is_redacted_file_by_file(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "clean"
    assert main(["redact", str(recorded.parent), "-o", str(out), "--redact-key", "pin"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{out}: 1 file, 4 secrets redacted",
        "      2  key                   /a/*/password",
        "      1  key                   /pin",
        "      1  assigned              /text",
        "1 file with an incomplete last line, which was skipped",
    ]
    assert [path.name for path in out.iterdir()] == ["in.jsonl"]
    assert b"swordfish" not in (out / "in.jsonl").read_bytes()
    assert out.stat().st_mode & 0o77 == (out / "in.jsonl").stat().st_mode & 0o77 == 0

    assert main(["redact", str(recorded.parent), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 0 files, 0 secrets redacted, 1 present\n"


def test_a_check_of_a_folder_names_the_files(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.jsonl").write_bytes(HEADER.replace(b"00000000", b"00000001"))
    assert main(["redact", "--check", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"{recorded}: 3 secrets", f"{tmp_path}: 2 files, 3 secrets"]


def test_a_file_that_cannot_be_written_is_reported_and_the_others_are_redacted(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.jsonl").write_bytes(HEADER.replace(b"00000000", b"00000001"))
    (tmp_path / "out" / ".other.jsonl.tmp").mkdir(parents=True)

    assert main(["redact", str(tmp_path), "-o", str(tmp_path / "out")]) == 3
    printed = capfd.readouterr()
    assert printed.out.startswith(f"{tmp_path / 'out'}: 1 file, 3 secrets redacted\n")
    assert "other.jsonl.tmp: " in printed.err
    assert (tmp_path / "out" / "in.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["FOLDER", "-o", "FOLDER"], "FOLDER: the folder of the recordings (use another folder)"),
        (
            ["FOLDER", "-o", "FOLDER/in.jsonl"],
            "FOLDER/in.jsonl: a file (recordings of a folder need a folder)",
        ),
        (
            ["FOLDER/empty", "--check"],
            "FOLDER/empty: this folder contains no recordings (name another folder)",
        ),
        (["FOLDER", "-o", "FOLDER/in.jsonl/x"], "FOLDER/in.jsonl/x: Not a directory (use another folder)"),
        (["FOLDER/in.jsonl", "--check", "--workers", "2"], "not a folder, which --workers and --on need"),
    ],
)
def test_a_wrong_folder_is_one_line(
    recorded: Path, tmp_path: Path, arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (recorded.parent / "empty").mkdir()
    code = main(["redact", *(each.replace("FOLDER", str(tmp_path)) for each in arguments)])
    assert code == (3 if "Not a directory" in error else 2)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert error.replace("FOLDER", str(tmp_path)) in printed.err
    assert printed.err.count("\n") == 1


def test_each_secret_has_its_rule_and_what_else_looks_random_has_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.jsonl"
    left = "k7lyv5ywDRdxfxNk0gzk8KkF0W4DsG"
    arguments = {"password": "swordfish", "session": left, "old": "[redacted:3f9c01ab]"}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "x", "arguments": arguments},
    }
    line = orjson.dumps({"t": 0.1, "from": "client", "msg": message})
    note = orjson.dumps({"t": 0.2, "note": "stderr", "text": f"license={left} PASSWORD=swordfish"})
    path.write_bytes(HEADER + line + b"\n" + line + b"\n" + note + b"\n")
    assert main(["redact", "--check", str(path), "--why"]) == 1
    printed = capsys.readouterr().out
    assert "swordfish" not in printed
    assert left not in printed
    rows = [" ".join(row.split()) for row in printed.splitlines()]
    assert "line 2 key /params/arguments/password value of a member with a secret name" in rows
    assert "line 2 before /params/arguments/old redacted when it was recorded" in rows
    assert "line 4 assigned /text value of a secret name in a text" in rows
    where = "/params/arguments/session redact it with --redact-key session"
    assert f"line 2 and 1 more 30 letters and digits {where}" in rows
    assert "line 4 30 letters and digits /text redact it with --redact-key license" in rows
    # The suggested options leave nothing to suggest.
    assert (
        main(["redact", "--check", str(path), "--why", "--redact-key", "session", "--redact-key", "license"])
        == 1
    )
    assert "looks random" not in capsys.readouterr().out


def test_the_option_why_is_for_one_file_and_also_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(HEADER + REPORT)
    assert main(["redact", "--check", str(path), "--why", "--format", "json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["random"] == []
    assert [(each["line"], each["rule"]) for each in printed["why"]] == [(2, "key"), (2, "key")]
    assert main(["redact", "--check", str(tmp_path), "--why"]) == 2
