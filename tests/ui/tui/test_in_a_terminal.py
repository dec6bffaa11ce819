"""The real program in a real terminal, with a recording that grows."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Make = Callable[..., Path]

BOUND = 20.0
"""Maximum seconds to wait for a text."""

_NUMBERS = itertools.count()
"""Numbers for one tmux server per test: a killed server takes a while to exit and refuses new sessions."""

SIZES = [(80, 24), (200, 50)]


class Tmux:
    """A terminal that lasts as long as the test."""

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        program = shutil.which("tmux")
        if program is None:
            pytest.fail("this test needs tmux (apt-get install tmux, or brew install tmux)", pytrace=False)
        self._folder = folder
        self.width, self.height = size
        self._tmux = [program, "-L", f"mcpspy-{os.getpid()}-{next(_NUMBERS)}", "-f", os.devnull]

    def start(self, *arguments: str, **variables: str) -> None:
        """Start mcpspy; print its exit code after it ends and keep the terminal open."""
        settings = {"MCPSPY_DIR": str(self._folder), "PYTHONPATH": os.getcwd(), **variables}
        words = " ".join(f"'{name}={value}'" for name, value in settings.items())
        unset = " ".join(f"-u {name}" for name in ("COLUMNS", "LINES", "NO_COLOR", "TEXTUAL_THEME"))
        command = (
            f"env {unset} {words} '{sys.executable}' -m mcpspy tui {' '.join(arguments)}; "
            f'echo "exit code $?"; exec sleep 1000'
        )
        self._run(
            *("new-session", "-d", "-s", "mcpspy", "-x", str(self.width), "-y", str(self.height)), command
        )

    def press(self, *keys: str) -> None:
        """Press keys, named as in tmux."""
        self._run("send-keys", "-t", "mcpspy", *keys)

    @property
    def text(self) -> str:
        """The text in the terminal."""
        return self._run("capture-pane", "-p", "-t", "mcpspy")

    def shows(self, *texts: str) -> str:
        """Wait until these texts are in the terminal."""
        return self.until(lambda shown: all(text in shown for text in texts), f"{texts}")

    def until(self, condition: Callable[[str], object], what: str) -> str:
        """Wait until the text in the terminal meets a condition."""
        deadline = time.monotonic() + BOUND
        while not condition(shown := self.text):
            if time.monotonic() > deadline:
                pytest.fail(f"timeout: {what}\n{shown}")
        return shown

    def kill(self) -> None:
        """Kill the terminal and all its processes."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=60, check=False)

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, timeout=60, check=True)
        return done.stdout.decode()


@pytest.fixture(params=SIZES, ids=["80x24", "200x50"])
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tmux]:
    tmux = Tmux(tmp_path, request.param)
    yield tmux
    tmux.kill()


def test_a_session_that_grows_is_followed_paused_and_left(terminal: Tmux, live: Any) -> None:
    live.calls(1, 30)
    terminal.start()
    terminal.shows("mcpspy · sessions", "●")
    terminal.press("Enter")
    terminal.shows("30/30  following", "● LIVE", "request tools/call")
    terminal.press("v")
    terminal.shows("60/60  following", "one row per message", "response tools/call")
    live.calls(31, 40)
    terminal.shows("80/80  following")
    terminal.press("k")
    terminal.shows("79/80", "paused")
    live.calls(41, 45)
    terminal.shows("paused, +10 new (End)")
    terminal.press("End")
    terminal.shows("90/90  following")
    live.say("server", b"\x1b]0;owned\x07 [red]not json[/red]")
    terminal.shows("\\x1b]0;owned\\x07 [red]not json[/red]")
    live.end()
    terminal.shows("ended: exit 0", "1 protocol issue")
    terminal.press("?")
    terminal.shows("toggle filter")
    terminal.press("q")
    terminal.until(lambda shown: "toggle filter" not in shown, "the end of the help")
    terminal.press("q")
    terminal.shows("mcpspy · sessions", "○")
    terminal.press("q")
    shown = terminal.shows("exit code 0")
    assert "mcpspy · sessions" not in shown


def test_the_panes_are_side_by_side_if_the_terminal_is_wide(terminal: Tmux, make_recording: Make) -> None:
    path = make_recording()
    terminal.start(f"'{path}'")
    terminal.shows("request initialize", "ended: exit 0")

    def is_beside(shown: str) -> bool:
        return any("latency" in line and "[1 pretty]" in line for line in shown.splitlines())

    terminal.until(lambda shown: is_beside(shown) is (terminal.width >= 110), "the layout")


def test_no_color_sends_no_colour_to_the_terminal(terminal: Tmux, make_recording: Make) -> None:
    path = make_recording()
    terminal.start(f"'{path}'", NO_COLOR="1")
    terminal.shows("ended: exit 0")
    coloured = terminal._run("capture-pane", "-p", "-e", "-t", "mcpspy")

    assert not any(f"\x1b[{code}" in coloured for code in ("38;", "48;", *range(30, 38), *range(40, 48)))
    assert "\x1b[7m" in coloured or ";7m" in coloured


def test_an_internal_error_restores_the_terminal_and_prints_one_line(
    terminal: Tmux, make_recording: Make
) -> None:
    path = make_recording()
    broken = path.parent / "sitecustomize.py"
    broken.write_text(
        "import sys\n"
        "class Break:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'mcpspy.ui.tui.app':\n"
        "            sys.meta_path.remove(self)\n"
        "            from mcpspy.ui.tui.session.message_list import MessageList\n"
        "            def cells(*_):\n"
        "                secret = 'token-of-a-user'\n"
        "                raise ZeroDivisionError('on purpose')\n"
        "            MessageList.cells = cells\n"
        "sys.meta_path.insert(0, Break())\n",
        encoding="utf-8",
    )
    terminal.start(f"'{path}'", PYTHONPATH=f"{path.parent}{os.pathsep}{os.getcwd()}", TMPDIR=str(path.parent))
    shown = terminal.shows("exit code 70")

    assert "a bug in mcpspy: ZeroDivisionError: on purpose" in shown.replace("\n", "")
    assert "token-of-a-user" not in shown
    assert "Traceback" not in shown
    (log,) = path.parent.glob("mcpspy-*.log")
    kept = log.read_text(encoding="utf-8")
    assert "ZeroDivisionError" in kept
    assert "token-of-a-user" not in kept
