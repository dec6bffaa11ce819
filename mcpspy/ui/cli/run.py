"""`mcpspy run`: wrap a stdio server.

Reads its options by hand: hosts start this command once per server, argparse costs 7 ms, and a wrapper's grammar is
small. argparse prints the help from the same table.
"""

from __future__ import annotations

from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.interception import InterceptionOptions
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.io.stdio.base import NOISE, RunOptions
from mcpspy.io.stdio.run import run
from mcpspy.ui.cli.options import (
    REDACTION,
    RULES,
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

Put it in a host's config where the server's command stands: the command becomes
"mcpspy", the arguments "run", "--", and what stood there before.

exit codes: the server's own; if a signal ended the server, the same signal ends
mcpspy; 2 usage, rules included; 3 rules cannot be read; 126 not executable; 127 not found. A recording that cannot be
written costs a line on stderr, never the traffic.
"""

OPTIONS: dict[str, tuple[str | None, str]] = {
    "--name": ("NAME", "what to call the session (default: taken from the command)"),
    "--record": ("PATH", "record to this file, or into this folder; never over a file that exists"),
    "--no-record": (None, "record nothing"),
    "--dir": ("DIR", "the folder of sessions (default: $MCPSPY_DIR, else in the user's data folder)"),
    "--max-size": ("SIZE", "go on in a next part when a part has this size: 500k, 100M, 2G (default: never)"),
    "--stdout-noise": (
        "|".join(NOISE),
        "lines of the server's stdout that are no JSON: pass them on (default), drop them, or put them on stderr",
    ),
    **RULES,
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
        say(str(error))
        return error.exit_code
    if options is not None:
        run(options)
    from mcpspy.ui.cli.main import main as run_any

    return run_any(["run", "--help"])


def parse(arguments: list[str]) -> RunOptions | None:
    """Return the options, None if the help was requested; raise UsageError."""
    values: dict[str, str] = {}
    redaction = RedactionOptions()
    interception = InterceptionOptions()
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        flag, equals, value = rest.pop(0).partition("=")
        if flag == "--" and not equals:
            break
        if flag in ("-h", "--help"):
            return None
        if flag not in OPTIONS:
            raise UsageError(
                f"run: unknown option {flag}", "put -- before the server's command; see mcpspy run --help"
            )
        if OPTIONS[flag][0] is None:
            if equals:
                raise UsageError(f"run: {flag} takes no value")
        elif not equals:
            if not rest:
                raise UsageError(f"run: {flag} needs a value", f"{flag} {OPTIONS[flag][0]}")
            value = rest.pop(0)
        if not set_redaction_option(redaction, flag, value) and not set_rule_option(
            interception, flag, value
        ):
            values[flag] = value
    if not rest:
        raise UsageError("run: no command to wrap", "mcpspy run -- COMMAND ARGS…")
    options = RunOptions(rest)
    options.redaction = redaction
    options.interception = interception
    _set_recording(options, values)
    # Before the server starts: a server that runs without its rules is worse than none.
    check_rules(interception)
    return options


def _set_recording(options: RunOptions, values: dict[str, str]) -> None:
    options.name = values.get("--name")
    options.record = values.get("--record")
    options.folder = values.get("--dir")
    options.recording = "--no-record" not in values
    if options.record is not None and not options.recording:
        raise UsageError("run: --record and --no-record exclude each other")
    if options.record == "":
        raise UsageError("run: --record needs a path")
    if "--max-size" in values:
        options.max_size = read_size("run: --max-size", values["--max-size"])
    if "--stdout-noise" in values:
        options.noise = values["--stdout-noise"]
        if options.noise not in NOISE:
            raise UsageError(f"run: --stdout-noise {options.noise}: one of {', '.join(NOISE)}")
