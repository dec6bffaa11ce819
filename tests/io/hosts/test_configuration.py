"""Resolution of a host or a path to a configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.io.hosts.configuration import find, other_files, target
from mcpspy.io.hosts.table import HOSTS, Host
from tests.core.hostconfig import configs

STDIO = {"a": {"command": "x"}}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    project = folder / "work" / "project"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    return folder


def write(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def write_for(host: Host) -> Path:
    path = host.paths()[-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(configs.smallest(host.location), encoding="utf-8")
    return path


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_no_host_finds_a_mistake_in_the_correct_file_of_another(host: Host) -> None:
    """Claude Code reads the servers of the user and those of each project from one file."""
    path = write_for(host)

    for other in HOSTS:
        if any(own.resolve() == path.resolve() for own in other.paths()):
            assert target(other).mistakes() == []


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_the_servers_of_every_host_are_found_by_its_name(host: Host) -> None:
    path = write_for(host)

    found = find(host.name)

    assert found.host is host
    assert found.file.path.resolve() == path.resolve()
    assert [server.name for server in found.servers()] == ["a"]


@pytest.mark.parametrize(
    "host", [host for host in HOSTS if host.name != "claude-code-local"], ids=lambda h: h.name
)
def test_the_servers_of_every_host_are_found_by_its_file(host: Host) -> None:
    found = find(str(write_for(host)))

    assert found.location == host.location
    assert [server.name for server in found.servers()] == ["a"]


def test_a_project_elsewhere_has_the_shape_of_its_host(tmp_path: Path) -> None:
    path = write(tmp_path / "other" / ".gemini" / "settings.json", {"mcpServers": STDIO})

    found = find(str(path))

    assert found.host is not None
    assert found.host.name == "gemini"


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": STDIO},
        {"servers": STDIO, "inputs": []},
        {"context_servers": STDIO},
        {"mcp": {"servers": STDIO}},
        {"mcpServers": [{"name": "a", "command": "x"}]},
    ],
    ids=str,
)
def test_a_file_of_no_known_host_is_read_by_what_it_holds(tmp_path: Path, document: object) -> None:
    found = find(str(write(tmp_path / "any.json", document)))

    assert found.host is None
    assert [server.name for server in found.servers()] == ["a"]


@pytest.mark.parametrize(
    ("name", "document", "host"),
    [
        (".mcp.json", {"mcpServers": STDIO}, "claude-code-project"),
        (".mcp.json", {"servers": STDIO}, None),  # Of Visual Studio.
        (".mcp.json", STDIO, None),  # Of a plugin.
        (
            ".devcontainer/devcontainer.json",
            {"customizations": {"vscode": {"mcp": {"servers": STDIO}}}},
            None,
        ),
        ("opencode.json", {"mcp": {"servers": {"a": {"type": "local", "command": ["x"]}}}}, "opencode"),
        (".gemini/settings.json", {}, "gemini"),
    ],
)
def test_a_file_with_the_name_of_a_hosts_is_read_by_what_it_holds(
    tmp_path: Path, name: str, document: object, host: str | None
) -> None:
    found = find(str(write(tmp_path / "elsewhere" / name, document)))

    assert (found.host.name.removesuffix("-project") if found.host else None) == (
        host and host.removesuffix("-project")
    )
    assert [server.name for server in found.servers()] == (["a"] if document else [])


def test_both_versions_of_a_host_are_found_by_its_name(home: Path) -> None:
    entry = {"type": "local", "command": ["x"]}
    write(home / ".config/opencode/opencode.json", {"mcp": {"servers": {"a": entry}}})
    assert find("opencode").location.keys == ("mcp", "servers")
    assert find("opencode").mistakes() == []
    write(home / ".config/opencode/opencode.json", {"mcp": {"a": entry}})
    assert find("opencode").location.keys == ("mcp",)
    write(home / ".config/opencode/opencode.json", {})
    assert find("opencode").servers() == []


def test_a_file_whose_servers_are_in_an_unknown_place_lists_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "any.json", {"tools": STDIO})
    with pytest.raises(
        UsageError, match=r"any\.json: no servers where mcpspy looks for them \(mcpServers, servers,"
    ):
        find(str(path))
    path = tmp_path / "any.yaml"
    path.write_text("tools: {a: {command: x}}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"\(mcpServers, extensions\)"):
        find(str(path))
    assert find(str(write(tmp_path / "empty.json", {}))).servers() == []


def test_a_file_in_this_folder_needs_no_slash() -> None:
    write(Path("servers"), {"mcpServers": STDIO})

    assert [server.name for server in find("servers").servers()] == ["a"]


def test_local_servers_of_claude_code_are_those_of_the_nearest_project(home: Path) -> None:
    work, project = home / "work", home / "work" / "project"
    projects = {str(work): {"mcpServers": STDIO}, str(home): {"mcpServers": {}}}
    write(home / ".claude.json", {"projects": projects, "mcpServers": {"user": {"command": "y"}}})

    assert find("claude-code-local").location.keys == ("projects", str(work), "mcpServers")
    assert [server.name for server in find("claude-code-local").servers()] == ["a"]
    assert [server.name for server in find("claude-code").servers()] == ["user"]

    write(home / ".claude.json", {"projects": {**projects, str(project): {}}})
    assert find("claude-code-local").servers() == []


def test_of_several_places_the_first_that_is_there_counts(home: Path) -> None:
    host = next(host for host in HOSTS if host.name == "lm-studio")
    old = write(home / ".cache/lm-studio/mcp.json", {"mcpServers": {}})
    assert target(host).file.path == old
    new = write(home / ".lmstudio/mcp.json", {"mcpServers": {}})
    assert target(host).file.path == new


def test_a_name_that_is_none_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"^crsor: no such host or file \(did you mean cursor"):
        find("crsor")
    with pytest.raises(
        UsageError, match=r"^qqq: no such host or file \(mcpspy hosts --all lists the hosts\)$"
    ):
        find("qqq")


def test_a_missing_file_is_reported(home: Path) -> None:
    with pytest.raises(UsageError, match=r"mcp\.json: no such file; Cursor, user configures servers there"):
        find("cursor")
    with pytest.raises(UsageError, match="no such file"):
        find("./none.json")


def test_invalid_text_is_reported_with_its_file_and_place(home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{\n"mcpServers": }', encoding="utf-8")
    with pytest.raises(UsageError, match=r"\.cursor/mcp\.json: line 2, column 15: not JSON"):
        find("cursor").servers()
    (home / "other.json").write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"other\.json: line 1, column 2: not JSON"):
        find(str(home / "other.json"))


def test_a_server_that_is_in_another_file_of_the_product_is_found_there(home: Path) -> None:
    write(home / ".claude.json", {"projects": {str(Path.cwd()): {"mcpServers": STDIO}}})
    write(Path(".mcp.json"), {"mcpServers": {"b": {"command": "y"}}})
    write(home / ".cursor/mcp.json", {"mcpServers": STDIO})
    user = next(host for host in HOSTS if host.name == "claude-code")

    assert other_files(user) == ["claude-code-project", "claude-code-local"]
    assert other_files(user, "a") == ["claude-code-local"]
    assert other_files(user, "c") == []
    assert other_files(None, "a") == []
