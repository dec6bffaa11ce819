"""The options for interception rules."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.intercept.interception import InterceptionOptions
from mcpspy.ui.cli.options import check_rules, describe_rules, read_rules, set_rule_option


def by_argparse(*arguments: str) -> InterceptionOptions:
    parser = argparse.ArgumentParser()
    describe_rules(parser)
    return read_rules(parser.parse_args(arguments))


def by_hand(*arguments: str) -> InterceptionOptions:
    found = InterceptionOptions()
    for flag, value in zip(arguments[::2], arguments[1::2], strict=True):
        assert set_rule_option(found, flag, value)
    return found


@pytest.mark.parametrize("parse", [by_argparse, by_hand])
def test_argparse_and_run_read_them_alike(parse: Callable[..., InterceptionOptions]) -> None:
    given = ["--rules", "a", "--rule", "x => drop", "--rules", "b", "--call-timeout", "30", "--slow", "500ms"]
    found = parse(*given, "--hold-timeout", "2min")

    assert (found.files, found.flags) == (["a", "b"], ["x => drop"])
    assert (found.call_timeout, found.slow, found.hold_timeout) == (30, 0.5, 120)


@pytest.mark.parametrize("parse", [by_argparse, by_hand])
def test_nothing_is_the_default(parse: Callable[..., InterceptionOptions]) -> None:
    found = parse()

    assert not found.is_active
    assert found.hold_timeout == 300


def test_other_options_are_not_taken() -> None:
    assert not set_rule_option(InterceptionOptions(), "--name", "x")


@pytest.mark.parametrize("value", ["0", "soon", "-1", ""])
def test_a_time_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match=f"--slow {value}: not a duration"):
        set_rule_option(InterceptionOptions(), "--slow", value)


def test_rules_are_read_before_anything_is_started() -> None:
    check_rules(by_hand("--rule", "tool:echo => drop"))
    check_rules(InterceptionOptions())
    with pytest.raises(UsageError, match="did you mean drop"):
        check_rules(by_hand("--rule", "tool:echo => droop"))
