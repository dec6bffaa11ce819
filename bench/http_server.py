"""A fast server for `bench/http.py`, so that a proxy's own time is most of what a client waits.

A POST gets a response with the id of its request, as JSON. The query of a GET selects the response: `events=N`, a
stream of N events that contain their sending time; `idle`, a stream of one event that stays open; `bytes=N`, a JSON
body of N bytes. All processes share the clock. Prints its port.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time

RESPONSE = b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"%b"}]}}'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}\n\n'

SPACE = 0.002
"""Seconds between two events."""

PIECE = b"0" * (1 << 18)
"""A part of a long body."""

SHORT = 1 << 16
"""Maximum bytes of a request whose id is in its response; a longer one is only counted."""


class Connection(asyncio.Protocol):
    """One connection: parses requests with a length, and responds to them in order."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._data = b""
        self._missing = 0
        """Bytes of a long request that have not arrived yet."""
        self._writable = asyncio.Event()
        self._writable.set()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, _: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
            if not self._missing:
                self._respond(b"1", b"")
            return
        self._data += data
        while (end := self._data.find(b"\r\n\r\n") + 4) > 3:
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", self._data[:end])
            size = int(length[1]) if length else 0
            if size > SHORT:
                self._missing, self._data = end + size - len(self._data), b""
                return
            if len(self._data) < end + size:
                return
            head, body, self._data = self._data[:end], self._data[end : end + size], self._data[end + size :]
            if head.startswith(b"POST"):
                found = re.search(rb'"id": ?(\d+)', body)
                text = re.search(rb'"text": ?"(\w*)"', body)
                self._respond(found[1] if found else b"null", text[1] if text else b"")
            else:
                self._task = asyncio.create_task(self._stream(head.split(b" ", 2)[1].partition(b"?")[2]))

    def _respond(self, request_id: bytes, text: bytes) -> None:
        body = RESPONSE % (request_id, text)
        self.transport.write(JSON % len(body) + body)

    async def _stream(self, query: bytes) -> None:
        name, _, value = query.partition(b"=")
        if name == b"bytes":
            self.transport.write(JSON % int(value) + b'"')
            rest = int(value) - 2
            while rest:
                await self._writable.wait()
                self.transport.write(PIECE[:rest])
                rest -= min(rest, len(PIECE))
            self.transport.write(b'"')
            return
        self.transport.write(STREAM)
        for _ in range(int(value or b"1")):
            await asyncio.sleep(SPACE)
            event = EVENT % time.perf_counter_ns()
            self.transport.write(b"%x\r\n%b\r\n" % (len(event), event))
        if name == b"events":
            self.transport.write(b"0\r\n\r\n")


async def main() -> None:
    """Listen, and print the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], file=sys.stderr, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
