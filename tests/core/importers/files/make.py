"""Create the files of other tools that the tests of `mcpspy import` read, by running those tools.

    .venv/bin/python tests/core/importers/files/make.py [NAME…]

The script pins the tools, versions, clients and servers; README.md describes the results. Each tool gets an
environment in the folder $TOOLS (default: .peers/import/). The server is tests/peers/servers/sdk_server.py. The client
is tests/peers/clients/sdk.py or, for a tool that cannot handle requests of the server, `converse`. Details of the
machine are replaced in the files: the path of the checkout, ports, process ids, the program that ran it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
PEERS = ROOT / ".peers"
ENVIRONMENTS = Path(os.environ.get("TOOLS", PEERS / "import"))
PYTHON = PEERS / "venv" / "bin" / "python"
SERVER = [str(PYTHON), str(ROOT / "tests" / "peers" / "servers" / "sdk_server.py")]
CLIENT = [str(PYTHON), str(ROOT / "tests" / "peers" / "clients" / "sdk.py"), "--script", "sdk"]
EVERYTHING = PEERS / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"

SECONDS = 60
"""Time limit of every wait."""

TOOLS = {
    "mcp-rec": ["mcp-rec==0.1.1"],
    "mcp-cassette": ["mcp-cassette[http]==0.4.0"],
    "mcp-recorder": ["mcp-recorder==0.5.0", "starlette<1"],
    "mcphawk": ["mcphawk==1.0.0"],
    "mitmproxy": ["mitmproxy==11.0.2"],
    "mcp-vcr": ["mcp-vcr==0.2.2"],
}
"""Packages of each tool."""

NEEDS_312 = ("mcp-cassette", "mcp-vcr")
"""Tools that need Python 3.12."""


def tool(name: str, program: str = "") -> str:
    """Return the program of a tool; install the tool if necessary."""
    home = ENVIRONMENTS / name
    if not (home / "bin" / (program or name)).exists():
        python = os.environ.get("PYTHON_312", "python3.12") if name in NEEDS_312 else sys.executable
        subprocess.run([python, "-m", "venv", str(home)], check=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *TOOLS[name]]
        subprocess.run(pip, check=True)
    return str(home / "bin" / (program or name))


def play(*target: str, mode: str = "legacy") -> None:
    """Run the script of the SDK's client against a command or a URL."""
    command = [*CLIENT, "--mode", mode, "--", *target]
    subprocess.run(command, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL, cwd=ROOT)


def port() -> int:
    """Return a free port."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running(command: list[str], at: int, **environment: str) -> Iterator[None]:
    """Run a program that listens on a port; end it with SIGINT, like Ctrl-C."""
    with subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", at)) == 0:
                    break
            time.sleep(0.05)
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(SECONDS)


def converse(url: str, tool: str = "slow", **arguments: object) -> None:
    """Send a handshake, a list request, a call with progress, a failing call and DELETE over Streamable HTTP."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "converse", "version": "1"},
    }
    call = {"name": tool, "arguments": arguments or {"steps": 2}, "_meta": {"progressToken": "p"}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "no-such-tool"}},
    ]
    for message in messages:
        request = urllib.request.Request(url, json.dumps(message).encode(), headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            session = response.headers["Mcp-Session-Id"]
            response.read()
        if session:
            headers["Mcp-Session-Id"] = session
        headers["MCP-Protocol-Version"] = "2025-11-25"
    with urllib.request.urlopen(urllib.request.Request(url, None, headers, method="DELETE"), timeout=SECONDS):
        pass


@contextmanager
def http_server() -> Iterator[str]:
    """Run the SDK's server over HTTP; yield its origin."""
    at = port()
    with running([*SERVER, "--transport", "streamable-http", "--port", str(at)], at):
        yield f"http://127.0.0.1:{at}"


def mcp_rec(out: Path) -> None:
    """Record a session of 2025-11-25."""
    play(tool("mcp-rec"), "record", "-o", str(out), "--", *SERVER)


def mcp_rec_modern(out: Path) -> None:
    """Record a session of 2026-07-28."""
    play(tool("mcp-rec"), "record", "-o", str(out), "--", *SERVER, mode="2026-07-28")


def mcp_vcr(out: Path) -> None:
    """Record a session over stdio, with the default redaction."""
    play(tool("mcp-vcr"), "record", "--format", out.suffix[1:], "-o", str(out), "--", *SERVER)


def mcp_cassette(out: Path) -> None:
    """Record a session over stdio."""
    play(tool("mcp-cassette"), "record", "--cassette", str(out), "--", *SERVER)


def mcp_cassette_http(out: Path) -> None:
    """Record a session over HTTP, with a request of the server."""
    at = port()
    with http_server() as origin:
        command = [tool("mcp-cassette"), "record", "--cassette", str(out), "--url", f"{origin}/mcp"]
        with running([*command, "--port", str(at)], at):
            play(f"http://127.0.0.1:{at}/mcp")


def mcp_recorder(out: Path) -> None:
    """Record a session of a stdio server."""
    at = port()
    command = [tool("mcp-recorder"), "record", "--target-stdio", " ".join(SERVER), "--output", str(out)]
    with running([*command, "--port", str(at)], at):
        converse(f"http://127.0.0.1:{at}/mcp")


def mcp_recorder_http(out: Path) -> None:
    """Record a session over HTTP with server-everything, because the SDK rejects the Host that mcp-recorder sends."""
    at, upstream = port(), port()
    command = [tool("mcp-recorder"), "record", "--target", f"http://127.0.0.1:{upstream}"]
    with (
        running(["node", str(EVERYTHING), "streamableHttp"], upstream, PORT=str(upstream)),
        running([*command, "--output", str(out), "--port", str(at)], at),
    ):
        converse(f"http://127.0.0.1:{at}/mcp", "trigger-long-running-operation", duration=0.1, steps=2)


def mcphawk(out: Path) -> None:
    """Record a session over stdio and one over HTTP into one database."""
    at = port()
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(MCPHAWK_HOME=home, MCPHAWK_DB=str(out))
        # A client passes hardly any of its environment to a server.
        settings = [f"MCPHAWK_HOME={home}", f"MCPHAWK_DB={out}"]
        play("env", *settings, tool("mcphawk"), "wrap", "--name", "peer", "--", *SERVER)
        with http_server() as origin:
            command = [tool("mcphawk"), "proxy", "--target", f"{origin}/mcp", "--name", "peer-http"]
            with running([*command, "--port", str(at)], at):
                converse(f"http://127.0.0.1:{at}/p/peer-http")
    with closing(sqlite3.connect(out)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("UPDATE sessions SET pid = 1, client_pid = 1, client_app = NULL, client_key = NULL")
        database.execute("UPDATE sessions SET target = replace(target, ?, '/srv/mcpspy')", (str(ROOT),))
        for table, column in (("sessions", "target"), ("messages", "headers")):
            for row, text in database.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
                values = (_without_ports(text) if text else text, row)
                database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", values)
        database.commit()
        database.execute("VACUUM")


def mitmproxy(out: Path) -> None:
    """Save the archive of a session over HTTP with mitmproxy."""
    at = port()
    with http_server() as origin, tempfile.TemporaryDirectory() as conf:
        options = ["--set", f"hardump={out}", "--set", f"confdir={conf}"]
        command = [tool("mitmproxy", "mitmdump"), "-q", "--mode", f"reverse:{origin}", "-p", str(at)]
        with running([*command, *options], at):
            converse(f"http://127.0.0.1:{at}/mcp")


FILES: dict[str, Callable[[Path], None]] = {
    "mcp-rec.jsonl": mcp_rec,
    "mcp-rec-modern.jsonl": mcp_rec_modern,
    "mcp-cassette.json": mcp_cassette,
    "mcp-cassette-http.json": mcp_cassette_http,
    "mcp-recorder.json": mcp_recorder,
    "mcp-recorder-http.json": mcp_recorder_http,
    "mcphawk.db": mcphawk,
    "mitmproxy.har": mitmproxy,
    "mcp-vcr.yaml": mcp_vcr,
    "mcp-vcr.ndjson": mcp_vcr,
}


def _without_ports(text: str) -> str:
    return re.sub(r"127\.0\.0\.1:\d+|localhost:\d+", "127.0.0.1:3001", text)


def main(names: list[str]) -> None:
    """Create all files, or only the named ones."""
    for name in names or FILES:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / name
            FILES[name](made)
            data = made.read_bytes()
        if not name.endswith(".db"):
            text = data.decode().replace(str(ROOT), "/srv/mcpspy")
            data = _without_ports(text).encode()
        (HERE / name).write_bytes(data)
        sys.stdout.write(f"{name}: {len(data)} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
