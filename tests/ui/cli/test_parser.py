"""Usage errors: one line for every command, with the wrong value and a suggestion."""

from __future__ import annotations

import argparse
import sys

import pytest

from mcpspy.__main__ import main
from mcpspy.errors import UsageError
from mcpspy.ui.cli.main import COMMANDS, described, module_of
from mcpspy.ui.cli.parser import CommandParser, describe

NEEDS = {
    "run": "missing COMMAND (use mcpspy run -- COMMAND ARGS…)",
    "http": "missing the server (use --upstream URL, -- COMMAND, or --forward)",
    "exec": "missing COMMAND (use mcpspy exec -- COMMAND ARGS…)",
    "bridge": "missing --upstream or --upstream-env (see mcpspy bridge --help)",
    "diff": "missing OLD and NEW (see mcpspy diff --help)",
    "replay": "missing RECORDING (see mcpspy replay --help)",
    "mock": "missing RECORDING (or use --from-listing LISTING, or --fixtures FILE)",
    "send": "missing SESSION and METHOD (use mcpspy send last tools/list)",
    "wrap": "missing HOST|FILE (see mcpspy wrap --help)",
    "unwrap": "missing HOST|FILE (see mcpspy unwrap --help)",
    "redact": "missing SESSION (see mcpspy redact --help)",
    "import": "missing FILE (see mcpspy import --help)",
}
"""The error of each command that needs arguments."""

WRONG = {
    "stats --sort cuont": "stats: --sort cuont: not one of time, count, errors, p50, p95, p99, max, sent, back (did you "
    "mean count?)",
    "stats --top=-1": "stats: --top -1: not a count (use 0 or a positive integer)",
    "stats --top": "stats: --top needs a value (see mcpspy stats --help)",
    "stats -q": "stats: --filter needs a value (see mcpspy stats --help)",
    "stats -q tool:": "stats: --filter, character ",
    "stats --format yaml": "stats: --format yaml: not one of text, json",
    "stats -z": "stats: unknown option -z (see mcpspy stats --help)",
    "lint --fail-on errors": "lint: --fail-on errors: not one of error, warning, info (did you mean error?)",
    "lint --select ENV999": "lint: unknown rule code ENV999 (see docs/lint.md; use codes such as ENV, LIFE3, SEC201)",
    "diff a": "diff: missing NEW (see mcpspy diff --help)",
    "diff a b c": "diff: unexpected argument c (see mcpspy diff --help)",
    "diff a b --dates=yes": "diff: --dates takes no value",
    "diff a b --slower-than x": "diff: --slower-than x: ",
    "diff a b -o report": "diff: --output requires --format (use --format json, junit, markdown)",
    "http --upstrem http://a": "http: unknown option --upstrem (did you mean --upstream?)",
    "http --upstream http://a --forward": "http: --forward and --upstream exclude each other",
    "http --forward --slow soon": "http: --slow soon: not a duration (use 30, 30s, 500ms or 5min)",
    "http --upstream http://a --listen 8000x": "http: --listen 8000x: not a valid address (use HOST:PORT)",
    "mock a --speed fast": "mock: --speed fast: not a speed (0: no pauses, 1: as recorded, 2: twice as fast)",
    "ca --cert --format json": "ca: --format and --cert exclude each other",
    "send last ping --timeout soon": "send: --timeout soon: not a duration (use 30, 30s, 500ms or 5min)",
    "send --tmeout 3 last ping": "send: unknown option --tmeout (did you mean --timeout?)",
    "replay a --repeat 0": "replay: --repeat 0: not a count (use a positive integer)",
    "completion tcsh": "completion: SHELL tcsh: not one of bash, zsh, fish",
    "import a --from hra": "import: --from hra: not one of har, ",
    "run --no-record=1 -- x": "run: --no-record takes no value",
    "shwo": "unknown command shwo (did you mean show?)",
    "help shwo": "unknown command shwo (did you mean show?)",
    "--versoin": "unknown option --versoin (did you mean --version?)",
}
"""Command line: the beginning of its error."""


def parser_of(command: str) -> argparse.ArgumentParser:
    module = module_of(command)
    parser = CommandParser(**described(command, module))
    describe(parser, module.OPTIONS)
    return parser


def error_of(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> str:
    """Run a wrong command line; return its error, which is one line."""
    monkeypatch.setattr(sys, "argv", ["mcpspy", *arguments])
    assert main() == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("mcpspy: ")
    return err.removeprefix("mcpspy: ").removesuffix("\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_misspelled_option_of_any_command_is_reported_with_the_nearest_one(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = [action for action in parser_of(command)._actions if action.help != argparse.SUPPRESS]
    for option in (action.option_strings[-1] for action in shown if action.option_strings):
        error = error_of([command, f"{option}x"], monkeypatch, capfd)
        assert error == f"{command}: unknown option {option}x (did you mean {option}?)"
    error = error_of([command, "--qqqqqqqq"], monkeypatch, capfd)
    assert error.startswith(f"{command}: unknown option --qqqqqqqq (")
    assert error.endswith(f"see mcpspy {command} --help)")


@pytest.mark.parametrize("command", NEEDS)
def test_a_missing_argument_is_named(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert error_of([command], monkeypatch, capfd) == f"{command}: {NEEDS[command]}"


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_value_is_named_with_the_reason(
    line: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert error_of(line.split(), monkeypatch, capfd).startswith(WRONG[line])


def test_hostile_words_are_sanitized() -> None:
    for words in (["--\x1b[2J"], ["a", "\x1b[2J"], ["--sort=\x1b[2J"]):
        with pytest.raises(UsageError) as error:
            parser_of("stats" if len(words) == 1 else "ls").parse_args(words)
        assert "\x1b" not in str(error.value)


@pytest.mark.parametrize(
    "words",
    [["--ignore-path", "-1", "a"], ["--ignore-path", "-a b", "a"], ["-o-x", "a"], ["--", "--unknown"]],
)
def test_a_value_is_not_taken_for_an_unknown_option(words: list[str]) -> None:
    with pytest.raises(UsageError, match="missing NEW"):
        parser_of("diff").parse_args(words)


def test_two_dashes_are_the_value_of_an_option() -> None:
    parser = CommandParser()
    parser.add_argument("-q", "--filter")

    assert parser.parse_args(["-q=--"]).filter == "--"
    assert parser.parse_args(["--filter=--"]).filter == "--"
