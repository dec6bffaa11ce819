"""The table of commands, their help, and the last line of a command that failed.

Imports a command only when it runs. Uses argparse because every host starts mcpspy once per server: argparse costs
7 ms, click 34 ms and typer 145 ms.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, TypedDict

from mcpspy import __version__
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import McpspyError, UsageError

if TYPE_CHECKING:
    from types import ModuleType

BUG = 70
"""Exit code of a bug in mcpspy (EX_SOFTWARE of sysexits.h)."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""

BROKEN_PIPE = 141
"""Exit code when stdout is closed by its reader, as after SIGPIPE."""


class CommandDescription(TypedDict):
    """The arguments of `argparse.ArgumentParser` for a command."""

    prog: str
    description: str
    epilog: str
    formatter_class: type[argparse.HelpFormatter]
    allow_abbrev: bool


def main(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    if "_ARGCOMPLETE" in os.environ:  # A shell asks for completions.
        from mcpspy.ui.cli.completion import complete

        return complete(parsers)
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except McpspyError as error:
        sys.stderr.write(f"mcpspy: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        what = sanitize(f"{type(error).__name__}: {error}")
        sys.stderr.write(f"mcpspy: a bug in mcpspy: {what} ({keep_traceback()})\n")
        return BUG
    return code


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        arguments = ["tui"] if sys.stdout.isatty() and sys.stdin.isatty() else ["ls"]
    name, *rest = arguments
    if name in ("-h", "--help", "help"):
        if rest and rest[0] in COMMANDS:
            return _dispatch([rest[0], "--help"])
        sys.stdout.write(usage())
        return 0
    if name in ("-V", "--version"):
        sys.stdout.write(f"mcpspy {__version__}\n")
        return 0
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, 1)
        raise UsageError(
            f"{name}: no such command", f"did you mean {close[0]}?" if close else "mcpspy --help lists them"
        )
    module = import_module(COMMANDS[name][0])
    parser = argparse.ArgumentParser(**described(name, module))
    module.configure(parser)
    rest, command = _split_command(rest) if getattr(module, "TAKES_COMMAND", False) else (rest, None)
    # argparse accepts options between arguments only in this mode, which does not support `...`.
    intermixed = getattr(module, "TAKES_OPTIONS_ANYWHERE", False)
    parsed = parser.parse_intermixed_args(rest) if intermixed else parser.parse_args(rest)
    if command is not None:
        parsed.command = command
    code: int = module.main(parsed)
    return code


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help that is the same on every Python: it prints the value of an option once, as 3.13 does."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def described(name: str, module: ModuleType) -> CommandDescription:
    return {
        "prog": f"mcpspy {name}",
        "description": COMMANDS[name][1],
        "epilog": module.EPILOG,
        "formatter_class": HelpFormatter,
        "allow_abbrev": False,
    }


def parsers(typed: str | None) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser | None]:
    """Return a parser of every command, and the parser of the typed one, which alone has its options."""
    parser = argparse.ArgumentParser(prog="mcpspy", allow_abbrev=False)
    parser.add_argument("--version", action="store_true")
    commands = parser.add_subparsers()
    command = None
    for name, (path, text) in COMMANDS.items():
        if name != typed:
            commands.add_parser(name, help=text)
            continue
        module = import_module(path)
        command = commands.add_parser(name, help=text, **described(name, module))
        module.configure(command)
    return parser, command


def _split_command(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments before the first `--`, and the command after it."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:{width}}  {text}" for name, (_, text) in COMMANDS.items())
    return f"""\
usage: mcpspy COMMAND …

Stands between an MCP host and an MCP server: passes every byte on unchanged,
records the session, shows it.

{lines}

`mcpspy` alone opens the list of sessions; `mcpspy COMMAND --help` says more.

  mcpspy demo                                               see how it looks
  mcpspy run -- npx -y @modelcontextprotocol/server-memory  wrap a server
  mcpspy show last                                          read what was said

exit codes: 0 fine, 1 findings, 2 usage, 3 could not start; `run`: the server's own
"""


def keep_traceback() -> str:
    """Write the traceback to a file that only the user can read: it may contain traffic."""
    import tempfile
    import traceback

    try:
        fd, path = tempfile.mkstemp(prefix="mcpspy-", suffix=".log")
        with open(fd, "w", encoding="utf-8") as log:
            traceback.print_exc(file=log)
    except OSError:
        return "its traceback could not be kept"
    return f"please report it with {path}"


COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("mcpspy.ui.cli.run", "wrap a stdio server: pass its traffic on, record it"),
    "http": ("mcpspy.ui.cli.http", "stand in front of an HTTP server: pass its traffic on, record it"),
    "exec": ("mcpspy.ui.cli.exec", "start a program whose MCP over HTTPS is recorded"),
    "ca": ("mcpspy.ui.cli.ca", "show the authority by which HTTPS is looked into, and how to trust it"),
    "bridge": ("mcpspy.ui.cli.bridge", "give a server that speaks HTTP to a host that speaks stdio"),
    "tui": ("mcpspy.ui.cli.tui", "look at sessions, live ones too, in the terminal"),
    "ls": ("mcpspy.ui.cli.ls", "list the recorded sessions"),
    "show": ("mcpspy.ui.cli.show", "print a session, one line a message"),
    "diff": ("mcpspy.ui.cli.diff", "compare two sessions: what changed, and whether it breaks"),
    "lint": ("mcpspy.ui.cli.lint", "find what a session does that the protocol does not allow"),
    "stats": ("mcpspy.ui.cli.stats", "count a session: how often, how long, how much, how many at once"),
    "export": (
        "mcpspy.ui.cli.export",
        "write sessions as HAR, HTML, Markdown, Mermaid, OTLP, CSV or JSON lines",
    ),
    "send": ("mcpspy.ui.cli.send", "say something of yours in a session that is running"),
    "replay": ("mcpspy.ui.cli.replay", "play a recorded client against a live server, and compare"),
    "mock": ("mcpspy.ui.cli.mock", "serve a recording as the server it was made from"),
    "wrap": ("mcpspy.ui.cli.wrap", "have a host start its servers through mcpspy"),
    "unwrap": ("mcpspy.ui.cli.unwrap", "have a host start its servers as it did before"),
    "hosts": ("mcpspy.ui.cli.hosts", "list the hosts, their servers, and how the wrapped ones fare"),
    "redact": ("mcpspy.ui.cli.redact", "write a recording again without its secrets"),
    "import": ("mcpspy.ui.cli.import_", "read the file of another tool as a recording"),
    "completion": ("mcpspy.ui.cli.completion", "print what makes a shell complete mcpspy's commands"),
    "demo": ("mcpspy.ui.cli.demo", "record a small weather server and show the session"),
}
