"""Record every server with a fault, through mcpspy and the Python SDK's client: `record.py [NAME…]`. Needs the peers.

The recordings are beside this file. Their folders are neutral: servers run in a folder that is the same on each machine.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
PEERS = ROOT / ".peers" / "venv" / "bin"
FOLDER = Path("/tmp/mcpspy-demo")
SERVER = "python3 server.py"
SECONDS = 40


class Fault(NamedTuple):
    cause: str
    """The code of the cause that `mcpspy explain` names."""
    command: str
    """The server's command, or its fault on HTTP."""
    call: str = "work"
    client: str = "sdk-client"
    mode: str = "legacy"
    url: str = ""
    """HTTP: the upstream; `{port}` is that of the server."""
    options: tuple[str, ...] = ()


HTTP = "http://127.0.0.1:{port}/mcp"
FAULTS = {
    "unknown-command": Fault("command-not-found", "npxx -y weather-server"),
    "unknown-in-shell": Fault("command-not-found", "sh start.sh"),
    "not-executable": Fault("permission-denied", "./readme.txt"),
    "no-module": Fault("module-missing", "python3 -c 'import fastmcp_that_is_missing'"),
    "no-node-module": Fault("module-missing", "node -e 'require(\"@weather/server\")'"),
    "no-file": Fault("module-missing", "python3 build/server.py"),
    "old-python": Fault(
        "runtime-version", "python3 -c 'import sys; sys.exit(\"weather requires Python >=3.14\")'"
    ),
    "no-variable": Fault("configuration-missing", "python3 -c 'import os; os.environ[\"WEATHER_API_KEY\"]'"),
    "exits-at-once": Fault(
        "start-failed", "python3 -c 'import sys; print(\"bye\", file=sys.stderr); sys.exit(3)'"
    ),
    "noise": Fault("stdout-noise", f"{SERVER} noise"),
    "noise-in-call": Fault("stdout-noise", f"{SERVER} error-noise", mode="auto"),
    "hang": Fault("timeout", f"{SERVER} hang"),
    "hang-at-start": Fault("no-response", f"{SERVER} hang-initialize"),
    "crash": Fault("crash", f"{SERVER} crash"),
    "crash-modern-client": Fault("crash", f"{SERVER} crash", mode="auto"),
    "killed": Fault("crash", f"{SERVER} killed"),
    "exit-in-call": Fault("crash", f"{SERVER} exit"),
    "no-common-revision": Fault("version-mismatch", f"{SERVER} mismatch"),
    "older-revision": Fault("downgrade", f"{SERVER} downgrade"),
    "sampling": Fault("capability-missing", f"{SERVER} sampling"),
    "swallowed": Fault("error-swallowed", f"{SERVER} swallowed"),
    "tool-error": Fault("request-failed", f"{SERVER} tool-error"),
    "schema": Fault("schema-dropped", f"{SERVER} schema", client="claude-code"),
    "output-schema": Fault("schema-dropped", f"{SERVER} output-schema", client="gemini-cli-mcp-client"),
    "large-result": Fault("result-too-large", f"{SERVER} large", client="codex-mcp-client"),
    "list-changed": Fault("list-changed-ignored", f"{SERVER} list-changed", call="later"),
    "cut": Fault("message-cut", f"{SERVER} cut"),
    "orphan": Fault("orphaned-process", f"{SERVER} orphan"),
    "wrong-arguments": Fault("invalid-arguments", f"{SERVER} healthy", call="wrong"),
    "unknown-tool": Fault("unlisted-tool", f"{SERVER} healthy", call="missing"),
    "bad-result": Fault("invalid-result", f"{SERVER} bad-result"),
    "dropped-by-rule": Fault("mcpspy-rule", f"{SERVER} healthy", options=("--rule", "tool:work => drop")),
    "unauthorized": Fault("authorization", "unauthorized", url=HTTP),
    "forbidden": Fault("authorization", "forbidden", url=HTTP),
    "lost-session": Fault("session-lost", "lost-session", url=HTTP),
    "wrong-path": Fault("wrong-endpoint", "healthy", url="http://127.0.0.1:{port}/api"),
    "unreachable": Fault("upstream-unreachable", "", url="http://127.0.0.1:9/mcp"),
    "unknown-host": Fault("upstream-unreachable", "", url="http://mcp.invalid/mcp"),
    "not-tls": Fault("tls-failure", "healthy", url="https://127.0.0.1:{port}/mcp"),
    "http-500": Fault("http-error", "http-500", url=HTTP),
    "http-429": Fault("http-error", "http-429", url=HTTP),
    "http-version": Fault("version-mismatch", "http-version", url=HTTP),
}


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


def record(name: str, fault: Fault) -> None:
    path = HERE / f"{name}.jsonl"
    path.unlink(missing_ok=True)
    client = [
        str(PEERS / "python"),
        str(ROOT / "tests" / "peers" / "clients" / "faulty.py"),
        fault.client,
        fault.mode,
        fault.call,
    ]
    recording = ["--name", "faulty", "--record", str(path), *fault.options]
    if not fault.url:
        command = [*client, "mcpspy", "run", *recording, "--", *shlex.split(fault.command)]
        subprocess.run(
            command, cwd=FOLDER, env=environment(), timeout=SECONDS, capture_output=True, check=False
        )
        return
    port, listen = free_port(), free_port()
    processes = []
    try:
        if fault.command:
            upstream = ["python3", "server.py", fault.command, str(port)]
            processes.append(subprocess.Popen(upstream, cwd=FOLDER, env=environment()))
            until_listening(port)
        proxy = [
            "mcpspy",
            "http",
            *recording,
            "--listen",
            f"127.0.0.1:{listen}",
            "--upstream",
            fault.url.format(port=port),
        ]
        processes.append(subprocess.Popen(proxy, cwd=FOLDER, env=environment(), stderr=subprocess.DEVNULL))
        until_listening(listen)
        place = "/api" if "/api" in fault.url else "/mcp"
        subprocess.run(
            [*client, f"http://127.0.0.1:{listen}{place}"],
            cwd=FOLDER,
            env=environment(),
            timeout=SECONDS,
            capture_output=True,
            check=False,
        )
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(timeout=SECONDS)


def main() -> None:
    """Record the named faults, by default all."""
    FOLDER.mkdir(exist_ok=True)
    shutil.copy(HERE / "server.py", FOLDER)
    (FOLDER / "readme.txt").write_text("no program\n", encoding="utf-8")
    (FOLDER / "start.sh").write_text("uvxx weather-server\n", encoding="utf-8")
    for name in sys.argv[1:] or FAULTS:
        record(name, FAULTS[name])
        text = (HERE / f"{name}.jsonl").read_text(encoding="utf-8")
        if str(ROOT) in text or str(Path.home()) in text.replace(str(FOLDER), ""):
            sys.exit(f"{name}: the recording names a folder of this machine")
        print(name, len(text))


if __name__ == "__main__":
    main()
