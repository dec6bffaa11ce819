"""`mcpspy run`: wrap a stdio server.

Parses its options without argparse: hosts start this command once per server, argparse costs 7 ms, and the grammar of
a wrapper is small. argparse prints the help from the same table.
"""

from __future__ import annotations

from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.recording.recorder import say
from mcpspy.io.stdio.base import NOISE, RunOptions
from mcpspy.io.stdio.run import run
from mcpspy.ui.cli.options import (
    MAX_BODY,
    NAME,
    REDACTION,
    RULES,
    SCRIPTS,
    SESSION,
    Argument,
    Option,
    Repeated,
    Switch,
    check,
    check_interception,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EPILOG = """\
examples:
  mcpspy run -- npx -y @modelcontextprotocol/server-memory
  mcpspy run --name weather --record weather.jsonl -- python weather.py
  mcpspy run --rule 'tool:forecast => delay 2s' --call-timeout 30 -- python weather.py

In a host's config, change the server's command to "mcpspy", and its arguments to "run",
"--", and the original command and arguments. If mcpspy cannot write the recording, it
prints one line on stderr and keeps forwarding.

exit codes: the server's; if a signal ended the server, the same signal ends mcpspy;
2 usage error or invalid rule; 3 rules or script not readable; 126 not executable; 127 not found
"""

OPTIONS = (
    NAME.but(about="session name (default: from the command)"),
    *SESSION[1:],
    MAX_BODY.but(about="record only size and digest of a larger line (default: 64M)"),
    Option("--stdout-noise", "|".join(NOISE),
        "forward lines of the server's stdout that are not JSON (default), drop them, or print them on "
        "stderr", "noise", choices=NOISE),
    Repeated("--watch", "PATH", "restart the server in its session when this file, or one in this folder, changes",
        "watch"),
    *RULES,
    *SCRIPTS,
    *REDACTION,
    Argument("command", "-- COMMAND", "the server and its arguments", nargs="..."),
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run the wrapper; it ends this process with the server's exit status."""
    try:
        options = parse(arguments)
        if options is not None and options.watch:
            from mcpspy.io.watch.session import watched

            return watched(options)
    except McpspyError as error:
        say(f"run: {error}")
        return error.exit_code
    except ModuleNotFoundError as error:
        from mcpspy.io.extras import missing_package

        if (missing := missing_package(error)) is None:
            raise
        say(f"run: {missing}")
        return missing.exit_code
    if options is not None:
        run(options)
    from mcpspy.ui.cli.main import main as run_any

    return run_any(["run", "--help"])


def parse(arguments: list[str]) -> RunOptions | None:
    """Return the options, None if the help was requested; raise UsageError."""
    table = {option.flags: option for option in OPTIONS}
    options = RunOptions([])
    options.redaction.unsafe_regex.say = say
    values: dict[str, Any] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        flag, equals, text = rest.pop(0).partition("=")
        if flag == "--" and not equals:
            break
        if flag in ("-h", "--help"):
            return None
        if flag not in table:
            from mcpspy.ui.cli.parser import did_you_mean

            hint = (
                did_you_mean(flag, [*(name for name in table if name != "command"), "--help"])
                or "put -- before the server's command; see mcpspy run --help"
            )
            raise UsageError(f"unknown option {flag}", hint)
        option = table[flag]
        if isinstance(option, Switch):
            if equals:
                raise UsageError(f"{flag} takes no value")
        elif not equals:
            if not rest:
                raise UsageError(f"{flag} needs a value", f"use {flag} {option.metavar}")
            text = rest.pop(0)
        values[flag] = _value(option, text)
        option.put(options, values[flag])
    check(OPTIONS, values)
    if not rest:
        raise UsageError("missing COMMAND", "use mcpspy run -- COMMAND ARGS…")
    if not rest[0]:
        raise UsageError("COMMAND is empty", "see mcpspy run --help")
    interception = options.interception
    options.command = interception.command = rest
    interception.name, interception.folder = options.session_name, options.folder
    # Before the server starts: running it without its rules is worse than not running it.
    check_interception(interception)
    return options


def _value(option: Option, text: str) -> Any:
    if option.choices and text not in option.choices:
        raise UsageError(f"{option.flags} {text}: not one of {', '.join(option.choices)}")
    try:
        return option.value_of(text)
    except UsageError as error:
        raise UsageError(f"{option.flags} {error.args[0]}", error.hint) from None
