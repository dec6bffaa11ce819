"""What could stand at the cursor, for a shell that asks.

Owns which words of a command line are sessions and which are nobody's business
of ours: behind `--` a command of its own begins. Never fails: a shell that asks
wants words, and no traceback.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from importlib import import_module

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.lexers import split_line

from mcpspy.errors import McpspyError
from mcpspy.io.store import sessions
from mcpspy.ui.cli.table import COMMANDS, described

SESSIONS = frozenset({"session", "sessions", "recording", "recordings", "old", "new"})
"""What arguments that name a session are called in the parsers."""

MOST = 50
"""Sessions that are offered: the latest."""


def complete() -> int:
    """Answer the shell, as the environment says; return the exit code."""
    words = _words()
    if "--" in words[:-1]:
        # The server's command line: the shell completes files by itself if we say nothing.
        return 1
    argcomplete.autocomplete(_parser(words), append_space=False, always_complete_options=False)
    return 0  # Only if the environment was no shell's: autocomplete leaves by itself.


def _words() -> list[str]:
    """Return the words up to the cursor, the last one as far as it is typed."""
    line = os.environ.get("COMP_LINE", "")
    try:
        _, _, prefix, words, _ = split_line(line, int(os.environ.get("COMP_POINT", len(line))))
    except ValueError:
        return [""]
    return [*words[1:], prefix]


def _parser(words: list[str]) -> argparse.ArgumentParser:
    """Return a parser of every command, of which the one that is typed knows its options."""
    parser = argparse.ArgumentParser(prog="mcpspy", allow_abbrev=False)
    parser.add_argument("--version", action="store_true")
    commands = parser.add_subparsers()
    typed = words[0] if len(words) > 1 else None
    for name, (path, text) in COMMANDS.items():
        if name != typed:
            commands.add_parser(name, help=text)
            continue
        module = import_module(path)
        command = commands.add_parser(name, help=text, **described(name, module))
        module.configure(command)
        for action in command._actions:
            if action.dest in SESSIONS:
                action.completer = _sessions  # type: ignore[attr-defined]  # What argcomplete looks for.
    return parser


def _sessions(prefix: str, parsed_args: argparse.Namespace, **_: object) -> Iterable[str]:
    """Return the ids of the latest sessions, each with its name; files if a path is begun."""
    if os.sep in prefix or prefix.startswith((".", "~")):
        return FilesCompleter(("jsonl",))(prefix)
    try:
        return dict(_named(getattr(parsed_args, "dir", None)))
    except (McpspyError, OSError):
        return {}


def _named(folder: str | None) -> Iterator[tuple[str, str]]:
    yield "last", "the newest session"
    for summary in sessions(folder)[:MOST]:
        yield summary.header.id, f"{summary.header.name} {summary.header.started}"
