"""Faults between client, proxy and server: a client sees them through mcpspy as it does directly.

Each row is played twice, direct and through `mcpspy http`. The recording names the side that hung up.
"""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pytest

from tests.e2e.wire import SECONDS, Proxy, Seen, proxied, reset, response, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform == "win32", reason="resets differ on Windows"),
]

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
WARM_UP = PING.replace(b"ping", b"pong")
"""A message of the same length, to which every row responds at once."""

PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n'


SLOWER = 1.0
"""Seconds by which the end may come later through mcpspy, on a busy machine. Measured: below 0.05."""

Server: TypeAlias = "Callable[[socket.socket], None]"
"""Serves one request of a connection."""

Client: TypeAlias = "Callable[[socket.socket, int], None]"
"""Sends the request of a row, whose number the request names."""


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def ok(body: bytes = PONG, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def received(connection: socket.socket, *, body: bool = True) -> bytes:
    """Read a request: its head, and its body if that has a length."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(1 << 16)):
            return data
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    while body and length and len(rest) < int(length[1]) and (piece := connection.recv(1 << 16)):
        data, rest = data + piece, rest + piece
    return data


def sends(*pieces: bytes, pause: float = 0.0, then: Callable[[socket.socket], None] | None = None) -> Server:
    """Return a server that reads a request, sends these pieces, and ends as `then` does; by default it waits."""

    def serve(connection: socket.socket) -> None:
        received(connection)
        for piece in pieces:
            time.sleep(pause)
            connection.sendall(piece)
        if then is not None:
            time.sleep(0.02)  # A reset discards what the peer has not read yet.
            then(connection)

    return serve


def closes(connection: socket.socket) -> None:
    connection.close()


def half_closes(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)


def continues(connection: socket.socket) -> None:
    if received(connection, body=False).endswith(b"\r\n\r\n"):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.recv(1 << 16)
    connection.sendall(ok())


def closes_after_the_client(connection: socket.socket) -> None:
    received(connection)
    assert connection.recv(1) == b""


def refuses_early(connection: socket.socket) -> None:
    received(connection, body=False)
    connection.sendall(ok(b"{}", "Connection: close", status="413 Content Too Large"))
    half_closes(connection)


def refuses_to_continue(connection: socket.socket) -> None:
    received(connection, body=False)
    connection.sendall(ok(b"{}", status="401 Unauthorized"))
    connection.recv(1)


def posts(*headers: str, body: bytes = PING, pieces: int = 1, length: int | None = None) -> Client:
    """Return a client that sends a request, in some pieces."""

    def send(connection: socket.socket, row: int) -> None:
        size = len(body) if length is None else length
        lines = ["POST /mcp HTTP/1.1", "Host: 127.0.0.1", f"X-Row: {row}", f"Content-Length: {size}"]
        data = "\r\n".join([*lines, "Content-Type: application/json", *headers, "", ""]).encode() + body
        step = -(-len(data) // pieces)
        for start in range(0, len(data), step):
            time.sleep(0.005 if start else 0)
            connection.sendall(data[start : start + step])

    return send


def expects(connection: socket.socket, row: int) -> None:
    """Send the body after `100 Continue`, and not after another response."""
    posts("Expect: 100-continue", body=b"", length=len(PING))(connection, row)
    if connection.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 100":
        data = b""
        while not data.endswith(b"\r\n\r\n"):
            data += connection.recv(1)
        connection.sendall(PING)


def half_closes_after_request(connection: socket.socket, row: int) -> None:
    posts()(connection, row)
    connection.shutdown(socket.SHUT_WR)


class Fault(NamedTuple):
    """One row: both sides, and the side that hung up as the recording should name it."""

    server: Server
    hung_up: str | None
    client: Client = posts()


FAULTS: dict[str, Fault] = {
    "stall before the response": Fault(sends(ok(), pause=0.2), None),
    "response in two packets": Fault(sends(ok()[: -len(PONG)], PONG), None),
    "stall inside the head": Fault(sends(ok()[:30], ok()[30:], pause=0.2), None),
    "stall before the body": Fault(sends(ok()[: -len(PONG)], PONG, pause=0.2), None),
    "stall inside the body": Fault(sends(ok()[:-5], ok()[-5:], pause=0.2), None),
    "close after the head": Fault(sends(ok()[: -len(PONG)], then=closes), "server"),
    "reset after the head": Fault(sends(ok()[: -len(PONG)], then=reset), "server"),
    "slow drip of the response": Fault(sends(*(bytes([byte]) for byte in ok()), pause=0.002), None),
    "slow drip of the request": Fault(sends(ok()), None, posts(pieces=30)),
    "slow drip of events": Fault(
        sends(STREAM, *(bytes([byte]) for byte in chunk(EVENT) + b"0\r\n\r\n"), pause=0.001), None
    ),
    "trailers": Fault(sends(STREAM, chunk(EVENT), b"0\r\nX-Sum: 1\r\n\r\n"), None),
    "connection: close": Fault(sends(ok(PONG, "Connection: close"), then=closes), None),
    "body that ends with the connection": Fault(
        sends(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + PONG, then=closes), None
    ),
    "HTTP/1.0": Fault(sends(b"HTTP/1.0 200 OK\r\n\r\n" + PONG, then=closes), None),
    "204": Fault(sends(b"HTTP/1.1 204 No Content\r\n\r\n"), None),
    "two equal lengths": Fault(sends(ok(PONG, f"Content-Length: {len(PONG)}")), None),
    "two lengths": Fault(sends(ok(PONG, "Content-Length: 3")), None),
    "malformed status line": Fault(sends(b"HTTP/1.1 abc\r\n\r\n"), None),
    "70 kB of headers": Fault(sends(ok(PONG, *(f"X-{n}: {'x' * 1000}" for n in range(70)))), None),
    "close before the response": Fault(sends(then=closes), None),
    "reset before the response": Fault(sends(then=reset), None),
    "close inside the head": Fault(sends(ok()[:30], then=closes), None),
    "close inside the body": Fault(sends(ok()[:-5], then=closes), "server"),
    "reset inside the body": Fault(sends(ok()[:-5], then=reset), "server"),
    "half close inside the body": Fault(sends(ok()[:-5], then=half_closes), "server"),
    "close inside a chunk": Fault(sends(STREAM, chunk(EVENT) + chunk(EVENT)[:-9], then=closes), "server"),
    "reset inside a chunk": Fault(sends(STREAM, chunk(EVENT) + chunk(EVENT)[:-9], then=reset), "server"),
    "close between chunks": Fault(sends(STREAM, chunk(EVENT), then=closes), "server"),
    "half close between chunks": Fault(sends(STREAM, chunk(EVENT), then=half_closes), "server"),
    "malformed chunk": Fault(sends(STREAM + chunk(EVENT) + b"ZZ\r\nabc\r\n"), "server"),
    "malformed chunk in a later packet": Fault(
        sends(STREAM, chunk(EVENT), b"ZZ\r\nabc\r\n", pause=0.02), "server"
    ),
    "100-continue": Fault(continues, None, expects),
    "refusal in place of 100-continue": Fault(refuses_to_continue, None, expects),
    "early response before the request ends": Fault(
        refuses_early, None, posts(body=PING[:9], length=len(PING))
    ),
    "half close by the client": Fault(sends(ok(), pause=0.05), "client", half_closes_after_request),
    "half close by the client, then by the server": Fault(
        closes_after_the_client, "client", half_closes_after_request
    ),
    "informational responses": Fault(
        sends(b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok()),
        None,
    ),
}

DIFFERENT: dict[str, tuple[tuple[int | None, str], str]] = {
    **dict.fromkeys(
        ("close before the response", "reset before the response", "close inside the head"),
        ((502, "complete"), "mcpspy reports a server that does not respond as JSON-RPC error"),
    ),
    **dict.fromkeys(
        ("two lengths", "malformed status line"),
        ((502, "complete"), "nothing of the response was forwarded, so mcpspy reports what is wrong with it"),
    ),
    "two equal lengths": ((502, "complete"), "stricter than RFC 9110, 8.6: equal lengths are allowed"),
}
"""Status and end that the client may see through mcpspy in place of what it sees directly, and the reason."""


def play(name: str, port: int, earlier: int = 0) -> Seen:
    """Play the client of a row at a port, after some earlier calls on the same connection, of the same head."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(SECONDS)
        for _ in range(earlier):
            posts(body=WARM_UP)(connection, list(FAULTS).index(name))
            assert response(connection, "POST", SECONDS).status == 200
        start = time.monotonic()
        FAULTS[name].client(connection, list(FAULTS).index(name))
        return response(connection, "POST", SECONDS)._replace(took=time.monotonic() - start)


class Table(NamedTuple):
    """The server's port, and the proxy."""

    direct: int
    proxy: Proxy


def serve(connection: socket.socket) -> None:
    """Serve each request of a connection as its row demands: proxies keep connections from row to row."""
    servers = [fault.server for fault in FAULTS.values()]
    while connection.fileno() >= 0 and (data := connection.recv(1 << 10, socket.MSG_PEEK)):
        if (row := re.search(rb"(?i)\r\nX-Row: (\d+)\r\n", data)) is not None:
            if b'"pong"' in data:
                sends(ok())(connection)
            else:
                servers[int(row[1])](connection)
        else:
            time.sleep(0.002)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """Run one server and one proxy for all rows."""
    with serving(serve) as server, proxied(server.port, tmp_path_factory.mktemp("faults")) as proxy:
        yield Table(server.port, proxy)


WARM = [
    name
    for name, fault in FAULTS.items()
    if fault.client in (half_closes_after_request, *Fault._field_defaults.values())
]
"""Faults after a request whose head mcpspy knows."""


@pytest.mark.parametrize(
    ("name", "earlier"),
    [*((name, 0) for name in FAULTS), *((name, 3) for name in WARM)],
)
def test_a_client_sees_a_fault_through_mcpspy_as_it_does_directly(
    name: str, earlier: int, table: Table
) -> None:
    before = len(table.proxy.notes("http")) + earlier

    direct, through = play(name, table.direct, earlier), play(name, table.proxy.port, earlier)
    ends = _ends(table.proxy, before)

    assert len(ends) == 1
    if name in DIFFERENT:
        assert through.outcome != direct.outcome
        assert (through.status, through.end) == DIFFERENT[name][0], DIFFERENT.get(name)
    else:
        assert through.outcome == direct.outcome
        assert through.took < direct.took + SLOWER
        assert ends == [FAULTS[name].hung_up]


@pytest.mark.parametrize(
    ("sent", "leave"),
    [("request", reset), ("events", socket.socket.close), ("part of the request", socket.socket.close)],
)
def test_a_server_learns_at_once_that_the_client_has_hung_up(
    sent: str, leave: Callable[[socket.socket], None], tmp_path: Path
) -> None:
    arrived, ended = threading.Event(), threading.Event()
    whole = sent != "part of the request"

    def wait(connection: socket.socket) -> None:
        if not received(connection).endswith(PING):
            return
        if sent == "events":
            connection.sendall(STREAM + chunk(EVENT))
        arrived.set()
        with suppress(ConnectionError):
            assert connection.recv(1) == b""
        ended.set()

    with serving(wait) as server, proxied(server.port, tmp_path) as proxy:
        client = socket.create_connection(("127.0.0.1", proxy.port))
        posts(body=PING if whole else PING[:9], length=len(PING))(client, 0)
        if whole:
            assert arrived.wait(SECONDS)
        if sent == "events":
            assert client.recv(1) == b"H"
        leave(client)

        assert ended.wait(SECONDS) or not whole
        assert _ends(proxy, 0) == ["client"]
        assert arrived.is_set() == whole


def _ends(proxy: Proxy, before: int) -> list[str | None]:
    """Return the side that hung up in each exchange after the first ones, once it is recorded."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        numbers = [note["http"] for note in proxy.notes("http")][before:]
        ends: list[str | None] = [
            note["hung_up"] for note in proxy.notes("http-end") if note["http"] in numbers
        ]
        if len(ends) == len(numbers) > 0:
            break
        time.sleep(0.005)
    return ends
