"""`mcpspy demo`: record a real session in five seconds, and show it."""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from mcpspy.io.recording.reader import sessions
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.cli.main import main as mcpspy
from mcpspy.ui.cli.options import FOLDER, describe
from mcpspy.ui.demo.client import converse

EPILOG = """\
Starts a bundled weather server the way a host would, with mcpspy in between:
  mcpspy run --name weather -- python -m mcpspy.ui.demo.weather
talks to it, and opens the recording (or prints it, where there is no terminal).
"""

NEXT = (
    ("show {id} -v", "the same, with every message's body"),
    ("", "every session in the terminal UI, live ones as they happen"),
    ("run -- COMMAND …", "in your host's config, where COMMAND stands now: your own server"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    describe(parser, {**FOLDER, "--plain": (None, "print the session; do not open the terminal UI")})


def main(args: argparse.Namespace) -> int:
    folder = sessions_folder(args.dir)
    server = [sys.executable, "-m", "mcpspy.ui.demo.weather"]
    run = [sys.executable, "-m", "mcpspy", "run", "--name", "weather", "--dir", folder, "--", *server]
    code = converse(run)
    recorded = next(summary for summary in sessions(folder) if summary.header.name == "weather")
    path = str(recorded.path)
    screen = sys.stdout.isatty() and sys.stdin.isatty() and not args.plain
    shown = mcpspy(["tui", path] if screen else ["show", path])
    sys.stdout.write(f"\nRecorded to {path}. Next:\n")
    program = _program()
    for words, text in NEXT:
        command = f"{program} {words.format(id=recorded.header.id)}"
        sys.stdout.write(f"  {command:{len(program) + 18}} {text}\n")
    return shown or code


def _program() -> str:
    """Return the shortest command that starts mcpspy here."""
    return "mcpspy" if shutil.which("mcpspy") else os.path.relpath(sys.argv[0])
