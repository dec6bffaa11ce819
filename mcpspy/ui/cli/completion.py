"""`mcpspy completion`: what a shell runs to complete our command lines.

Owns nothing but the choice of a shell: the code is argcomplete's, what can
stand where is `ui.cli.completion`'s.

What could stand at the cursor, for a shell that asks.

Owns which words of a command line are sessions and which are nobody's business
of ours: behind `--` a command of its own begins. Never fails: a shell that asks
wants words, and no traceback.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.lexers import split_line

from mcpspy.errors import McpspyError
from mcpspy.io.recording.reader import sessions

EPILOG = """\
examples:
  eval "$(mcpspy completion bash)"                                    in ~/.bashrc
  eval "$(mcpspy completion zsh)"                                     in ~/.zshrc, after compinit
  mcpspy completion fish > ~/.config/fish/completions/mcpspy.fish     once
"""

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def main(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    sys.stdout.write(shellcode(["mcpspy"], shell=args.shell))
    return 0


SESSIONS = frozenset({"session", "sessions", "recording", "recordings", "old", "new"})
"""What arguments that name a session are called in the parsers."""

Parsers: TypeAlias = Callable[[str | None], tuple[argparse.ArgumentParser, argparse.ArgumentParser | None]]
"""The command that is typed → a parser of every command, and that command's own, which knows its options."""

MOST = 50
"""Sessions that are offered: the latest."""


def complete(parsers: Parsers) -> int:
    """Answer the shell, as the environment says; return the exit code."""
    words = _words()
    if "--" in words[:-1]:
        # The server's command line: the shell completes files by itself if we say nothing.
        return 1
    argcomplete.autocomplete(_parser(words, parsers), append_space=False, always_complete_options=False)
    return 0  # Only if the environment was no shell's: autocomplete leaves by itself.


def _words() -> list[str]:
    """Return the words up to the cursor, the last one as far as it is typed."""
    line = os.environ.get("COMP_LINE", "")
    try:
        _, _, prefix, words, _ = split_line(line, int(os.environ.get("COMP_POINT", len(line))))
    except ValueError:
        return [""]
    return [*words[1:], prefix]


def _parser(words: list[str], parsers: Parsers) -> argparse.ArgumentParser:
    """Return a parser of every command, of which the one that is typed completes sessions, too."""
    parser, command = parsers(words[0] if len(words) > 1 else None)
    for action in command._actions if command is not None else ():
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
