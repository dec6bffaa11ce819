"""`mcpspy demo`: record a real session in five seconds, and show it."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys

from mcpspy.core.recording.origin import DEMO
from mcpspy.errors import CannotStart
from mcpspy.io.hosts.configuration import command_line
from mcpspy.io.recording.catalog import sessions
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.cli.main import main as mcpspy
from mcpspy.ui.cli.options import FOLDER, Switch
from mcpspy.ui.cli.parser import suggested_folder
from mcpspy.ui.demo.client import converse

EPILOG = """\
Starts a bundled weather server as a host would, wrapped by mcpspy:
  mcpspy run --name weather -- python -m mcpspy.ui.demo.weather
sends it requests, and opens the recording (without a terminal, prints it).
"""

NEXT = (
    ("show {id} -v{folder}", "print the session with message bodies"),
    ("tui{folder}", "browse all sessions in the terminal UI, including live ones"),
    ("run{folder} -- COMMAND …", "use this in your host's config in place of COMMAND, your server"),
)


OPTIONS = (
    FOLDER,
    Switch("--plain", "print the session instead of opening the terminal UI"),
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    folder = sessions_folder(args.dir)
    server = [sys.executable, "-m", "mcpspy.ui.demo.weather"]
    options = ["--name", "weather", "--origin", DEMO, "--dir", folder]
    run = [sys.executable, "-m", "mcpspy", "run", *options, "--", *server]
    earlier = {summary.path for summary in sessions(folder)}
    code = converse(run)
    recorded = next((summary for summary in sessions(folder) if summary.path not in earlier), None)
    if recorded is None:
        raise CannotStart(
            f"demo: no session was recorded in {folder}",
            "name a folder that can be written with --dir FOLDER",
        )
    path = str(recorded.path)
    is_interactive = sys.stdout.isatty() and sys.stdin.isatty() and not args.plain
    show_code = mcpspy(["tui", path] if is_interactive else ["show", path])
    sys.stdout.write(f"\nRecorded to {path}. Next:\n")
    program, names = _program(), {"id": recorded.header.id, "folder": suggested_folder(args)}
    commands = [f"{program} {words.format(**names)}" for words, _ in NEXT]
    for command, (_, text) in zip(commands, NEXT, strict=True):
        sys.stdout.write(f"  {command:{max(map(len, commands))}}  {text}\n")
    sys.stdout.write("In the terminal UI, press > to replay it, < to serve it.\n")
    return show_code or code


def _program() -> str:
    """Return the shortest command that starts this mcpspy."""
    if shutil.which("mcpspy"):
        return "mcpspy"
    path, *more = command_line()
    try:
        near = os.path.relpath(path)
    except ValueError:  # It is on another drive (Windows).
        near = path
    if os.path.basename(near) == near:
        near = os.path.join(".", near)
    return shlex.join([min(near, path, key=len), *more])
