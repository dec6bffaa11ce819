"""`mcpspy stats --context`: text, JSON and Markdown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpspy.ui.cli.main import main

MEMORY = str(Path(__file__).parents[3] / "recordings" / "memory-sdk-auto.jsonl")


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["stats", MEMORY, "--context", *options]) == 0
    return capsys.readouterr().out


def test_the_text_has_definitions_results_unused_tools_and_repeated_calls(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(capsys, "--top", "2").splitlines()

    assert lines[0] == "1 session of 1 server: memory-server"
    assert lines[1].startswith("before the first call: ")
    assert lines[1].endswith(" % of 200,000")
    assert "… 7 more (--top)" in lines
    assert any(line.startswith("never called: 2 of 9 tools") for line in lines)
    assert "read_graph {}                      2" in lines


def test_the_share_is_of_the_window_of_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    small = json.loads(printed(capsys, "--format", "json", "--window", "gpt-4o"))

    assert small["window"] == 128_000
    assert small["start"]["tokens"] == sum(tool["definition"]["tokens"] for tool in small["tools"])
    assert small["repeated"] == [
        {"server": "memory-server", "tool": "read_graph", "arguments": "{}", "calls": 2}
    ]


def test_markdown_has_one_table_for_each_part(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--format", "markdown")

    assert text.startswith("### mcpspy stats --context\n")
    assert text.count("|---|--:|") == 5
    assert "| `read_graph {}` | 2 |" in text
    assert "\n\n… 7 more\n" in printed(capsys, "--format", "markdown", "--top", "2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--context", "--window", "huge"], "--window huge: not a number of tokens"),
        (["--context", "-q", "tool:x"], "--context and --filter exclude each other"),
        (["--context", "--sort", "p95"], "--context and --sort exclude each other"),
        (["--window", "1m"], "--window requires --context"),
        (["--format", "markdown"], "--format markdown requires --context"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stats", MEMORY, *options]) == 2
    assert message in capsys.readouterr().err
