"""`mcpspy run`: wrap a stdio server.

Parses its options without argparse: hosts start this command once per server, argparse costs 7 ms, and the grammar of
a wrapper is small. argparse prints the help from the same table.
"""

from __future__ import annotations

from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.intercept.interception import InterceptionOptions
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.io.stdio.base import NOISE, RunOptions
from mcpspy.io.stdio.run import run
from mcpspy.ui.cli.options import (
    LINE,
    REDACTION,
    RULES,
    SCRIPTS,
    SESSION,
    check_rules,
    describe,
    read_size,
    set_redaction_option,
    set_rule_option,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

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

OPTIONS: dict[str, tuple[str | None, str]] = {
    **SESSION,
    "--name": ("NAME", "session name (default: from the command)"),
    **LINE,
    "--stdout-noise": (
        "|".join(NOISE),
        "forward lines of the server's stdout that are not JSON (default), drop them, or print them on stderr",
    ),
    **RULES,
    **SCRIPTS,
    **REDACTION,
}


def configure(parser: argparse.ArgumentParser) -> None:
    describe(parser, OPTIONS)
    parser.add_argument("command", metavar="-- COMMAND", nargs="...", help="the server and its arguments")


def main(arguments: list[str]) -> int:
    """Run the wrapper; it ends this process with the server's exit status."""
    try:
        options = parse(arguments)
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
    values: dict[str, str] = {}
    redaction = RedactionOptions()
    interception = InterceptionOptions()
    # One decision on regular expressions for both, which warns once.
    interception.unsafe_regex = redaction.unsafe_regex
    redaction.unsafe_regex.say = say
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        flag, equals, value = rest.pop(0).partition("=")
        if flag == "--" and not equals:
            break
        if flag in ("-h", "--help"):
            return None
        if flag not in OPTIONS:
            from mcpspy.ui.cli.parser import did_you_mean

            hint = (
                did_you_mean(flag, [*OPTIONS, "--help"])
                or "put -- before the server's command; see mcpspy run --help"
            )
            raise UsageError(f"unknown option {flag}", hint)
        if OPTIONS[flag][0] is None:
            if equals:
                raise UsageError(f"{flag} takes no value")
        elif not equals:
            if not rest:
                raise UsageError(f"{flag} needs a value", f"use {flag} {OPTIONS[flag][0]}")
            value = rest.pop(0)
        if not set_redaction_option(redaction, flag, value) and not set_rule_option(
            interception, flag, value
        ):
            values[flag] = value
    if not rest:
        raise UsageError("missing COMMAND", "use mcpspy run -- COMMAND ARGS…")
    if not rest[0]:
        raise UsageError("COMMAND is empty", "see mcpspy run --help")
    options = RunOptions(rest)
    options.redaction = redaction
    options.interception = interception
    _set_recording(options, values)
    interception.command, interception.name = rest, options.session_name
    interception.folder = options.folder
    # Before the server starts: running it without its rules is worse than not running it.
    check_rules(interception)
    return options


def _set_recording(options: RunOptions, values: dict[str, str]) -> None:
    options.name = values.get("--name")
    options.record = values.get("--record")
    options.folder = values.get("--dir")
    options.recording = "--no-record" not in values
    if options.record is not None and not options.recording:
        raise UsageError("--record and --no-record exclude each other")
    if options.record == "":
        raise UsageError("--record needs a path")
    if "--max-size" in values:
        options.max_size = read_size("--max-size", values["--max-size"])
    if "--max-body" in values:
        options.max_body = read_size("--max-body", values["--max-body"])
    if "--stdout-noise" in values:
        options.noise = values["--stdout-noise"]
        if options.noise not in NOISE:
            raise UsageError(f"--stdout-noise {options.noise}: not one of {', '.join(NOISE)}")
