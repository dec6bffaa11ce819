"""Recordings made for a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.core.recording import encode
from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.io.recording.writer import Writer

Said = tuple[str, bytes]
Make = Callable[..., Path]

HELLO = b'"protocolVersion":"2025-11-25","clientInfo":{"name":"tested","version":"2"},"capabilities":{}'

CONVERSATION: list[Said] = [
    ("client", b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{%b}}' % HELLO),
    ("server", b'{"jsonrpc":"2.0","id":1,"result":{%b}}' % HELLO.replace(b"client", b"server")),
    ("client", b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}'),
    ("server", b"DEBUG: \x1b[31mhello"),
    ("server", b'{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no"}}'),
]


@pytest.fixture
def make_recording(tmp_path: Path) -> Make:
    """Write a recording with mcpspy's writer; it ends with an exit note unless `exit_code` is None."""

    def make(
        said: list[Said] | None = None,
        *,
        name: str = "tested",
        folder: Path = tmp_path,
        exit_code: int | None = 0,
        torn: bytes = b"",
    ) -> Path:
        fields: dict[str, encode.Value] = {"transport": "stdio", "command": ["tested", "--x"], "name": name}
        writer = Writer(str(folder), None, fields, say=pytest.fail)
        for step, (side, line) in enumerate(CONVERSATION if said is None else said):
            writer.write(FrameEncoder(side).feed(step / 1000, line + b"\n"))
        if exit_code is not None:
            writer.note(1.0, "exit", code=exit_code, signal=None)
        writer.close()
        if torn:
            with open(writer.path, "ab") as file:
                file.write(torn)
        return Path(writer.path)

    return make
