"""Mistakes of new users: each message has the error and the next step."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from mcpspy.errors import NOT_EXECUTABLE, NOT_FOUND
from mcpspy.io.stdio.process import explain
from mcpspy.ui.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--name", "x", "run", "--", "true"],
            "unknown option --name (options follow the command: mcpspy run --name …)",
        ),
        (["lst"], "unknown command lst (did you mean ls?)"),
        (["record"], "unknown command record (use mcpspy run -- COMMAND)"),
        (["list"], "unknown command list (use mcpspy ls)"),
        (["proxy", "http://127.0.0.1:9"], "unknown command proxy (use mcpspy http --upstream URL)"),
        (["no-such-word"], "unknown command no-such-word (see mcpspy --help)"),
        (
            [sys.executable, "x.py"],
            f"unknown command {sys.executable} (to record a server: mcpspy run -- {sys.executable} …)",
        ),
        (["run", "--nam", "x", "--", "true"], "run: unknown option --nam (did you mean --name?)"),
        (["http"], "http: missing --upstream or --forward (see mcpspy http --help)"),
        (
            ["http", "http://127.0.0.1:9"],
            "http: missing --upstream or --forward (write --upstream before the URL)",
        ),
        (["exec"], "exec: missing COMMAND (use mcpspy exec -- COMMAND ARGS…)"),
        (
            ["exec", "python3", "-c", "pass"],
            "exec: unknown option -c (put -- before COMMAND; see mcpspy exec --help)",
        ),
        (
            ["bridge", "localhost:9"],
            "bridge: missing --upstream or --upstream-env (write --upstream before the URL)",
        ),
        (["wrap", "qqq"], "qqq: no such host or file (mcpspy hosts --all lists the hosts)"),
        (["wrap"], "wrap: missing HOST|FILE (see mcpspy wrap --help)"),
        (["send"], "send: missing SESSION and METHOD (use mcpspy send last tools/list)"),
        (["mock"], "mock: missing RECORDING (see mcpspy mock --help)"),
    ],
)
def test_a_wrong_command_line_gets_the_next_step(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path))

    assert main(arguments) == 2
    assert capsys.readouterr().err == f"mcpspy: {message}\n"


def test_a_command_quoted_with_its_arguments_is_reported() -> None:
    code, text = explain(FileNotFoundError(errno.ENOENT, ""), "npx -y server")

    assert code == NOT_FOUND
    assert text.endswith(
        "not found on PATH (the name contains spaces: do not quote the command and its arguments together)"
    )


def test_a_folder_in_place_of_a_program_is_reported(tmp_path: Path) -> None:
    code, text = explain(PermissionError(errno.EACCES, ""), str(tmp_path))

    assert code == NOT_EXECUTABLE
    assert text == f"cannot start {tmp_path}: a directory (name a program in it)"


def test_a_demo_without_a_recording_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mcpspy.ui.cli.demo.converse", lambda _: 0)

    assert main(["demo", "--plain", "--dir", str(tmp_path)]) == 3
    assert capsys.readouterr().err == (
        f"mcpspy: demo: no session was recorded in {tmp_path} "
        "(name a folder that can be written with --dir FOLDER)\n"
    )
