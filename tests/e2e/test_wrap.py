"""Wrapped entries, started as hosts start them, with a real client."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from recordings import make
from tests import forks
from tests.e2e.test_http import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.conftest import Peers

PYTHON = make.PEERS / "venv" / "bin" / "python"
NODE = shutil.which("node") or "node"
MEMORY = (make.PEERS / "node_modules" / ".bin" / "mcp-server-memory").resolve()

SECONDS = 60
"""Limit for one client run. All clients run at once."""

CONFIGS: dict[str, tuple[str, str, str, Callable[[str], Any]]] = {
    # A list in brackets; a command alone; a list of lines.
    ".cursor/mcp.json": (
        "sdk",
        '{"mcpServers": {\n  "my sdk": {"command": %(python)s, "args": [%(server)s]}\n}}\n',
        "my sdk",
        lambda text: json.loads(text)["mcpServers"]["my sdk"],
    ),
    ".codex/config.toml": (
        "memory",
        "# mine\n[mcp_servers.graph]\ncommand = %(launcher)s # here\n",
        "graph",
        lambda text: tomllib.loads(text)["mcp_servers"]["graph"],
    ),
    ".continue/config.yaml": (
        "memory",
        "mcpServers:\n  # mine\n  - name: größe\n    command: %(node)s\n    args:\n      - %(memory)s\n",
        "größe",
        lambda text: YAML(typ="safe", pure=True).load(text)["mcpServers"][0],
    ),
    # A URL becomes a bridge, with its header in the entry's `env`.
    ".gemini/settings.json": (
        "sdk",
        '{"mcpServers": {"far": {"httpUrl": %(url)s, "headers": {"X-Api-Key": "k3y"}}}}\n',
        "far",
        lambda text: json.loads(text)["mcpServers"]["far"],
    ),
    # Other names of members, and an object of servers in YAML.
    ".config/goose/config.yaml": (
        "memory",
        "extensions:\n  notes:\n    type: stdio\n    cmd: %(node)s\n    args:\n      - %(memory)s\n    envs: {}\n",
        "notes",
        lambda text: goose(YAML(typ="safe", pure=True).load(text)["extensions"]["notes"]),
    ),
    # The command is a list.
    ".config/opencode/opencode.json": (
        "sdk",
        '{"mcp": {\n  "list": {"type": "local", "command": [%(python)s, %(server)s], "enabled": true}\n}}\n',
        "list",
        lambda text: opencode(json.loads(text)["mcp"]["list"]),
    ),
    ".config/kilo/kilo.jsonc": (
        "sdk",
        '{"mcp": {"wide": {"type": "remote", "url": %(url)s, "headers": {"X-Api-Key": "k3y"}} /* mine */}}\n',
        "wide",
        lambda text: opencode(json.loads(text.replace("/* mine */", ""))["mcp"]["wide"]),
    ),
    # A URL in a variable, because it has a query.
    ".config/crush/crush.json": (
        "sdk",
        '{"mcp": {"open": {"type": "http", "url": %(query)s, "headers": {"X-Api-Key": "k3y"}}}}\n',
        "open",
        lambda text: json.loads(text)["mcp"]["open"],
    ),
}


def goose(entry: dict[str, Any]) -> dict[str, Any]:
    return {"command": entry["cmd"], "args": entry["args"], "env": entry["envs"]}


def opencode(entry: dict[str, Any]) -> dict[str, Any]:
    assert entry["type"] == "local"
    command, *args = entry["command"]
    return {"command": command, "args": args, "env": entry.get("environment", {})}


def bare(home: Path) -> dict[str, str]:
    """Return all variables that a host passes to a server, as the SDKs take them from their own environment.

    PATH has no command of mcpspy, Python or Node. On Linux it ends with the folder of the processes whose forks are mcpspy
    and the client (tests/peers/forked.py).
    """
    forked = os.environ["PATH"].rpartition(os.pathsep)[2:] if sys.platform == "linux" else ()
    return {
        "HOME": str(home),
        "LOGNAME": "ada",
        "PATH": os.pathsep.join(("/usr/bin", "/bin", *forked)),
        "SHELL": "/bin/sh",
        "TERM": "dumb",
        "USER": "ada",
    }


async def ran(*command: str | Path, home: Path, cwd: Path) -> tuple[str, str]:
    """Run a command to its end. Return its output."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=bare(home),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.communicate()
        pytest.fail(f"{command[:3]} did not finish within {SECONDS} s", pytrace=False)
    assert process.returncode == 0, err.decode()
    return out.decode(), err.decode()


async def started(entry: dict[str, Any], script: str, home: Path, cwd: Path) -> dict[str, Any]:
    """Start an entry with the SDK's client. Return its transcript."""
    client = (PYTHON, make.CLIENTS / "sdk.py", "--script", script, "--mode", "legacy")
    # The SDK's client passes on only these six variables; a host also passes on the entry's own `env`.
    env = ("/usr/bin/env", *(f"{name}={value}" for name, value in entry.get("env", {}).items()))
    out, _ = await ran(*client, "--", *env, entry["command"], *entry["args"], home=home, cwd=cwd)
    transcript: dict[str, Any] = json.loads(out)
    return transcript


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Run a server that uses HTTP."""
    command = f"python {make.SDK_SERVER} --transport streamable-http --port"
    with serving("far", command, "/mcp", tmp_path) as url:
        yield url


@pytest.mark.skipif(sys.platform == "win32", reason="a PATH of POSIX")
async def test_wrapped_entries_serve_a_client_in_a_bare_environment_and_are_recorded(
    peers: Peers, tmp_path: Path, url: str
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    elsewhere.mkdir()
    launcher = tmp_path / "my launcher"
    launcher.write_text(f"#!/bin/sh\nexec '{NODE}' '{MEMORY}'\n", encoding="utf-8")
    launcher.chmod(0o700)
    words = {
        "python": PYTHON,
        "server": make.SDK_SERVER,
        "node": NODE,
        "memory": MEMORY,
        "launcher": launcher,
        "url": url,
        "query": f"{url}?api_key=s3cr3t-k3y-0123456789",
    }
    before = {}
    for name, (_, text, _, _) in CONFIGS.items():
        path = home / name
        path.parent.mkdir(parents=True)
        path.write_text(
            text % {word: json.dumps(str(value)) for word, value in words.items()}, encoding="utf-8"
        )
        path.chmod(0o600)
        before[path] = path.read_bytes()

    async def wrapped(name: str) -> dict[str, Any]:
        script, _, server, entry_of = CONFIGS[name]
        out, _ = await ran(forks.command(), "wrap", home / name, "--server", server, home=home, cwd=elsewhere)
        assert f"{server}: wrapped\n" in out
        entry = entry_of((home / name).read_text(encoding="utf-8"))
        assert Path(entry["command"]).is_absolute()
        assert "$" not in " ".join(entry["args"])
        assert "k3y" not in " ".join(entry["args"])
        return await started(entry, script, home, elsewhere)

    transcripts = await asyncio.gather(*map(wrapped, CONFIGS))

    assert [transcript["steps"][0]["step"] for transcript in transcripts] == ["tools/list"] * len(CONFIGS)
    reads = await peers.recorded("home/.local/share/mcpspy/sessions")
    assert {read.header.name for read in reads} == {server for _, _, server, _ in CONFIGS.values()}
    for read in reads:
        # The SDK's server responds to a cancelled request over HTTP (-32800).
        assert [hosts for hosts in read.complaints() if "Request cancelled" not in hosts] == []
        assert len(read.exchanges("tools/call")) > 5
        assert "k3y" not in read.path.read_text(encoding="utf-8")

    out, _ = await ran(forks.command(), "hosts", "--format", "json", home=home, cwd=elsewhere)
    hosts = [json.loads(line) for line in out.splitlines()]
    assert [host["host"] for host in hosts] == (
        ["cursor", "codex", "gemini", "continue", "goose", "opencode", "crush", "kilo"]
    )
    # Each script also calls a tool that fails.
    assert [server["last"]["verdict"] for host in hosts for server in host["servers"]] == (
        ["failures"] * len(CONFIGS)
    )

    await asyncio.gather(*(ran(forks.command(), "unwrap", path, home=home, cwd=elsewhere) for path in before))
    assert {path: path.read_bytes() for path in before} == before
    assert {path.stat().st_mode & 0o777 for path in before} == {0o600}
