"""Command lines of mcpspy in the entries of a configuration."""

from __future__ import annotations

import pytest

from mcpspy.core.hostconfig import command_line
from mcpspy.core.hostconfig.command_line import BridgeUpstream
from mcpspy.ui.cli import bridge, run
from mcpspy.ui.cli.options import Switch

PROGRAMS = [
    ["mcpspy"],
    ["/opt/bin/mcpspy"],
    [r"C:\Users\Ada Lovelace\Scripts\mcpspy.exe"],
    ["/opt/mcpspy-0.1.0-linux-x86_64"],
    [r"C:\mcpspy-0.1.0-windows-amd64.exe"],
    ["/opt/renamed", "-m", "mcpspy"],
    ["/usr/bin/python3.11", "-m", "mcpspy"],
    [r"C:\venv\python.exe", "-m", "mcpspy"],
    ["/usr/bin/python3.11", "-EP", "-m", "mcpspy"],
    ["/usr/bin/python3.11", "-EP", "/opt/bin/mcpspy"],
    ["/home/ada/.local/bin/uvx", "mcpspy"],
    ["uvx", "mcpspy@latest"],
    ["uvx", "mcpspy[mitm]"],
]


@pytest.mark.parametrize("program", PROGRAMS, ids=" ".join)
@pytest.mark.parametrize("name", ["memory", "--", "-x", "", "a b"])
@pytest.mark.parametrize("has_args", [True, False])
def test_a_written_command_is_read_again(program: list[str], name: str, has_args: bool) -> None:
    original = ["npx", "--", "--name", "theirs"]
    written = [*program, *command_line.run(name, ["--dir", "/d"], has_args=has_args), *original]

    ours = command_line.read(written)

    assert ours is not None
    assert (ours.does, ours.option("--name"), ours.option("--dir")) == ("run", name, "/d")
    assert written[ours.at :] == original
    assert ours.is_joined is not has_args


@pytest.mark.parametrize("name", ["remote", "-x"])
def test_a_bridge_names_its_headers_by_variable(name: str) -> None:
    words = command_line.bridge(
        name, [], BridgeUpstream("https://x.org/mcp", "", [("X-Key", "K")], "T", False)
    )
    ours = command_line.read(["mcpspy", *words])

    assert words[-4:] == ["--header-env", "X-Key=K", "--bearer-env", "T"]
    assert ours is not None
    assert (ours.does, ours.option("--name"), ours.option("--upstream")) == (
        "bridge",
        name,
        "https://x.org/mcp",
    )


def test_the_options_with_a_value_are_those_of_the_commands() -> None:
    switches = {each.flags for each in (*run.OPTIONS, *bridge.OPTIONS) if isinstance(each, Switch)}

    assert switches == command_line.SWITCHES


def test_a_name_that_looks_like_an_option_is_joined_to_its_own() -> None:
    assert command_line.bridge("-x", [], BridgeUpstream("u", "", [], "", False))[1] == "--name=-x"


def test_a_url_that_is_a_secret_is_named_by_its_variable() -> None:
    words = command_line.bridge("a", [], BridgeUpstream("", "MCPSPY_UPSTREAM", [], "", True))

    assert words == ["bridge", "--name", "a", "--upstream-env", "MCPSPY_UPSTREAM", "--sse"]


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["npx", "-y", "mcpspy", "run"],
        ["mcpspy"],
        ["mcpspy", "mock", "x.jsonl"],
        ["python", "-m", "other", "run"],
        ["python", "mcpspy", "run"],
        ["uvx", "other"],
        ["mcpspy-like", "run", "--", "x"],
    ],
    ids=" ".join,
)
def test_another_command_is_not_recognised(line: list[str]) -> None:
    assert command_line.read(line) is None


def test_without_the_dashes_the_command_begins_with_the_first_word() -> None:
    ours = command_line.read(["mcpspy", "run", "--no-record", "npx", "-y"])

    assert ours is not None
    assert ours.at == 3
