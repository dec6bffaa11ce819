"""`mcpspy scripts`: the list, a skeleton whose test passes, and the module for vitest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.scripts import builtin_names
from mcpspy.ui.cli import run
from mcpspy.ui.cli.main import main, parse


def test_the_list_has_every_script_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scripts"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[::2] == [f"builtin:{name}" for name in builtin_names()]
    assert all("Options: " in line for line in lines[1::2])


def test_the_skeleton_is_typed_and_its_test_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["scripts", "new", "guard"]) == 0

    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_the_module_for_vitest_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["scripts", "vitest"]) == 0

    assert "export function recorded(file, " in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["new"], "missing NAME"),
        (["new", "a-b"], "a-b: not a name"),
        (["new", "taken"], r"taken\.py exists"),
        (["list", "x"], "NAME requires new"),
    ],
)
def test_wrong_names_are_refused(
    arguments: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.py").touch()

    def start() -> None:
        module, args = parse("scripts", arguments)
        module.main(args)

    with pytest.raises(UsageError, match=why):
        start()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--script", "nothing.py"], "--script nothing.py: No such file or directory"),
        (["--script", "builtin:x"], "--script builtin:x: no such script"),
        (["--script-option", "a=1"], "--script-option requires --script"),
        (["--script-option", "a"], "--script-option a: not NAME=VALUE"),
        (["--script-timeout", "x=1"], "--script-timeout x=1: no such hook"),
        (["--script-timeout", "soon"], "--script-timeout soon: not a duration"),
    ],
)
@pytest.mark.parametrize("command", ["run", "http"])
def test_wrong_options_are_refused_before_anything_starts(
    options: list[str], why: str, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if command == "run":
        code = run.main([*options, "--", "nothing-like-it"])
    else:
        code = main(["http", "--upstream", "http://127.0.0.1:9/", *options])

    assert code in (2, 3)
    assert f"mcpspy: {command}: {why}" in capfd.readouterr().err


def test_the_forward_proxy_refuses_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["http", "--forward", "--script", "x.py"]) == 2
    assert "--script requires --upstream" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="the folder in use cannot be deleted")
def test_a_skeleton_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder := tmp_path / "gone").mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()

    assert main(["scripts", "new", "guard"]) == 3
    assert capsys.readouterr() == (
        "",
        "mcpspy: scripts new: guard.py: No such file or directory (check the folder)\n",
    )
