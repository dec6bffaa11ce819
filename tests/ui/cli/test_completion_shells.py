"""Completion in real shells, interactive and in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.ui.cli.completion import SHELLS
from tests.ui.cli.shells import Shell

COMPLETIONS = {
    "mcpspy compl": "mcpspy completion",
    "mcpspy show --foll": "mcpspy show --follow",
    "mcpspy show weath": "mcpspy show weather-dev",
    "mcpspy diff last weath": "mcpspy diff last weather-dev",
    "mcpspy wrap claude-d": "mcpspy wrap claude-desktop",
    "mcpspy unwrap winds": "mcpspy unwrap windsurf",
    "mcpspy lint --select REC1": "mcpspy lint --select REC101",
    "mcpspy lint --ignore LIFE,SEC10": "mcpspy lint --ignore LIFE,SEC101",
    "mcpspy export --format merm": "mcpspy export --format mermaid",
    "mcpspy show -q is:refu": "mcpspy show -q is:refused",
}
"""Line before and after a tab."""


@pytest.mark.parametrize("shell_name", SHELLS)
def test_a_shell_completes_commands_options_and_values(shell_name: str, tmp_path: Path) -> None:
    target = RecordingTarget()
    target.folder = str(tmp_path / "sessions")
    Recorder(target, {"transport": "stdio", "command": ["x"], "name": "weather-dev"}).finish(0, None)
    shell = Shell(shell_name, tmp_path / "home", MCPSPY_DIR=target.folder)
    try:
        for line, completed in COMPLETIONS.items():
            shell.completes(line, completed)
        shell.completes("mcpspy show ", "last", "weather-dev", tabs=2)
        shell.completes("mcpspy lint --format ", "sarif", "junit", "github", tabs=2)
    finally:
        shell.kill()
