"""`mcpspy hosts`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any

import orjson
import pytest

from mcpspy.io.hosts import HOSTS
from mcpspy.ui.cli.main import main

Make = Callable[..., Path]

CAUSE = " " * 4
"""Indentation of the cause below a server."""

FAULTS = Path(__file__).parents[1] / "report" / "faults"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / "project").mkdir(parents=True)
    monkeypatch.chdir(folder / "project")
    monkeypatch.setenv("HOME", str(folder))
    for name in ("MCPSPY_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


def write(path: Path, servers: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


def wrapped(name: str, program: str = "mcpspy") -> dict[str, Any]:
    return {"command": program, "args": ["run", "--name", name, "--", "npx", "-y", name]}


def test_hosts_and_servers_are_listed_with_the_state_of_wrapped_servers(
    home: Path, tmp_path: Path, make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        home / ".cursor/mcp.json",
        {
            "fine": wrapped("fine"),
            "bad": wrapped("bad"),
            "killed": wrapped("killed"),
            "new": wrapped("new"),
            "gone": wrapped("gone", "/nowhere/mcpspy"),
            "plain": {"command": "uvx", "args": ["plain"], "disabled": True},
            "remote": {"url": "https://x.org/v1/mcp?token=Abcdef1234567&team=a"},
            "odd": {},
        },
    )
    write(Path(".mcp.json"), {})
    make_recording(name="fine")
    make_recording(name="bad", exit_code=3)
    make_recording(name="killed", exit_code=None)

    assert main(["hosts", "--dir", str(tmp_path)]) == 0

    out = capsys.readouterr().out.splitlines()
    lines = [line.split() for line in out if not line.startswith(CAUSE)]
    assert lines == [
        ["claude-code-project", f"{home}/project/.mcp.json"],
        ["cursor", f"{home}/.cursor/mcp.json"],
        ["fine", "wrapped", "1", "error", "npx", "-y", "fine"],
        ["bad", "wrapped", "crashed,", "exit", "3", "npx", "-y", "bad"],
        ["killed", "wrapped", "mcpspy", "was", "killed", "npx", "-y", "killed"],
        ["new", "wrapped", "no", "session", "yet", "npx", "-y", "new"],
        ["gone", "wrapped", "mcpspy", "not", "found", "npx", "-y", "gone"],
        ["plain", "(disabled)", "uvx", "plain"],
        ["remote", "https://x.org/v1/mcp?token=[redacted]&team=[redacted]"],
        ["odd", "it", "has", "neither", "a", "command", "nor", "a", "URL"],
    ]


def test_json_has_one_object_per_host(
    home: Path, tmp_path: Path, make_recording: Make, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write(home / ".cursor/mcp.json", {"a": wrapped("a"), "r": {"url": "http://localhost:1/x"}})
    path = make_recording(name="a", exit_code=3)

    main(["hosts", "--format", "json", "--dir", str(tmp_path)])

    printed = orjson.loads(capfdbinary.readouterr().out)
    assert (printed["host"], printed["installed"], printed["trouble"]) == ("cursor", True, None)
    assert printed["path"] == str(home / ".cursor/mcp.json")
    server, remote = printed["servers"]
    assert (server["name"], server["type"], server["wrapped"]) == ("a", "stdio", True)
    assert server["command"] == ["npx", "-y", "a"]
    last = server["last"]
    assert (last["verdict"], last["exit"], last["path"]) == ("crashed", 3, str(path))
    assert (remote["wrapped"], remote["url"], remote["last"]) == (False, "http://localhost:1/x", None)


def test_a_session_that_failed_has_its_first_cause(
    home: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write(home / ".cursor/mcp.json", {"faulty": wrapped("faulty")})
    copy(FAULTS / "no-variable.jsonl", tmp_path)

    main(["hosts", "--dir", str(tmp_path)])
    *_, server, cause = capfdbinary.readouterr().out.decode().splitlines()
    assert "crashed, exit 1" in server
    assert cause == f"{CAUSE}the server did not start: KeyError: 'WEATHER_API_KEY'"

    main(["hosts", "--dir", str(tmp_path), "--format", "json"])
    (printed,) = orjson.loads(capfdbinary.readouterr().out)["servers"]
    assert printed["last"]["cause"] == cause.strip()


def test_the_folder_of_an_entry_is_where_its_sessions_are(
    home: Path, tmp_path: Path, make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = wrapped("a")
    entry["args"][1:1] = ["--dir", str(tmp_path)]
    write(home / ".cursor/mcp.json", {"a": entry})
    make_recording(name="a")

    main(["hosts"])

    assert capsys.readouterr().out.split()[2:5] == ["a", "wrapped", "1"]


def test_a_configuration_that_cannot_be_read_does_not_hide_the_others(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("[", encoding="utf-8")
    write(home / ".gemini/settings.json", {"a": {"command": "x"}})
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").symlink_to("nowhere")

    assert main(["hosts"]) == 0

    out = capsys.readouterr().out
    assert "config.toml: not TOML" in out
    assert "mcp.json: no such file" in out
    assert "\n  a " in out


def test_all_lists_the_expected_path_of_every_host(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hosts", "--all"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [host.name for host in HOSTS]
    assert all(str(home) in line for line in lines)


def test_a_hint_is_printed_if_no_host_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hosts"]) == 0
    assert "mcpspy wrap FILE" in capsys.readouterr().out
    assert main(["hosts", "--format", "json"]) == 0
    assert capsys.readouterr().out == ""


def test_text_from_a_configuration_is_sanitized(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home / ".cursor/mcp.json", {"a\x1b[2J": {"command": "x\x07"}})

    main(["hosts"])

    assert "a\\x1b[2J" in capsys.readouterr().out


def test_mistakes_that_the_host_does_not_report_are_printed_below_the_server(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        home / ".cursor/mcp.json",
        {"a": {"command": "npx -y a", "env": {"K": "${KEY}"}}, "b": {"command": "b"}},
    )
    write(home / ".claude/settings.json", {"c": {"command": "c"}})

    assert main(["hosts"]) == 0

    ignored = f"{home}/.claude/settings.json: line 1: mcpServers: Claude Code does not read servers from this file: c;"
    command = 'mcpServers.a.command: "npx …" is one word with blanks, and no program has this name;'
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        f"claude-code {home}/.claude.json",
        f"warning: {ignored} use `claude mcp add --scope user`, which writes ~/.claude.json",
        f"cursor {home}/.cursor/mcp.json",
        "a npx -y a",
        f'warning: line 1: {command} write "npx" and each argument as an own string in args',
        "warning: line 1: mcpServers.a.env.K: Cursor does not replace ${KEY}; write ${env:KEY}",
        "b b",
    ]


def test_warnings_in_json_have_place_text_fix_and_source(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home / ".cursor/mcp.json", {"a": {"command": "x", "env": {"K": "${KEY}"}}})

    assert main(["hosts", "--format", "json"]) == 0

    (host,) = map(orjson.loads, capsys.readouterr().out.splitlines())
    assert host["warnings"] == [
        {
            "path": str(home / ".cursor/mcp.json"),
            "line": 1,
            "place": "mcpServers.a.env.K",
            "server": "a",
            "text": "Cursor does not replace ${KEY}",
            "fix": "write ${env:KEY}",
            "source": "https://cursor.com/docs/context/mcp#config-interpolation",
        }
    ]
