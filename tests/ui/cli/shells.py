"""Interactive shells in a terminal, set up for completion as docs/completion.md describes."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent

PATIENCE = 60
"""Seconds that a shell may take to start or to complete."""

SET_UP = {
    "bash": (".bashrc", "PS1='ready> '\neval \"$(mcpspy completion bash)\"\n"),
    "zsh": (
        ".zshrc",
        "PS1='ready> '\nautoload -Uz compinit && compinit -u\neval \"$(mcpspy completion zsh)\"\n",
    ),
    "fish": (".config/fish/config.fish", "function fish_prompt; echo 'ready> '; end\nset -g fish_greeting\n"),
}
"""Shell: its file of settings, and the lines in it."""

_NUMBERS = itertools.count()


class Shell:
    """A shell in tmux, with its own home folder."""

    def __init__(self, name: str, home: Path, **variables: str) -> None:
        for program in (name, "tmux"):
            if shutil.which(program) is None:
                pytest.fail(
                    f"this test needs {program}: sh tests/peers/install.sh installs it", pytrace=False
                )
        path, text = SET_UP[name]
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text, encoding="utf-8")
        environment = {
            "HOME": str(home),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            **variables,
        }
        self._tmux = ["tmux", "-L", f"mcpspy-shell-{os.getpid()}-{next(_NUMBERS)}", "-f", os.devnull]
        words = [
            "env",
            "-u",
            "XDG_CONFIG_HOME",
            "-u",
            "ZDOTDIR",
            *(f"{k}={v}" for k, v in environment.items()),
        ]
        if name == "fish":
            folder = home / ".config" / "fish" / "completions"
            folder.mkdir(parents=True)
            code = subprocess.run(
                [BIN / "mcpspy", "completion", "fish"], capture_output=True, check=True, timeout=60
            )
            (folder / "mcpspy.fish").write_bytes(code.stdout)
        self._run("new-session", "-d", "-x", "150", "-y", "50", shlex.join([*words, name, "-i"]))
        self._until(lambda screen: "ready>" in screen, "no prompt")

    def completes(self, line: str, *expected: str, tabs: int = 1) -> None:
        """Type a line and press tab; wait until all of these texts are on the screen, and clear it."""
        self._run("send-keys", "-l", line)
        self._until(lambda screen: line.strip() in screen, f"{line} was not typed")
        for _ in range(tabs):
            self._run("send-keys", "Tab")
        self._until(lambda screen: all(text in screen for text in expected), f"{line}: expected {expected}")
        self._until(lambda screen: self._is_cleared(screen, line), "the screen was not cleared")

    def _is_cleared(self, screen: str, line: str) -> bool:
        """Press the keys that clear the line and the screen; a shell that still completes ignores them."""
        is_cleared = line.strip() not in screen
        if not is_cleared:
            self._run("send-keys", "C-u", "C-l")
        return is_cleared

    def kill(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=60, check=False)

    def _until(self, is_done: Callable[[str], bool], problem: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_done(screen := self._run("capture-pane", "-p")):
            assert time.monotonic() < deadline, f"{problem}\n{screen}"
            time.sleep(0.05)

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, timeout=60, check=True)
        return done.stdout.decode()
