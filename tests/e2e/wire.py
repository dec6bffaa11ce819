"""`mcpspy http` between a client and a server that are played with raw sockets.

Black box: it knows the command line and the recording, not the engine. Each connection of a server runs in a thread;
every wait is bounded by `SECONDS`.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import h11

SECONDS = 3.0
"""Maximum seconds of a wait."""

HUGE = 1 << 20
"""Maximum bytes of a head that the second parser accepts: it should accept more than any proxy."""


class Raw:
    """A server whose connections are handled by a function."""

    def __init__(self, handle: Callable[[socket.socket], None]) -> None:
        self._handle = handle
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.failures: list[BaseException] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                connection.settimeout(SECONDS)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._handle(connection)
        except OSError:
            pass  # The peer hung up: what the other side sees is what a test asserts.
        except Exception as error:
            self.failures.append(error)

    def close(self) -> None:
        # Wakes the thread in accept(), which close() alone does not.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[Raw]:
    """Run a server until the block ends. What failed in its threads fails the test."""
    server = Raw(handle)
    try:
        yield server
    finally:
        server.close()
    assert server.failures == []


class Proxy(NamedTuple):
    """A running `mcpspy http`."""

    port: int
    recording: Path

    def entries(self) -> list[dict[str, Any]]:
        """Return the complete lines of the recording after its header."""
        return [json.loads(line) for line in self.recording.read_bytes().split(b"\n")[1:-1]]

    def bodies(self) -> list[bytes]:
        """Return everything recorded from clients; of messages, the value as JSON."""
        payloads = {
            "msg": lambda value: json.dumps(value).encode(),
            "raw": str.encode,
            "b64": base64.b64decode,
        }
        return [
            payloads[kind](entry[kind])
            for entry in self.entries()
            if entry.get("from") == "client"
            for kind in payloads
            if kind in entry
        ]

    def notes(self, kind: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries() if entry.get("note") == kind]


@contextmanager
def proxied(port: int, folder: Path) -> Iterator[Proxy]:
    """Run `mcpspy http` in front of a port, with a recording."""
    script = shutil.which("mcpspy", path=os.path.dirname(sys.executable)) or "mcpspy"
    recording = folder / "session.jsonl"
    upstream = f"http://127.0.0.1:{port}/mcp"
    command = [script, "http", "--upstream", upstream, "--listen", ":0", "--record", str(recording)]
    environment = {**os.environ, "MCPSPY_DIR": str(folder)}
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        line = process.stderr.readline().decode()
        yield Proxy(int(line.split("/")[2].partition(":")[2]), recording)
    finally:
        process.terminate()
        said = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait(10) == 0
    assert "Traceback" not in said, said


class Request(NamedTuple):
    """A request as a server understands it."""

    method: str
    target: str
    body: bytes
    run: bytes
    """The value of the header `X-Run`, or nothing: it connects what arrives with what was sent."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


def requests(data: bytes) -> tuple[list[Request], bool]:
    """Return the complete requests in some bytes, as h11 reads them, and whether it rejects what follows."""
    found: list[Request] = []
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HUGE)
    parser.receive_data(data)
    try:
        while True:
            event = parser.next_event()
            if isinstance(event, h11.Request):
                method, target, body = event.method.decode(), event.target.decode(), b""
                run = dict(event.headers).get(b"x-run", b"")
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                found.append(Request(method, target, body, run))
                # A server has to answer before it reads the next request; not with success, which accepts CONNECT.
                parser.send(h11.Response(status_code=404, headers=[("Content-Length", "0")]))
                parser.send(h11.EndOfMessage())
                if parser.our_state is not h11.DONE:
                    return found, False
                parser.start_next_cycle()
            else:
                return found, False
    except h11.RemoteProtocolError:
        return found, True


class Seen(NamedTuple):
    """A response as a client sees it."""

    status: int | None
    body: bytes
    end: str
    """`complete`, `broken` (a disconnect or malformed bytes before the end), or `silent` after `SECONDS`."""
    took: float = 0.0
    """Seconds from the request to the end."""

    @property
    def outcome(self) -> tuple[int | None, bytes, str]:
        return self[:3]


def response(connection: socket.socket, method: str, patience: float = SECONDS) -> Seen:
    """Read a final response to its end."""
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=HUGE)
    parser.send(h11.Request(method=method, target="/", headers=[("Host", "h"), ("Content-Length", "0")]))
    parser.send(h11.EndOfMessage())
    status, body, start = None, b"", time.monotonic()
    connection.settimeout(patience)
    try:
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                parser.receive_data(connection.recv(1 << 16))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return Seen(status, body, "complete", time.monotonic() - start)
            elif isinstance(event, h11.ConnectionClosed):
                return Seen(status, body, "broken", time.monotonic() - start)
    except TimeoutError:
        return Seen(status, body, "silent", time.monotonic() - start)
    except (OSError, h11.RemoteProtocolError):
        return Seen(status, body, "broken", time.monotonic() - start)


def reset(connection: socket.socket) -> None:
    """Disconnect by a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
