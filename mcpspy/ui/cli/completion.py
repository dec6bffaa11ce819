"""`mcpspy completion`: print the code for completion in a shell, and answer the requests of that code.

Completes commands and options, and the values that only mcpspy knows: sessions, hosts, rule codes and filters.
Completes nothing after `--`, where the command line of the server begins, and never prints a traceback.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TypeAlias

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.lexers import split_line

from mcpspy.ui.cli.options import Argument

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

Completer: TypeAlias = Callable[..., Iterable[str]]
"""Typed prefix → the possible values, or a dictionary of values and their descriptions."""

MOST = 50
"""Number of sessions to offer: the latest."""

READ = 5000
"""Entries of a session in which the names of its tools are looked for."""

OPTIONS = (Argument("shell", None, "shell to print the code for", choices=SHELLS),)


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
    return 0  # Not reached in a shell: autocomplete exits.


def _words() -> list[str]:
    """Return the words up to the cursor; the last one may be incomplete."""
    line = os.environ.get("COMP_LINE", "")
    try:
        _, _, prefix, words, _ = split_line(line, int(os.environ.get("COMP_POINT", len(line))))
    except ValueError:
        return [""]
    return [*words[1:], prefix]


def _parser(words: list[str], parsers: Parsers) -> argparse.ArgumentParser:
    """Return a parser of every command; the typed one also completes values."""
    name = words[0] if len(words) > 1 else None
    parser, command = parsers(name)
    for action in command._actions if command is not None else ():
        completer = _completer(name, action.dest)
        if completer is not None:
            action.completer = completer  # type: ignore[attr-defined]  # argcomplete reads it.
    return parser


def _completer(command: str | None, argument: str) -> Completer | None:
    if argument in SESSIONS:
        return _sessions
    if argument == "which" and command in ("wrap", "unwrap"):
        return _hosts
    if argument == "entry":
        return _entries
    if argument == "call" and command == "call":
        return _saved_calls
    if argument in ("explain", "ignore", "select") and command == "lint":
        return _rules
    if argument == "filter":
        return _session_filters if command == "ls" else _filters
    return None


def _sessions(prefix: str, parsed_args: argparse.Namespace, **_: object) -> Iterable[str]:
    """Return the names and ids of the latest sessions; files if the prefix is a path."""
    from mcpspy.errors import McpspyError

    if _is_path(prefix):
        return FilesCompleter(("jsonl",))(prefix)
    found: dict[str, str] = {}
    with suppress(McpspyError, OSError):  # No folder, or a session that was deleted in the meantime.
        found.update(_latest(getattr(parsed_args, "dir", None)))
    return found


def _latest(folder: str | None) -> Iterator[tuple[str, str]]:
    """Yield words that select a session, each with a description: `last`, names, ids."""
    from mcpspy.io.recording.catalog import sessions
    from mcpspy.io.recording.lookup import named

    yield "last", "the newest session"
    found = sessions(folder, entries=False)[:MOST]
    for name in dict.fromkeys(summary.header.name for summary in found):
        if (meant := named(name, found)) is not None:
            yield name, f"newest of this name: {meant.header.id} {meant.header.started}"
    for summary in found:
        header = summary.header
        yield header.id, f"{header.name} {summary.server or ''} {header.started}".replace("  ", " ")


def _hosts(prefix: str, **_: object) -> Iterable[str]:
    """Return the names of hosts; files if the prefix is a path."""
    from mcpspy.io.hosts import HOSTS

    return FilesCompleter()(prefix) if _is_path(prefix) else {host.name: host.title for host in HOSTS}


def _entries(prefix: str, **_: object) -> Iterable[str]:
    """Return the hosts that have a configuration, and their servers as `HOST/SERVER`; files if the prefix is a path."""
    from mcpspy.core.redact.display import redacted_command, redacted_url
    from mcpspy.errors import McpspyError
    from mcpspy.io.hosts import HOSTS
    from mcpspy.io.hosts.configuration import target

    if prefix.startswith((".", "~", os.sep)):
        return FilesCompleter()(prefix)
    found: dict[str, str] = {}
    for host in HOSTS:
        with suppress(McpspyError):  # It has no file, or one that cannot be read.
            servers = target(host).servers()
            found[host.name] = host.title
            for server in servers:
                words = [redacted_url(server.url)] if server.url else redacted_command(server.argv)
                found[f"{host.name}/{server.name}"] = " ".join(words)
    return found


def _saved_calls(prefix: str, **_: object) -> Iterable[str]:
    """Return the saved calls of the current project."""
    from mcpspy.ui.model.saved_call import CALLS

    with suppress(OSError):
        return [f"@{name.removesuffix('.yaml')}" for name in os.listdir(CALLS) if name.endswith(".yaml")]
    return []


def _rules(prefix: str, **_: object) -> Iterable[str]:
    """Return rule codes, and the letters that rules have in common; the last one of a list is completed."""
    from mcpspy.analysis.lint import RULES

    before, comma, _last = prefix.rpartition(",")
    groups = dict.fromkeys((rule.code.rstrip("0123456789") for rule in RULES), "all rules of this group")
    codes = groups | {rule.code: rule.summary for rule in RULES}
    return {f"{before}{comma}{code}": text for code, text in codes.items()}


def _filters(prefix: str, parsed_args: argparse.Namespace, **_: object) -> Iterable[str]:
    """Return filters whose last term is completed: a field, or a value of one, such as a tool of the session."""
    from mcpspy.core.query.completion import MESSAGE_FIELDS, MESSAGE_VALUES, completed

    return completed(
        prefix, MESSAGE_FIELDS, {**MESSAGE_VALUES, "lint": _rules("")}, lambda: _names_in(parsed_args)
    )


def _names_in(args: argparse.Namespace) -> Iterable[tuple[str, str]]:
    """Return the methods and subjects at the beginning of the session of a command line, else of the last one."""
    from mcpspy.core.protocol.message import Notification, Request
    from mcpspy.core.session.session import Session
    from mcpspy.errors import McpspyError
    from mcpspy.io.recording.lookup import find
    from mcpspy.io.recording.reader import Recording

    named = next((getattr(args, name) for name in SESSIONS if getattr(args, name, None)), "last")
    found: dict[tuple[str, str], None] = {}
    with suppress(McpspyError, OSError):
        path = find(named if isinstance(named, str) else named[0], getattr(args, "dir", None))
        for change in Session().add_all(islice(Recording(path), READ)).changes:
            if isinstance(change.what, Request | Notification):
                found[change.what.method, change.what.subject or ""] = None
    return found


def _session_filters(prefix: str, parsed_args: argparse.Namespace, **_: object) -> Iterable[str]:
    """Return filters of sessions whose last term is completed: a field, or a value of one, such as a name."""
    from mcpspy.core.query.completion import completed
    from mcpspy.core.query.sessions import FIELDS
    from mcpspy.errors import McpspyError
    from mcpspy.io.recording.catalog import sessions
    from mcpspy.io.recording.listed_session import values_of_fields

    values = values_of_fields(())
    with suppress(McpspyError, OSError):
        values = values_of_fields(sessions(getattr(parsed_args, "dir", None), entries=False)[:MOST])
    return completed(prefix, FIELDS.names, values)


def _is_path(prefix: str) -> bool:
    return os.sep in prefix or prefix.startswith((".", "~"))
