"""`mcpspy wrap`: start the servers of a host through mcpspy; `mcpspy unwrap`: restore them."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

from mcpspy.analysis import rows
from mcpspy.core.hostconfig.edit import EditResult, unwrapped, wrapped
from mcpspy.core.hostconfig.mistakes import Mistake
from mcpspy.core.hostconfig.servers import ServerEntry
from mcpspy.core.hostconfig.shapes import DEVCONTAINER
from mcpspy.core.hostconfig.wrap import WrapTarget
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.io.extras import require
from mcpspy.io.hosts.configuration import (
    ConfigTarget,
    command_line,
    find,
    is_temporary,
    isolated,
    other_files,
    uvx,
)
from mcpspy.io.recording.recorder import say
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.cli.hosts import warning_text
from mcpspy.ui.cli.options import Argument, Option, Repeated, Switch
from mcpspy.ui.text.terminal import Output

LOCK = "mcp.lock"
"""The lockfile of wrapped servers, in the folder of their sessions."""

Edit = Callable[[ConfigTarget, list[str]], EditResult]

EPILOG = """\
examples:
  mcpspy wrap cursor --all --dry-run
  mcpspy wrap claude-code --server memory github
  mcpspy wrap ~/somewhere/mcp.json

If there is only one server, you can omit --server. Afterwards the host starts a command
through `mcpspy run`, and a URL through `mcpspy bridge`. Nothing else in the file changes,
including comments and whitespace, and `mcpspy unwrap` restores it byte for byte.

`mcpspy hosts` lists the hosts and their servers.

exit codes: 0; 1 a named server was skipped; 2 usage error, no such file or server, or
invalid syntax in the file; 3 file not readable or not replaceable
"""


_SELECTION = (
    Argument("which", "HOST|FILE", "a host (see mcpspy hosts --all), or a configuration file"),
    Repeated("--server", "NAME", "select these servers", nargs="+"),
    Switch("--all", "select all servers", excludes=("--server",)),
    Switch("--dry-run", "print the changes as a unified diff, and do not write the file"),
    Switch("--force", "replace the file even if it is read-only"),
)  # fmt: skip


OPTIONS = (
    *_SELECTION,
    Switch("--uvx", "start mcpspy with `uvx mcpspy` (default: this installation)"),
    Option("--dir", "DIR",
        "sessions folder of these servers (default: $MCPSPY_DIR; hosts do not pass the variable on)"),
    Switch("--bridge-oauth",
        "also wrap URLs where the host may log in by OAuth, which the bridge does not support"),
    Switch("--trust", "trust what each server lists first, and block later changes (see mcpspy trust)"),
    Option("--on-change", None, "--trust: only report a difference, or block it (default)",
        choices=["report", "block"], requires="--trust"),
    Repeated("--watch", "PATH",
        "restart a server in its session when this file, or one in this folder, changes (see mcpspy run)"),
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    program = uvx() if args.uvx else command_line()
    if is_temporary(program):
        say(f"warning: {program[0]} is in a temporary cache (use --uvx, or install mcpspy)")
    folder = args.dir or os.environ.get("MCPSPY_DIR")
    options = ["--dir", os.path.abspath(os.path.expanduser(folder))] if folder else []
    if args.trust:
        lock = os.path.join(sessions_folder(folder), LOCK)
        options += ["--trust", lock, "--first-use", "--on-change", args.on_change or "block"]
    alone = [] if args.uvx else isolated(program)
    watch = _watched(args.watch, is_installed_here=not args.uvx)
    if watch and args.uvx:
        program = [program[0], "mcpspy[watch]"]
    wrapper = WrapTarget(program, options, watch, insists=args.bridge_oauth, isolated=alone)

    def edit(target: ConfigTarget, names: list[str]) -> EditResult:
        if target.location != DEVCONTAINER:
            return wrapped(target.file.text, target.location, names, wrapper)
        if watch:
            raise UsageError("--watch: the paths are not those of the container", "wrap without --watch")
        say("note: these servers start in the container, where mcpspy must be installed (or use --uvx)")
        inside = wrapper._replace(program=["uvx", "mcpspy"] if args.uvx else ["mcpspy"], isolated=[])
        return wrapped(target.file.text, target.location, names, inside)

    return change(args, edit, "wrapped", lambda server: server.proxy is None or args.all)


def _watched(paths: list[str], *, is_installed_here: bool) -> list[str]:
    """Return the options of `run` for watched paths: absolute, as hosts have other working folders."""
    if paths and is_installed_here:
        require("watchfiles", "--watch", "watch")
    found = [os.path.abspath(os.path.expanduser(path)) for path in paths]
    for path in found:
        if not os.path.exists(path):
            raise UsageError(f"--watch {path}: no such file or folder", "name one that exists")
    return [word for path in found for word in ("--watch", path)]


def change(
    args: argparse.Namespace, edit: Edit, result: str, is_default: Callable[[ServerEntry], bool]
) -> int:
    """Change a configuration and report each server; return the exit code.

    `result` describes a changed server; `is_default` selects servers if the user names none.
    """
    target = find(args.which)
    names = selected_servers(target, args.server, is_default, is_all=args.all)
    edited = edit(target, names)
    warnings = (
        [mistake for mistake in target.mistakes() if not mistake.server or mistake.server in names]
        if result == "wrapped"
        else []
    )
    if args.dry_run:
        show_diff(target.file.path, target.file.text, edited.text)
        if edited.text == target.file.text:
            sys.stderr.write(sanitize(f"{target.file.path}: no changes") + "\n")
        for line in (*_skipped(edited), *map(_warning, warnings)):
            sys.stderr.write(line + "\n")
        return _code(args, edited)
    backup = None
    if edited.text != target.file.text:
        backup = target.file.replace(edited.text, is_forced=args.force)
    output = Output(width=0)  # The end of a reason can matter.
    for name in edited.done:
        output.line(f"{sanitize(name)}: {result}", rows.OK)
    for name in edited.already:
        output.line(f"{sanitize(name)}: {'already' if result == 'wrapped' else 'not'} wrapped", rows.QUIET)
    for line in _skipped(edited):
        output.line(line)
    for mistake in warnings:
        output.line(_warning(mistake), rows.ISSUE)
    outcome = "changed" if backup is not None else "unchanged" if names else _without_servers(target)
    output.line(sanitize(f"{target.file.path}: {outcome}"))
    if backup is not None:
        output.line(sanitize(f"backup: {backup}"), rows.QUIET)
        output.line(f"restart {target.product} or its servers to apply the change", rows.QUIET)
    return _code(args, edited)


def selected_servers(
    target: ConfigTarget, typed: list[str] | None, is_default: Callable[[ServerEntry], bool], *, is_all: bool
) -> list[str]:
    """Return the names of the selected servers; raise UsageError if the selection is ambiguous."""
    servers = target.servers()
    names = [server.name for server in servers]
    path = target.file.path
    if typed:
        for name in typed:
            if name not in names:
                raise UsageError(f"{path}: no server {sanitize(name)}", _suggestion(name, names, target))
        return [*dict.fromkeys(typed)]
    selected = [server.name for server in servers if is_default(server)] or names
    if not is_all and len(selected) > 1:
        listed = sanitize(", ".join(selected))
        raise UsageError(
            f"{path}: contains {len(selected)} servers: {listed}", "select servers with --server or --all"
        )
    return [*dict.fromkeys(selected)]


def show_diff(path: Path, old: str, new: str) -> None:
    """Print a unified diff: sanitized on a terminal, byte for byte in a pipe so that `patch` accepts it."""
    lines = list(diff(str(path), old, new))
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write("".join(lines).encode("utf-8"))
        return
    output = Output(width=0)  # The end of a line can matter.
    tones = {"+": rows.OK, "-": rows.BAD, "@": rows.QUIET}
    for line in lines:
        output.line(sanitize(line.removesuffix("\n").removesuffix("\r")), tones.get(line[:1]))


def diff(path: str, old: str, new: str) -> Iterable[str]:
    """Yield the lines of a unified diff, each with its end."""
    # Not splitlines: only a newline ends a line in these files.
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (old, new))
    for line in difflib.unified_diff(before, after, path, path):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _without_servers(target: ConfigTarget) -> str:
    outcome = "contains no servers"
    if others := other_files(target.host):
        outcome += f"; {' and '.join(others)} contains servers"
    return outcome


def _suggestion(name: str, names: list[str], target: ConfigTarget) -> str:
    if others := other_files(target.host, name):
        return f"{' and '.join(others)} contains it"
    near = difflib.get_close_matches(name, names, 3, 0.5)
    if near:
        return f"did you mean {sanitize(', '.join(near))}?"
    return f"use {sanitize(', '.join(names))}" if names else "it contains no servers"


def _skipped(edited: EditResult) -> list[str]:
    return [f"{sanitize(name)}: skipped: {sanitize(why)}" for name, why in edited.left.items()]


def _warning(mistake: Mistake) -> str:
    return f"warning: {warning_text(mistake._asdict())}"


def _code(args: argparse.Namespace, edited: EditResult) -> int:
    """Return FINDINGS if a server that the user named was skipped."""
    return FINDINGS if args.server and edited.left else 0


_UNWRAP_EPILOG = """\
examples:
  mcpspy unwrap cursor
  mcpspy unwrap claude-code --server memory --dry-run

Without --server, unwraps all wrapped servers. The original entries are stored in the
file itself, so later changes to the file are kept, and no backup is needed.

exit codes: 0; 1 a named server was skipped; 2 usage error, no such file or server, or
invalid syntax in the file; 3 file not readable or not replaceable
"""


def _unwrap(args: argparse.Namespace) -> int:
    args.all = args.all or not args.server

    def edit(target: ConfigTarget, names: list[str]) -> EditResult:
        try:
            return unwrapped(target.file.text, target.location, names)
        except UsageError as error:
            raise UsageError(f"{target.file.path}: {error.args[0]}", error.hint) from None

    return change(args, edit, "unwrapped", lambda server: server.proxy is not None)


UNWRAP = SimpleNamespace(EPILOG=_UNWRAP_EPILOG, OPTIONS=_SELECTION, main=_unwrap)
