"""`mcpspy tui`: errors before the screen opens."""

from __future__ import annotations

import os
import select
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.io.control import client
from mcpspy.io.control.client import LiveSession
from mcpspy.ui.cli import tui
from mcpspy.ui.cli.main import main

Make = Callable[..., Path]


class Terminal:
    """A stream that claims to be a terminal."""

    def __init__(self, stream: object) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return True

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def sit_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the streams terminals. Not a fixture: pytest replaces the streams in each phase."""
    monkeypatch.setenv("TERM", "xterm")
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal(getattr(sys, name)))


@pytest.mark.parametrize("arguments", [[], ["last"]])
def test_without_a_terminal_the_error_suggests_show(
    arguments: list[str],
    make_recording: Make,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_recording()
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path))

    assert main(["tui", *arguments]) == 3
    assert capsys.readouterr().err == "mcpspy: tui needs a terminal (use mcpspy show to print a session)\n"


def test_a_dumb_terminal_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sit_at_a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")

    assert main(["tui", "--dir", str(tmp_path)]) == 3
    assert "needs a terminal" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_reported_before_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.jsonl"

    assert main(["tui", str(missing)]) == 2
    assert capsys.readouterr().err == f"mcpspy: {missing}: no such file (mcpspy ls lists the sessions)\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "weather",
            "tui: no session weather in {}; 1 live session in another folder: use --dir /elsewhere",
        ),
        ("0bad", "tui: no session 0bad in {}; 1 live session in another folder: use --dir /elsewhere"),
        ("last", "tui: no session in {}; 1 live session in another folder: use --dir /elsewhere"),
    ],
)
def test_a_live_session_of_another_folder_is_named(
    name: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    live = LiveSession("x.sock", {"session": "0badcafe", "name": "weather", "folder": "/elsewhere"})
    monkeypatch.setattr(client, "live_sessions", lambda: [live])

    assert main(["tui", name, "--dir", str(tmp_path)]) == 3
    assert capsys.readouterr().err == f"mcpspy: {message.format(tmp_path)}\n"
    assert main(["tui", "clock", "--dir", str(tmp_path)]) == 2
    assert "no sessions in" in capsys.readouterr().err


def test_a_file_that_is_not_a_recording_is_reported_before_the_screen_opens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("{}\n", encoding="utf-8")

    assert main(["tui", str(other)]) == 2
    assert "not an mcpspy recording" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root can read every file")
def test_a_file_that_may_not_be_read_is_reported_before_the_screen(
    make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_recording()
    path.chmod(0)

    assert main(["tui", str(path)]) == 3
    assert "Permission denied" in capsys.readouterr().err


def test_a_screen_that_is_left_is_fine(make_recording: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpspy.ui.tui.app import McpspyApp

    sit_at_a_terminal(monkeypatch)
    monkeypatch.setattr(McpspyApp, "run", lambda _: None)

    assert main(["tui", str(make_recording())]) == 0


def test_a_bug_is_one_line_and_its_traceback_is_kept_for_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mcpspy.ui.tui.app import McpspyApp

    def run(app: McpspyApp) -> None:
        app.fault = KeyError("a\n\x1b[2Jb")

    sit_at_a_terminal(monkeypatch)
    monkeypatch.setattr(McpspyApp, "run", run)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert main(["tui", "--dir", str(tmp_path)]) == 70
    printed = capsys.readouterr().err
    assert printed.startswith("mcpspy: a bug in mcpspy: KeyError: 'a")
    assert printed.count("\n") == 1
    assert "\x1b" not in printed
    (log,) = tmp_path.glob("mcpspy-*.log")
    assert "KeyError" in log.read_text(encoding="utf-8")
    if sys.platform != "win32":
        assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "arguments", [["--help"], ["tui", "--help"], ["ls"], ["show", "PATH"], ["run", "--help"], ["tui"]]
)
def test_textual_is_imported_by_nothing_but_the_screen(make_recording: Make, arguments: list[str]) -> None:
    path = make_recording()
    code = (
        "import sys\nfrom mcpspy.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "assert not {'textual', 'rich', 'mcpspy.ui.tui'} & set(sys.modules), sorted(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *(str(path) if word == "PATH" else word for word in arguments)],
        env={**os.environ, "MCPSPY_DIR": str(path.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr.decode()


def test_the_examples_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["tui", "--help"])

    shown = capsys.readouterr().out
    assert tui.EPILOG in shown
    assert "--dir" in shown


@pytest.mark.parametrize(("arguments", "is_used"), [([], True), (["--no-cache"], False)])
def test_the_index_of_a_large_session_is_cached_unless_the_user_declines(
    arguments: list[str], is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcpspy.ui.tui.app import McpspyApp

    sit_at_a_terminal(monkeypatch)
    seen: list[bool] = []
    monkeypatch.setattr(McpspyApp, "run", lambda app: seen.append(app.uses_cache))
    assert main(["tui", "--dir", str(tmp_path), *arguments]) == 0
    assert seen == [is_used]


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are devices on POSIX")
def test_it_ends_when_its_terminal_is_closed_without_a_signal(tmp_path: Path) -> None:
    ours, terminal = os.openpty()
    command = [sys.executable, "-m", "mcpspy", "tui", "--dir", str(tmp_path)]
    # In its own session without a controlling terminal, no SIGHUP arrives.
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    ) as tui:
        os.close(terminal)
        shown = b""
        while b"sessions" not in shown:
            assert select.select([ours], [], [], 30)[0]
            shown += os.read(ours, 65_536)
        os.close(ours)
        try:
            assert tui.wait(30) == 129
        finally:
            tui.kill()


def test_a_run_that_does_not_exist_is_an_error_before_the_screen_opens(
    make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_recording()
    assert main(["tui", "run:last", "--dir", str(tmp_path)]) == 2
    assert "run:last: no run has this id (mcpspy runs lists them)" in capsys.readouterr().err
