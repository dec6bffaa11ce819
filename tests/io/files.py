"""Recordings as files, written by hand or by another process."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.recording.decode import Entry, Note
from mcpspy.errors import McpspyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not move or delete an open file")

BOUND = 20.0
"""Seconds after which a wait counts as a failure, far more than anything takes on a busy machine."""

CLIENT_FRAME = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "clientInfo": {"name": "host", "version": "1"}},
}
SERVER_FRAME = {
    "jsonrpc": "2.0",
    "id": 0,
    "result": {"protocolVersion": "2025-06-18", "serverInfo": {"name": "srv", "version": "2"}},
}


def frame(at: float, side: str, message: Any) -> bytes:
    return b'{"t":%.6f,"from":"%b","msg":%b}\n' % (
        at,
        side.encode(),
        json.dumps(message, separators=(",", ":")).encode(),
    )


def note(at: float, kind: str, **fields: Any) -> bytes:
    return json.dumps({"t": at, "note": kind, **fields}).encode() + b"\n"


def write(path: Path, *lines: bytes, **header: Any) -> Path:
    """Write a recording that no process holds open."""
    head = {"mcpspy": 1, "id": "ab12cd34", "started": "2026-07-28T10:00:00.000Z", "name": "srv", **header}
    path.write_bytes(json.dumps(head, separators=(",", ":")).encode() + b"\n" + b"".join(lines))
    return path


EXIT = note(9.0, "exit", code=0)


def kinds(entries: list[Entry]) -> list[str]:
    return [entry.kind if isinstance(entry, Note) else type(entry).__name__ for entry in entries]


def one_line_with_a_way_out(error: McpspyError, path: Path, code: int) -> str:
    text = str(error)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert error.hint
    assert error.hint in text
    assert error.exit_code == code
    return text


WRITER = """
import sys
from mcpspy.io.recording.writer import Writer

writer = Writer(sys.argv[1], None, {"name": "srv"}, say=print)
print(writer.path, flush=True)
for line in sys.stdin:
    writer.write((line.encode(),))
    print("written", flush=True)
"""


class Upstream:
    """A writer in a separate process."""

    def __init__(self, process: asyncio.subprocess.Process, path: Path) -> None:
        self.process = process
        self.path = path

    async def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line)
        assert await self.process.stdout.readline() == b"written\n"

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def elsewhere(folder: Path) -> AsyncIterator[Upstream]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        WRITER,
        str(folder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        yield Upstream(process, Path((await process.stdout.readline()).decode().rstrip("\n")))
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
