"""The table of commands, and the behaviour that all commands share."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.extras import install_command
from mcpspy.ui.cli import ls
from mcpspy.ui.cli import main as cli_main
from mcpspy.ui.cli.main import COMMANDS, GROUPS, main, usage
from mcpspy.ui.cli.options import COMMAND, FOLDER, Argument, Switch
from tests.ui.cli.forking import Forking


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, forking: Forking) -> None:
    done = forking.run([command, "--help"])

    assert done.code == 0
    assert done.stdout.startswith(f"usage: mcpspy {command}".encode())
    assert b"mcpspy " in done.stdout.split(b"options:")[1]


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"]])
def test_the_help_names_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0

    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in COMMANDS)


def test_the_help_fits_80_columns_and_groups_every_command_once() -> None:
    assert max(map(len, usage().splitlines())) <= 80
    assert [name for names in GROUPS.values() for name in names] == [*COMMANDS]


@pytest.mark.parametrize(
    ("is_terminal", "term", "command"),
    [(True, "xterm", "tui"), (True, "dumb", "ls"), (False, "xterm", "ls")],
)
def test_a_folder_alone_opens_the_sessions_of_that_folder(
    is_terminal: bool, term: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    opened: list[object] = []

    def start(args: argparse.Namespace) -> int:
        opened.append(args.dir)
        return 0

    def module(path: str) -> SimpleNamespace:
        opened.append(path.rpartition(".")[2])
        return SimpleNamespace(EPILOG="", OPTIONS=(FOLDER,), main=start)

    monkeypatch.setattr(cli_main, "import_module", module)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: is_terminal, raising=False)

    assert main(["--dir", "x"]) == main(["--dir=x"]) == 0
    assert opened == [command, "x"] * 2


def test_a_command_that_is_none_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shwo"]) == 2
    assert capsys.readouterr().err == "mcpspy: unknown command shwo (did you mean show?)\n"


@pytest.mark.parametrize("arguments", [["--help"], ["ls"], ["show", "--help"]])
def test_no_other_command_pays_for_the_terminal_ui(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys; from mcpspy.ui.cli.main import main\n"
        f"try: main({[*arguments]!r})\n"
        "except SystemExit: pass\n"
        "sys.exit('textual' in sys.modules or 'aiohttp' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=30, env={"MCPSPY_DIR": str(tmp_path)}
    )

    assert done.returncode == 0


def test_without_a_terminal_mcpspy_alone_lists(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path))

    assert main([]) == 0
    assert "No session" in capsys.readouterr().out


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(args: object) -> int:
        raise error

    monkeypatch.setattr(
        cli_main, "import_module", lambda _: SimpleNamespace(EPILOG="", OPTIONS=ls.OPTIONS, main=fail)
    )


def test_an_error_is_one_line_with_its_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, CannotStart("x: no", "try y"))

    assert main(["ls"]) == 3
    assert capsys.readouterr().err == "mcpspy: x: no (try y)\n"


def test_a_bug_is_one_line_and_its_traceback_is_kept_private(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, ZeroDivisionError("oops"))

    assert main(["ls"]) == cli_main.BUG

    printed = capsys.readouterr().err
    log = Path(printed.rpartition(" ")[2].rstrip(")\n"))
    assert printed.startswith("mcpspy: a bug in mcpspy: ZeroDivisionError: oops (please report it with ")
    assert "Traceback" in log.read_text(encoding="utf-8")
    assert log.stat().st_mode & 0o777 == 0o600
    log.unlink()


def test_a_deleted_current_folder_is_named_in_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD" && exec "$@"'
    ls = [sys.executable, "-m", "mcpspy", "ls", "--dir", "recordings"]
    done = subprocess.run(["sh", "-c", script, "sh", *ls], capture_output=True, timeout=30, cwd=gone)

    assert done.returncode == 3
    assert done.stderr == b"mcpspy: the current folder was deleted (change to another one)\n"


def test_ctrl_c_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    raising(monkeypatch, KeyboardInterrupt())

    assert main(["ls"]) == 130
    assert capsys.readouterr().err == ""


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    show = f"{sys.executable} -m mcpspy --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", show], capture_output=True, timeout=30, cwd=tmp_path)

    assert done.stderr == b""
    assert done.stdout.strip() in (b"0", b"141")


def test_words_after_two_dashes_are_the_server_command_and_not_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got: list[object] = []

    def start(args: argparse.Namespace) -> int:
        got.append((args.what, args.command, args.fast))
        return 0

    options = (
        Argument("what", "WHAT", ""),
        Argument("command", COMMAND, "", nargs="*"),
        Switch("--fast", ""),
    )
    module = SimpleNamespace(EPILOG="", OPTIONS=options, main=start)
    monkeypatch.setattr(cli_main, "import_module", lambda _: module)

    assert main(["ls", "x", "--fast", "--", "cmd", "--fast", "--", "-x"]) == 0
    assert main(["ls", "x"]) == 0
    assert got == [("x", ["cmd", "--fast", "--", "-x"], True), ("x", [], False)]


def test_a_bug_is_one_line_even_if_its_traceback_cannot_be_saved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    raising(monkeypatch, ZeroDivisionError("oops"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))

    assert main(["ls"]) == cli_main.BUG
    assert capsys.readouterr().err == (
        "mcpspy: a bug in mcpspy: ZeroDivisionError: oops (its traceback could not be saved)\n"
    )


def test_a_package_that_is_not_installed_is_reported_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, ModuleNotFoundError("No module named 'orjson'", name="orjson"))

    assert main(["ls"]) == 3
    assert capsys.readouterr().err == f"mcpspy: the package orjson is not installed ({install_command()})\n"
