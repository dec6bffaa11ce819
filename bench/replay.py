"""Speed of `mcpspy replay`, compared with a bare client of the Python SDK that makes the same calls.

Owns the figures of the player and their bar. Both start the same minimal
server, and are timed from the first call to the last response. Meanwhile
mcpspy records every message and reads it again for the comparison; the
responses of both are checked.

    .venv/bin/python bench/replay.py [--quick] [--check] [--json FILE]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Not this folder: its `http.py` would shadow the standard library's.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.http import PEERS  # noqa: E402 - the line above must come first.
from bench.measure import Report, Row, alternate, high, main  # noqa: E402
from mcpspy.core.protocol.message import Result  # noqa: E402
from mcpspy.core.recording.encode import header  # noqa: E402
from mcpspy.core.replay.plan import plans  # noqa: E402
from mcpspy.core.replay.player import PlayerOptions  # noqa: E402
from mcpspy.core.session.session import Session  # noqa: E402
from mcpspy.io.client import ServerCommand  # noqa: E402
from mcpspy.io.recording.reader import Recording  # noqa: E402
from mcpspy.io.recording.recorder import RecordingTarget  # noqa: E402
from mcpspy.io.replay import ReplayOptions, run  # noqa: E402

SDK = str(PEERS / "venv" / "bin" / "python")
SERVER = [sys.executable, "-I", "-S", str(Path(__file__).resolve().parent / "echo_tool.py")]

CLIENT = """
import sys, time, anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

async def main(calls, at_once, command):
    async def call(client, number):
        text = f"call {number:06d} ".ljust(100, "x")
        assert (await client.call_tool("echo", {"text": text})).content[0].text == text

    async with Client(StdioServerParameters(command=command[0], args=command[1:]), mode="legacy") as client:
        await client.list_tools()
        begun = time.perf_counter()
        for first in range(0, calls, at_once):
            if at_once == 1:
                await call(client, first)
                continue
            async with anyio.create_task_group() as group:
                for number in range(first, first + at_once):
                    group.start_soon(call, client, number)
        print(time.perf_counter() - begun)

anyio.run(main, int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
"""
"""The bare client; `anyio` runs it on asyncio."""


@dataclass(frozen=True)
class Size:
    """Amounts to measure."""

    rounds: int
    calls: int


def at_once(report: Report, size: Size) -> None:
    """Measure sequential and concurrent calls."""
    for many in (1, 50):
        with tempfile.TemporaryDirectory(prefix="mcpspy-bench-") as folder:
            recording = Path(folder) / "recording.jsonl"
            recording.write_bytes(_recorded(size.calls, many))
            subjects = {
                "replay": partial(_replayed, recording, size.calls),
                "sdk": partial(_call_all, size.calls, many),
            }
            rates = {name: high(found) for name, found in alternate(subjects, size.rounds).items()}
        report.add(
            Row(
                "stdio, one call after the other" if many == 1 else f"stdio, {many} at once",
                f"{rates['replay']:.0f} requests/s",
                f"Python SDK client {rates['sdk']:.0f} requests/s",
                rates["replay"] / rates["sdk"],
                least=1,
            )
        )


def _recorded(calls: int, many: int) -> bytes:
    """Return a recording of calls, with `many` of them in flight at a time."""
    lines = [
        header({"id": "0" * 8, "started": "2026-11-21T08:00:00.000Z", "transport": "stdio", "name": "echo"})
    ]
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "b", "version": "1"},
    }
    lines.append(_frame("client", id="i", method="initialize", params=params))
    lines.append(_frame("server", id="i", result={"protocolVersion": "2025-11-25", "capabilities": {}}))
    lines.append(_frame("client", method="notifications/initialized"))
    for first in range(0, calls, many):
        texts = {number: f"call {number:06d} ".ljust(100, "x") for number in range(first, first + many)}
        for number, text in texts.items():
            call = {"name": "echo", "arguments": {"text": text}}
            lines.append(_frame("client", id=number, method="tools/call", params=call))
        for number, text in texts.items():
            lines.append(_frame("server", id=number, result={"content": [{"type": "text", "text": text}]}))
    return b"".join(lines)


def _frame(side: str, **members: object) -> bytes:
    message = json.dumps({"jsonrpc": "2.0", **members}).encode()
    return b'{"t":0.000001,"from":"%b","msg":%b}\n' % (side.encode(), message)


def _replayed(path: Path, calls: int) -> float:
    """Replay a recording; return requests per second."""
    recording = Recording(path)
    session = Session(recording.header).add_all(recording)
    where = RecordingTarget()
    where.record = str(path.with_name("new.jsonl"))
    (played,) = run(ReplayOptions(ServerCommand(SERVER), plans(session), PlayerOptions(), where))
    assert played.path is not None
    Path(played.path).unlink()
    sent = played.sent[1:]
    for one, replayed in zip(session.exchanges[1:], sent, strict=True):
        assert isinstance(one.answer, Result)
        assert isinstance(replayed.answer, Result)
        assert one.answer.result == replayed.answer.result
    last = max(each.answered_at for each in sent if each.answered_at is not None)
    return calls / (last - sent[0].at)


def _call_all(calls: int, many: int) -> float:
    """Make the calls with the bare client; return requests per second."""
    done = subprocess.run(
        [SDK, "-c", CLIENT, str(calls), str(many), *SERVER],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return calls / float(done.stdout)


if __name__ == "__main__":
    sys.exit(
        main(
            "mcpspy replay",
            __doc__ or "",
            full=Size(7, 3000),
            quick=Size(3, 1000),
            figures={"at-once": at_once},
            lacks=None if Path(SDK).exists() else "the peers are not installed: run make peers",
        )
    )
