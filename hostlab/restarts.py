"""Clients and a host over 20 restarts of their server: `run --watch` and `http --watch` under traffic.

    .venv/bin/python -m hostlab.restarts [RESTARTS]

The source of a server of the Python SDK 1 is replaced under traffic, by turns with an unchanged one, one with another
tool, one that does not start, one that starts slowly, and one that dies in a call. First Claude Code, with a scripted
model that calls a tool all the time, through `mcpspy run --watch`; then the clients of the Python SDKs 1 and 2 and the
TypeScript SDK together over `mcpspy http --watch`, each with its own process, and sharing one. Every call must have one
response, its own; the last list of tools must be that of the last server; the recording must replay against a mock of
itself. Needs the hosts (`make hostlab`) and the peers.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from hostlab import compare
from hostlab.hosts import BIN, HOSTS, LONGEST, ROOT, SERVER, Run
from hostlab.models import ModelServer
from mcpspy.core.protocol.message import Failure, Request, Result, read_frame
from mcpspy.core.recording.decode import Frame, Note, read_entry

MCPSPY = str(Path(sys.executable).parent / "mcpspy")
PEERS = ROOT / ".peers"
CLIENTS = {
    "Python SDK 1": [str(PEERS / "mcp1" / "bin" / "python"), "tests/peers/clients/calling.py"],
    "Python SDK 2": [str(PEERS / "mcp2" / "bin" / "python"), "tests/peers/clients/calling.py"],
    "TypeScript SDK 2": ["node", "tests/peers/clients/calling.mjs"],
}

RESTARTS = 20
KINDS = ("unchanged", "another tool", "does not start", "starts slowly", "dies in a call")

LONGEST_START = 30.0
"""Seconds for all processes to be replaced."""

TRAFFIC = 0.5
"""Seconds of traffic with each server."""

MOST_CALLS = 5000

SOURCE = """\
import os, sys, time
from mcp.server.fastmcp import FastMCP
KIND, NUMBER = {kind!r}, {number}
if KIND == "does not start":
    sys.exit("SyntaxError: invalid syntax")
if KIND == "starts slowly":
    time.sleep(2)
server, calls = FastMCP("restarted"), 0
@server.tool(description="probe echo;")
def echo(text: str = "") -> str:
    global calls
    calls += 1
    if KIND == "dies in a call" and calls > 20:
        os._exit(7)
    return text
if KIND == "another tool":
    @server.tool(name=f"extra{{NUMBER}}", description="probe extra;")
    def extra() -> str:
        return "extra"
server.run()
"""


class ChangingSource:
    """The source of the server, and the recording that shows its restarts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "src"
        self.folder.mkdir(parents=True)
        self.file = self.folder / "server.py"
        self.recording = folder / "session.jsonl"
        self.write("unchanged", 0)

    def write(self, kind: str, number: int) -> None:
        new = self.folder.parent / "new.py"
        new.write_text(SOURCE.format(kind=kind, number=number), encoding="utf-8")
        os.replace(new, self.file)

    @property
    def outcomes(self) -> int:
        """The number of processes that were replaced so far, or could not be."""
        return sum(
            isinstance(entry, Note)
            and entry.kind == "restart"
            and entry.fields["did"] in ("listed", "failed")
            for entry in map(read_entry, self.recording.read_bytes().splitlines()[1:])
        )

    def change(self, restarts: int, processes: int) -> None:
        """Replace the source under traffic. The last server is one with another tool."""
        for number in range(1, restarts + 1):
            before, kind = self.outcomes, KINDS[number % len(KINDS)] if number < restarts else KINDS[1]
            self.write(kind, number)
            deadline = time.monotonic() + LONGEST_START
            while self.outcomes < before + processes and time.monotonic() < deadline:
                time.sleep(0.05)
            print(f"  {number}: {kind}", flush=True)
            time.sleep(TRAFFIC)


class Traffic(NamedTuple):
    """The messages of clients in a recording."""

    requests: int
    unanswered: int
    twice: int
    errors: int
    """Errors of mcpspy, because no server had answered."""
    restarts: int


def traffic(path: Path) -> Traffic:
    """Return the requests of the clients, and the responses that they got."""
    asked, answered, errors, restarts = Counter[Any](), Counter[Any](), 0, 0
    for entry in map(read_entry, path.read_bytes().splitlines()[1:]):
        if isinstance(entry, Note) and entry.kind == "restart":
            restarts += entry.fields["did"] in ("started", "failed")
        if not isinstance(entry, Frame) or entry.to is not None:
            continue
        for message in read_frame(entry):
            if isinstance(message, Request) and entry.side == "client" and entry.by is None:
                asked[entry.stream, message.id] += 1
            elif isinstance(message, Result | Failure) and entry.side == "server":
                answered[entry.stream, message.id] += 1
                errors += isinstance(message, Failure) and "mcpspy" in message.text
    return Traffic(
        asked.total(),
        sum((asked - answered).values()),
        sum((answered - asked).values()),
        errors,
        restarts,
    )


def claude_code(folder: Path, restarts: int) -> list[str]:
    """Run Claude Code; return what is wrong."""
    source = ChangingSource(folder)
    (host,) = (each for each in HOSTS if each.id == "claude-code")
    wrapped = [MCPSPY, "run", "--record", str(source.recording), "--watch", str(source.folder), "--"]
    run = Run(folder / "home", [*wrapped, *CLIENTS["Python SDK 1"][:1], str(source.file)], "", host.model)
    model = ModelServer(("probe echo;",) * MOST_CALLS)
    run.home.mkdir()
    run = run._replace(url=model.url)
    host.configure(run)
    process = subprocess.Popen(
        [str(BIN / host.program), *host.command(run)],
        cwd=run.home,
        env=host.variables(run),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        wait_for(lambda: source.recording.exists() and b'"tools/call"' in source.recording.read_bytes())
        source.change(restarts, 1)
        model.planned = model.planned[: model._called]
        output, _ = process.communicate(timeout=LONGEST)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        model.stop()
    request = compare.conversation(model.requests)[-1]
    names = sorted(tool.name for tool in request.tools if "probe" in tool.description)
    print(f"  model: {model._called} calls, {len(request.results)} results, tools at the end: {names}")
    wrong = [] if b"done" in output else [f"Claude Code printed {output[-300:]!r}"]
    if len(request.results) != model._called:
        wrong.append(f"{model._called} calls of the model have {len(request.results)} results")
    if f"mcp__{SERVER}__extra{restarts}" not in names:
        wrong.append(f"the last tools are {names}")
    return wrong + judged(source.recording, folder, restarts, 1)


def sdk_clients(folder: Path, restarts: int, *, is_shared: bool) -> list[str]:
    """Run the three clients together; return what is wrong."""
    source = ChangingSource(folder)
    options = ["--listen", ":0", "--record", str(source.recording), "--watch", str(source.folder)]
    command = [MCPSPY, "http", *options, *(["--shared"] if is_shared else []), "--"]
    proxy = subprocess.Popen(
        [*command, *CLIENTS["Python SDK 1"][:1], str(source.file)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert proxy.stderr is not None
    url = proxy.stderr.readline().split(": ", 1)[1].split(" ->")[0].strip()
    threading.Thread(target=proxy.stderr.read, daemon=True).start()
    clients = {
        name: subprocess.Popen(
            [*words, url], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name, words in CLIENTS.items()
    }
    wrong: list[str] = []
    try:
        for client in clients.values():
            assert client.stdout is not None
            client.stdout.readline()
        source.change(restarts, 1 if is_shared else len(clients))
        for name, client in clients.items():
            output, _ = client.communicate("", timeout=LONGEST)
            found = json.loads(output.splitlines()[-1])
            others = [text for text in found["errors"] if "mcpspy" not in text]
            print(
                f"  {name}: {found['right']} right, {len(found['errors'])} errors, {found['changes']} notifications"
            )
            if others or found["wrong"]:
                wrong.append(f"{name}: {(others + found['wrong'])[:3]}")
            if f"extra{restarts}" not in found["tools"]:
                wrong.append(f"{name}: the last tools are {found['tools']}")
    finally:
        for client in clients.values():
            client.kill()
        proxy.terminate()
        proxy.wait(LONGEST)
    return wrong + judged(source.recording, folder, restarts, 1 if is_shared else len(clients))


def judged(recording: Path, folder: Path, restarts: int, processes: int) -> list[str]:
    """Return what is wrong with the recording."""
    found = traffic(recording)
    print(f"  recording: {found}")
    wrong = []
    if found.unanswered or found.twice:
        wrong.append(f"{found.unanswered} requests have no response, {found.twice} responses have no request")
    if found.restarts < restarts * processes:
        wrong.append(f"{found.restarts} restarts of {restarts * processes}")
    # What a list contains depends on the time, which a mock cannot know.
    again = [MCPSPY, "replay", str(recording), "--filter", "tool:echo"]
    played = subprocess.run(
        [*again, "--dir", str(folder), "--", MCPSPY, "mock", str(recording)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    summary = next((line for line in played.stdout.splitlines() if " unchanged" in line), "")
    print(f"  calls again, against the mock of the recording: {summary}")
    if not summary.startswith("same: "):
        wrong.append(f"the replay differs: {(played.stdout + played.stderr)[-600:]}")
    return wrong


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + LONGEST_START
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("restarts: the host did not call the server")
        time.sleep(0.05)


def main(restarts: int) -> int:
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        print("Claude Code")
        wrong += claude_code(folder / "claude", restarts)
        for is_shared in (False, True):
            print(f"SDK clients, {'one process for all' if is_shared else 'a process for each'}")
            wrong += sdk_clients(folder / str(is_shared), restarts, is_shared=is_shared)
        if wrong:
            kept = shutil.copytree(folder, Path(tempfile.mkdtemp()) / "restarts")
            wrong.append(f"the recordings are in {kept}")
    print(*(wrong or ["nothing is wrong"]), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else RESTARTS))
