"""The percentiles of a load test beside the truth: a server of known latency that measures each response.

The server waits before it answers a call, uniformly or with two modes, and writes down how long each call took from
the last byte of the request to the response. `mcpspy replay --rate` must find the same p50, p95 and p99 within 5 %,
or say that it noticed responses late itself.

    .venv/bin/python bench/load.py [SECONDS]
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LATENCIES = {"5 ms": (0.005, 0.005, 0.0), "20 ms": (0.02, 0.02, 0.0), "200 ms": (0.2, 0.2, 0.0),
             "5 or 200 ms": (0.005, 0.2, 0.1)}  # fmt: skip
"""A latency, another one in seconds, and the share of the other one."""

RATES = (5, 20, 50)
"""Runs per second, of two calls each."""

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

RESULT = {"content": [{"type": "text", "text": "done"}]}
INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "known", "version": "1"},
}


class KnownServer:
    """Answers MCP over HTTP, on connections that are kept."""

    def __init__(self, usual: float, other: float, share: float) -> None:
        self._usual, self._other, self._share = usual, other, share
        self._random = random.Random(1)
        self.took: list[float] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)\ncontent-length: *(\d+)", head)
                body = await reader.readexactly(int(length[1])) if length else b""
                writer.write(await self._response(body))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _response(self, body: bytes) -> bytes:
        started = time.perf_counter()
        message = json.loads(body) if body else {}
        if "id" not in message:
            return b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n" % (b"202 Accepted" if body else b"405 None")
        result: object = INITIALIZED
        if message["method"] == "tools/call":
            await asyncio.sleep(self._other if self._random.random() < self._share else self._usual)
            result = RESULT
            self.took.append(time.perf_counter() - started)
        data = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data)
        return head + data


async def serve(latency: str) -> None:
    """Print the port; serve until SIGTERM, and print the times of all calls."""
    known = KnownServer(*LATENCIES[latency])
    server = await asyncio.start_server(known.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    print(json.dumps(known.took), flush=True)


def recording() -> list[dict[str, object]]:
    """Return a session with a handshake and two calls."""
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "load", "version": "1"},
    }
    call = {"name": "wait", "arguments": {}}
    asked = [
        (1, "initialize", client, INITIALIZED),
        (2, "tools/call", call, RESULT),
        (3, "tools/call", call, RESULT),
    ]
    lines: list[dict[str, object]] = [
        {
            "mcpspy": 1,
            "id": "load",
            "started": "2026-01-01T00:00:00Z",
            "transport": "stdio",
            "command": ["known"],
        }
    ]
    for number, method, params, result in asked:
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        response = {"jsonrpc": "2.0", "id": number, "result": result}
        lines += [
            {"t": number, "from": "client", "msg": request},
            {"t": number + 0.1, "from": "server", "msg": response},
        ]
        if method == "initialize":
            done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            lines.append({"t": number + 0.2, "from": "client", "msg": done})
    return lines


def measure(latency: str, rate: int, seconds: str, file: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", latency], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = f"http://127.0.0.1:{server.stdout.readline().strip()}/mcp"
    options = [
        "--rate",
        str(rate),
        "--duration",
        f"{seconds}s",
        "--format",
        "json",
        "--no-record",
        "--upstream",
        url,
    ]
    load = subprocess.run(
        [sys.executable, "-m", "mcpspy", "replay", str(file), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    server.terminate()
    truth = sorted(json.loads(server.communicate()[0]))
    report = json.loads(load.stdout)
    found = next(each for each in report["by_request"] if each["request"] == "tools/call wait")["latency_ms"]
    cells, worst = [], 0.0
    for name, share in PERCENTILES.items():
        true = truth[min(len(truth) - 1, int(share * len(truth)))] * 1e3
        worst = max(worst, abs(found[name] - true) / true)
        cells.append(f"{true:.1f} / {found[name]:.1f}")
    own = "reported" if report["overhead_ms"]["is_large"] else ""
    print(f"| {latency} | {rate} | {' | '.join(cells)} | {worst:.1%} | {own} |", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "load.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in recording()), encoding="utf-8")
        print(
            "| server | runs/s | p50, true / measured (ms) | p95 | p99 | largest error | own work |\n|---|---|---|---|---|---|---|"
        )
        for latency in LATENCIES:
            for rate in RATES:
                measure(latency, rate, sys.argv[1] if len(sys.argv) > 1 else "10", file)


if __name__ == "__main__":
    main()
