"""What `wrap` and `unwrap` share: which servers are meant, the diff, the last words.

Owns the choice of servers by name, and how a change is shown. Refuses to know
what the change is.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from mcpspy.analysis import rows
from mcpspy.core.hostconfig.edit import EditResult
from mcpspy.core.hostconfig.servers import ServerEntry
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.io.hosts.resolve import ConfigTarget, elsewhere, find
from mcpspy.ui.cli.options import describe
from mcpspy.ui.terminal import Output

Edit = Callable[[ConfigTarget, list[str]], EditResult]


def configure(parser: argparse.ArgumentParser) -> None:
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
