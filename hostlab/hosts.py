"""The hosts of the laboratory: how each is configured with one server and one model, and started for one prompt.

Each gets a HOME of its own, no variable of this environment, a dummy key, and addresses of this machine only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".hosts" / "node_modules" / ".bin"
SERVER = "probe"
"""Name of the server in the configuration of the hosts."""

PROMPT = "call the tools"
LONGEST = 120
"""Seconds that a host may run."""

KEY = "dummy"

REVISIONS = ("1999-01-01", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "2099-01-01")
"""Revisions with which the server responds to `initialize`."""


class Run(NamedTuple):
    """A host's configuration for one run."""

    home: Path
    server: list[str]
    """Command line of the server."""
    url: str
    """URL of the model."""
    model: str = ""
    """Name of the model."""


class Host(NamedTuple):
    """A host."""

    id: str
    title: str
    package: str
    program: str
    about: str
    """How it is started, for the documentation."""
    configure: Callable[[Run], None]
    command: Callable[[Run], list[str]]
    environment: Callable[[Run], dict[str, str]]
    model: str
    """The model for lists of tools."""
    results_model: str = ""
    """Another model for results, with which the host does not show the definitions of tools."""

    @property
    def version(self) -> str:
        """The installed version."""
        found: str = json.loads((BIN.parent / self.package / "package.json").read_text(encoding="utf-8"))[
            "version"
        ]
        return found

    def variables(self, run: Run) -> dict[str, str]:
        """Return all of its environment variables."""
        return {
            "HOME": str(run.home),
            "PATH": os.environ["PATH"],
            "NO_PROXY": "127.0.0.1,localhost",
            # An address of this machine where nothing listens: a request to any other host fails at once.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            **self.environment(run),
        }

    def start(self, run: Run) -> str:
        """Run it to its end, at most `LONGEST` seconds; return what it printed."""
        run.home.mkdir(parents=True)
        self.configure(run)
        process = subprocess.Popen(
            [str(BIN / self.program), *self.command(run)],
            cwd=run.home,
            env=self.variables(run),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += b"\nhostlab: ended after its time"
        return output.decode("utf-8", "replace")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _claude_code(run: Run) -> None:
    servers = {SERVER: {"type": "stdio", "command": run.server[0], "args": run.server[1:]}}
    _write(run.home / "mcp.json", json.dumps({"mcpServers": servers}))


def _codex(run: Run) -> None:
    command, arguments = json.dumps(run.server[0]), json.dumps(run.server[1:])
    _write(
        run.home / ".codex" / "config.toml",
        f"""\
model = "{run.model}"
model_provider = "stub"
approval_policy = "never"

[model_providers.stub]
name = "stub"
base_url = "{run.url}/v1"
wire_api = "responses"
env_key = "STUB_KEY"

[mcp_servers.{SERVER}]
command = {command}
args = {arguments}
required = true
startup_timeout_sec = 30
""",
    )


def _gemini_cli(run: Run) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "mcpServers": {SERVER: {"command": run.server[0], "args": run.server[1:], "trust": True}},
    }
    _write(run.home / ".gemini" / "settings.json", json.dumps(settings))


HOSTS = (
    Host(
        "claude-code",
        "Claude Code",
        "@anthropic-ai/claude-code",
        "claude",
        "`claude -p` with `--mcp-config`; Anthropic Messages API; tool search off (`ENABLE_TOOL_SEARCH=false`)",
        _claude_code,
        lambda run: [
            "-p",
            PROMPT,
            "--mcp-config",
            "mcp.json",
            "--strict-mcp-config",
            "--allowedTools",
            f"mcp__{SERVER}",
            "--permission-mode",
            "bypassPermissions",
            "--model",
            run.model,
        ],
        lambda run: {
            "ANTHROPIC_BASE_URL": run.url,
            "ANTHROPIC_API_KEY": KEY,
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "false",
        },
        "claude-sonnet-4-5",
    ),
    Host(
        "codex",
        "Codex CLI",
        "@openai/codex",
        "codex",
        "`codex exec` with a model that it does not know, as it offers tools of others by a search only (results: gpt-5.5); "
        "`required = true` for the server, as it does not wait for a slow one otherwise; OpenAI Responses API",
        _codex,
        lambda run: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT],
        lambda run: {"STUB_KEY": KEY},
        "stub",
        "gpt-5.5",
    ),
    Host(
        "gemini-cli",
        "Gemini CLI",
        "@google/gemini-cli",
        "gemini",
        "`gemini -p` with an API key and a trusted server; generateContent API",
        _gemini_cli,
        lambda run: ["-p", PROMPT, "--yolo", "-m", run.model],
        lambda run: {"GOOGLE_GEMINI_BASE_URL": run.url, "GEMINI_API_KEY": KEY},
        "gemini-2.5-pro",
    ),
)
