"""The redaction options, shared by every command that records."""

from __future__ import annotations

import argparse

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.io.settings import UnsafeRegex
from mcpspy.ui.cli.options import (
    REDACTION,
    check_redaction,
    describe_redaction,
    read_redaction,
    set_redaction_option,
)
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


def test_argparse_and_run_read_them_alike() -> None:
    parser = argparse.ArgumentParser()
    describe_redaction(parser)
    options = parse([*WORDS, "--", "s"])
    assert options is not None
    assert vars(read_redaction(parser.parse_args(WORDS))) == vars(options.redaction) == WANTED
    assert options.interception.unsafe_regex is options.redaction.unsafe_regex
    assert vars(read_redaction(parser.parse_args([]))) == vars(RedactionOptions())


def test_every_option_is_taken_and_no_other() -> None:
    for flag, (metavar, _) in REDACTION.items():
        before = vars(RedactionOptions())
        found = RedactionOptions()
        assert set_redaction_option(found, flag, "x" if metavar else "")
        assert vars(found) != before, flag
    assert not set_redaction_option(RedactionOptions(), "--record", "x")


def test_a_command_that_redacts_has_no_option_to_turn_it_off() -> None:
    parser = argparse.ArgumentParser()
    describe_redaction(parser, can_be_off=False)
    with pytest.raises(SystemExit):
        parser.parse_args(["--no-redact"])
    assert not read_redaction(parser.parse_args([])).off


def test_an_invalid_redaction_pattern_is_an_error_before_anything_starts() -> None:
    wrong = RedactionOptions()
    wrong.patterns = ["("]
    with pytest.raises(UsageError, match="regular expression"):
        check_redaction(wrong)
