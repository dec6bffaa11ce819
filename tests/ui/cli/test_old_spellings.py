"""Old spellings of options work like the new ones for one release, and the help does not show them."""

from __future__ import annotations

import pytest

from mcpspy.ui.cli.main import COMMANDS
from tests.ui.cli.test_parser import parser_of

SAME = {
    "stats": [("--json", "--format json")],
    "hosts": [("--json", "--format json")],
    "ca": [("--json", "--format json")],
    "send": [("last ping --json", "last ping --format json")],
    "redact": [("x --check --json", "x --check --format json")],
    "import": [
        ("x --json", "x --format json"),
        ("x --out y", "x --output y"),
        ("x --format har", "x --from har"),
        ("x --format mcp-rec --json", "x --from mcp-rec --format json"),
    ],
    "diff": [
        ("a b --json", "a b --format json"),
        ("a b --ignore ping --ignore pong", "a b --ignore-path ping --ignore-path pong"),
    ],
    "replay": [("a --json", "a --format json"), ("a --ignore ping", "a --ignore-path ping")],
    "mock": [("a --ignore /params/x", "a --ignore-path /params/x"), ("a --append f", "a --record f")],
    "http": [("--forward --ignore x --ignore-host y", "--forward --ignore-host x --ignore-host y")],
    "exec": [("--ignore x", "--ignore-host x")],
}

FILES = {"--junit": "junit", "--markdown": "markdown"}


@pytest.mark.parametrize("command", SAME)
def test_an_old_spelling_means_the_new_one(command: str) -> None:
    for old, new in SAME[command]:
        parser = parser_of(command)
        assert vars(parser.parse_args(old.split())) == vars(parser.parse_args(new.split()))


@pytest.mark.parametrize("command", ["diff", "replay"])
def test_the_old_report_options_take_a_file(command: str) -> None:
    words = ["a", "b"] if command == "diff" else ["a"]
    for flag, name in FILES.items():
        assert getattr(parser_of(command).parse_args([*words, flag, "f"]), name) == "f"


def test_the_old_output_of_redact_is_an_argument() -> None:
    assert parser_of("redact").parse_args(["a", "b"]).old_output == "b"


@pytest.mark.parametrize("command", COMMANDS)
def test_one_spelling_per_purpose_is_shown(command: str) -> None:
    shown = set(parser_of(command).format_help().replace(",", " ").split("\nexamples:")[0].split())

    assert not shown & {"--out", "--append", "--junit", "--markdown", "old_output"}
    assert ("--ignore" in shown) == (command == "lint")
    assert ("-o" in shown) == ("--output" in shown)
