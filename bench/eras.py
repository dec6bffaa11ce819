"""Every pair of a host and a server over `mcpspy bridge`, as a table: which features of MCP work between their eras.

    python bench/eras.py [--server NAME]… [--host NAME]…

The servers are `tests/peers/servers/era_server.py` on the Python SDK 1 and 2. The hosts are scripted, one per revision:
they send what that revision has for each feature, and check what they receive. Each recording is read by `show`,
`lint`, `explain`, `mock` and `replay`. Exits with 1 if a cell is not what docs/bridge.md has.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / ".peers"
ERA_SERVER = ROOT / "tests" / "peers" / "servers" / "era_server.py"
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"

SECONDS = 60.0
"""For a response. The first one waits for two interpreters to start."""

QUIET = 5.0
"""For a notification that a server may not send."""


class Peer(NamedTuple):
    python: str
    options: tuple[str, ...] = ()
    path: str = "/mcp"


SERVERS = {
    "2024-11-05, HTTP+SSE": Peer("mcp1", ("--revision", "2024-11-05", "--sse"), "/sse"),
    "2025-03-26": Peer("mcp1", ("--revision", "2025-03-26")),
    "2025-06-18": Peer("mcp1", ("--revision", "2025-06-18")),
    "2025-11-25": Peer("mcp1", ("--revision", "2025-11-25")),
    "2025-11-25, stateless": Peer("mcp1", ("--revision", "2025-11-25", "--stateless")),
    MODERN: Peer("venv"),
}
HOSTS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN)

STATELESS = "2025-11-25, stateless"
NO_WAY_BACK = frozenset({"elicitation", "sampling", "list changed", "resource updated", "cancellation"})
"""Features that need a session, with or without mcpspy: a stateless server gets no answers, has no stream for its own
messages, and cannot relate a cancellation to a request of another connection."""

FEATURES = (
    *("handshake", "tools/list", "tools/call", "progress", "elicitation", "sampling"),
    *("list changed", "resource updated", "log message", "cancellation"),
)


class Host:
    """A host on the stdin and stdout of a bridge."""

    def __init__(self, process: asyncio.subprocess.Process, revision: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin, self.stdout = process.stdin, process.stdout
        self.revision, self.is_modern = revision, revision == MODERN
        self.seen: list[dict[str, Any]] = []
        self.number = 0

    def send(self, **members: Any) -> None:
        self.stdin.write(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")

    async def until(
        self, wanted: Callable[[dict[str, Any]], bool], seconds: float = SECONDS
    ) -> dict[str, Any]:
        async with asyncio.timeout(seconds):
            while line := await self.stdout.readline():
                message: dict[str, Any] = json.loads(line)
                self.seen.append(message)
                if "method" in message and "id" in message:
                    self.send(id=message["id"], result=answer(message["method"]))
                if wanted(message):
                    return message
        raise ConnectionError("the bridge closed stdout")

    async def response(self, number: int) -> dict[str, Any]:
        return await self.until(lambda message: message.get("id") == number and "method" not in message)

    def params(self, params: dict[str, Any], token: object = None, level: str = "") -> dict[str, Any]:
        meta: dict[str, Any] = {} if token is None else {"progressToken": token}
        if self.is_modern:
            meta |= {
                f"{META}protocolVersion": MODERN,
                f"{META}clientInfo": {"name": "host", "version": "1"},
                f"{META}clientCapabilities": {"elicitation": {"form": {}}, "sampling": {}},
            }
            if level:
                meta[f"{META}logLevel"] = level
        return {**params, **({"_meta": meta} if meta else {})}

    async def ask(self, method: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Return the response to a request; questions in it are answered by a repetition."""
        for _ in range(3):
            self.number += 1
            number = self.number
            self.send(id=number, method=method, params=self.params(params, **options))
            response = await self.response(number)
            result = response.get("result", {})
            if result.get("resultType") != "input_required":
                return response
            asked = result["inputRequests"]
            params = {
                **params,
                "inputResponses": {key: answer(each["method"]) for key, each in asked.items()},
            }
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise ConnectionError("the server still asks")

    async def call(self, tool: str, **options: Any) -> str:
        arguments = {"text": "hé"} if tool == "echo" else {"steps": 2} if tool == "slow" else {}
        response = await self.ask("tools/call", {"name": tool, "arguments": arguments}, **options)
        content = response.get("result", {}).get("content") or [{}]
        return str(content[0].get("text", response.get("error")))


def answer(method: str) -> dict[str, Any]:
    if method == "elicitation/create":
        return {"action": "accept", "content": {"answer": "blue"}}
    if method == "sampling/createMessage":
        return {"role": "assistant", "model": "none", "content": {"type": "text", "text": "a line"}}
    return {}


async def play(host: Host) -> AsyncIterator[tuple[str, bool]]:
    """Yield each feature, and whether it works."""
    if host.is_modern:
        listed = await host.ask("tools/list", {})
        yield "handshake", "result" in listed
    else:
        declared: dict[str, Any] = (
            {"elicitation": {}, "sampling": {}} if host.revision >= "2025-06-18" else {"sampling": {}}
        )
        info = {"protocolVersion": host.revision, "capabilities": declared}
        begun = await host.ask("initialize", {**info, "clientInfo": {"name": "host", "version": "1"}})
        yield "handshake", "protocolVersion" in begun.get("result", {})
        host.send(method="notifications/initialized")
        listed = await host.ask("tools/list", {})
    yield "tools/list", len(listed.get("result", {}).get("tools", ())) > 1
    yield "tools/call", await host.call("echo") == "hé"
    host.seen.clear()
    is_done = await host.call("slow", token="p") == "2 steps"
    yield (
        "progress",
        is_done and sum(each.get("method") == "notifications/progress" for each in host.seen) == 2,
    )
    if host.revision >= "2025-06-18":
        yield "elicitation", await within(host.call("ask")) == "accept blue"
    yield "sampling", await within(host.call("sample")) == "sampled a line"
    changed, updated = "notifications/tools/list_changed", "notifications/resources/updated"
    if host.is_modern:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["note://index"]}
        host.send(id="listen", method="subscriptions/listen", params=host.params({"notifications": wanted}))
        await host.until(lambda message: "acknowledged" in message.get("method", ""))
    else:
        await host.ask("resources/subscribe", {"uri": "note://index"})
    host.seen.clear()
    await host.call("change")
    try:
        await host.until(lambda _: {changed, updated} <= {each.get("method") for each in host.seen}, QUIET)
    except TimeoutError:
        pass  # What is missing is in the table.
    yield "list changed", any(each.get("method") == changed for each in host.seen)
    yield "resource updated", any(each.get("method") == updated for each in host.seen)
    if not host.is_modern:
        await host.ask("logging/setLevel", {"level": "info"})
    host.seen.clear()
    await host.call("log", level="info")
    yield "log message", any(each.get("method") == "notifications/message" for each in host.seen)
    host.send(
        id="hang", method="tools/call", params=host.params({"name": "hang", "arguments": {}}, token="h")
    )
    await host.until(lambda message: message.get("method") == "notifications/progress")
    host.send(method="notifications/cancelled", params={"requestId": "hang"})
    yield "cancellation", await host.call("echo") == "hé"


async def within(work: Any) -> str:
    """Return what a call answers; nothing if the server waits for an answer that does not reach it."""
    try:
        async with asyncio.timeout(QUIET):
            return str(await work)
    except TimeoutError:
        return ""


def command_of(peer: Peer) -> list[str]:
    """Return the command of a server over HTTP."""
    return [str(PEERS / peer.python / "bin" / "python"), str(ERA_SERVER), "--port", "{port}", *peer.options]


@asynccontextmanager
async def listening(
    command: Sequence[str], path: str, log: Path, seconds: float = SECONDS
) -> AsyncIterator[str]:
    """Run a server on a free port, which replaces `{port}` in its command; yield its URL with this path."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [word.replace("{port}", str(port)) for word in command]
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(*words, stdout=DEVNULL, stderr=stderr)
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                except OSError:
                    await asyncio.sleep(0.1)
        yield f"http://127.0.0.1:{port}{path}"
    finally:
        process.kill()
        await process.wait()


async def cell(url: str, revision: str, recording: Path, log: Path) -> dict[str, bool]:
    """Return which features work between a host and the server at a URL."""
    command = (sys.executable, "-m", "mcpspy", "bridge", "--upstream", url, "--record", str(recording))
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=ROOT)
    found: dict[str, bool] = {}
    try:
        host = Host(process, revision)
        async for feature, works in play(host):
            found |= {feature: works}  # Also what was found before an error.
        found["cancellation"] &= await logged(log, "cancelled")
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 2 * SECONDS)
    except (TimeoutError, ConnectionError) as error:
        print(f"{revision} → {url}: {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    await asyncio.to_thread(read, recording, url)
    return found


def read(recording: Path, url: str) -> None:
    """Read a recording by the commands that could fail on it. Raise RuntimeError if one does."""
    bridge = (sys.executable, "-m", "mcpspy", "bridge", "--upstream", url, "--no-record")
    for reader in (
        ("show", str(recording)),
        ("lint", str(recording)),
        ("explain", str(recording)),
        ("mock", str(recording)),
        ("replay", str(recording), "--no-record", "--timeout", "5", "--", *bridge),
    ):
        command = (sys.executable, "-m", "mcpspy", *reader)
        done = subprocess.run(
            command, check=False, cwd=ROOT, capture_output=True, timeout=300, stdin=subprocess.DEVNULL
        )
        if done.returncode > 1 or b"a bug in mcpspy" in done.stderr:  # 1: it found something.
            raise RuntimeError(
                f"{reader[0]} {recording.name}: {done.returncode}: {done.stderr.decode()[-500:]}"
            )


def written(log: Path, word: str) -> bool:
    """Return whether the log has a word; then it is emptied."""
    if word not in log.read_text(encoding="utf-8"):
        return False
    os.truncate(log, 0)
    return True


async def logged(log: Path, word: str) -> bool:
    """Return whether the server writes a word within a few seconds."""
    for _ in range(int(QUIET * 10)):
        if written(log, word):
            return True
        await asyncio.sleep(0.1)
    return False


def expected(host: str, server: str) -> set[str]:
    """Return the features that work (docs/bridge.md)."""
    features = set(FEATURES)
    if host < "2025-06-18":
        features.discard("elicitation")  # The revision does not have it.
    if server == STATELESS:
        features -= NO_WAY_BACK
    if server == MODERN and host != MODERN:
        features.discard("log message")  # The SDK declares no logging, so that hosts may not set a level.
    return features


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", action="append", choices=SERVERS)
    parser.add_argument("--host", action="append", choices=HOSTS)
    options = parser.parse_args()
    wrong = 0
    print(f"| host | server | {' | '.join(FEATURES)} |")
    print("|" + "---|" * (len(FEATURES) + 2))
    with tempfile.TemporaryDirectory() as folder:
        for server in options.server or SERVERS:
            log = Path(folder) / "stderr"
            async with listening(command_of(SERVERS[server]), SERVERS[server].path, log) as url:
                for host in options.host or HOSTS:
                    os.truncate(log, 0)
                    found = await cell(
                        url, host, Path(folder) / f"{host}-{url[-9:-4]}-{server[:10]}.jsonl", log
                    )
                    marks = [
                        "yes" if found.get(each) else "no" if each in found else "—" for each in FEATURES
                    ]
                    is_as_expected = {each for each, works in found.items() if works} == expected(
                        host, server
                    )
                    wrong += not is_as_expected
                    note = "" if is_as_expected else " UNEXPECTED"
                    print(f"| {host} | {server} | {' | '.join(marks)} |{note}", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
