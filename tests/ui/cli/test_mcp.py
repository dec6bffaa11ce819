"""`mcpspy mcp`: its options, and entries in the configurations of hosts. tests/e2e/test_mcp.py starts it."""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.cli import mcp
from mcpspy.ui.cli.main import main


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("MCPSPY_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp, "version", lambda _: "2.10.1")


def entry(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]
    return found


def missing(_: str) -> str:
    raise PackageNotFoundError


@pytest.mark.parametrize(
    ("version", "has_mitmproxy", "message"),
    [
        (missing, False, r"mcp: the MCP SDK is not installed \(.+ install .+\[agent\]'\)"),
        (
            lambda _: "1.30.0",
            False,
            r"mcp: the installed MCP SDK is 1\.30\.0, older than 2\.3 \(.+ install .+\[agent\]",
        ),
        (
            lambda _: "2.2",
            True,
            r"older than 2\.3 \(mitmproxy 11 \(extra mitm\) and this SDK need different versions",
        ),
    ],
    ids=["missing", "too old", "mitmproxy"],
)
def test_a_missing_or_old_sdk_is_reported_with_the_command_that_installs_it(
    version: object,
    has_mitmproxy: bool,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(mcp, "version", version)
    monkeypatch.setattr(mcp, "find_spec", lambda _: object() if has_mitmproxy else None)

    assert main(["mcp"]) == 3
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--remove"], "--remove requires install (use mcpspy mcp install HOST)"),
        (["--token-env", "T"], "--token-env requires --http"),
        (["install"], "install: missing HOST (use one of claude-desktop"),
        (["install", "cursor", "--http", "8"], "hosts start mcpspy mcp on stdio"),
        (["install", "no-such-host"], "no-such-host: no such host or file"),
        (["serve"], "ACTION serve: not one of install"),
    ],
)
@pytest.mark.usefixtures("sdk")
def test_usage_errors_name_the_option(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("address", ["0.0.0.0:80", "example.com:80", "192.168.0.1:80"])
def test_only_loopback_addresses_are_served(address: str) -> None:
    with pytest.raises(UsageError, match="not a loopback address"):
        mcp._loopback(address)


@pytest.mark.parametrize(
    ("text", "address"),
    [("8931", ("127.0.0.1", 8931)), ("localhost:1", ("localhost", 1)), ("[::1]:2", ("::1", 2))],
)
def test_loopback_addresses_are_accepted(text: str, address: tuple[str, int]) -> None:
    assert mcp._loopback(text) == address


@pytest.mark.usefixtures("sdk")
def test_it_is_entered_into_hosts_with_its_options_and_removed_again(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cursor, claude = home / ".cursor" / "mcp.json", home / ".claude.json"
    cursor.parent.mkdir()
    cursor.write_text('{"mcpServers": {"a": {"command": "x"}}}', encoding="utf-8")
    claude.write_text("{}\n", encoding="utf-8")

    options = [
        "--dir",
        "sessions",
        "--allow-send",
        "weather",
        "--allow-replay",
        "python w.py",
        "--allow-unredacted",
    ]
    assert main(["mcp", "install", "cursor", "claude-code", *options]) == 0
    out = capsys.readouterr().out
    added = entry(cursor)["mcpspy"]
    assert entry(claude) == {"mcpspy": added}
    assert isinstance(added, dict)
    assert added["args"][-8:] == [
        "mcp", "--dir", str(home / "sessions"), "--allow-replay", "python w.py", "--allow-send", "weather",
        "--allow-unredacted",
    ]  # fmt: skip
    assert f"{cursor}: mcpspy added; restart Cursor" in out
    assert "to remove it: mcpspy mcp install cursor --remove" in out

    assert main(["mcp", "install", "cursor", "--remove"]) == 0
    assert cursor.read_text(encoding="utf-8") == '{"mcpServers": {"a": {"command": "x"}}}'
    assert main(["mcp", "install", "cursor", "--remove"]) == 0
    assert "unchanged" in capsys.readouterr().out


@pytest.mark.usefixtures("sdk")
def test_a_dry_run_prints_the_changes_and_writes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".claude.json"
    path.write_text("{}\n", encoding="utf-8")

    assert main(["mcp", "install", "claude-code", "--dry-run"]) == 0
    assert '+    "mcpspy": {' in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == "{}\n"


@pytest.mark.usefixtures("sdk")
def test_the_file_of_an_installed_host_is_created(home: Path) -> None:
    (home / ".cursor").mkdir()

    assert main(["mcp", "install", "cursor"]) == 0
    assert list(entry(home / ".cursor" / "mcp.json")) == ["mcpspy"]


@pytest.mark.usefixtures("sdk")
def test_no_file_changes_if_one_host_is_unknown(home: Path) -> None:
    path = home / ".claude.json"
    path.write_text("{}\n", encoding="utf-8")

    assert main(["mcp", "install", "claude-code", "zed"]) == 2
    assert path.read_text(encoding="utf-8") == "{}\n"


@pytest.mark.usefixtures("sdk")
def test_a_file_in_which_an_entry_has_no_place_is_reported_and_not_changed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("mcp_servers = {}\n", encoding="utf-8")

    assert main(["mcp", "install", "codex"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"mcpspy: {path}: mcp_servers: no entry can be added here (add it by hand: ")
    assert error.count("\n") == 1
    assert path.read_text(encoding="utf-8") == "mcp_servers = {}\n"
