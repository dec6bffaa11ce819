"""The options of `mcpspy run`, which parses them without argparse."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.extras import install_command
from mcpspy.io.stdio.base import RunOptions
from mcpspy.ui.cli.parser import describe
from mcpspy.ui.cli.run import OPTIONS, main, parse


def parsed(*arguments: str) -> RunOptions:
    options = parse(list(arguments))
    assert options is not None
    return options


def test_words_after_the_dashes_are_the_command() -> None:
    options = parsed("--", "npx", "-y", "server", "--name", "theirs", "--")
    assert options.command == ["npx", "-y", "server", "--name", "theirs", "--"]
    assert options.name is None
    assert options.recording
    assert options.max_size == 0


def test_the_dashes_may_be_left_out_before_a_command() -> None:
    assert parsed("--name", "x", "python", "-m", "server").command == ["python", "-m", "server"]


@pytest.mark.parametrize("style", ["--name=x y", "--name x y"])
def test_a_value_follows_an_equals_sign_or_a_space(style: str) -> None:
    flag, value = ("--name=x y",), ()
    if "=" not in style:
        flag, value = ("--name",), ("x y",)  # type: ignore[assignment]
    assert parsed(*flag, *value, "--", "s").name == "x y"


def test_every_option_arrives() -> None:
    options = parsed("--name", "n", "--record", "r", "--dir", "d", "--max-size", "2k", "--", "s")
    assert (options.name, options.record, options.folder, options.max_size) == ("n", "r", "d", 2048)
    assert not parsed("--no-record", "--", "s").recording


def test_the_options_about_messages_arrive(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nwhen = "tool:x"\ndrop = true\n', encoding="utf-8")
    options = parsed(
        *("--rules", str(rules), "--rule", "tool:y => drop", "--rule=tool:z => drop"),
        *(
            "--call-timeout",
            "2min",
            "--slow=500ms",
            "--hold-timeout",
            "7",
            "--stdout-noise",
            "drop",
            "--",
            "s",
        ),
    )
    interception = options.interception
    assert (interception.files, interception.flags) == ([str(rules)], ["tool:y => drop", "tool:z => drop"])
    assert (interception.call_timeout, interception.slow, interception.hold_timeout, options.noise) == (
        120.0,
        0.5,
        7.0,
        "drop",
    )
    assert options.intercepts


@pytest.mark.parametrize(
    ("flags", "intercepts"),
    [
        ([], False),
        (["--hold-timeout", "7"], False),
        (["--stdout-noise", "pass"], False),
        (["--stdout-noise", "stderr"], True),
        (["--slow", "1"], True),
        (["--rule", "tool:x => drop"], True),
    ],
)
def test_messages_are_looked_at_only_if_there_is_a_reason(flags: list[str], intercepts: bool) -> None:
    assert parsed(*flags, "--", "s").intercepts == intercepts


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1b", 1),
        ("500k", 512_000),
        ("500KB", 512_000),
        ("100M", 104_857_600),
        ("2g", 2_147_483_648),
    ],
)
def test_sizes_have_units(text: str, size: int) -> None:
    assert parsed("--max-size", text, "--", "s").max_size == size


@pytest.mark.parametrize("text", ["", "0", "0k", "-1", "1.5k", "k", "1kk", "1t", "x", "1 k", "\u00b2"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a size"):
        parse(["--max-size", text, "--", "s"])


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "missing COMMAND"),
        (["--"], "missing COMMAND"),
        (["--name", "x"], "missing COMMAND"),
        (["--name"], "--name needs a value"),
        (["--nmae", "x", "--", "s"], "unknown option --nmae"),
        (["-x", "--", "s"], "unknown option -x"),
        (["--no-record=1", "--", "s"], "takes no value"),
        (["--no-record", "--record", "x", "--", "s"], "exclude each other"),
        (["--record=", "--", "s"], "needs a path"),
        (["--stdout-noise", "loud", "--", "s"], "not one of pass, drop, stderr"),
        (["--call-timeout", "soon", "--", "s"], "--call-timeout soon: not a duration"),
        (["--rule", "tool:x", "--", "s"], "--rule tool:x"),
        (["--on-change", "warn", "--", "s"], "--on-change warn: not one of report, hold, block"),
        (["--on-change", "hold", "--", "s"], "--on-change requires --trust FILE"),
        (["--first-use", "--", "s"], "--first-use requires --trust FILE"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments: list[str], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse(arguments)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_an_option_before_the_command_only(flag: str) -> None:
    assert parse([flag]) is None
    assert parse(["--name", "x", flag]) is None
    assert parsed("--", "server", flag).command == ["server", flag]


def test_the_help_names_every_option() -> None:
    parser = ArgumentParser("mcpspy run")
    describe(parser, OPTIONS)
    text = parser.format_help()
    assert all(option.name in text for option in OPTIONS)


def test_a_usage_error_is_one_line_and_exit_code_2(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--nmae", "x"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("mcpspy: run: unknown option --nmae (")
    assert err.count("\n") == 1


def test_a_usage_error_starts_nothing() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "mcpspy", "run", "--max-size", "x", "--", "echo", "started"],
        capture_output=True,
        check=False,
        timeout=20,
    )
    assert ended.returncode == 2
    assert ended.stdout == b""
    assert ended.stderr.count(b"\n") == 1


def test_a_package_that_is_not_installed_is_reported_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.startswith(("mcpspy.core.rules", "msgspec"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "msgspec", None)

    assert main(["--rule", "tool:x => drop", "--", "true"]) == 3
    assert capfd.readouterr().err == (
        f"mcpspy: run: the package msgspec is not installed ({install_command()})\n"
    )
