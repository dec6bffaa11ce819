"""The table of hosts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mcpspy.core.hostconfig.layout import LOGIN, TYPE, ConfigSyntax
from mcpspy.io.hosts import HOSTS, Host, table

ROWS = pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
SYSTEMS = ("linux", "darwin", "win32")


def test_a_name_is_one_host() -> None:
    assert len({host.name for host in HOSTS}) == len(HOSTS)
    assert all(host.name == host.name.lower() and " " not in host.name for host in HOSTS)


@ROWS
def test_a_host_has_a_path_on_every_system_and_a_source(host: Host) -> None:
    for system in SYSTEMS:
        paths = host.paths(system, {})
        assert paths
        endings = {ConfigSyntax.JSON: ".json", ConfigSyntax.TOML: ".toml", ConfigSyntax.YAML: ".yaml"}
        assert {path.suffix.removesuffix("c") for path in paths} == {endings[host.location.syntax]}
    assert host.docs.startswith("https://")


@ROWS
def test_a_file_is_the_users_or_the_projects_on_every_system(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    is_users = {path.is_absolute() for system in SYSTEMS for path in host.paths(system, {})}

    assert len(is_users) == 1
    assert is_users == {not host.name.endswith(("-project", "-workspace"))}


@ROWS
def test_no_member_of_an_entry_is_two_things(host: Host) -> None:
    layout = host.location.layout
    url = {*layout.url, *TYPE, layout.headers[0]}
    assert not url & LOGIN
    assert not url & {"command", "args", "env", layout.passed}


def test_no_two_hosts_share_servers() -> None:
    for system in SYSTEMS:
        places = [(path, host.location.keys) for host in HOSTS for path in host.paths(system, {})]
        assert len(set(places)) == len(places)


def test_folders_that_the_user_has_moved_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    known = {host.name: host for host in HOSTS}

    def path(name: str, system: str, **environ: str) -> str:
        return known[name].paths(system, environ)[0].as_posix()

    assert path("codex", "linux") == "/home/ada/.codex/config.toml"
    assert path("codex", "linux", CODEX_HOME="/elsewhere") == "/elsewhere/config.toml"
    assert path("claude-code", "darwin") == "/home/ada/.claude.json"
    assert path("claude-code", "darwin", CLAUDE_CONFIG_DIR="/c") == "/c/.claude.json"
    assert path("vscode", "linux", XDG_CONFIG_HOME="/x") == "/x/Code/User/mcp.json"
    assert path("vscode", "linux", XDG_CONFIG_HOME="x") == "/home/ada/.config/Code/User/mcp.json"
    assert path("vscode", "darwin") == "/home/ada/Library/Application Support/Code/User/mcp.json"
    assert path("zed", "win32", APPDATA="/R") == "/R/Zed/settings.json"


def test_a_host_is_one_row_and_a_row_names_its_page() -> None:
    source = Path(table.__file__).read_text(encoding="utf-8")
    made = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    calls = [call for call in made if isinstance(call.func, ast.Name) and call.func.id == "Host"]

    assert len(calls) == len(HOSTS)
