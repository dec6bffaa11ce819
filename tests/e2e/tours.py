"""Sessions of the official SDKs' clients with any server, recorded by mcpspy, and their findings."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpspy.analysis.lint import EntryPosition, Finding, Linter
from mcpspy.core.protocol.http_headers import read_upstream
from mcpspy.core.session.streaming import StreamingSession
from mcpspy.io.http.proxy import HttpOptions, proxying
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.tail import follow
from recordings import make

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
    from pathlib import Path

SECONDS = 100
"""Limit for all sessions of a client with a server, and for the start of a server."""

PEER = make.CLIENTS.parent / "servers"

CLIENTS = {
    "python-2": [str(make.PEERS / "venv" / "bin" / "python"), str(make.CLIENTS / "tour.py")],
    "python-1": [str(make.PEERS / "mcp1" / "bin" / "python"), str(make.CLIENTS / "tour.py")],
    "typescript-2": ["node", str(make.CLIENTS / "tour.mjs"), "2"],
    "typescript-1": ["node", str(make.CLIENTS / "tour.mjs"), "1"],
}

Call = tuple[str, dict[str, Any], str]
"""A tool, its arguments, and `call`, `progress`, `cancel` or `unknown` (also called if it is not listed)."""

CALLS: tuple[Call, ...] = (
    ("echo", {"text": "Grüße, 世界 🎈"}, "call"),
    ("add", {"a": 1, "b": 2}, "call"),
    ("add", {"a": "one", "b": 2}, "call"),
    ("slow", {"steps": 3}, "progress"),
    ("hang", {}, "cancel"),
    ("fail", {}, "call"),
    ("log", {"text": "for the log"}, "call"),
    ("ask", {"question": "Which colour?"}, "call"),
    ("ask", {"question": "Will you decline?"}, "call"),
    ("sample", {}, "call"),
    ("roots", {}, "call"),
    ("no-such-tool", {}, "unknown"),
)
"""Of the servers in tests/peers/servers."""

EVERYTHING: tuple[Call, ...] = (
    ("echo", {"message": "Grüße, 世界 🎈"}, "call"),
    ("get-sum", {"a": "one", "b": 2}, "call"),
    ("get-sum", {"a": 1, "b": 2}, "call"),
    ("get-structured-content", {"location": "Chicago"}, "call"),
    ("get-tiny-image", {}, "call"),
    ("get-resource-links", {"count": 2}, "call"),
    ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}, "progress"),
    ("trigger-sampling-request", {"prompt": "Say something.", "maxTokens": 20}, "call"),
    ("trigger-elicitation-request", {}, "call"),
    ("get-roots-list", {}, "call"),
    ("no-such-tool", {}, "unknown"),
)
"""Of server-everything."""

ASKING = ("ask", "sample", "roots")
"""The tools of `tests/peers/servers` that send a request to the client."""


class Server(NamedTuple):
    """A command that serves one transport. `{port}` in it is a free port, and `{dir}` a new folder."""

    name: str
    command: tuple[str, ...]
    transport: str = "stdio"
    path: str = "/mcp"
    environment: dict[str, str] = {}  # noqa: RUF012  # Never changed.
    calls: tuple[Call, ...] = CALLS
    asks: bool = True
    """False if the server cannot send requests to clients of older revisions, because it has no sessions. Its tools
    that do so would wait until the client gives up.
    """


class Tour(NamedTuple):
    """One session."""

    client: str
    server: Server
    mode: str
    """`auto`, or the revision that the client offers."""
    faultless: bool = False
    """True if the client reads no resource that does not exist."""

    @property
    def calls(self) -> list[Call]:
        may_ask = self.server.asks or self.mode == "2026-07-28"
        return [call for call in self.server.calls if may_ask or call[0] not in ASKING]

    @property
    def name(self) -> str:
        return f"{self.client}.{self.server.name}.{self.mode}"


class Recorded(NamedTuple):
    tour: Tour
    steps: list[str]
    """The client's requests, with the exceptions that they raised."""
    error: str | None
    paths: list[Path]
    """The recordings: two if the client started the server twice."""

    def findings(self) -> Iterator[Finding]:
        for path in self.paths:
            yield from findings(path)


def findings(path: Path) -> list[Finding]:
    recording = Recording(path)
    session, linter = StreamingSession(recording.header), Linter(recording.header)
    found = []
    for number, entry in enumerate(recording, 2):
        for change in session.add(entry):
            found += linter.add(change, EntryPosition(number))
    session.end()
    return found + linter.end()


async def record(server: Server, tours: Iterable[Tour], folder: Path) -> list[Recorded]:
    """Record all sessions with one server, concurrently, each in separate files of the folder."""
    environment = {**make.environment(folder), **server.environment}
    clients: dict[str, list[Tour]] = {}
    for tour in tours:
        clients.setdefault(tour.client, []).append(tour)
    async with AsyncExitStack() as stack:
        url = None
        if server.transport != "stdio":
            url = await stack.enter_async_context(_serving(server, folder, environment))
        recorded = await asyncio.gather(
            *(_play(client, planned, url, folder, environment) for client, planned in clients.items())
        )
    for each in (each for group in recorded for each in group):
        for path in each.paths:
            async with asyncio.timeout(SECONDS):
                _ = [entry async for entry in follow(path)]
    return [each for group in recorded for each in group]


async def _play(
    client: str, tours: Sequence[Tour], url: str | None, folder: Path, environment: dict[str, str]
) -> list[Recorded]:
    async with AsyncExitStack() as stack:
        plans = []
        for tour in tours:
            path = folder / f"{tour.name}.jsonl"
            target: str | list[str]
            if url is None:
                words = [word.replace("{dir}", str(folder)) for word in tour.server.command]
                target = [_program("mcpspy", environment), "run", "--record", str(path), "--", *words]
            else:
                target = await stack.enter_async_context(_proxied(url, path))
            plans.append(
                {
                    "name": tour.name,
                    "target": target,
                    "transport": tour.server.transport,
                    "mode": tour.mode,
                    "calls": tour.calls,
                    "faultless": tour.faultless,
                    "environment": environment,
                }
            )
        command = [_program(CLIENTS[client][0], environment), *CLIENTS[client][1:]]
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(SECONDS):
                out, _ = await process.communicate("\n".join(map(json.dumps, plans)).encode() + b"\n")
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
    played = {outcome["name"]: outcome for outcome in map(json.loads, out.splitlines())}
    return [
        Recorded(
            tour,
            played[tour.name]["steps"],
            played[tour.name]["error"],
            _recordings(folder, tour),
        )
        for tour in tours
    ]


def _recordings(folder: Path, tour: Tour) -> list[Path]:
    return sorted(folder.glob(f"{tour.name}*.jsonl"))


@asynccontextmanager
async def _proxied(url: str, path: Path) -> AsyncIterator[str]:
    upstream = read_upstream(url)
    assert upstream is not None
    options = HttpOptions(upstream, "127.0.0.1", 0)
    options.record = str(path)
    async with proxying(options) as served:
        yield served


@asynccontextmanager
async def _serving(server: Server, folder: Path, environment: dict[str, str]) -> AsyncIterator[str]:
    """Start a server, and yield its URL once it accepts connections."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [word.replace("{port}", str(port)).replace("{dir}", str(folder)) for word in server.command]
    process = await asyncio.create_subprocess_exec(
        _program(words[0], environment),
        *words[1:],
        cwd=folder,
        env={**environment, "PORT": str(port)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(SECONDS):
            while not await _accepts(port):
                assert process.returncode is None, f"{server.name} exited with {process.returncode}"
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}{server.path}"
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def _program(name: str, environment: dict[str, str]) -> str:
    return shutil.which(name, path=environment["PATH"]) or name
