"""The options for interception rules."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.intercept.interception import InterceptionOptions
from mcpspy.io.stdio.base import RunOptions
from mcpspy.ui.cli.options import RULES, check_interception
from mcpspy.ui.cli.parser import describe, fill
from mcpspy.ui.cli.run import parse


def by_argparse(*arguments: str) -> InterceptionOptions:
    parser = argparse.ArgumentParser()
    describe(parser, RULES)
    return fill(RunOptions([]), parser.parse_args(arguments), RULES).interception


def by_run(*arguments: str) -> InterceptionOptions:
    options = parse([*arguments, "--", "server"])
    assert options is not None
    return options.interception


@pytest.mark.parametrize("parse", [by_argparse, by_run])
def test_argparse_and_run_read_them_alike(parse: Callable[..., InterceptionOptions], tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("a.toml", "b.toml")]
    for file in files:
        Path(file).write_text("", encoding="utf-8")
    given = ["--rules", files[0], "--rule", "x => drop", "--rules", files[1]]
    found = parse(*given, "--call-timeout", "30", "--slow", "500ms", "--hold-timeout", "2min")

    assert (found.files, found.flags) == (files, ["x => drop"])
    assert (found.call_timeout, found.slow, found.hold_timeout) == (30, 0.5, 120)


@pytest.mark.parametrize("parse", [by_argparse, by_run])
def test_nothing_is_the_default(parse: Callable[..., InterceptionOptions]) -> None:
    found = parse()

    assert not found.is_active
    assert found.hold_timeout == 300


@pytest.mark.parametrize("value", ["0", "soon", "-1", ""])
def test_a_time_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match=f"--slow {value}: not a duration"):
        by_run("--slow", value)


def test_rules_are_read_before_anything_is_started() -> None:
    check_interception(by_argparse("--rule", "tool:echo => drop"))
    check_interception(InterceptionOptions())
    with pytest.raises(UsageError, match="did you mean drop"):
        check_interception(by_argparse("--rule", "tool:echo => droop"))
