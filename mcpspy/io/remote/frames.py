"""The frames between the two machines: a line of JSON, then as many bytes as its member `size`.

From the machine with the sessions: `hello`, `file` (announced, with `live`), `data` (with `at`), `gone`, `sockets` (all
of them), `synced` (the beginning of every file was sent), `received` and `closed` (of a connection). To it: `begin` (with `have`, the files of the copy),
`connect`, `send` and `close`.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import orjson

from mcpspy.errors import CannotStart

PROTOCOL = 1
"""Version of the frames: both sides must have the same."""

HELLO = b'{"mcpspy_remote":'
"""The beginning of the first frame. Output of a login shell before it is skipped."""

CHUNK = 1 << 17
"""Maximum bytes of a file in one frame, so that others follow soon."""

TAIL = 4096
"""Bytes at the end of a copy by which its file is recognised after a lost connection."""

LONGEST = 1 << 20
"""Maximum bytes of a line."""


def encoded(fields: dict[str, Any], data: bytes = b"") -> bytes:
    """Return a frame."""
    return orjson.dumps({**fields, "size": len(data)} if data else fields) + b"\n" + data


async def read_frame(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes] | None:
    """Return the next frame; None at the end. Raises CannotStart for anything else."""
    try:
        line = await reader.readline()
        if not line.endswith(b"\n"):
            return None
        fields = orjson.loads(line)
        size = int(fields.get("size", 0))
        return fields, await reader.readexactly(size) if 0 < size <= LONGEST else b""
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except (ValueError, TypeError, AttributeError):
        raise unknown_protocol() from None


def unknown_protocol() -> CannotStart:
    return CannotStart("the other side does not speak the protocol of mcpspy", "is its shell quiet?")


def checksum(tail: bytes) -> int:
    """Return the checksum of the end of a file, by which both sides see that they have the same one."""
    return zlib.crc32(tail)
