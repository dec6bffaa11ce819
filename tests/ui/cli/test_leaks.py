"""No command prints a secret of a command line or URL."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.core.recording import encode
from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.io.client.base import ServerAddress, ServerCommand
from mcpspy.io.http.proxy import HttpOptions, banner
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.cli import main as cli_main
from mcpspy.ui.cli.arguments import shown_url
from mcpspy.ui.cli.main import main
from tests.core.redact import unseen

SECRETS = ("hunter2", "tiger99")
URL = "http://ada:hunter2@127.0.0.1:9/mcp?token=tiger99&page=2"
SHOWN = "http://ada:[redacted]@127.0.0.1:9/mcp?token=[redacted]&page=2"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


def unredacted(folder: Path, **fields: encode.Value) -> str:
    """Write a recording as `--no-redact` does; return its path."""
    writer = Writer(str(folder), None, {"transport": "stdio", "name": "s", **fields}, say=pytest.fail)
    writer.write(FrameEncoder("client").feed(0.1, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'))
    writer.note(0.2, "exit", code=0, signal=None)
    writer.close()
    return writer.path


def test_hosts_redacts_command_lines_and_urls(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    servers: dict[str, Any] = {
        "a": {"command": "npx", "args": ["a", "--token", "tiger99", "--pin", "hunter2", f"--url={URL}"]},
        "b": {"command": "mcpspy", "args": ["run", "--", "env", "API_KEY=tiger99", "b"]},
        "c": {"url": "https://ada:hunter2@example.com/s/mcp?token=tiger99"},
        "d": {"url": "${API_BASE_URL:-https://api.example.com}/mcp?key=tiger99"},
        "e": {"url": "${API_BASE_URL:-https://ada:hunter2@api.example.com}/mcp"},
        "f": {"command": "f", "args": ["--token", "${TOKEN}", "--api-key=${KEY:-tiger99}", "${PORT:-80}"]},
    }
    Path(".mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    settings = home / ".config/mcpspy/mcpspy.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[redact]\nkeys = ["pin"]\n', encoding="utf-8")

    assert main(["hosts"]) == 0
    shown = capsys.readouterr().out
    assert main(["hosts", "--format", "json"]) == 0
    printed = capsys.readouterr().out
    document = json.loads(printed.splitlines()[0])

    assert not [secret for secret in SECRETS if secret in shown + printed]
    assert document["host"] == "claude-code-project"
    assert f"npx a --token [redacted] --pin [redacted] --url={SHOWN}" in shown
    assert "env API_KEY=[redacted] b" in shown
    assert [server["url"] for server in document["servers"]][2:5] == [
        "https://ada:[redacted]@example.com/s/mcp?token=[redacted]",
        "${API_BASE_URL:-https://api.example.com}/mcp?key=[redacted]",
        "${API_BASE_URL:-https://ada:[redacted]@api.example.com}/mcp",
    ]
    assert "f --token ${TOKEN} --api-key=${KEY:-[redacted]} ${PORT:-80}" in shown


@pytest.mark.parametrize(
    "command", [["ls"], ["ls", "--format", "json"], ["show"], ["stats"], ["export", "--format", "html"]]
)
@pytest.mark.parametrize(
    "fields",
    [{"command": ["s", "--token", "tiger99", URL]}, {"transport": "http", "upstream": URL}],
)
def test_the_server_of_a_recording_is_redacted_even_if_the_recording_is_not(
    command: list[str], fields: dict[str, encode.Value], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = unredacted(tmp_path, **fields)
    assert b"tiger99" in Path(path).read_bytes()

    assert main(command) == 0

    shown = "".join(capsys.readouterr())
    assert shown
    assert not [secret for secret in SECRETS if secret in shown]


@pytest.mark.parametrize(
    "arguments",
    [
        ["http", "--upstream", URL],
        ["bridge", "--upstream", URL],
        ["replay", "last", "--upstream", URL.replace("ada:hunter2@", "")],
        ["replay", "last", "--", "no-such-program", "--token", "tiger99"],
        ["replay", "last", "--", sys.executable, "-c", "exit(1)", "--token", "tiger99", f"--url={URL}"],
        ["mock", "last", "--on-miss", "forward", "--upstream", URL],
        ["export", "last", "--endpoint", URL],
        ["export", "last", "--endpoint", f"ftp{URL}"],
        ["show", "last", f"--url={URL}", "tiger99"],
        ["ls", "--token=tiger99", URL],
        ["--token=tiger99"],
        ["show", URL],
        ["wrap", URL],
    ],
    ids=lambda arguments: " ".join(arguments)[:30],
)
def test_an_error_does_not_repeat_the_secrets_of_its_command_line(
    arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    unredacted(tmp_path, command=["s"])

    assert main(arguments) != 0

    shown = "".join(capfd.readouterr())
    assert shown.startswith("mcpspy: ")
    assert not [secret for secret in SECRETS if secret in shown], shown


def test_the_banner_of_http_is_redacted_and_names_what_clients_need() -> None:
    upstream = read_upstream("https://example.com/s/Zm9vYmFyMTIzNDU2Nzg5/mcp?api_key=tiger99&pin=hunter2")
    assert upstream is not None
    options = HttpOptions(upstream, "127.0.0.1", 0)
    options.redaction.keys = ["pin"]

    line = banner(f"http://127.0.0.1:8808{upstream.path}{upstream.query}", options)

    assert line == (
        "http://127.0.0.1:8808/s/[redacted]/mcp?api_key=[redacted]&pin=[redacted] -> "
        "https://example.com/s/[redacted]/mcp; clients need the value from --upstream in place of [redacted]"
    )
    options.upstream = upstream._replace(path="/mcp", query="")
    assert (
        banner("http://127.0.0.1:8808/mcp", options) == "http://127.0.0.1:8808/mcp -> https://example.com/mcp"
    )


def test_a_line_of_a_running_proxy_is_redacted(capfd: pytest.CaptureFixture[str]) -> None:
    say(f"{URL}: HTTP 401 Unauthorized: bad password=tiger99")

    assert capfd.readouterr().err == f"mcpspy: {SHOWN}: HTTP 401 Unauthorized: bad password=[redacted]\n"


def test_a_server_is_named_without_its_secrets() -> None:
    assert ServerAddress(URL).shown == SHOWN
    assert ServerAddress(URL, typed="${URL}").shown == "${URL}"
    assert ServerCommand(["s", "--token", "tiger99"]).shown == "s --token [redacted]"


def test_a_variable_of_a_url_is_shown_by_name_unless_it_is_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE", "https://ada:hunter2@example.com")
    monkeypatch.setenv("ID", "tiger99")

    typed = shown_url("${BASE}/s/${ID}/mcp")

    assert (
        ServerAddress("https://ignored", typed=typed).shown
        == "https://ada:[redacted]@example.com/s/${ID}/mcp"
    )


def test_the_traceback_of_a_bug_is_redacted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> None:
        raise ValueError(f"cannot read {URL}")

    monkeypatch.setattr("mcpspy.ui.cli.ls.main", fail)

    assert main(["ls"]) == cli_main.BUG

    printed = capsys.readouterr().err
    log = Path(printed.rpartition(" ")[2].rstrip(")\n"))
    kept = log.read_text(encoding="utf-8")
    os.unlink(log)
    assert f"ValueError: cannot read {SHOWN}" in kept
    assert not [secret for secret in SECRETS if secret in printed + kept]


def test_the_traceback_of_a_bug_contains_no_secret_of_the_traffic(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = unseen.calls()

    def fail(_: object) -> None:
        raise ValueError("\n".join(case.text for case in calls))

    monkeypatch.setattr("mcpspy.ui.cli.ls.main", fail)
    assert main(["ls"]) == cli_main.BUG
    printed = capsys.readouterr().err
    log = Path(printed.rpartition(" ")[2].rstrip(")\n"))
    kept = printed + log.read_text(encoding="utf-8")
    if os.name == "posix":
        assert log.stat().st_mode & 0o777 == 0o600
    os.unlink(log)
    assert "ValueError" in kept
    assert [case.what for case in calls if any(secret in kept for secret in case.secrets)] == []
