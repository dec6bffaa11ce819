"""`mcpspy wrap`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io.hosts import HOSTS, Host
from mcpspy.ui.cli.main import main, parse
from tests.core.hostconfig import configs

CONFIG = """{
  // written by the user
  "mcpServers": {
    "memory": {"command": "npx", "args": ["-y", "memory"]},
    "remote": {"url": "http://localhost:3000/mcp"},
    "linear": {"url": "https://mcp.linear.app/mcp"}
  }
}
"""


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / "project").mkdir(parents=True)
    monkeypatch.chdir(folder / "project")
    monkeypatch.setenv("HOME", str(folder))
    for name in ("MCPSPY_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def config(home: Path) -> Path:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(CONFIG, encoding="utf-8")
    return path


def sample(host: Host) -> Path:
    """Write a configuration of a host to its usual path."""
    path = host.paths()[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(configs.smallest(host.location), encoding="utf-8")
    return path


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_a_host_is_wrapped_and_unwrapped_by_its_name(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    path = sample(host)
    before = path.read_bytes()

    assert main(["wrap", host.name]) == 0
    assert "a: wrapped\n" in capsys.readouterr().out
    assert (b'"--name", "a"' if host.location.layout.is_list else b'"--name=a"') in path.read_bytes()
    assert main(["unwrap", host.name]) == 0
    assert path.read_bytes() == before


def test_wrap_reports_the_result_for_each_server_and_the_backup(
    config: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["wrap", "cursor", "--all"]) == 0

    first, second, third, changed, kept, last = capsys.readouterr().out.splitlines()
    assert (first, second) == ("memory: wrapped", "remote: wrapped")
    assert third.startswith("linear: skipped: ")
    assert changed == f"{config}: changed"
    assert Path(kept.removeprefix("backup: ")).read_text(encoding="utf-8") == CONFIG
    assert last == "restart Cursor or its servers to apply the change"
    assert config.read_text(encoding="utf-8").startswith("{\n  // written by the user\n")


def test_on_a_narrow_terminal_a_reason_is_whole(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")

    main(["wrap", "cursor", "--all"])

    assert "--bridge-oauth" in capsys.readouterr().out


def test_a_second_time_changes_nothing_and_says_so(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["wrap", "cursor", "--server", "memory"])
    once, stat = config.read_bytes(), config.stat()
    capsys.readouterr()

    assert main(["wrap", "cursor", "--server", "memory"]) == 0

    assert config.read_bytes() == once
    assert config.stat().st_ino == stat.st_ino, "it was not even written"
    assert capsys.readouterr().out == f"memory: already wrapped\n{config}: unchanged\n"


def test_without_a_name_several_servers_are_a_question(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["wrap", "cursor"]) == 2

    err = capsys.readouterr().err
    assert err == (
        f"mcpspy: {config}: contains 3 servers: memory, remote, linear (select servers with --server or --all)\n"
    )
    assert config.read_text(encoding="utf-8") == CONFIG


def test_a_dry_run_is_a_diff_and_changes_nothing(
    config: Path, home: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["wrap", "cursor", "--all", "--dry-run"]) == 0

    out, err = capfdbinary.readouterr()
    assert out.startswith(f"--- {config}\n+++ {config}\n@@ ".encode())
    assert b'\n-    "memory": {"command": "npx", "args": ["-y", "memory"]},\n' in out
    assert b'"run", "--name", "memory", "--", "npx", "-y", "memory"]},\n' in out
    assert err.startswith(b"linear: skipped: ")
    assert config.read_text(encoding="utf-8") == CONFIG
    assert not (home / ".local").exists(), "not even a backup"


def test_a_named_server_that_is_left_alone_is_a_finding(config: Path) -> None:
    assert main(["wrap", "cursor", "--server", "memory", "linear"]) == 1
    assert main(["wrap", "cursor", "--server", "linear", "--bridge-oauth"]) == 0
    assert '"https://mcp.linear.app/mcp"]' in config.read_text(encoding="utf-8")


def test_the_folder_of_sessions_goes_into_the_entry_as_hosts_drop_the_environment(
    config: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["wrap", "cursor", "--server", "memory", "--dir", "here"])
    assert f'"--dir", "{home}/project/here", "--", "npx"' in config.read_text(encoding="utf-8")

    monkeypatch.setenv("MCPSPY_DIR", "/data/mcp")
    main(["wrap", "cursor", "--server", "remote"])
    assert '"--dir", "/data/mcp", "--upstream"' in config.read_text(encoding="utf-8")


def test_servers_are_wrapped_with_a_lockfile_beside_their_sessions(
    config: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["wrap", "cursor", "--server", "memory", "--on-change", "report"]) == 2
    assert "--on-change requires --trust" in capsys.readouterr().err
    before = config.read_bytes()
    assert main(["wrap", "cursor", "--server", "memory", "remote", "--dir", "d", "--trust"]) == 0
    lock = f'"--trust", "{home}/project/d/mcp.lock", "--first-use", "--on-change", "block"'
    text = config.read_text(encoding="utf-8")
    assert f'{lock}, "--", "npx"' in text
    assert f'{lock}, "--upstream"' in text
    assert main(["unwrap", "cursor", "--all"]) == 0
    assert config.read_bytes() == before


def test_a_server_that_is_restarted_on_changes_is_wrapped_with_absolute_paths(
    config: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = config.read_bytes()
    assert main(["wrap", "cursor", "--server", "memory", "--watch", "src"]) == 2
    assert "/src: no such file or folder" in capsys.readouterr().err
    Path("src").mkdir()
    Path("a.py").touch()
    assert main(["wrap", "cursor", "--server", "memory", "remote", "--watch", "src", "--watch", "a.py"]) == 1
    options = f'"--watch", "{home}/project/src", "--watch", "{home}/project/a.py", "--", "npx"'
    assert options in config.read_text(encoding="utf-8")
    assert "remote: skipped: --watch restarts only servers" in capsys.readouterr().out
    assert main(["unwrap", "cursor", "--all"]) == 0
    assert config.read_bytes() == before


def test_uvx_starts_mcpspy_with_the_extra_that_watches(config: Path) -> None:
    assert main(["wrap", "cursor", "--server", "memory", "--uvx", "--watch", "."]) == 0
    assert '{"command": "uvx", "args": ["mcpspy[watch]", "run", ' in config.read_text(encoding="utf-8")
    assert main(["unwrap", "cursor", "--all"]) == 0


def test_the_bridge_accepts_the_arguments_that_wrap_writes(home: Path) -> None:
    entry = {"type": "sse", "url": "http://localhost:1/x", "headers": {"A": "${input:a}", "B": "-b"}}
    Path("x.json").write_text(json.dumps({"mcpServers": {"-x": entry, "b": entry}}), encoding="utf-8")
    main(["wrap", "x.json", "--all", "--dir", "d", "--trust"])
    for name, made in json.loads(Path("x.json").read_text(encoding="utf-8"))["mcpServers"].items():
        _, parsed = parse("bridge", made["args"][made["args"].index("bridge") + 1 :])
        assert (parsed.name, parsed.upstream, parsed.sse) == (name, "http://localhost:1/x", True)
        assert parsed.header_env == ["A=MCPSPY_HEADER_A", "B=MCPSPY_HEADER_B"]
        assert parsed.dir == str(home / "project" / "d")


def test_the_bridge_finds_a_url_in_the_environment_of_its_entry(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("x.json").write_text(
        '{"servers": {"a": {"url": "http://localhost:1/x?key=s3cret"}}}', encoding="utf-8"
    )
    main(["wrap", "x.json"])
    made = json.loads(Path("x.json").read_text(encoding="utf-8"))["servers"]["a"]
    assert "s3cret" not in " ".join(made["args"])
    for name, value in made["env"].items():
        monkeypatch.setenv(name, value)
    begun: list[Any] = []

    def run(options: object) -> int:
        begun.append(options)
        return 0

    monkeypatch.setattr("mcpspy.io.bridge.run.run", run)

    assert main(made["args"][made["args"].index("bridge") :]) == 0
    assert begun[0].address.url == "http://localhost:1/x?key=s3cret"


def test_uvx_starts_it_by_choice(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    main(["wrap", "cursor", "--server", "memory", "--uvx"])

    assert '{"command": "uvx", "args": ["mcpspy", "run", ' in config.read_text(encoding="utf-8")


def test_an_mcpspy_in_a_cache_is_a_warning(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    passing = tmp_path / "uv" / "archive-v0" / "mcpspy"
    passing.parent.mkdir(parents=True)
    passing.touch()
    monkeypatch.setattr("sys.argv", [str(passing)])

    assert main(["wrap", "cursor", "--server", "memory"]) == 0
    assert "is in a temporary cache (use --uvx, or install mcpspy)" in capfd.readouterr().err


def test_a_server_that_another_file_of_the_product_has_is_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = {str(home / "project"): {"mcpServers": {"x": {"command": "y"}}}}
    (home / ".claude.json").write_text(json.dumps({"projects": inside}), encoding="utf-8")

    assert main(["wrap", "claude-code", "--server", "x"]) == 2
    assert capsys.readouterr().err.endswith(".claude.json: no server x (claude-code-local contains it)\n")
    assert main(["wrap", "claude-code", "--all"]) == 0
    assert "contains no servers; claude-code-local contains servers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        (["crsor", "--all"], 2, "crsor: no such host or file (did you mean cursor"),
        (["zed"], 2, "no such file; Zed configures servers there"),
        (["./none.json"], 2, "none.json: no such file"),
        ([".", "--all"], 2, "a folder, not a configuration"),
        (["broken.json", "--all"], 2, "broken.json: line 1, column 17: not JSON"),
        (["broken.toml", "--all"], 2, "broken.toml: not TOML"),
        (["broken.yaml", "--all"], 2, "broken.yaml: line 1, column 15: not YAML"),
        (["list.json", "--all"], 2, "list.json: mcpServers is not an object of servers"),
        (["cursor", "--all", "--server", "memory"], 2, "exclude each other"),
        (["cursor", "--server", "memry"], 2, "no server memry (did you mean memory?)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_error_is_one_line_and_nothing_is_changed(
    config: Path, arguments: list[str], code: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (
        ("broken.json", '{"mcpServers": {'),
        ("broken.toml", "[mcp_servers"),
        ("broken.yaml", "mcpServers: [a"),
        ("list.json", '{"mcpServers": 7}'),
    ):
        Path(name).write_text(text, encoding="utf-8")

    assert main(["wrap", *arguments]) == code

    out, err = capsys.readouterr()
    assert out == ""
    assert printed in err
    assert err.count("\n") == 1
    assert config.read_text(encoding="utf-8") == CONFIG


def test_servers_that_the_host_does_not_read_are_named(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text('{"servers": {"a": {"command": "x"}}}', encoding="utf-8")

    assert main(["wrap", "cursor", "--all"]) == 0

    assert capsys.readouterr().out == (
        "warning: line 1: servers: Cursor reads servers under mcpServers, not under servers;"
        f" rename the key to mcpServers\n{config}: contains no servers\n"
    )


def test_mistakes_of_the_wrapped_servers_are_warned_of(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(
        '{"mcpServers": {"a": {"command": "x", "env": {"K": "${KEY}"}},\n'
        ' "b": {"command": "y", "env": {"K": "<YOUR_KEY>"}},}}',
        encoding="utf-8",
    )

    assert main(["wrap", "cursor", "--server", "a", "--dry-run"]) == 0

    assert capsys.readouterr().err == (
        "warning: line 1: mcpServers.a.env.K: Cursor does not replace ${KEY}; write ${env:KEY}\n"
        "warning: line 2: Cursor refuses a file with a trailing comma;"
        " delete the comma before the closing bracket\n"
    )
    assert main(["wrap", "cursor", "--server", "a"]) == 0
    assert "warning: line 1: mcpServers.a.env.K" in capsys.readouterr().out
    assert main(["unwrap", "cursor", "--server", "a"]) == 0
    assert "warning" not in capsys.readouterr().out


def test_servers_in_a_file_that_the_host_ignores_are_warned_of(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"mcpServers": {"a": {"command": "x"}}}', encoding="utf-8")

    assert main(["wrap", str(settings), "--all", "--dry-run"]) == 0

    assert "Claude Code does not read servers from this file: a" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{}", '{"mcpServers": {}}', '{"mcpServers": null}'])
def test_a_file_without_servers_is_reported_as_such(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.json").write_text(text, encoding="utf-8")

    assert main(["wrap", "x.json", "--all"]) == 0
    assert capsys.readouterr().out == "x.json: contains no servers\n"


def test_a_file_whose_servers_are_in_an_unknown_place_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.json").write_text('{"tools": {"a": {"command": "x"}}}', encoding="utf-8")

    assert main(["wrap", "x.json", "--all"]) == 2

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("mcpspy: x.json: no servers where mcpspy looks for them (mcpServers, servers, ")


@pytest.mark.parametrize("command", ["wrap", "unwrap"])
def test_a_read_only_file_asks_for_force(
    command: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "unwrap":
        main(["wrap", "cursor", "--server", "memory"])
    before = config.read_bytes()
    config.chmod(0o444)
    arguments = [command, "cursor", "--server", "memory"]
    capsys.readouterr()

    assert main(arguments) == 3
    assert "read-only; nothing was changed (use --force to replace it anyway)" in capsys.readouterr().err
    assert config.read_bytes() == before
    assert main([*arguments, "--force"]) == 0
    assert config.read_bytes() != before
    assert config.stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize(
    ("options", "command"), [([], ["mcpspy"]), (["--uvx"], ["uvx", "mcpspy"])], ids=["", "uvx"]
)
def test_the_servers_of_a_container_are_started_without_a_path_of_this_machine(
    options: list[str], command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    servers = {"a": {"command": "x", "args": ["y"]}}
    before = json.dumps({"customizations": {"vscode": {"mcp": {"servers": servers}}}})
    Path("devcontainer.json").write_text(before, encoding="utf-8")

    assert main(["wrap", "devcontainer.json", *options]) == 0

    document = json.loads(Path("devcontainer.json").read_text(encoding="utf-8"))
    entry = document["customizations"]["vscode"]["mcp"]["servers"]["a"]
    assert [entry["command"], *entry["args"]] == [*command, "run", "--name", "a", "--", "x", "y"]
    assert "start in the container" in capfd.readouterr().err
    assert main(["unwrap", "devcontainer.json"]) == 0
    assert Path("devcontainer.json").read_text(encoding="utf-8") == before


def test_a_folder_that_cannot_be_written_is_one_line(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)

    assert main(["wrap", "cursor", "--all"]) == 3
    assert capsys.readouterr().err == (
        f"mcpspy: {config.parent}: Permission denied, so mcp.json could not be replaced (nothing was changed)\n"
    )
    assert config.read_text(encoding="utf-8") == CONFIG


def test_names_of_servers_are_sanitized(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps({"mcpServers": {"a\x1b[2J": {"command": "x"}, "b\x07": {}}})
    Path("x.json").write_text(text, encoding="utf-8")

    main(["wrap", "x.json"])
    main(["wrap", "x.json", "--all"])

    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "\x07" not in out + err
    assert "b\\x07: skipped: " in out
