"""A simple proxy as a baseline: asyncio streams, one line at a time, recorded as JSON.

Not a model: `asyncio_proxy.py plain|aiofiles FILE COMMAND…` wraps a stdio
server in the way of the tutorials. Each message is in the file before the next
is read, because a crash would lose it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Record = Callable[[str, bytes], Awaitable[None]]


def entry(side: str, line: bytes) -> str:
    """Return one line of the recording."""
    return json.dumps({"t": time.time(), "from": side, "msg": json.loads(line)}) + "\n"


async def pump(side: str, source: asyncio.StreamReader, target: asyncio.StreamWriter, record: Record) -> None:
    """Forward one direction until its end."""
    while line := await source.readline():
        await record(side, line)
        target.write(line)
        await target.drain()
    # drain() returns when the buffer is half full, and there is no event for an empty one.
    while target.transport.get_write_buffer_size():  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    target.close()


async def standard_streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return stdin and stdout as streams."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def proxy(command: list[str], record: Record) -> int:
    """Run the server between stdin and stdout."""
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert server.stdin is not None
    assert server.stdout is not None
    reader, writer = await standard_streams()
    up = asyncio.create_task(pump("client", reader, server.stdin, record))
    await pump("server", server.stdout, writer, record)
    up.cancel()
    return await server.wait()


async def plain(path: str, command: list[str]) -> int:
    """Record with blocking writes."""
    with open(path, "a", encoding="utf-8") as file:  # noqa: ASYNC230 - the purpose of this variant.

        async def record(side: str, line: bytes) -> None:
            file.write(entry(side, line))
            file.flush()

        return await proxy(command, record)


async def threaded(path: str, command: list[str]) -> int:
    """Record through aiofiles, which writes in threads."""
    import aiofiles

    async with aiofiles.open(path, "a", encoding="utf-8") as file:

        async def record(side: str, line: bytes) -> None:
            await file.write(entry(side, line))
            await file.flush()

        return await proxy(command, record)


if __name__ == "__main__":
    way = {"plain": plain, "aiofiles": threaded}[sys.argv[1]]
    sys.exit(asyncio.run(way(sys.argv[2], sys.argv[3:])))
