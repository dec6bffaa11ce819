"""Clients that call `echo` in a session, on pipes and over HTTP, with the same raw messages for every server.

Owns the requests and the check of the responses: each call has its own text.
It depends neither on the server nor on the comparison.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import selectors
import socket
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from typing import Protocol

from bench.http import Endpoint
from bench.measure import MOST, Flow

REVISION = "2025-06-18"
AT_ONCE = 64
"""Concurrent calls, on one pipe or on as many connections."""

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%b",'
    b'"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}' % REVISION.encode()
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"%b":"call %06d %b"}}}'
_REST = b"x" * 88
_NUMBER = re.compile(rb"call (\d{6}) x")


class Session(Protocol):
    """A session with a server."""

    def post(self, request: bytes) -> bytes:
        """Send a request; return the response."""


class Echo:
    """Calls of `echo` with 100 bytes, no two the same."""

    def __init__(self, parameter: str, count: int) -> None:
        self.count = count
        self._parameter = parameter.encode()
        """The name of the argument with the text."""
        self._ids = itertools.count(1)

    def request(self, number: int) -> bytes:
        """Return a call with a new id; the texts repeat after `count` calls."""
        return _CALL % (next(self._ids), self._parameter, number % self.count, _REST)

    def call(self, session: Session, number: int) -> bytes:
        """Make a call; return its response."""
        answer = session.post(self.request(number))
        # An error of a mock may quote the request.
        if b'"result"' not in answer or b"call %06d x" % (number % self.count) not in answer:
            raise RuntimeError(f"not an echo of call {number}: {answer[:400]!r}")
        return answer

    def results(self, session: Session) -> list[object]:
        """Make all calls; return the results."""
        return [json.loads(self.call(session, number))["result"] for number in range(self.count)]

    def expect(self, answers: Sequence[bytes]) -> None:
        """Raise if these are not the responses to as many calls from 0, in any order."""
        found = Counter(number for answer in answers for number in set(map(int, _NUMBER.findall(answer))))
        sent = Counter(number % self.count for number in range(len(answers)))
        if found != sent or not all(b'"result"' in answer for answer in answers):
            raise RuntimeError(f"not the echoes of {len(answers)} calls, as {answers[0][:400]!r}")


class Pipe:
    """A session on stdio."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._rest = b""
        self.post(INITIALIZE)
        flow.send(INITIALIZED + b"\n")

    def post(self, request: bytes) -> bytes:
        """Send a request; return the response."""
        self._flow.send(request + b"\n")
        while not (answers := self._answers()):
            pass
        return answers[0]

    def flood(self, echo: Echo, count: int) -> float:
        """Keep many calls in flight; return calls per second."""
        answers: list[bytes] = []
        sent = 0
        start = time.perf_counter()
        while len(answers) < count:
            more = min(AT_ONCE - (sent - len(answers)), count - sent)
            self._flow.send(b"".join(echo.request(sent + at) + b"\n" for at in range(more)))
            sent += more
            answers += self._answers()
        rate = count / (time.perf_counter() - start)
        echo.expect(answers)
        return rate

    def _answers(self) -> list[bytes]:
        """Read once; return the responses that are complete then, without notifications."""
        data = os.read(self._flow.read, MOST)
        if not data:
            raise RuntimeError(f"the server ended; {self._flow.words()}")
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line for line in lines if b'"result"' in line or b'"error"' in line]


class Connection:
    """A session over HTTP, on one connection."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.socket = socket.create_connection(("127.0.0.1", endpoint.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._got = b""
        self._head = (
            f"{endpoint.path} HTTP/1.1\r\nHost: 127.0.0.1:{endpoint.port}\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        ).encode()
        self.post(INITIALIZE)
        name = re.search(rb"(?i)\r\nmcp-session-id: *([^\r]+)", self._got)
        if name is None:
            raise RuntimeError(f"no session: {self._got[:400]!r}")
        self._head += b"Mcp-Session-Id: %b\r\nMCP-Protocol-Version: %b\r\n" % (name[1], REVISION.encode())
        self.post(INITIALIZED)

    def post(self, request: bytes) -> bytes:
        """Send a message; return the response, or nothing if there is none."""
        self.send(request)
        while (body := self.hear()) is None:
            pass
        return next((line for line in re.split(rb"[\r\n]+(?:data: )?", body) if line.startswith(b"{")), b"")

    def send(self, request: bytes) -> None:
        """Send a message."""
        self._got = b""
        self.socket.sendall(b"POST %bContent-Length: %d\r\n\r\n%b" % (self._head, len(request), request))

    def hear(self) -> bytes | None:
        """Read once; return the body of the response when it is complete, as one piece, chunks or events."""
        data = self.socket.recv(MOST)
        self._got += data
        head, found, body = self._got.partition(b"\r\n\r\n")
        if not data:
            raise RuntimeError(f"the connection was closed after {self._got[:200]!r}")
        if not found:
            return None
        if not head.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 202 ")):
            raise RuntimeError(f"not the measured response: {self._got[:400]!r}")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        is_complete = len(body) >= int(length[1]) if length else (b"\r\n" + body).endswith(b"\r\n0\r\n\r\n")
        return body if is_complete else None

    def close(self) -> None:
        """End the session, so that the server can drop it, and disconnect."""
        with suppress(OSError):
            self.socket.sendall(b"DELETE %b\r\n" % self._head)
            self.socket.recv(MOST)
        self.socket.close()


def flood(endpoint: Endpoint, echo: Echo, count: int) -> float:
    """Keep one call in flight in each of many open sessions; return calls per second."""
    answers: list[bytes] = []
    with ExitStack() as open_ones, selectors.DefaultSelector() as selector:
        connections = [open_ones.enter_context(closing(Connection(endpoint))) for _ in range(AT_ONCE)]
        for connection in connections:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
        start = time.perf_counter()
        for sent, connection in enumerate(connections):
            connection.send(echo.request(sent))
        sent = AT_ONCE
        while len(answers) < count:
            for key, _ in selector.select():
                if (answer := key.data.hear()) is not None:
                    answers.append(answer)
                    if sent < count:
                        key.data.send(echo.request(sent))
                        sent += 1
        rate = count / (time.perf_counter() - start)
    echo.expect(answers)
    return rate
