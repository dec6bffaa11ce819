"""`mcpspy doctor`: the step that breaks, for servers that it starts and connects to."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io import doctor as examinations
from mcpspy.io.recording.catalog import sessions
from mcpspy.ui.cli.main import main

SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    result = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "s", "version": "1"}},
              "tools/list": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]},
              "tools/call": {"content": [{"type": "text", "text": "done"}]}}.get(method)
    if "id" in message:
        body = {"error": {"code": -32601, "message": "unknown"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
"""

REFUSES = SERVER.replace('"initialize"', '"initialise"')
NO_LIST = SERVER.replace('"tools/list"', '"tool/list"')
ENDS = "raise ValueError('no key')"
NO_REVISION = SERVER.replace("2025-11-25", "1.0")
NO_SCHEMA = SERVER.replace('"inputSchema": {"type": "object"}', '"inputSchema": {"type": "array"}')
NOT_A_LIST = SERVER.replace('[{"name": "a", "inputSchema": {"type": "object"}}]', '{"a": {}}')
NO_TEMPLATES = SERVER.replace('"tools": {}', '"resources": {}').replace(
    '"tools/list": {"tools"', '"resources/list": {"resources": []}, "tools/list": {"tools"'
)
TALKS = "print('ready', flush=True)\n" + SERVER
TALKS_ON = "print('starting ', end='', flush=True)\n" + SERVER
NO_PROMPTS = SERVER.replace('"capabilities": {', '"capabilities": {"prompts": {}, ')
SILENT = "import sys; sys.stdin.read()"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path / "sessions"))
    return tmp_path


def steps(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], dict[str, bool | None]]:
    document = json.loads(capsys.readouterr().out)
    return document, {step["name"]: step["holds"] for step in document["steps"]}


@pytest.mark.parametrize(
    ("code", "broken", "cause"),
    [
        (SERVER, None, None),
        (REFUSES, "handshake", "method-not-found"),
        (NO_LIST, "lists", "method-not-found"),
        (ENDS, "output", "start-failed"),
        (SILENT, "output", ""),
        (TALKS, None, "stdout-noise"),
        (TALKS_ON, "messages", ""),
        (NO_PROMPTS, None, "method-not-found"),
        (NO_REVISION, "handshake", "version-mismatch"),
        (NO_SCHEMA, "lists", "tool-dropped"),
        (NOT_A_LIST, "lists", "result-rejected"),
        (NO_TEMPLATES, None, "method-not-found"),
    ],
    ids=[
        "healthy",
        "refuses",
        "no list",
        "ends",
        "silent",
        "prints",
        "prints before a message",
        "no prompts",
        "no revision",
        "no schema",
        "not a list",
        "no templates",
    ],
)
def test_the_step_that_breaks_is_named_with_the_cause(
    code: str,
    broken: str | None,
    cause: str | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcpspy.io.client.conversation.PROBE", 0.05)
    limit = ["--timeout", "0.5"] if code is SILENT else []

    ended = main(["doctor", "--format", "json", *limit, "--", sys.executable, "-c", code])

    document, found = steps(capsys)
    assert next((name for name, holds in found.items() if holds is False), None) == broken
    assert (ended, document["ok"]) == ((0, True) if broken is None else (1, False))
    if cause != "":
        assert (document["cause"] or {}).get("code") == cause
    (session,) = sessions(str(Path("sessions")))
    assert session.header.origin == "doctor"


@pytest.mark.parametrize(
    ("code", "step", "text"),
    [
        (TALKS, "messages", "stdout has a line that is not a message: ready ("),
        (NO_PROMPTS, "lists", "1 tools, but the server declares and does not know prompts/list: Claude"),
    ],
    ids=["prints", "no prompts"],
)
def test_a_violation_that_hosts_tolerate_is_a_warning(
    code: str, step: str, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpspy.io.client.conversation.PROBE", 0.05)
    command = ["--", sys.executable, "-c", code]
    assert main(["doctor", "--format", "json", *command]) == 0
    document, _ = steps(capsys)
    (warned,) = [each for each in document["steps"] if each["is_warned"]]
    assert (warned["name"], warned["text"].startswith(text)) == (step, True)
    assert main(["doctor", *command]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.strip().startswith("!")] == [step]


def test_a_command_that_is_not_found_is_not_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--format", "json", "--", "no-such-command"]) == 1
    _, found = steps(capsys)
    assert (found["command"], found["start"], found["lists"]) == (False, None, None)


def test_a_call_is_the_last_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--call", "a", "--", sys.executable, "-c", SERVER]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["✓", "call", "a:", "done"]


def test_a_port_where_nothing_listens_breaks_the_connection(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/mcp"
        assert main(["doctor", "--format", "json", "--url", url]) == 1
    _, found = steps(capsys)
    assert (found["address"], found["connection"], found["handshake"]) == (True, False, None)


def test_a_name_that_does_not_resolve_breaks_the_address(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    assert main(["doctor", "--url", "https://nowhere.example/mcp"]) == 1
    assert (
        "✗ address        nowhere.example does not resolve: Name or service not known"
        in capsys.readouterr().out
    )


@pytest.fixture
def host(folder: Path) -> Path:
    """A configuration with two servers, one of them disabled, and one whose variable is not set."""
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    servers = {
        "good": {"command": sys.executable, "args": [str(folder / "server.py")]},
        "off": {"command": "nothing", "disabled": True},
        "unset": {"command": "x", "env": {"KEY": "${MCPSPY_NOT_SET}"}},
    }
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return file


def test_the_servers_of_a_file_are_examined_at_once(host: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(host)]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("✓ ") and "good  1 tools" in line for line in lines)
    assert any("✗" in line and "environment variable MCPSPY_NOT_SET is not set" in line for line in lines)
    assert not any("off" in line.split() for line in lines)


def test_a_mistake_in_the_entry_breaks_the_configuration_and_the_rest_is_tried(
    host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = {"a": {"command": sys.executable, "args": ["server.py"], "env": {"TOKEN": "<YOUR_TOKEN>"}}}
    host.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")

    assert main(["doctor", "--format", "json", str(host)]) == 1
    document, found = steps(capsys)
    assert (found["configuration"], found["lists"]) == (False, True)
    assert "line 1: <YOUR_TOKEN> is a placeholder" in document["steps"][0]["text"]


def test_a_server_of_a_host_gets_only_the_variables_that_hosts_pass_on(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SHELL", "1")
    code = "import os, sys; sys.exit('SECRET_OF_THE_SHELL' in os.environ and 9)"
    host.write_text(
        json.dumps({"mcpServers": {"a": {"command": sys.executable, "args": ["-c", code]}}}), encoding="utf-8"
    )

    assert main(["doctor", str(host)]) == 1
    (session,) = sessions("sessions")
    assert session.exit is not None
    assert session.exit.fields["code"] == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["no-such-host"], "no-such-host"),
        ([".mcp.json/x", "--url", "http://a"], "exclude each other"),
        (["--ask"], "--ask needs a terminal"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str],
    problem: str,
    host: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", *words, *([str(host)] if words == ["--ask"] else [])]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line


def test_a_certificate_that_ends_soon_is_mentioned() -> None:
    about = [
        *examinations._about(
            {"issuer": ((("organizationName", "An authority"),),), "notAfter": "Jan  1 00:00:00 2020 GMT"}
        )
    ]
    assert about[0] == "issued by An authority"
    assert about[1].startswith("until 2020-01-01, only -")


@pytest.mark.parametrize(
    ("name", "text", "ended", "words"),
    [
        (".cursor/mcp.json", '{"mcpServers": {"a": {"command": "x"\n "args": []}}}', 3, "a comma is missing"),
        (
            ".vscode/mcp.json",
            '{"mcpServers": {"a": {"command": "x"}}}',
            1,
            "under servers, not under mcpServers",
        ),
        (
            ".codex/config.toml",
            '[mcpServers.a]\ncommand = "x"\n',
            1,
            "under mcp_servers, not under mcpServers",
        ),
    ],
)
def test_a_configuration_that_the_host_does_not_read_is_the_step_that_breaks(
    name: str,
    text: str,
    ended: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path(name).parent.mkdir()
    Path(name).write_text(text, "utf-8")
    host = {".cursor": "cursor-project", ".vscode": "vscode-workspace", ".codex": "codex-project"}

    assert main(["doctor", "--format", "json", host[Path(name).parts[0]]]) == ended

    document, found = steps(capsys)
    assert (found["configuration"], found["command"]) == (False, None)
    assert name in document["steps"][0]["text"]
    assert words in document["steps"][0]["text"]


def test_the_recording_has_why_a_command_or_a_url_could_not_be_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/mcp"

        assert main(["doctor", "--format", "json", "--url", url]) == 1

    document, found = steps(capsys)
    assert (found["connection"], document["cause"]["code"]) == (False, "upstream-unreachable")
    assert main(["doctor", "--format", "json", "--", "./no-such-server"]) == 1
    document, found = steps(capsys)
    assert (found["command"], document["cause"]["code"]) == (False, "command-not-found")
