"""`mcpspy completion`: print the code for a shell's completion, and serve its requests.

Owns which words of a command line are sessions. Completes nothing after `--`, where another command begins, and never
prints a traceback into the shell.
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

SESSIONS = frozenset({"session", "sessions", "recording", "recordings", "old", "new"})
"""Names of the arguments that are sessions."""

Parsers: TypeAlias = Callable[[str | None], tuple[argparse.ArgumentParser, argparse.ArgumentParser | None]]
"""Typed command → a parser of every command, and the parser of that command, which has its options."""

MOST = 50
"""Number of sessions to offer: the latest."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")


def main(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    sys.stdout.write(shellcode(["mcpspy"], shell=args.shell))
    return 0


def complete(parsers: Parsers) -> int:
    """Print completions for the command line in the environment; return the exit code."""
    words = _words()
    if "--" in words[:-1]:
        return 1  # The server's command line: the shell completes files itself.
    argcomplete.autocomplete(_parser(words, parsers), append_space=False, always_complete_options=False)
    return 0  # Not reached under a shell: autocomplete exits.


def _words() -> list[str]:
    """Return the words up to the cursor; the last one may be incomplete."""
    line = os.environ.get("COMP_LINE", "")
    try:
        _, _, prefix, words, _ = split_line(line, int(os.environ.get("COMP_POINT", len(line))))
    except ValueError:
        return [""]
    return [*words[1:], prefix]


def _parser(words: list[str], parsers: Parsers) -> argparse.ArgumentParser:
    """Return a parser of every command; the typed one also completes sessions."""
    parser, command = parsers(words[0] if len(words) > 1 else None)
    for action in command._actions if command is not None else ():
        if action.dest in SESSIONS:
            action.completer = _sessions  # type: ignore[attr-defined]  # argcomplete reads it.
    return parser


def _sessions(prefix: str, parsed_args: argparse.Namespace, **_: object) -> Iterable[str]:
    """Return the ids of the latest sessions, each with its name; files if the prefix is a path."""
    if os.sep in prefix or prefix.startswith((".", "~")):
        return FilesCompleter(("jsonl",))(prefix)
    try:
        return dict(_offered(getattr(parsed_args, "dir", None)))
    except (McpspyError, OSError):
        return {}


def _offered(folder: str | None) -> Iterator[tuple[str, str]]:
    yield "last", "the newest session"
    for summary in sessions(folder)[:MOST]:
        yield summary.header.id, f"{summary.header.name} {summary.header.started}"
