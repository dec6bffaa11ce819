"""The redaction options, shared by every command that records."""

from __future__ import annotations

import argparse

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.io.settings import UnsafeRegex
from mcpspy.io.stdio.base import RunOptions
from mcpspy.ui.cli.options import ALWAYS_REDACTED, REDACTION, Options, Switch
from mcpspy.ui.cli.parser import check_redaction, describe, read_redaction
from mcpspy.ui.cli.run import parse

WORDS = [
    "--redact-key", "a", "--redact-key", "b", "--redact-pattern", "c", "--redact-pointer", "/d", "--redact-env", "E",
    "--redact-rules", "r.toml", "--redact-entropy",
    "--unsafe-regex", "--config", "f.toml", "--no-redact",
]  # fmt: skip
WANTED = {
    "off": True,
    "keys": ["a", "b"],
    "patterns": ["c"],
    "pointers": ["/d"],
    "env": ["E"],
    "rules": ["r.toml"],
    "entropy": True,
    "config": "f.toml",
    "unsafe_regex": UnsafeRegex(is_allowed=True, config="f.toml"),
    "read": None,
}


def by_argparse(words: list[str], options: Options = REDACTION) -> RedactionOptions:
    parser = argparse.ArgumentParser()
    describe(parser, options)
    return read_redaction(parser.parse_args(words), options)


def test_argparse_and_run_read_them_alike() -> None:
    options = parse([*WORDS, "--", "s"])
    assert options is not None
    assert vars(by_argparse(WORDS)) == vars(options.redaction) == WANTED
    assert options.interception.unsafe_regex is options.redaction.unsafe_regex
    assert vars(by_argparse([])) == vars(RedactionOptions())


def test_every_option_arrives() -> None:
    for option in REDACTION:
        found = RunOptions([])
        option.put(found, True if isinstance(option, Switch) else "x")
        assert vars(found.redaction) != vars(RedactionOptions()), option.flags


def test_a_command_that_redacts_has_no_option_to_turn_it_off() -> None:
    with pytest.raises(SystemExit):
        by_argparse(["--no-redact"], ALWAYS_REDACTED)
    assert not by_argparse([], ALWAYS_REDACTED).off


def test_an_invalid_redaction_pattern_is_an_error_before_anything_starts() -> None:
    wrong = RedactionOptions()
    wrong.patterns = ["("]
    with pytest.raises(UsageError, match="regular expression"):
        check_redaction(wrong)
