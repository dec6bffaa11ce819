"""What is offered, asked for as shells ask: through the real bash, and by the protocol of zsh and fish."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.io.recording.recorder import Recorder, RecordingTarget

BIN = Path(sys.executable).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of sessions, with one in it."""
    where = RecordingTarget()
    where.folder = str(tmp_path / "sessions")
    Recorder(where, {"transport": "stdio", "command": ["x"], "name": "weather"}).finish(0, None)
    return tmp_path / "sessions"


def completed(line: str, folder: Path, shell: str = "zsh") -> list[str]:
    """Return what mcpspy offers at the end of the line."""
    answer = folder.with_name("answer")
    answer.write_text("", encoding="utf-8")
    subprocess.run(
        [BIN / "mcpspy"],
        env={
            "MCPSPY_DIR": str(folder),
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_SHELL": shell,
            "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
            "IFS": "\v",
        },
        stderr=subprocess.DEVNULL,
        timeout=30,
    )
    return [word for word in answer.read_text(encoding="utf-8").split("\v") if word]


def in_bash(line: str, folder: Path) -> list[str]:
    """Return what a real bash, told by us how, would offer."""
    script = f"""
        eval "$(mcpspy completion bash)"
        COMP_LINE={line!r} COMP_POINT={len(line)} COMP_TYPE=9 COMP_WORDS=({line})
        how=$(complete -p mcpspy)
        ${{how##*-F }}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    env = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "MCPSPY_DIR": str(folder)}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, timeout=30)
    return done.stdout.split()


def test_bash_completes_commands_and_sessions(folder: Path) -> None:
    assert in_bash("mcpspy com", folder) == ["completion"]
    (session,) = folder.glob("*.jsonl")
    assert in_bash("mcpspy show ", folder) == ["last", session.stem.rpartition("-")[2]]


def test_options_their_values_and_names_of_sessions_are_offered(folder: Path) -> None:
    assert completed("mcpspy show --fo", folder) == ["--follow:go on as the session does, to its end"]
    assert "sarif" in [word.partition(":")[0] for word in completed("mcpspy lint --format ", folder)]
    last, completions = completed("mcpspy diff ", folder)
    assert last.startswith("last")
    assert ":weather " in completions


def test_nothing_is_completed_after_two_dashes(folder: Path) -> None:
    assert completed("mcpspy run -- pyth", folder) == []


def test_a_folder_that_is_none_offers_no_traceback(folder: Path) -> None:
    assert completed("mcpspy show --dir /nowhere/at/all ", folder) == ["last:the newest session"]
