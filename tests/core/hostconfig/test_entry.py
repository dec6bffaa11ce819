"""Entries of servers that are added to configurations, and removed from them."""

from __future__ import annotations

import pytest

from mcpspy.core.hostconfig.edit import ServersLocation
from mcpspy.core.hostconfig.entry import added, removed
from mcpspy.core.hostconfig.layout import STANDARD, ConfigSyntax
from mcpspy.errors import UsageError
from mcpspy.io.hosts import HOSTS
from mcpspy.io.hosts.table import PROJECT
from tests.core.hostconfig import configs

ARGV = ["/opt/my tools/mcpspy", "mcp", "--allow-replay", 'python "w".py']
JSON = ServersLocation(ConfigSyntax.JSON, ("mcpServers",), STANDARD)
TOML = ServersLocation(ConfigSyntax.TOML, ("mcp_servers",), STANDARD)
YAML = ServersLocation(ConfigSyntax.YAML, ("mcpServers",), STANDARD)
HOMES = [pytest.param(host.location, id=host.name) for host in HOSTS if PROJECT not in host.location.keys]


def commands(text: str, location: ServersLocation) -> dict[str, list[str]]:
    return {server.name: server.argv for server in location.servers(text)}


@pytest.mark.parametrize("location", HOMES)
def test_an_entry_is_added_beside_the_others_and_removed_again(location: ServersLocation) -> None:
    text = configs.smallest(location)

    new = added(text, location, "mcpspy", ARGV)

    assert commands(new, location) == {**commands(text, location), "mcpspy": ARGV}
    assert commands(removed(new, location, "mcpspy"), location) == commands(text, location)


@pytest.mark.parametrize("location", HOMES)
def test_an_entry_is_added_to_an_empty_file(location: ServersLocation) -> None:
    assert commands(added("", location, "mcpspy", ARGV), location) == {"mcpspy": ARGV}


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"a": {"command": "x"}}}',
        '{\n  // mine\n  "mcpServers": {\n    "a": {"command": "x"},\n  },\n  "theme": 1\n}\n',
        '{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"command": "x"\r\n\t\t}\r\n\t}\r\n}\r\n',
    ],
    ids=["one line", "comments and trailing commas", "tabs and CR LF"],
)
def test_removing_restores_the_bytes_of_a_file_with_servers(text: str) -> None:
    new = added(text, JSON, "mcpspy", ARGV)

    assert new != text
    assert removed(new, JSON, "mcpspy") == text


def test_the_first_entry_is_removed_with_the_comma_after_it() -> None:
    text = '{"mcpServers": {\n  "mcpspy": {"command": "x"},\n  "b": {"command": "y"}\n}}'

    assert removed(text, JSON, "mcpspy") == '{"mcpServers": {\n  "b": {"command": "y"}\n}}'


@pytest.mark.parametrize(
    ("text", "location", "why"),
    [
        ('mcp_servers = {a = {command = "x"}, b = {command = "y"}}\n', TOML, "without changing others"),
        ("mcpServers: {a: {command: x}, b: {command: y}}\n", YAML, "without changing others"),
        ('[mcp_servers.a]\ncommand = "x"\n[mcp_servers.a.env]\nA = "1"\n', TOML, "not defined in one place"),
        ('mcp_servers.a.command = "x"\nmcp_servers.a.args = []\n', TOML, "not defined in one place"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', JSON, "not defined in one place"),
    ],
    ids=["inline table", "flow mapping", "second table", "dotted keys", "duplicate key"],
)
def test_an_entry_that_is_not_one_piece_of_the_file_is_left_to_the_user(
    text: str, location: ServersLocation, why: str
) -> None:
    with pytest.raises(UsageError, match=f"a: its entry .*{why} .*remove it by hand"):
        removed(text, location, "a")


def test_the_only_entry_leaves_an_empty_object() -> None:
    text = '{\n  "mcpServers": {}\n}\n'

    assert removed(added(text, JSON, "mcpspy", ARGV), JSON, "mcpspy") == text


def test_an_entry_of_the_same_name_is_replaced() -> None:
    old = added("{}", JSON, "mcpspy", ["old"])

    assert commands(added(old, JSON, "mcpspy", ARGV), JSON) == {"mcpspy": ARGV}


def test_a_file_without_the_entry_stays_unchanged() -> None:
    assert removed('{"mcpServers":{}}', JSON, "mcpspy") == '{"mcpServers":{}}'


def test_a_place_that_is_not_an_object_of_servers_is_refused_with_the_entry_to_add() -> None:
    yaml = ServersLocation(ConfigSyntax.YAML, ("mcp", "servers"), STANDARD)

    with pytest.raises(UsageError, match=r"mcp\.servers: no entry can be added here .*by hand.*mcpspy"):
        added("mcp: {servers: {a: {command: x}}}\n", yaml, "mcpspy", ARGV)


def test_an_entry_is_not_added_to_an_inline_table() -> None:
    with pytest.raises(UsageError, match=r"mcp_servers: no entry can be added here .*by hand.*mcpspy"):
        added('mcp_servers = {a = {command = "x"}}\n', TOML, "mcpspy", ARGV)
