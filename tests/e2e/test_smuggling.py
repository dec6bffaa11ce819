"""Requests that two parsers could read in two ways: mcpspy forwards one meaning, the one that it records, or refuses.

Raw bytes are sent to `mcpspy http`. h11 reads what reaches the server: it must read the same messages as mcpspy
recorded, and only messages that it also reads in what the client sent. The variants are those of RFC 9112, sections
2.2, 3.2, 5 to 7 and 11.2, and of published attacks.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count, pairwise
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.wire import SECONDS, Proxy, Request, proxied, requests, serving

pytestmark = pytest.mark.timeout(60)

QUIET = 0.25
"""Seconds without a byte after which a proxy is taken to wait for the rest of a request."""

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


BODY = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
OTHER = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
LENGTH = b"Content-Length: %d" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
"""BODY as a chunk."""


RUN = b"X-Run: 00000"
"""Replaced by the number of the run: a request of an earlier run may arrive late."""


def post(*headers: bytes, body: bytes = BODY, line: bytes = b"POST /mcp HTTP/1.1") -> bytes:
    lines = [line, b"Host: 127.0.0.1", RUN, b"Content-Type: application/json", *headers, b"", b""]
    return b"\r\n".join(lines) + body


SECOND = post(LENGTH, body=OTHER)
"""A request that an attacker hides in the body of another one."""


class Variant(NamedTuple):
    """Bytes of a client, and the bodies of the requests in them."""

    data: bytes
    bodies: tuple[bytes, ...]


REFUSED: dict[str, bytes] = {
    "length and chunked, chunked meant": post(LENGTH, CHUNKED, body=b"0\r\n\r\n" + SECOND),
    "length and chunked, length meant": post(b"Content-Length: 5", CHUNKED, body=CHUNKS),
    "chunked and length": post(CHUNKED, LENGTH, body=CHUNKS),
    "two lengths": post(LENGTH, b"Content-Length: 0", body=BODY),
    "two lengths, the shorter one first": post(b"Content-Length: 0", LENGTH, body=BODY),
    "list of two lengths": post(b"Content-Length: %d, 0" % len(BODY)),
    "plus sign": post(b"Content-Length: +%d" % len(BODY)),
    "minus sign": post(b"Content-Length: -%d" % len(BODY)),
    "hexadecimal length": post(b"Content-Length: 0x%x" % len(BODY)),
    "length with an underscore": post(b"Content-Length: 4_0"),
    "length with a space": post(b"Content-Length: 4 0"),
    "length with a fraction": post(b"Content-Length: %d.0" % len(BODY)),
    "empty length": post(b"Content-Length:"),
    "length that overflows": post(b"Content-Length: 18446744073709551656"),
    "space before the colon of the length": post(b"Content-Length : %d" % len(BODY)),
    "tab before the colon": post(b"Transfer-Encoding\t: chunked", body=CHUNKS),
    "space before a header": post(b" X: y", LENGTH),
    "folded length": post(b"Content-Length:\r\n %d" % len(BODY)),
    "folded transfer coding": post(b"Transfer-Encoding:\r\n chunked", LENGTH, body=CHUNKS),
    "unknown transfer coding": post(b"Transfer-Encoding: xchunked", body=CHUNKS),
    "chunked, then another coding": post(b"Transfer-Encoding: chunked, identity", body=CHUNKS),
    "chunked twice": post(b"Transfer-Encoding: chunked, chunked", body=CHUNKS),
    "two transfer codings": post(CHUNKED, b"Transfer-Encoding: identity", body=CHUNKS),
    "identity": post(b"Transfer-Encoding: identity", LENGTH),
    "vertical tab before chunked": post(b"Transfer-Encoding: \x0bchunked", body=CHUNKS),
    "NUL in a value": post(b"X: a\x00b", LENGTH),
    "NUL in a name": post(b"X\x00: a", LENGTH),
    "NUL in the target": post(LENGTH, line=b"POST /mcp\x00 HTTP/1.1"),
    "bare CR in a value": post(b"X: a\rContent-Length: 0", LENGTH),
    "bare CR as line end": post(LENGTH).replace(b"\r\n", b"\r"),
    "no colon": post(b"X", LENGTH),
    "empty name": post(b": x", LENGTH),
    "space in a name": post(b"Content Length: 0", LENGTH),
    "HTTP/3.7": post(LENGTH, line=b"POST /mcp HTTP/3.7"),
    "HTTP/0.9": b"GET /mcp\r\n\r\n",
    "space in the target": post(LENGTH, line=b"POST /mcp x HTTP/1.1"),
    "no target": post(LENGTH, line=b"POST HTTP/1.1"),
    "chunk size with a sign": post(CHUNKED, body=b"+" + CHUNKS),
    "chunk size with 0x": post(CHUNKED, body=b"0x" + CHUNKS),
    "chunk size with a leading space": post(CHUNKED, body=b" " + CHUNKS),
    "chunk size that overflows": post(CHUNKED, body=b"1000000000000000" + CHUNKS),
    "chunk size with a minus": post(CHUNKED, body=b"-1\r\n" + CHUNKS),
    "chunk that is longer than its size": post(CHUNKED, body=CHUNKS.replace(b"\r\n0\r\n", b"xx\r\n0\r\n")),
    "bare LF after a chunk": post(CHUNKED, body=b"%x\r\n%b\n0\r\n\r\n" % (len(BODY), BODY)),
    "bare LF in a chunk extension": post(CHUNKED, body=CHUNKS.replace(b"\r\n", b";a\n", 1)),
    "bare CR in a chunk extension": post(CHUNKED, body=CHUNKS.replace(b"\r\n", b";a\rb\r\n", 1)),
    "CONNECT": post(LENGTH, line=b"CONNECT 127.0.0.1:80 HTTP/1.1"),
    "no Host": b"POST /mcp HTTP/1.1\r\n" + LENGTH + b"\r\n\r\n" + BODY,
    "foreign Host": post(LENGTH).replace(b"127.0.0.1", b"example.com"),
    "two Hosts": post(b"Host: example.com", LENGTH),
    "foreign Host in the target": post(LENGTH, line=b"POST http://example.com/mcp HTTP/1.1"),
    "1 MB of headers": post(*[b"X: " + b"x" * 1000] * 1000, LENGTH),
    "1 MB of a header": post(b"X: " + b"x" * (1 << 20), LENGTH),
    "1 MB of target": post(LENGTH, line=b"POST /mcp?" + b"x" * (1 << 20) + b" HTTP/1.1"),
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}
"""Requests that must not reach the server in any form."""

FORWARDED: dict[str, Variant] = {
    "length": Variant(post(LENGTH), (BODY,)),
    "chunks": Variant(post(CHUNKED, body=CHUNKS), (BODY,)),
    "chunked in capitals": Variant(post(b"TRANSFER-ENCODING: CHUNKED", body=CHUNKS), (BODY,)),
    "leading zeros": Variant(post(b"Content-Length: 000%d" % len(BODY)), (BODY,)),
    "spaces around the length": Variant(post(b"Content-Length: \t%d \t" % len(BODY)), (BODY,)),
    "chunk extension": Variant(post(CHUNKED, body=CHUNKS.replace(b"\r\n", b";a=b\r\n", 1)), (BODY,)),
    "quoted chunk extension": Variant(
        post(CHUNKED, body=CHUNKS.replace(b"\r\n", b';a="b;c"\r\n', 1)), (BODY,)
    ),
    "chunk size with leading zeros": Variant(post(CHUNKED, body=b"000" + CHUNKS), (BODY,)),
    "chunk size in capitals": Variant(
        post(CHUNKED, body=CHUNKS.upper().replace(BODY.upper(), BODY)), (BODY,)
    ),
    "trailers": Variant(post(CHUNKED, body=CHUNKS[:-2] + b"X: y\r\n\r\n"), (BODY,)),
    "pipelined": Variant(post(LENGTH) + SECOND, (BODY, OTHER)),
    "empty lines before the request": Variant(b"\r\n\r\n" + post(LENGTH), (BODY,)),
    "absolute target": Variant(post(LENGTH, line=b"POST http://127.0.0.1/mcp HTTP/1.1"), (BODY,)),
    "request in a body": Variant(post(b"Content-Length: %d" % len(SECOND), body=SECOND), (SECOND,)),
    "body of a GET": Variant(
        post(b"Content-Length: %d" % len(SECOND), body=SECOND, line=b"GET /mcp HTTP/1.1"), (SECOND,)
    ),
    "GET, then a request": Variant(post(body=SECOND, line=b"GET /mcp HTTP/1.1"), (b"", OTHER)),
    "length of a connection header": Variant(post(LENGTH, b"Connection: content-length"), (BODY,)),
    "hop-by-hop headers": Variant(post(LENGTH, b"Connection: x, keep-alive", b"X: y", b"TE: gzip"), (BODY,)),
    "upgrade": Variant(post(LENGTH, b"Connection: Upgrade", b"Upgrade: websocket"), (BODY,)),
    "HTTP/2 upgrade": Variant(post(LENGTH, b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c"), (BODY,)),
    "HTTP/1.0": Variant(post(LENGTH, line=b"POST /mcp HTTP/1.0"), (BODY,)),
}
"""Requests with one meaning, and the bodies that reach the server."""

EITHER: dict[str, Variant] = {
    "two spaces in the request line": Variant(post(LENGTH, line=b"POST  /mcp HTTP/1.1"), (BODY,)),
    "chunked in HTTP/1.0": Variant(post(CHUNKED, body=CHUNKS, line=b"POST /mcp HTTP/1.0"), (BODY,)),
    "two equal lengths": Variant(post(LENGTH, LENGTH), (BODY,)),
    "list of two equal lengths": Variant(post(b"Content-Length: %d, %d" % (len(BODY), len(BODY))), (BODY,)),
    "bare LF as line end": Variant(post(LENGTH).replace(b"\r\n", b"\n"), (BODY,)),
    "folded header": Variant(post(b"X: a\r\n b", LENGTH), (BODY,)),
    "trailer that names a length": Variant(
        post(CHUNKED, body=CHUNKS[:-2] + b"Content-Length: 3\r\n\r\n"), (BODY,)
    ),
    "body after the last chunk": Variant(post(CHUNKED, body=CHUNKS + b"0\r\n\r\n"), (BODY,)),
    "pipelined, the second malformed": Variant(post(LENGTH) + b"POST\x00" + SECOND, (BODY,)),
    "OPTIONS *": Variant(post(body=b"", line=b"OPTIONS * HTTP/1.1"), (b"",)),
}
"""Requests that a strict parser refuses and a tolerant one may forward, in this meaning only."""

INCOMPLETE: dict[str, bytes] = {
    "incomplete body": post(b"Content-Length: %d" % (len(BODY) + 1)),
    "incomplete chunk": post(CHUNKED, body=CHUNKS[:-20]),
    "no last chunk": post(CHUNKED, body=CHUNKS[:-5]),
}
"""Requests of which nothing reaches the server before the rest arrives."""


class Server:
    """A server that keeps what arrives on each connection, and answers what h11 reads in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrived: list[bytearray] = []

    def serve(self, connection: socket.socket) -> None:
        data, answered = bytearray(), 0
        with self._lock:
            self._arrived.append(data)
        while piece := connection.recv(1 << 16):
            with self._lock:
                data += piece
            complete = len(requests(bytes(data))[0])
            connection.sendall(OK * (complete - answered))
            answered = complete

    def mark(self) -> list[tuple[bytearray, int]]:
        """Return how much has arrived."""
        with self._lock:
            return [(data, len(data)) for data in self._arrived]

    def since(self, mark: list[tuple[bytearray, int]]) -> list[Request]:
        """Return the requests that were completed after a mark, on all connections."""
        with self._lock:
            known = {id(data): length for data, length in mark}
            arrived = [(bytes(data), known.get(id(data), 0)) for data in self._arrived]
        found = []
        for data, start in arrived:
            new, rejected = requests(data[start:])
            if rejected and start:  # A slow machine sent the end of an earlier request.
                new, rejected = requests(data)
                new = new[len(requests(data[:start])[0]) :]
            assert not rejected, f"the second parser rejects {data[start:]!r}"
            found += new
        return found


class Wire(NamedTuple):
    """A proxy and its server."""

    server: Server
    proxy: Proxy

    def send(self, *pieces: bytes, patience: float = SECONDS) -> tuple[list[Request], list[int]]:
        """Send pieces on a new connection. Return the requests that the server reads, and the statuses of responses.

        The last status is 0 if the proxy hung up before it had responded to everything.
        """
        run = b"%05d" % next(RUNS)
        pieces = tuple(_numbered(pieces, run))
        mark = self.server.mark()
        before = len(self.proxy.bodies())
        statuses: list[int] = []
        expected = max(len(requests(b"".join(pieces))[0]), 1)
        with socket.create_connection(("127.0.0.1", self.proxy.port)) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.settimeout(patience)
            heard = b""
            try:
                with suppress(ConnectionError):  # The proxy may refuse before everything is sent.
                    for piece in pieces:
                        client.sendall(piece)
                while len(statuses) < expected:
                    if not (data := client.recv(1 << 16)):
                        statuses.append(0)
                        break
                    heard += data
                    statuses = _statuses(heard)
            except ConnectionError:
                statuses.append(0)
            except TimeoutError:
                pass
        arrived = [each for each in self.server.since(mark) if each.run in (b"", run)]
        arrived = [each._replace(body=each.body.replace(b"X-Run: " + run, RUN)) for each in arrived]
        recorded = [body.replace(b"X-Run: " + run, RUN) for body in self.proxy.bodies()[before:]]
        # mcpspy records the bodies of POSTs at the endpoint.
        posts = [each.body for each in arrived if (each.method, each.path) == ("POST", "/mcp") and each.body]
        assert is_subsequence(map(_plain, posts), map(_plain, recorded))
        return arrived, statuses


RUNS = count(1)


def _numbered(pieces: tuple[bytes, ...], run: bytes) -> Iterator[bytes]:
    """Yield the pieces with the number of the run in place of `RUN`, also where it is cut."""
    data = b"".join(pieces).replace(RUN, b"X-Run: " + run)
    for piece in pieces:
        yield data[: len(piece)]
        data = data[len(piece) :]


def is_subsequence(some: Iterable[object], of: Iterable[object]) -> bool:
    """Return whether all of some values are among others, in the same order."""
    others = iter(of)
    return all(any(value == other for other in others) for value in some)


def _plain(body: bytes) -> object:
    """Return the value of JSON, whose spaces recordings may lack; other bodies unchanged."""
    try:
        return json.loads(body)
    except ValueError:
        return body


def _statuses(heard: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] ([2-5]\d\d)[ \r]", heard)]


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    server = Server()
    with (
        serving(server.serve) as listener,
        proxied(listener.port, tmp_path_factory.mktemp("smuggling")) as proxy,
    ):
        yield Wire(server, proxy)


@pytest.mark.parametrize("name", REFUSED)
def test_an_ambiguous_request_is_refused(name: str, wire: Wire) -> None:
    arrived, statuses = wire.send(REFUSED[name], patience=SECONDS)

    assert arrived == []
    assert statuses
    assert all(status == 0 or 400 <= status < 600 for status in statuses)


@pytest.mark.parametrize("name", FORWARDED)
def test_a_request_keeps_its_one_meaning(name: str, wire: Wire) -> None:
    data, bodies = FORWARDED[name]

    arrived, statuses = wire.send(data)

    assert tuple(request.body for request in arrived) == bodies
    assert statuses == [200] * len(bodies)


@pytest.mark.parametrize("name", EITHER)
def test_a_tolerated_request_keeps_its_meaning_or_is_refused(name: str, wire: Wire) -> None:
    data, bodies = EITHER[name]

    arrived, statuses = wire.send(data)

    assert tuple(request.body for request in arrived) == bodies[: len(arrived)]
    assert len(arrived) == len(bodies) or statuses[-1] == 0 or statuses[-1] >= 400


@pytest.mark.parametrize("name", INCOMPLETE)
def test_an_incomplete_message_does_not_reach_the_server_as_a_complete_one(name: str, wire: Wire) -> None:
    arrived, statuses = wire.send(INCOMPLETE[name], patience=QUIET)

    assert (arrived, statuses) == ([], [])


ALL = [
    *REFUSED.values(),
    *INCOMPLETE.values(),
    *(data for table in (FORWARDED, EITHER) for data, _ in table.values()),
]


@st.composite
def mutated(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    """Return one or two requests of the tables with a few bytes replaced, removed or repeated; and where to cut."""
    data = b"".join(
        draw(st.lists(st.sampled_from([each for each in ALL if len(each) < 2000]), min_size=1, max_size=2))
    )
    special = st.sampled_from(
        [b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b",", b";", b"0", b"\x0b", b"\xff", b""]
    )
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(special) + data[at + draw(st.integers(0, 2)) :]
    return data, sorted(draw(st.lists(st.integers(1, max(1, len(data) - 1)), max_size=4)))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_any_bytes_in_any_pieces_keep_their_meaning_or_are_refused(
    wire: Wire, given: tuple[bytes, list[int]]
) -> None:
    data, cuts = given
    bounds = [0, *cuts, len(data)]

    arrived, _ = wire.send(
        *(data[start:end] for start, end in pairwise(bounds) if start < end), patience=QUIET
    )

    meant, rejected = requests(data)
    if not rejected:
        # A request for a foreign host is refused, and the next one on its connection may not be.
        assert is_subsequence(
            [(each.method, each.body) for each in arrived], [(each.method, each.body) for each in meant]
        )
