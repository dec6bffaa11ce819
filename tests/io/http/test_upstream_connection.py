"""A chunked body that is taken while it arrives is the body that the parser reads, in whatever packets it arrives."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.io.http.upstream_connection import ResponseReceiver, UpstreamConnection, UpstreamError
from tests.io.http import asking

pytestmark = pytest.mark.timeout(60)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Transport:
    is_closed = False

    def write(self, data: bytes) -> None:
        pass

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True

    close = abort

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def chunk(data: bytes, style: str) -> bytes:
    """Return a chunk: its size as most servers write it, or as they may write it too (RFC 9112, 7.1)."""
    size = b"%X" % len(data) if style == "upper" else b"%x" % len(data)
    if style == "zeros":
        size = b"00" + size
    elif style == "extension":
        size += b";name=value"
    return size + b"\r\n" + data + b"\r\n"


bodies = st.lists(
    st.tuples(
        st.binary(min_size=1, max_size=40)
        | st.sampled_from([b"\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n", b"x" * 300]),
        st.sampled_from(["", "", "", "upper", "zeros", "extension"]),
    ),
    max_size=8,
)


class CountedConnection(UpstreamConnection):
    """A connection that counts the chunks that it takes without its parser, or takes none."""

    taken = 0
    takes = True

    def _has_taken_chunk(self, packet: bytes, receiver: ResponseReceiver) -> bool:
        is_taken = self.takes and super()._has_taken_chunk(packet, receiver)
        self.taken += is_taken
        return is_taken


async def received(packets: list[bytes], *, takes: bool) -> tuple[bytes, int]:
    """Return the body that arrives in these packets, and the number of chunks taken without the parser."""
    body: list[bytes] = []
    connection = CountedConnection()
    connection.takes = takes
    connection.connection_made(cast("asyncio.Transport", Transport()))

    async def read() -> None:
        response = await asking.ask(connection, "GET", b"", None)
        body.extend([piece async for piece in response.body.chunks()])

    reading = asyncio.create_task(read())
    for packet in packets:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        connection.data_received(packet)
    await reading
    return b"".join(body), connection.taken


@given(bodies, st.lists(st.integers(0, 400), max_size=12), st.booleans())
def test_the_body_is_the_same_in_any_packets(
    parts: list[tuple[bytes, str]], cuts: list[int], has_trailer: bool
) -> None:
    chunks = [chunk(data, style) for data, style in parts]
    whole = b"".join(chunks) + (b"0\r\nX-End: 1\r\n\r\n" if has_trailer else b"0\r\n\r\n")
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    anyhow = [whole[start:end] for start, end in pairwise(places)]
    for packets in ([HEAD, *anyhow], [HEAD, *chunks, whole[sum(map(len, chunks)) :]]):
        body, _ = asyncio.run(received(packets, takes=True))
        assert body == asyncio.run(received(packets, takes=False))[0] == b"".join(data for data, _ in parts)


async def test_a_packet_that_is_one_chunk_is_taken_without_the_parser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(UpstreamConnection, "on_body", lambda _, piece: parsed.append(piece))
    packets = [HEAD, chunk(b"one", ""), chunk(b"two", ""), chunk(b"three", "")]

    body, taken = await received([*packets, b"0\r\n\r\n"], takes=True)

    assert (body, taken, parsed) == (b"twothree", 2, [b"one"])


@pytest.mark.parametrize(
    "wrong", [b"5\r\nabc\r\n", b"0x3\r\nabc\r\n", b"+3\r\nabc\r\n", b" 3\r\nabc\r\n", b"3\nabc\r\n"]
)
async def test_a_wrong_chunk_after_a_right_one_is_an_error(wrong: bytes) -> None:
    with pytest.raises(UpstreamError, match=r"not HTTP/1\.1"):
        await received([HEAD, chunk(b"one", ""), chunk(b"two", ""), wrong, b"0\r\n\r\n"], takes=True)


@pytest.mark.parametrize(
    ("data", "packets"),
    [
        (b"abc\r\n" + b"x" * 14, [b"1", b"3\r\nabc\r\n", b"x" * 14 + b"\r\n"]),
        (b"3\r\nabc\r\nxx", [b"a\r\n", b"3\r\nabc\r\n", b"xx\r\n"]),
        (b"3\r\nabc\r\n", [b"8\r\n3\r\nab", b"c\r\n", b"\r\n"]),
        (b"abc\r\n" + b"x" * 14, [b"3\r\none\r\n1", b"3\r\nabc\r\n", b"x" * 14 + b"\r\n"]),
        (b"3\r\nabc\r\nxx", [b"3\r\none\r\na\r\n", b"3\r\nabc\r\n", b"xx\r\n"]),
        (b"x3\r\nabc\r\n", [b"9\r\nx", b"3\r\nabc\r\n", b"\r\n"]),
    ],
)
async def test_a_part_of_a_chunk_that_looks_like_a_chunk_is_not_taken_for_one(
    data: bytes, packets: list[bytes]
) -> None:
    assert b"".join(packets) in (chunk(data, ""), chunk(b"one", "") + chunk(data, ""))

    body, _ = await received([HEAD, chunk(b"one", ""), *packets, b"0\r\n\r\n"], takes=True)

    assert body.replace(b"one", b"") == data
