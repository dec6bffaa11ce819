"""`mcpspy stats`: from the file to the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from mcpspy.core.recording import encode
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.cli import stats
from mcpspy.ui.cli.main import main

Make = Callable[..., Path]

RECORDINGS = Path(__file__).parents[3] / "recordings"


def test_one_session_is_reported_and_several_are_compared(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_recording(name="before")
    make_recording(name="after")

    assert main(["stats", "before", "--dir", str(tmp_path)]) == 0
    one = capsys.readouterr().out
    assert main(["stats", "before", "after", "before", "--dir", str(tmp_path)]) == 0
    both = capsys.readouterr().out

    assert "requests    → 2: 1 ok, 1 error" in one
    assert "1 malformed" in one
    assert "\x1b" not in one
    assert [line.split()[0] for line in both.splitlines()[1:3]] == ["before", "after"]
    assert "  after      1   1" in both


def test_a_folder_means_all_recordings_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(RECORDINGS), "--format", "json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert {Path(each["path"]).name for each in found} == {path.name for path in RECORDINGS.glob("*.jsonl")}
    assert [each["started"] for each in found] == sorted(each["started"] for each in found)
    assert main(["stats", str(tmp_path)]) == 2
    assert "this folder contains no recordings" in capsys.readouterr().err


def test_a_filter_an_order_and_a_number_of_rows_are_obeyed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(RECORDINGS / "everything-sdk-legacy.jsonl")

    main(["stats", path, "-q", "method:tools/call -tool:get-*", "--sort", "count", "--top", "3"])
    lines = capsys.readouterr().out.splitlines()

    head = next(place for place, line in enumerate(lines) if line.startswith("→ requests"))
    counts = [int(line.split()[1]) for line in lines[head + 2 : head + 5]]
    assert lines[head + 1].startswith("tools/call")
    assert counts == sorted(counts, reverse=True)
    assert lines[head + 5].startswith("  and ")
    assert not any("get-sum" in line for line in lines)
    assert len(lines[lines.index("largest messages") + 1 :]) == 3


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--filter", "tool:a ("], "stats: --filter, character 8"),
        (["nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["--sort", "shoe-size"], "stats: --sort shoe-size: not one of time, "),
        (["--top=-1"], "stats: --top -1: not a count"),
        (["--top", "many"], "stats: --top many: not a count"),
    ],
)
def test_invalid_arguments_are_reported(
    arguments: list[str],
    printed: str,
    capsys: pytest.CaptureFixture[str],
    make_recording: Make,
    tmp_path: Path,
) -> None:
    make_recording()
    assert main(["stats", *arguments, "--dir", str(tmp_path)]) == 2
    assert printed in capsys.readouterr().err


def test_an_incomplete_last_line_is_reported(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording(torn=b'{"t":2.0,"fr', exit_code=None)

    assert main(["stats", str(path)]) == 0
    found = capsys.readouterr()
    assert "incomplete last line skipped (12 bytes)" in found.err
    assert "died: no exit note" in found.out


def test_a_live_session_is_reported_as_far_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields: dict[str, encode.Value] = {"transport": "stdio", "command": ["x"], "name": "tested"}
    writer = Writer(str(tmp_path), None, fields, say=pytest.fail)
    writer.write(b'{"t":1.0,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}\n')
    try:
        main(["stats", writer.path])
        while_it_lives = capsys.readouterr().out
    finally:
        writer.close()
    main(["stats", writer.path])
    died = capsys.readouterr().out

    assert "live: numbers so far" in while_it_lives
    assert "requests    → 1: 1 pending" in while_it_lives
    assert "pending: ping, id 1" in while_it_lives
    assert "requests    → 1: 1 no answer" in died


class Terminal(StringIO):
    """A stdout that claims to be a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [80, 140])
def test_on_a_terminal_lines_fit_and_colour_is_as_wanted(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    shown = []
    for no_colour in ("", "1"):
        monkeypatch.setenv("NO_COLOR", no_colour)
        monkeypatch.setattr(sys, "stdout", terminal := Terminal())
        assert main(["stats", str(RECORDINGS / "peer-sdk-auto.jsonl")]) == 0
        shown.append(terminal.getvalue())

    coloured, plain = shown
    assert "\x1b[2m" in coloured
    assert "\x1b" not in plain
    assert columns - 8 < max(map(len, plain.splitlines())) <= columns


def test_a_terminal_that_knows_no_blocks_gets_ascii() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mcpspy", "stats", str(RECORDINGS / "peer-sdk-auto.jsonl")],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    assert b"####" in done.stdout
    assert b"\\u" not in done.stdout


def test_the_help_names_every_order(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["stats", "--help"])
    printed = capsys.readouterr().out

    assert all(name in printed for name in ("p95", "sent", "back", "--top N", "exit codes"))
    assert stats.EPILOG in printed


def test_a_pattern_that_re2_cannot_run_is_an_error_and_with_the_option_a_warning(
    make_recording: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["stats", str(make_recording()), "-q", 'x /echo(?=")/']

    assert main(words) == 2
    refused = capfd.readouterr().err
    assert main([*words, "--unsafe-regex"]) == 0
    ran = capfd.readouterr()

    assert refused == (
        "mcpspy: stats: --filter, character 8: look-ahead (?= is not supported (rewrite the pattern, or use"
        " --unsafe-regex) (see docs/filter.md)\n"
    )
    assert ran.err == (
        "mcpspy: warning: /echo(?=\")/: look-ahead (?= runs on Python's re, which may never end\n"
    )
