"""The table of options: what argparse and `mcpspy run` make of it, and which options fit together."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.stdio.base import RunOptions
from mcpspy.ui.cli.main import COMMANDS, module_of
from mcpspy.ui.cli.options import (
    COMMAND,
    FOLDER,
    RECORDING,
    SCRIPTS,
    SESSION,
    Argument,
    Option,
    Repeated,
    Switch,
    check,
)
from mcpspy.ui.cli.parser import describe, fill, given, integer, speed, without

TABLE = (
    Switch("--all", "every one", excludes=("--filter", "--format csv", "SESSION")),
    Option("-q --filter", "QUERY", "these", requires="--all or --format json", hint="use both"),
    Option("--format", None, "how", choices=("text", "json", "csv"), default="text"),
    Repeated("--rule", "RULE", "one", requires="add"),
    Option("--force", "FILE", "that", requires="--filter QUERY", excludes=(COMMAND,)),
    Argument("action", None, "what", nargs="?", choices=("add", "rm")),
    Argument("session", "SESSION", "which", nargs="?"),
)


def parsed(*words: str, table: Sequence[Option] = TABLE) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="x")
    describe(parser, table)
    return parser.parse_args(words)


def test_a_table_becomes_switches_values_and_lists_in_its_order() -> None:
    parser = argparse.ArgumentParser(prog="x")
    describe(parser, (TABLE[0], TABLE[1], TABLE[3], FOLDER))

    given_words = parser.parse_args(["-q", "a", "--rule", "b", "--rule", "c"])
    assert vars(given_words) == {"all": False, "filter": "a", "rule": ["b", "c"], "dir": None}
    assert vars(parser.parse_args(["--all"])) == {"all": True, "filter": None, "rule": [], "dir": None}
    assert parser.format_usage() == "usage: x [-h] [--all] [-q QUERY] [--rule RULE] [--dir DIR]\n"
    assert "one; repeatable" in parser.format_help()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--all", ""),
        ("--format json -q x --force f add s --rule r", ""),
        ("-q x", "--filter requires --all or --format json (use both)"),
        ("-q x --format csv", "--filter requires --all or --format json (use both)"),
        ("--all -q x", "--all and --filter exclude each other"),
        ("--all --format csv", "--all and --format csv exclude each other"),
        ("--all add s", "--all and SESSION exclude each other"),
        ("--rule r", "--rule requires add"),
        ("rm --rule r", "--rule requires add"),
        ("--force f", "--force requires --filter QUERY"),
    ],
)
def test_options_that_do_not_fit_together_are_one_line(words: str, problem: str) -> None:
    try:
        check(TABLE, given(TABLE, parsed(*words.split())))
        found = ""
    except UsageError as error:
        found = str(error)

    assert found == problem


def test_a_command_after_two_dashes_is_an_option_too() -> None:
    with pytest.raises(UsageError, match="--force and -- COMMAND exclude each other"):
        check(TABLE, {"--force": "f", "--filter": "x", "--format": "json", COMMAND: ["server"]})


def test_an_option_in_the_table_is_required_or_excluded_by_its_name() -> None:
    """A misspelled name would never be given."""
    for command in COMMANDS:
        options = module_of(command).OPTIONS
        known = {option.name for option in options} | {
            choice for option in options if option.name == "ACTION" for choice in option.choices
        }
        needs = [need for option in options if option.requires for need in option.requires.split(" or ")]
        for text in [*needs, *(each for option in options for each in option.excludes)]:
            assert text in known or text.partition(" ")[0] in known, (command, text)


def test_values_go_into_the_settings_by_their_paths() -> None:
    words = "--record f --dir d --max-size 2k --script a --script b --script-option x=1 --script-timeout 2".split()
    table = (*SESSION, *SCRIPTS)
    options = fill(RunOptions([]), parsed(*words, "--script-timeout", "request=1s", table=table), table)

    assert (options.record, options.folder, options.max_size, options.recording) == ("f", "d", 2048, True)
    scripts = options.interception.scripts
    assert (scripts.files, scripts.values) == (["a", "b"], {"x": "1"})
    assert (scripts.timeouts, scripts.is_reloaded) == ({"": 2.0, "request": 1.0}, False)
    assert not fill(RunOptions([]), parsed("--no-record", table=table), table).recording


def test_a_line_loses_some_options_with_their_values() -> None:
    words = (
        "a --script x --reload --script-option=b=1 --speed 1 --script-timeout 2s b -- c --script d".split()
    )

    assert without(SCRIPTS, words) == "a --speed 1 b -- c --script d".split()


def test_a_session_that_is_recorded_has_all_options_of_a_recording() -> None:
    assert {*SESSION} > {*RECORDING} > {FOLDER}


@pytest.mark.parametrize(
    ("text", "problem"), [("fast", "speed"), ("-1", "speed"), ("nan", "speed"), ("inf", "speed")]
)
def test_a_speed_is_a_number_from_0_on(text: str, problem: str) -> None:
    assert [speed(each) for each in ("0", "1.5")] == [0.0, 1.5]
    with pytest.raises(UsageError, match=f"not a {problem}"):
        speed(text)


def test_an_integer_has_limits() -> None:
    read = integer("count", "use 2 to 4", 2, 4)

    assert [read(text) for text in "234"] == [2, 3, 4]
    for text in ("1", "5", "", "x", "-3", "3.0", "\u00b3"):
        with pytest.raises(UsageError, match=r"not a count \(use 2 to 4\)"):
            read(text)
