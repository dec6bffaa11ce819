"""Record every server with a fault, through mcpspy and the official SDKs' clients: `record.py [NAME…]`. Needs the peers.

The recordings are beside this file. Their folders are neutral: servers run in a folder that is the same on each machine.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
PEERS = ROOT / ".peers"
CLIENTS = ROOT / "tests" / "peers" / "clients"
FOLDER = Path("/tmp/mcpspy-demo")
SERVER = "python3 server.py"
SECONDS = 40

PY1, PY2, TS1, TS2 = "python-1", "python-2", "typescript-1", "typescript-2"
SDKS = {
    PY1: [str(PEERS / "mcp1" / "bin" / "python"), str(CLIENTS / "tour.py")],
    PY2: [str(PEERS / "venv" / "bin" / "python"), str(CLIENTS / "tour.py")],
    TS1: ["node", str(CLIENTS / "tour.mjs"), "1"],
    TS2: ["node", str(CLIENTS / "tour.mjs"), "2"],
}
"""The client of each SDK: tests/peers/clients/tour.py describes what they do."""

SIGNS_IN = "oauth"
"""The client of the Python SDK 2 that signs in: tests/peers/clients/oauth.py."""

D2024, D2025_03, D2025_06, D2025_11, MODERN = (
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
)

Call = tuple[str, dict[str, Any], str]
BEFORE: tuple[Call, ...] = tuple(
    (f"search_{subject}", {"query": query}, "call")
    for query in ("blue lamp", "Marstall 4")
    for subject in ("orders", "products", "customers", "deliveries", "returns")
)
"""Calls that succeed, before the one that shows the fault."""

CALLS: dict[str, tuple[Call, ...]] = {
    "work": (("work", {"n": 1}, "call"),),
    "wrong": (("work", {"n": "one"}, "call"),),
    "missing": (("missing", {"n": 1}, "unknown"),),
    "later": (("work", {"n": 1}, "call"), ("work", {"n": 1}, "later")),
}


class Fault(NamedTuple):
    cause: str
    """The code of the cause that `mcpspy explain` names, or of the observation in `OBSERVED`."""
    command: str
    """The server's command, or its fault on HTTP."""
    sdk: str = PY2
    mode: str = D2025_11
    """The revision that the client offers; `auto` if it chooses."""
    url: str = ""
    """HTTP: the upstream; `{port}` is that of the server."""
    call: str = "work"
    host: str = "sdk-client"
    """The name in `clientInfo`."""
    options: tuple[str, ...] = ()
    """Options of `mcpspy run`."""
    patience: int = 2
    """Seconds after which the client gives up a request."""


HTTP = "http://127.0.0.1:{port}/mcp"
SSE = "http://127.0.0.1:{port}/sse"
FAULTS = {
    # The server does not start.
    "unknown-command": Fault("command-not-found", "npxx -y weather-server"),
    "unknown-in-shell": Fault("command-not-found", "sh start.sh", TS1, D2025_06),
    "not-executable": Fault("command-not-executable", "./readme.txt", PY1, D2025_03),
    "no-module": Fault("module-missing", "python3 -c 'import fastmcp_that_is_missing'", PY1, D2024),
    "no-node-module": Fault("module-missing", "node -e 'require(\"@weather/server\")'", TS2),
    "no-file": Fault("file-missing", "python3 build/server.py", PY2, "auto"),
    "old-python": Fault(
        "runtime-version",
        "python3 -c 'import sys; sys.exit(\"weather requires Python >=3.14\")'",
        TS2,
        MODERN,
    ),
    "no-variable": Fault(
        "setting-missing", "python3 -c 'import os; os.environ[\"WEATHER_API_KEY\"]'", PY2, D2025_06
    ),
    "exits-at-once": Fault(
        "start-failed", "python3 -c 'import sys; print(\"bye\", file=sys.stderr); sys.exit(3)'", TS1
    ),
    # Text that is not a message, hangs, and servers that end.
    "noise": Fault("stdout-noise", f"{SERVER} noise", PY1, D2025_03),
    "noise-in-call": Fault("stdout-noise", f"{SERVER} error-noise@{MODERN}", PY2, "auto"),
    "cut": Fault("message-broken", f"{SERVER} cut", TS2),
    "hang": Fault("server-stuck", f"{SERVER} hang", TS1, D2025_06),
    "hang-at-start": Fault("nothing-on-stdout", f"{SERVER} hang-initialize", TS2, D2025_03),
    "crash": Fault("crash", f"{SERVER} crash", PY2, D2024),
    "crash-modern-client": Fault("crash", f"{SERVER} crash", PY2, "auto"),
    "killed": Fault("crash", f"{SERVER} killed@{MODERN}", TS2, MODERN),
    "exit-in-call": Fault("crash", f"{SERVER} exit", PY1, D2025_06),
    "orphan": Fault("server-did-not-end", f"{SERVER} orphan"),
    # Revisions, capabilities and hosts.
    "no-common-revision": Fault("version-mismatch", f"{SERVER} mismatch", TS1),
    "older-revision": Fault("downgrade", f"{SERVER} healthy@{D2024}"),
    "sampling": Fault("capability-missing", f"{SERVER} sampling", TS1, D2024),
    "schema": Fault("tool-dropped", f"{SERVER} schema", TS1, D2025_06, host="claude-code"),
    "output-schema": Fault("tool-dropped", f"{SERVER} output-schema", TS1, host="gemini-cli-mcp-client"),
    "large-result": Fault("beyond-host-limit", f"{SERVER} large", PY2, D2025_06, host="codex-mcp-client"),
    "slow-start": Fault(
        "beyond-host-limit", f"{SERVER} slow-start", PY1, D2025_06, host="codex-mcp-client", patience=30
    ),
    "list-changed": Fault("list-changed-ignored", f"{SERVER} list-changed", PY1, D2025_03, call="later"),
    # Calls that fail.
    "swallowed": Fault("error-swallowed", f"{SERVER} swallowed", TS2, D2025_06),
    "tool-error": Fault("disk-full", f"{SERVER} tool-error@{MODERN}", PY2, "auto"),
    "wrong-arguments": Fault("invalid-arguments", f"{SERVER} healthy", call="wrong"),
    "unknown-tool": Fault("unknown-tool", f"{SERVER} healthy", TS1, D2025_03, call="missing"),
    "bad-result": Fault("result-rejected", f"{SERVER} bad-result", PY1, D2025_06),
    "dropped-by-rule": Fault(
        "mcpspy-rule", f"{SERVER} healthy", TS2, D2025_06, options=("--rule", "tool:work => drop")
    ),
    # HTTP.
    "unreachable": Fault("upstream-unreachable", "", TS1, D2025_03, url="http://127.0.0.1:9/mcp"),
    "unknown-host": Fault("upstream-unreachable", "", PY2, "auto", url="http://mcp.invalid/mcp"),
    "not-tls": Fault("upstream-tls", "healthy", PY1, D2025_06, url="https://127.0.0.1:{port}/mcp"),
    "wrong-path": Fault("wrong-endpoint", "healthy", TS2, url="http://127.0.0.1:{port}/api"),
    "unauthorized": Fault("token-missing", "unauthorized", TS1, D2025_06, HTTP),
    "token-expired": Fault("token-missing", "expired", TS2, D2025_06, HTTP),
    "forbidden": Fault("token-refused", f"forbidden@{MODERN}", PY2, "auto", HTTP),
    "oauth-registration": Fault("oauth-registration", "oauth-registration", SIGNS_IN, "legacy", HTTP),
    "oauth-token": Fault("oauth-token", "oauth-token", SIGNS_IN, "legacy", HTTP),
    "lost-session": Fault("replicas", "lost-session", PY1, D2025_03, HTTP),
    "http-version": Fault("version-header", "http-version", TS1, D2025_06, HTTP),
    "http-500": Fault("server-error", f"http-500@{MODERN}", TS2, MODERN, HTTP),
    "http-429": Fault("http-status", "http-429", PY1, D2025_11, HTTP),
    "http-exit": Fault("upstream-unreachable", "exit", PY2, D2025_11, HTTP),
    "http-hang": Fault("no-response", "hang", PY1, D2025_06, HTTP),
    "http-swallowed": Fault("error-swallowed", "swallowed", PY2, D2025_03, HTTP),
    "http-schema": Fault("tool-dropped", f"schema@{MODERN}", TS2, MODERN, HTTP, host="claude-code"),
    "http-bad-result": Fault("result-rejected", "bad-result", TS1, D2025_06, HTTP),
    "http-wrong-arguments": Fault("invalid-arguments", f"healthy@{MODERN}", PY2, "auto", HTTP, "wrong"),
    "http-unknown-tool": Fault("unknown-tool", "healthy", TS1, D2025_03, HTTP, "missing"),
    "http-unknown-tool-modern": Fault("unknown-tool", f"healthy@{MODERN}", TS2, MODERN, HTTP, "missing"),
    "http-mismatch-modern": Fault("version-mismatch", f"mismatch@{MODERN}", TS2, MODERN, HTTP),
    "http-hang-modern": Fault("timeout", f"hang@{MODERN}", PY2, "auto", HTTP),
    "sse-tool-error": Fault("disk-full", f"tool-error@{D2024}", TS1, D2024, SSE),
    "sse-hang": Fault("server-stuck", f"hang@{D2024}", PY1, D2024, SSE),
}

OBSERVED = frozenset({"older-revision"})
"""Faults with which all requests succeed: worth knowing, and no cause of a failure."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until_listening(port: int) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"nothing listens on port {port}")


def environment() -> dict[str, str]:
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"PATH": tools, "HOME": str(FOLDER), "LANG": "C.UTF-8", "MCPSPY_DIR": str(FOLDER / "sessions")}


def play(fault: Fault, target: str | list[str]) -> None:
    """Run the client of a fault until its session ends."""
    if fault.sdk == SIGNS_IN:
        command = [SDKS[PY2][0], str(CLIENTS / "oauth.py"), "--mode", fault.mode, str(target)]
        subprocess.run(
            command, cwd=FOLDER, env=environment(), timeout=SECONDS, capture_output=True, check=False
        )
        return
    transport = "stdio" if not fault.url else "sse" if fault.url == SSE else "http"
    plan = {
        "name": "faulty",
        "target": target,
        "transport": transport,
        "mode": fault.mode,
        "calls": [*BEFORE, *CALLS[fault.call]],
        "environment": environment(),
        "client": fault.host,
        "timeout": fault.patience,
        "bare": True,
    }
    subprocess.run(
        SDKS[fault.sdk],
        input=json.dumps(plan).encode(),
        cwd=FOLDER,
        env=environment(),
        timeout=SECONDS,
        capture_output=True,
        check=False,
    )


def record(fault: Fault, path: Path) -> None:
    """Record a fault to a file."""
    path.unlink(missing_ok=True)
    recording = ["--name", "faulty", "--record", str(path), *fault.options]
    if not fault.url:
        play(fault, ["mcpspy", "run", *recording, "--", *shlex.split(fault.command)])
        return
    port, listen = free_port(), free_port()
    processes = []
    try:
        if fault.command:
            upstream = ["python3", "server.py", fault.command, str(port)]
            processes.append(
                subprocess.Popen(upstream, cwd=FOLDER, env=environment(), stderr=subprocess.DEVNULL)
            )
            until_listening(port)
        proxy = [
            "mcpspy",
            "http",
            *recording,
            "--listen",
            str(listen),
            "--upstream",
            fault.url.format(port=port),
        ]
        processes.append(subprocess.Popen(proxy, cwd=FOLDER, env=environment(), stderr=subprocess.DEVNULL))
        until_listening(listen)
        play(fault, f"http://127.0.0.1:{listen}{urlsplit(fault.url).path}")
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(timeout=SECONDS)


def prepare() -> None:
    """Create the folder of the servers."""
    FOLDER.mkdir(exist_ok=True)
    shutil.copy(HERE / "server.py", FOLDER)
    (FOLDER / "readme.txt").write_text("no program\n", encoding="utf-8")
    (FOLDER / "start.sh").write_text("uvxx weather-server\n", encoding="utf-8")


def main() -> None:
    """Record the named faults, by default all."""
    prepare()
    for name in sys.argv[1:] or FAULTS:
        path = HERE / f"{name}.jsonl"
        record(FAULTS[name], path)
        session = path.with_name(f"{name}-2.jsonl")
        if session.exists():  # The client started the server twice: first to find out its revision.
            session.replace(path)
        text = path.read_text(encoding="utf-8")
        if str(ROOT) in text or str(Path.home()) in text.replace(str(FOLDER), ""):
            sys.exit(f"{name}: the recording names a folder of this machine")
        print(name, len(text), flush=True)


if __name__ == "__main__":
    main()
