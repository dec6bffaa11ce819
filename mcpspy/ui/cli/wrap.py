"""`mcpspy wrap`: have a host start its servers through mcpspy.

Owns the selection of servers and how a change of a configuration is shown, which `mcpspy unwrap` shares.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from mcpspy.analysis import rows
from mcpspy.core.hostconfig.edit import EditResult, wrapped
from mcpspy.core.hostconfig.servers import ServerEntry
from mcpspy.core.hostconfig.wrap import WrapTarget
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.io.hosts.resolve import ConfigTarget, command_line, elsewhere, find, is_passing, uvx
from mcpspy.io.recording.recorder import say
from mcpspy.ui.cli.options import describe
from mcpspy.ui.terminal import Output

Edit = Callable[[ConfigTarget, list[str]], EditResult]

EPILOG = """\
examples:
  mcpspy wrap cursor --all --dry-run
  mcpspy wrap claude-code --server memory github
  mcpspy wrap ~/somewhere/mcp.json

A server that is the only one need not be named. A command then runs through `mcpspy
run`, a URL through `mcpspy bridge`; nothing else in the file changes, comments and
blanks included, and `mcpspy unwrap` puts it back to the byte.

mcpspy hosts lists what there is.

exit codes: 0; 1 a server that was named was left alone; 2 usage, no such file or
server, not readable as what it should be; 3 it cannot be read or replaced
"""


def configure(parser: argparse.ArgumentParser) -> None:
    configure_selection(parser)
    describe(parser, {"--uvx": (None, "start mcpspy by `uvx mcpspy` (default: the one that runs now)")})
    parser.add_argument(
        "--dir",
        metavar="DIR",
        default=os.environ.get("MCPSPY_DIR"),
        help="the folder of sessions for these servers (default: $MCPSPY_DIR, which hosts would drop)",
    )
    oauth = "wrap URLs, too, where the host may log in by itself, which the bridge does not do for it"
    describe(parser, {"--bridge-oauth": (None, oauth)})


def configure_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "which", metavar="HOST|FILE", help="a host's name as mcpspy hosts --all lists it, or a configuration"
    )
    parser.add_argument(
        "--server",
        metavar="NAME",
        nargs="+",
        action="extend",
        help="these servers; may be given more than once",
    )
    dry_run = "print what would change as a unified diff, and change nothing"
    describe(parser, {"--all": (None, "all servers"), "--dry-run": (None, dry_run)})


def main(args: argparse.Namespace) -> int:
    program = uvx() if args.uvx else command_line()
    if is_passing(program):
        say(f"warning: {program[0]} is in a cache that is emptied some day: say --uvx, or install mcpspy")
    options = ["--dir", os.path.abspath(os.path.expanduser(args.dir))] if args.dir else []
    how = WrapTarget(program, options, insists=args.bridge_oauth)

    def edit(target: ConfigTarget, names: list[str]) -> EditResult:
        return wrapped(target.file.text, target.home, names, how)

    return change(args, edit, "wrapped", lambda server: server.ours is None or args.all)


def change(args: argparse.Namespace, edit: Edit, said: str, meant: Callable[[ServerEntry], bool]) -> int:
    """Change a configuration, say what became of each server; return the exit code.

    `said` is what a changed server is then; `meant` are those a person means who names none.
    """
    if args.all and args.server:
        raise UsageError("--all and --server exclude each other")
    target = find(args.which)
    names = chosen(target, args.server, meant, is_all=args.all)
    edited = edit(target, names)
    if args.dry_run:
        show_diff(target.file.path, target.file.text, edited.text)
        if edited.text == target.file.text:
            sys.stderr.write(sanitize(f"{target.file.path}: nothing would change") + "\n")
        for line in _left(edited):
            sys.stderr.write(line + "\n")
        return _code(args, edited)
    kept = target.file.replace(edited.text) if edited.text != target.file.text else None
    output = _whole_lines()
    for name in edited.done:
        output.line(f"{sanitize(name)}: {said}", rows.OK)
    for name in edited.already:
        output.line(f"{sanitize(name)}: {'already' if said == 'wrapped' else 'not'} wrapped", rows.QUIET)
    for line in _left(edited):
        output.line(line)
    what = "changed" if kept is not None else "unchanged" if names else "it has no servers"
    if not names and (others := elsewhere(target.host)):
        what += f"; there are some in {' and '.join(others)}"
    output.line(sanitize(f"{target.file.path}: {what}"))
    if kept is not None:
        output.line(sanitize(f"as it was before: {kept}"), rows.QUIET)
        title = target.host.title.partition(",")[0] if target.host is not None else "the host"
        output.line(f"{title} goes on as before until it, or its servers, are restarted", rows.QUIET)
    return _code(args, edited)


def chosen(
    target: ConfigTarget, named: list[str] | None, meant: Callable[[ServerEntry], bool], *, is_all: bool
) -> list[str]:
    """Return the names of the servers that are meant; raise UsageError if that cannot be said."""
    servers = target.servers()
    names = [server.name for server in servers]
    path = target.file.path
    if named:
        for name in named:
            if name not in names:
                raise UsageError(f"{path}: no server {sanitize(name)}", _near(name, names, target))
        return [*dict.fromkeys(named)]
    mine = [server.name for server in servers if meant(server)] or names
    if not is_all and len(mine) > 1:
        listed = sanitize(", ".join(mine))
        raise UsageError(f"{path}: {len(mine)} servers: {listed}", "name some with --server, or say --all")
    return [*dict.fromkeys(mine)]


def show_diff(path: Path, old: str, new: str) -> None:
    """Print a unified diff: safe on a terminal, as it is in a pipe, for `patch`."""
    lines = list(diff(str(path), old, new))
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write("".join(lines).encode("utf-8"))
        return
    output = _whole_lines()
    tones = {"+": rows.OK, "-": rows.BAD, "@": rows.QUIET}
    for line in lines:
        output.line(sanitize(line.removesuffix("\n").removesuffix("\r")), tones.get(line[:1]))


def diff(path: str, old: str, new: str) -> Iterable[str]:
    """Yield the lines of a unified diff, each with its end."""
    # Not splitlines: what else it takes for the end of a line is part of one in these files.
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (old, new))
    for line in difflib.unified_diff(before, after, path, path):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _near(name: str, names: list[str], target: ConfigTarget) -> str:
    if others := elsewhere(target.host, name):
        return f"{' and '.join(others)} has it"
    near = difflib.get_close_matches(name, names, 3, 0.5)
    if near:
        return f"did you mean {sanitize(', '.join(near))}?"
    return f"it has {sanitize(', '.join(names))}" if names else "it has no servers"


def _left(edited: EditResult) -> list[str]:
    return [f"{sanitize(name)}: left alone: {sanitize(why)}" for name, why in edited.left.items()]


def _whole_lines() -> Output:
    """Return where lines are printed whole: the end of a diff, or of a reason, may be what matters."""
    output = Output()
    output.width = 0
    return output


def _code(args: argparse.Namespace, edited: EditResult) -> int:
    """Of servers that were asked for by name, one that was left alone is a finding."""
    return FINDINGS if args.server and edited.left else 0
