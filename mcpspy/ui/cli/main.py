"""The table of commands, their help, and the error line of a command that failed.

Imports a command only when it runs. Uses argparse because every host starts mcpspy once per server: argparse costs
7 ms, click 34 ms and typer 145 ms.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from errno import EBADF
from importlib import import_module
from typing import Any

from mcpspy import __version__
from mcpspy.core.redact.display import redacted_text
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, McpspyError, UsageError
from mcpspy.ui.cli.parser import CommandParser, HelpFormatter, did_you_mean

BUG = 70
"""Exit code of a bug in mcpspy (EX_SOFTWARE of sysexits.h)."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""

BROKEN_PIPE = 141
"""Exit code when the reader of stdout closes it, as after SIGPIPE."""

ABOUT = """\
Traffic inspector and record/replay proxy for MCP. Runs between a host and a
server, forwards every byte unchanged, and records each session to a file."""

EXIT_CODES = "exit codes: 0 success, 1 findings, 2 usage error, 3 failure; run: the server's"


def main(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    _check_standard_streams()
    if "_ARGCOMPLETE" in os.environ:  # A shell asks for completions.
        from mcpspy.ui.cli.completion import complete

        return complete(parsers)
    try:
        try:
            code = _dispatch(arguments)
        except SystemExit:  # argparse has printed the help.
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except McpspyError as error:
        message = str(error)
        # Functions that several commands share name only the option.
        command = (
            f"{arguments[0]}: " if message.startswith("-") and arguments and arguments[0] in COMMANDS else ""
        )
        # It may contain the words of a server, such as its stderr.
        sys.stderr.write(f"mcpspy: {command}{sanitize(redacted_text(message, arguments))}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard(sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        if not _has_current_folder():
            sys.stderr.write("mcpspy: the current folder was deleted (change to another one)\n")
            return CannotStart.exit_code
        from mcpspy.io.extras import missing_package

        if (missing := missing_package(error)) is not None:
            sys.stderr.write(f"mcpspy: {missing}\n")
            return missing.exit_code
        from mcpspy.ui.text.terminal import bug_line

        sys.stderr.write(f"mcpspy: {bug_line(error)}\n")
        return BUG
    return code


def _has_current_folder() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


class _OutputStream(io.RawIOBase):
    """stdout or stderr. A stdout that accepts no data raises CannotStart; what stderr does not accept is lost."""

    def __init__(self, fd: int, raw: io.RawIOBase) -> None:
        self._fd = fd
        self._raw = raw

    def write(self, data: Any) -> int | None:
        try:
            return self._raw.write(data)
        except OSError as error:
            _discard(self._fd)
            if self._fd == 2:
                return len(data)
            if isinstance(error, BrokenPipeError):
                raise
            reason = "it is closed" if error.errno == EBADF else error.strerror
            raise CannotStart(f"cannot write to stdout: {reason}") from None

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return self._raw.isatty()

    def writable(self) -> bool:
        return True


def _check_standard_streams() -> None:
    """Report errors of stdout, ignore those of stderr, and open streams that were closed before the start.

    Characters that the encoding of a stream lacks are escaped.
    A closed stdin is empty, and a closed stdout is an error as soon as something is written. Without this, the next
    file that is opened would become stdout.
    """
    if sys.stdin is sys.__stdin__ is None:
        sys.stdin = os.fdopen(_occupy(0), encoding="utf-8")
    for fd, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__"):  # A test has replaced it.
            continue
        if stream is None:
            raw: Any = io.FileIO(_occupy(fd), "w", closefd=False)
            settings: dict[str, Any] = {"encoding": "utf-8"}
        else:
            raw = getattr(stream.buffer, "raw", stream.buffer)
            settings = {
                name: getattr(stream, name)
                for name in ("encoding", "errors", "line_buffering", "write_through")
            }
            if settings["errors"] == "strict":
                settings["errors"] = "backslashreplace"
        setattr(sys, name, io.TextIOWrapper(io.BufferedWriter(_OutputStream(fd, raw)), **settings))


def _occupy(fd: int) -> int:
    """Open the null device as a closed descriptor, for reading only: writing fails."""
    null = os.open(os.devnull, os.O_RDONLY)
    if null != fd:
        os.dup2(null, fd)
        os.close(null)
    return fd


def _discard(fd: int) -> None:
    """Discard further output: Python flushes again at exit, and would print a warning."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, fd)
    os.close(null)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0].partition("=")[0] == "--dir":
        is_interactive = sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM") != "dumb"
        words = arguments[1 if "=" in arguments[0] else 2 :] if arguments else []
        if words and words[0] in COMMANDS:
            folder = " ".join(arguments[: len(arguments) - len(words)])
            raise UsageError(
                sanitize(f"{folder}: options follow the command"),
                sanitize(f"use mcpspy {words[0]} {folder} …"),
            )
        arguments = ["tui" if is_interactive else "ls", *arguments]
    name, *rest = arguments
    if name in ("-h", "--help", "help"):
        if rest:
            return _dispatch([rest[0], "--help"])
        sys.stdout.write(usage())
        return 0
    if name in ("-V", "--version"):
        sys.stdout.write(f"mcpspy {__version__}\n")
        return 0
    if name == "remote":  # Not a command for users: `--ssh` runs it on the other machine.
        from mcpspy.io.remote.server import main as serve

        return serve(rest)
    if name not in COMMANDS:
        kind, known = (
            ("option", ["--help", "--version", "--dir"]) if name[:1] == "-" else ("command", [*COMMANDS])
        )
        own = f"use mcpspy {OTHER_WORDS[name]}" if name in OTHER_WORDS else ""
        hint = own or did_you_mean(name, known) or _hint(name, rest) or "see mcpspy --help"
        raise UsageError(sanitize(f"unknown {kind} {name}"), sanitize(hint))
    module, parsed = parse(name, rest)
    code: int = module.main(parsed)
    return code


def _hint(name: str, rest: list[str]) -> str:
    """Return the correct order for an option before its command, or a server's program without `run --`."""
    if name.startswith("-"):
        command = next((word for word in rest if word in COMMANDS), None)
        return f"options follow the command: mcpspy {command} {name} …" if command else ""
    import shutil  # Takes 10 ms; only for an unknown command.

    return f"to record a server: mcpspy run -- {name} …" if shutil.which(name) else ""


def module_of(name: str) -> Any:
    """Return the module of a command, or what has its place in a module of two commands: EPILOG, OPTIONS and main."""
    path, _, attribute = COMMANDS[name][0].partition(":")
    module = import_module(path)
    return getattr(module, attribute) if attribute else module


def parse(name: str, arguments: list[str]) -> tuple[Any, argparse.Namespace]:
    """Return the module of a command and its parsed arguments; raise UsageError."""
    from mcpspy.ui.cli.options import COMMAND, check
    from mcpspy.ui.cli.parser import describe, given

    module = module_of(name)
    parser = CommandParser(**described(name, module))
    describe(parser, module.OPTIONS)
    takes_command = any(option.name == COMMAND for option in module.OPTIONS)
    parser.lacks_dashes = takes_command and "--" not in arguments
    # The command of a server is after the first `--`.
    at = arguments.index("--") if takes_command and "--" in arguments else len(arguments)
    rest, command = arguments[:at], arguments[at + 1 :]
    # argparse accepts options between positional arguments only in this mode, which does not support `...`.
    intermixed = getattr(module, "TAKES_OPTIONS_ANYWHERE", False)
    parsed = parser.parse_intermixed_args(rest) if intermixed else parser.parse_args(rest)
    if takes_command:
        if command[:1] == [""]:
            raise UsageError(f"{name}: COMMAND is empty", f"see mcpspy {name} --help")
        if "--" not in arguments and (words := parsed.command):
            from mcpspy.core.redact.display import redacted_command

            if words[0].startswith(("http://", "https://")) and name == "http":
                raise UsageError(f"{name}: missing --upstream", "write --upstream before the URL")
            shown = " ".join(redacted_command(words))
            # The optional SESSION of `trust` may be the program.
            is_clear = not any(option.nargs == "?" for option in module.OPTIONS if option.is_argument)
            before = "… " if len(arguments) > len(words) else ""
            raise UsageError(
                sanitize(f"{name}: {shown}: the command of a server follows --"),
                sanitize(f"use mcpspy {name} {f'{before}-- {shown}' if is_clear else '-- COMMAND'}"),
            )
        parsed.command = command
    parsed.words = arguments
    try:
        check(module.OPTIONS, given(module.OPTIONS, parsed))
    except UsageError as error:
        raise UsageError(f"{name}: {error.args[0]}", error.hint) from None
    return module, parsed


def described(name: str, module: Any) -> dict[str, Any]:
    """Return the arguments of `argparse.ArgumentParser` for a command."""
    return {
        "prog": f"mcpspy {name}",
        "usage": getattr(module, "USAGE", None),
        "description": COMMANDS[name][1],
        "epilog": module.EPILOG,
        "formatter_class": HelpFormatter,
        "allow_abbrev": False,
    }


def parsers(typed: str | None) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser | None]:
    """Return a parser with every command, and the parser of the typed command, the only one that has its options."""
    parser = argparse.ArgumentParser(prog="mcpspy", allow_abbrev=False)
    parser.add_argument("--version", action="store_true")
    commands = parser.add_subparsers()
    if typed in COMMANDS:
        from mcpspy.ui.cli.parser import describe
    command = None
    for name, (_, text) in COMMANDS.items():
        if name != typed:
            commands.add_parser(name, help=text)
            continue
        module = module_of(name)
        command = commands.add_parser(name, help=text, **described(name, module))
        describe(command, module.OPTIONS)
    return parser, command


def usage() -> str:
    """Return the help of `mcpspy --help`, at most 80 columns wide."""
    width = max(map(len, COMMANDS))
    groups = "\n".join(
        f"{title}\n" + "".join(f"  {name:{width}}  {COMMANDS[name][1]}\n" for name in names)
        for title, names in GROUPS.items()
    )
    return f"""\
usage: mcpspy COMMAND [OPTIONS]

{ABOUT}

{groups}
`mcpspy` and `mcpspy --dir DIR` open the sessions in the terminal UI.
`mcpspy COMMAND --help` shows the options of a command.

  mcpspy demo                                               try it
  mcpspy run -- npx -y @modelcontextprotocol/server-memory  wrap a server
  mcpspy show last                                          print the session

{EXIT_CODES}
"""


COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("mcpspy.ui.cli.run", "wrap a stdio server and record its traffic"),
    "http": ("mcpspy.ui.cli.http", "run a recording proxy in front of an HTTP server"),
    "exec": ("mcpspy.ui.cli.http:EXEC", "start a program and record its MCP traffic over HTTPS"),
    "bridge": ("mcpspy.ui.cli.bridge", "connect a stdio host to an HTTP server and record"),
    "scripts": ("mcpspy.ui.cli.scripts", "list the scripts of mcpspy, or start a new one"),
    "tui": ("mcpspy.ui.cli.tui", "browse sessions in the terminal, including live ones"),
    "web": ("mcpspy.ui.cli.web", "browse sessions in the browser, including live ones"),
    "ls": ("mcpspy.ui.cli.ls", "list recorded sessions"),
    "runs": ("mcpspy.ui.cli.ls:RUNS", "list the runs of hosts, with the sessions of each"),
    "show": ("mcpspy.ui.cli.show", "print a session, one message per line"),
    "stats": ("mcpspy.ui.cli.stats", "print counts, latency, sizes and concurrency"),
    "explain": ("mcpspy.ui.cli.explain", "name the causes of a failure, and what to try next"),
    "doctor": ("mcpspy.ui.cli.doctor", "try step by step what a host does to connect"),
    "lint": ("mcpspy.ui.cli.lint", "check sessions for protocol violations"),
    "check": ("mcpspy.ui.cli.check", "check which tools a session calls, how often, and for how long"),
    "trust": ("mcpspy.ui.cli.trust", "review what a server offers, and keep it in a lockfile"),
    "diff": ("mcpspy.ui.cli.diff", "compare two sessions and rate each change"),
    "query": ("mcpspy.ui.cli.query", "ask many sessions by SQL, or by a saved query"),
    "drift": ("mcpspy.ui.cli.drift", "list when the tools of a server changed, and for whom"),
    "lake": ("mcpspy.ui.cli.lake", "keep sessions as Parquet files for SQL"),
    "call": ("mcpspy.ui.cli.call", "call a tool of a server without a host"),
    "replay": ("mcpspy.ui.cli.replay", "send recorded requests to a live server and compare"),
    "mock": ("mcpspy.ui.cli.mock", "serve a recording in place of the real server"),
    "send": ("mcpspy.ui.cli.send", "send a request into a live session"),
    "restart": ("mcpspy.ui.cli.send:RESTART", "restart the server of a live session"),
    "mcp": ("mcpspy.ui.cli.mcp", "serve recordings to coding agents, as an MCP server"),
    "wrap": ("mcpspy.ui.cli.wrap", "configure a host to start its servers through mcpspy"),
    "unwrap": ("mcpspy.ui.cli.wrap:UNWRAP", "restore the servers in a host's configuration"),
    "hosts": ("mcpspy.ui.cli.hosts", "list hosts, their servers, and which are wrapped"),
    "metrics": ("mcpspy.ui.cli.metrics", "serve metrics of live sessions to Prometheus"),
    "export": ("mcpspy.ui.cli.export", "export to HAR, HTML, Markdown, Mermaid, OTLP, CSV, JSONL"),
    "redact": ("mcpspy.ui.cli.redact", "redact secrets from a recording"),
    "import": ("mcpspy.ui.cli.import_", "convert a file of another tool to a recording"),
    "prune": ("mcpspy.ui.cli.prune", "delete old sessions"),
    "ca": ("mcpspy.ui.cli.ca", "show the CA used to decrypt HTTPS, and how to trust it"),
    "completion": ("mcpspy.ui.cli.completion", "print completion code for bash, zsh or fish"),
    "demo": ("mcpspy.ui.cli.demo", "record a small weather server and show the session"),
}

OTHER_WORDS = {
    "record": "run -- COMMAND",
    "start": "run -- COMMAND",
    "proxy": "http --upstream URL",
    "list": "ls",
    "sessions": "ls",
    "view": "tui",
    "watch": "tui",
    "install": "wrap HOST",
    "uninstall": "unwrap HOST",
    "serve": "mock RECORDING",
    "last": "show last",
    "clean": "prune",
    "delete": "prune",
}
"""Words of other tools, and the command that means the same."""

GROUPS: dict[str, tuple[str, ...]] = {
    "Record": ("run", "http", "exec", "bridge", "scripts"),
    "Look": ("tui", "web", "ls", "runs", "show", "stats"),
    "Check": ("explain", "doctor", "lint", "check", "trust", "diff"),
    "Many sessions": ("query", "drift", "lake"),
    "Play": ("call", "replay", "mock", "send", "restart", "mcp"),
    "Hosts": ("wrap", "unwrap", "hosts"),
    "Share": ("metrics", "export", "redact", "import"),
    "Set up": ("prune", "ca", "completion", "demo"),
}
"""The commands by purpose, as `mcpspy --help` lists them."""
