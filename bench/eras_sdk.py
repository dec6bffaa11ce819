"""The clients of SDKs of all eras, with servers of all eras, over `mcpspy bridge`: what works, as a table.

    python -m bench.eras_sdk [--server TEXT]… [--client TEXT]… [--recordings FOLDER]

The clients are `tests/peers/clients/era_client.py` and `era_client.mjs`: the Python SDK 2 and 1, the TypeScript SDK 2
and 1, and SDKs of older revisions, which `bench/older_sdks.sh` installs. Of each recording, `show` and `lint` are read: no
request in it is unanswered, except for those that the client cancelled. Prints one JSON object per cell, and then the
table of docs/bridge.md. Exits with 1 if a cell is not as LIMITS has it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.eras import listening

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / ".peers"
TESTED = ROOT / "tests" / "peers"
EVERYTHING = PEERS / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"

START_SECONDS = 30
CELL_SECONDS = 150
AT_ONCE = 4
"""Servers, each with one client at a time."""

ERA = {
    "tools/call": ["echo", {"text": "hé"}, "hé"],
    "progress": ["slow", {"steps": 2}, "2 steps"],
    "elicitation": ["ask", {}, "blue"],
    "sampling": ["sample", {}, "a line"],
    "update": ["change", {}, "changed"],
    "cancellation": ["hang", {}, ""],
    "uri": "note://index",
}
UNASKED = {feature: step for feature, step in ERA.items() if feature != "elicitation"}
"""Before 2025-06-18, servers cannot elicit."""
TYPESCRIPT = {**ERA, "elicitation": ["ask", {"question": "?"}, "blue"]}
EVERY = {
    "tools/call": ["echo", {"message": "hé"}, "hé"],
    "progress": ["trigger-long-running-operation", {"duration": 0.2, "steps": 2}, "2"],
    "elicitation": ["trigger-elicitation-request", {}, "blue"],
    "sampling": ["trigger-sampling-request", {"prompt": "A line.", "maxTokens": 20}, "a line"],
    "update": ["toggle-subscriber-updates", {}, ""],
    "cancellation": ["trigger-long-running-operation", {"duration": 60, "steps": 60}, ""],
    "uri": "demo://resource/static/document/startup.md",
}


class Server(NamedTuple):
    command: tuple[str, ...]
    """`{port}` is replaced by a free port."""
    plan: dict[str, Any]
    path: str = "/mcp"


def era(environment: str, *options: str, plan: dict[str, Any] = ERA) -> Server:
    python, program = PEERS / environment / "bin" / "python", TESTED / "servers" / "era_server.py"
    return Server(
        (str(python), str(program), "--port", "{port}", *options),
        plan,
        "/sse" if "--sse" in options else "/mcp",
    )


def typescript(*options: str) -> Server:
    program = TESTED / "servers" / "ts_server.mjs"
    return Server(("node", str(program), "--port", "{port}", "--changes", *options), TYPESCRIPT)


SERVERS = {
    "Python 1.2, HTTP+SSE": era("mcp1.2", "--revision", "all", "--sse", plan=UNASKED),
    "Python 1.12": era("mcp1.12", "--revision", "all"),
    "Python 1.30": era("mcp1", "--revision", "all"),
    "Python 1.30, stateless": era("mcp1", "--revision", "all", "--stateless"),
    "Python 1.30, HTTP+SSE": era("mcp1", "--revision", "all", "--sse"),
    "only 2024-11-05, HTTP+SSE": era("mcp1", "--revision", "2024-11-05", "--sse", plan=UNASKED),
    "only 2025-03-26": era("mcp1", "--revision", "2025-03-26", plan=UNASKED),
    "only 2025-06-18": era("mcp1", "--revision", "2025-06-18"),
    "only 2025-11-25": era("mcp1", "--revision", "2025-11-25"),
    "everything": Server(("env", "PORT={port}", "node", str(EVERYTHING), "streamableHttp"), EVERY),
    "everything, HTTP+SSE": Server(("env", "PORT={port}", "node", str(EVERYTHING), "sse"), EVERY, "/sse"),
    "Python 2.3": era("venv", "--revision", "all"),
    "Python 2.3, HTTP+SSE": era("venv", "--revision", "all", "--sse"),
    "Python 2.3, only 2026-07-28": era("venv"),
    "TypeScript 2.3": typescript(),
    "TypeScript 2.3, only 2026-07-28": typescript("--modern"),
}

STATELESS = frozenset({"Python 1.30, stateless", "TypeScript 2.3"})
"""Servers that have no sessions before 2026-07-28. They come first: each step that gets no answer takes a while."""


class Client(NamedTuple):
    command: tuple[str, ...]
    """`{plan}` is replaced by the plan of the server; the command of the bridge follows."""
    bridge: tuple[str, ...] = ()
    """Options of the bridge."""


def python(environment: str, mode: str, *bridge: str) -> Client:
    program = TESTED / "clients" / "era_client.py"
    return Client((str(PEERS / environment / "bin" / "python"), str(program), mode, "{plan}"), bridge)


def node(folder: str, mode: str, *bridge: str) -> Client:
    return Client(
        ("node", str(TESTED / "clients" / "era_client.mjs"), mode, "{plan}", str(PEERS / folder)), bridge
    )


MODERN = "2026-07-28"
CLIENTS = {
    "Python 1.2 (2024-11-05)": python("mcp1.2", "handshake"),
    "Python 1.9 (2025-03-26)": python("mcp1.9", "handshake"),
    "Python 1.12 (2025-06-18)": python("mcp1.12", "handshake"),
    "Python 1.30 (2025-11-25)": python("mcp1", "handshake"),
    "Python 2.3, legacy": python("venv", "legacy"),
    "Python 2.3, auto": python("venv", "auto"),
    "Python 2.3, 2026-07-28": python("venv", MODERN),
    "TypeScript 1.0 (2024-11-05)": node("sdk1.0", "handshake1"),
    "TypeScript 1.11 (2025-03-26)": node("sdk1.11", "handshake1"),
    "TypeScript 1.15 (2025-06-18)": node("sdk1.15", "handshake1"),
    "TypeScript 1.32 (2025-11-25)": node(".", "handshake1"),
    "TypeScript 2.4, legacy": node(".", "legacy"),
    "TypeScript 2.4, auto": node(".", "auto"),
    "TypeScript 2.4, 2026-07-28": node(".", MODERN),
    "TypeScript 2.4, 2026-07-28, --translate always": node(".", MODERN, "--translate", "always"),
}


class Limit(NamedTuple):
    """Features that do not work in some cells, for a reason that is not mcpspy's: docs/bridge.md names it."""

    mark: str
    features: frozenset[str]
    applies: Callable[[str, str], bool]
    """Of the names of a client and a server."""
    findings: frozenset[str] = frozenset()
    """Expected of its recordings: codes of `lint`, UNANSWERED."""
    is_certain: bool = True


UNANSWERED = "unanswered"
QUESTIONS = frozenset({"elicitation", "sampling"})


def revision(client: str) -> str:
    """Return the newest revision of a client."""
    found = re.search(r"20\d\d-\d\d-\d\d", client)
    return found[0] if found else "2025-11-25" if "legacy" in client else MODERN


def is_modern(server: str) -> bool:
    """Return whether a server has 2026-07-28."""
    return server.startswith(("Python 2", "TypeScript 2"))


def has_handshake(client: str) -> bool:
    return revision(client) != MODERN


LIMITS = (
    Limit(
        "a",
        frozenset({"connect"}),
        lambda client, server: server.startswith("only") and revision(client) < server[5:15],
    ),
    Limit(
        "b",
        frozenset({"connect"}),
        lambda client, server: client == "TypeScript 2.4, 2026-07-28" and not is_modern(server),
    ),
    Limit(
        "c",
        QUESTIONS | {"update"},
        lambda client, server: server in STATELESS and (has_handshake(client) or not is_modern(server)),
        frozenset({UNANSWERED, "ENV203"}),
    ),
    Limit(
        "d",
        frozenset({"update"}),
        lambda client, server: (
            (server == "Python 2.3" and has_handshake(client))
            or (server == "Python 2.3, HTTP+SSE" and client != "Python 2.3, auto")
        ),
        frozenset({"LIFE106"}),
    ),
    Limit(
        "e",
        frozenset({"elicitation"}),
        lambda client, server: client.startswith("TypeScript 1.15") and server.startswith("everything"),
    ),
    Limit(
        "f",
        frozenset({"cancellation"}),
        lambda client, server: server.startswith("Python 1.2,"),
        frozenset({UNANSWERED}),  # Also `server/discover`, which this SDK does not answer.
        is_certain=False,
    ),
    Limit(  # The client declares roots, and does not answer `roots/list`.
        "",
        frozenset(),
        lambda client, server: client.startswith("Python 1.2 ") and server.startswith("everything"),
        frozenset({UNANSWERED}),
    ),
    Limit(  # Its question has a schema of 2025-11-25.
        "",
        frozenset(),
        lambda client, server: revision(client) == "2025-06-18" and server.startswith("everything"),
        frozenset({"DATA801"}),
    ),
)


class Cell(NamedTuple):
    """The experience of one client with one server, and the findings in its recordings."""

    revision: str
    features: dict[str, str]
    """An empty reason: it works."""
    is_translated: bool
    stderr: list[str]
    """Its lines, without the one about the translation."""
    recorded: list[str]
    """Codes of `lint`'s errors, UNANSWERED, and failures of the readers."""

    def is_expected(self, limits: list[Limit]) -> bool:
        missing = {feature for feature, reason in self.features.items() if reason}
        certain: set[str] = set().union(*(limit.features for limit in limits if limit.is_certain))
        possible: set[str] = set().union(*(limit.features for limit in limits))
        shown: set[str] = set().union(*(limit.findings for limit in limits))
        is_right = certain & self.features.keys() <= missing <= possible
        return is_right and bool(self.features) and shown >= set(self.recorded) and not self.stderr

    def mark(self, limits: list[Limit]) -> str:
        marks = [limit.mark for limit in limits if any(self.features.get(each) for each in limit.features)]
        if self.is_translated:
            marks.insert(0, "t")
        return " ".join(marks) or "all"


def limits_of(client: str, server: str) -> list[Limit]:
    return [limit for limit in LIMITS if limit.applies(client, server)]


async def run(client: Client, server: Server, url: str, folder: Path) -> Cell:
    """Run one cell; its recordings go into a new folder."""
    os.makedirs(folder)
    words = [word.replace("{plan}", json.dumps(server.plan)) for word in client.command]
    bridge = (sys.executable, "-m", "mcpspy", "bridge", "--upstream", url, "--record", f"{folder}/")
    process = await asyncio.create_subprocess_exec(
        *words, *bridge, *client.bridge, cwd=ROOT, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), CELL_SECONDS)
    except TimeoutError:
        process.kill()
        out, err = b"", b"no end"
    lines = err.decode("utf-8", "replace").splitlines()
    found: dict[str, Any] = json.loads(out) if out else {"revision": "", "features": {"connect": "no output"}}
    return Cell(
        found["revision"],
        found["features"],
        any("translating" in line for line in lines),
        [line for line in lines if line and "translating" not in line],
        await asyncio.to_thread(read, folder),
    )


def read(folder: Path) -> list[str]:
    """Return what `show` and `lint` find in the recordings of a folder."""
    recordings = sorted(map(str, folder.glob("*.jsonl")))
    found: set[str] = set() if recordings else {"no recording"}
    found |= {"no end" for each in recordings if b'"note":"exit"' not in Path(each).read_bytes()}
    for command, *arguments in (
        *(("show", each, "-q", "is:unanswered kind:request") for each in recordings),
        ("lint", *recordings),
    ):
        done = subprocess.run(
            (sys.executable, "-m", "mcpspy", command, *arguments, "--format", "json"),
            check=False,
            cwd=ROOT,
            capture_output=True,
            timeout=CELL_SECONDS,
        )
        if done.returncode not in (0, 1):  # 1: it found something.
            found.add(f"{command}: {done.returncode}: {done.stderr.decode()[-300:]}")
        elif command == "show":
            found |= {UNANSWERED for row in done.stdout.splitlines() if row}
        else:
            findings = json.loads(done.stdout)["findings"]
            found |= {each["code"] for each in findings if each["severity"] == "error"}
    return sorted(found)


async def column(name: str, clients: list[str], folder: Path, cells: dict[tuple[str, str], Cell]) -> None:
    server = SERVERS[name]
    log = folder / f"{slug(name)}.stderr"
    async with listening(server.command, server.path, log, START_SECONDS) as url:
        for client in clients:
            cell = cells[client, name] = await run(
                CLIENTS[client], server, url, folder / slug(name) / slug(client)
            )
            is_expected = cell.is_expected(limits_of(client, name))
            row = {"client": client, "server": name, "is_expected": is_expected, **cell._asdict()}
            print(json.dumps(row, ensure_ascii=False), flush=True)


def table(servers: list[str], clients: list[str], cells: dict[tuple[str, str], Cell]) -> Iterator[str]:
    """Yield the lines of the table: a row for each server."""
    yield f"| server ↓ client → | {' | '.join(client.partition(' (')[0] for client in clients)} |"
    yield "|" + "---|" * (len(clients) + 1)
    for server in servers:
        marks = (cells[client, server].mark(limits_of(client, server)) for client in clients)
        yield f"| {server} | {' | '.join(marks)} |"


def slug(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in name)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", action="append", help="only servers whose name contains this text")
    parser.add_argument("--client", action="append", help="only clients whose name contains this text")
    parser.add_argument("--recordings", type=Path, help="keep the recordings in this new folder")
    options = parser.parse_args()
    chosen = [
        [name for name in names if not wanted or any(text in name for text in wanted)]
        for names, wanted in ((SERVERS, options.server), (CLIENTS, options.client))
    ]
    cells: dict[tuple[str, str], Cell] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.recordings or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(name: str) -> None:
            async with limit:
                await column(name, chosen[1], folder, cells)

        await asyncio.gather(*map(one, sorted(chosen[0], key=lambda name: name not in STATELESS)))
    print("\n".join(table(chosen[0], chosen[1], cells)))
    return int(not all(cell.is_expected(limits_of(*names)) for names, cell in cells.items()))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
