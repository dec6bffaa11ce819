"""A server of event streams, for `bench/http.py`: each event contains its sending time.

Every GET gets the number of events in its query, at intervals so that none waits
for the one before it. All processes share the clock.
"""

from __future__ import annotations

import asyncio
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
EVENT = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}\n\n'

SPACE = 0.002
"""Seconds between two events."""


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond to one request."""
    head = await reader.readuntil(b"\r\n\r\n")
    count = int(head.split(b" ", 2)[1].partition(b"?")[2])
    writer.write(HEAD)
    for _ in range(count):
        await asyncio.sleep(SPACE)
        event = (EVENT % time.perf_counter_ns()).encode()
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    writer.close()


async def main() -> None:
    """Listen, and print the port."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], file=sys.stderr, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
