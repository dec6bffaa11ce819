"""Splitting into lines and events: chunks do not matter, and only LF ends a line."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.framing import PIECE, SMALL, LineFramer, SseEvent, SseFramer

STREAMS = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from(
            [b"\n", b"\r\n", b"\n\n", b"\x00", b"\r", b"\x0b\x0c\x85", "\u2028\u2029\u0085".encode()]
        ),
        st.integers(SMALL - 2, SMALL + 2).map(lambda n: b"x" * n),
    ),
    max_size=12,
).map(b"".join)


def fed(chunks: list[bytes]) -> tuple[list[bytes], bytes]:
    """Return the lines of these chunks, and the incomplete last line."""
    framer = LineFramer()
    lines = [line for chunk in chunks for line in framer.feed(chunk)]
    return lines, b"".join(framer.close())


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    """Split the stream at these positions."""
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    return [stream[a:b] for a, b in pairwise(places)]


def expected(stream: bytes) -> tuple[list[bytes], bytes]:
    *lines, torn = stream.split(b"\n")
    return lines, torn


@given(STREAMS, st.lists(st.integers(0, 1 << 16), max_size=20))
def test_any_chunking_gives_the_same_lines(stream: bytes, cuts: list[int]) -> None:
    assert fed(pieces(stream, cuts)) == expected(stream)


@given(STREAMS)
def test_whole_and_byte_by_byte_give_the_same_lines(stream: bytes) -> None:
    assert fed([stream]) == fed([stream[n : n + 1] for n in range(len(stream))]) == expected(stream)


@given(STREAMS, st.lists(st.integers(0, 1 << 16), max_size=20))
def test_the_pieces_of_split_are_the_stream(stream: bytes, cuts: list[int]) -> None:
    framer = LineFramer()
    rebuilt = b""
    for chunk in pieces(stream, cuts):
        ended, run = framer.split(chunk)
        assert not run or run.endswith(b"\n")
        rebuilt += b"".join(ended) + (b"\n" if ended else b"") + run
    assert rebuilt + b"".join(framer.close()) == stream


@pytest.mark.parametrize("data", [b"\r", b"\x0b", b"\x0c", b"\x1c", b"\x85", "\u2028".encode(), b"\x00"])
def test_only_lf_ends_a_line(data: bytes) -> None:
    assert fed([b"a" + data + b"b\n"]) == ([b"a" + data + b"b"], b"")


def test_an_empty_line_is_a_line() -> None:
    assert fed([b"\n", b"\n\n"]) == ([b"", b"", b""], b"")


def test_close_returns_the_incomplete_line_once() -> None:
    framer = LineFramer()
    assert framer.feed(b"half") == []
    assert b"".join(framer.close()) == b"half"
    assert framer.close() == []


def test_a_line_fed_byte_by_byte_is_gathered_into_few_pieces() -> None:
    framer = LineFramer()
    size = 3 * PIECE
    for _ in range(size):
        framer.split(b"x")
    assert len(framer.close()) <= size // PIECE + 1


def test_large_chunks_are_not_copied_into_pieces() -> None:
    framer = LineFramer()
    chunk = bytes(SMALL)
    framer.split(chunk)
    assert framer.close()[0] is chunk


def test_time_is_linear_in_the_length_of_a_line() -> None:
    def seconds(chunks: int) -> float:
        best = float("inf")
        for _ in range(3):
            framer = LineFramer()
            start = time.process_time()
            for _ in range(chunks):
                framer.split(b"x" * 100)
            framer.split(b"\n")
            best = min(best, time.process_time() - start)
        return best

    # A line ten times as long may take ten times as long; joining at every chunk would take a hundred times.
    assert seconds(20_000) < 40 * seconds(2_000) + 0.05


# Server-sent events.

EVENTS = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from(
            [
                b"data: {}\n\n",
                b"data:{}\r\n\r\n",
                b"data: a\rdata:  b\r\r",
                b"event: message\nid: 1\n",
                b"retry: 10\n\n",
                b"id: \x00\n\n",
                b": comment\n\n",
                b"data\n",
                b"\r",
                b"\n",
                b"\r\n",
                b"\xef\xbb\xbf",
            ]
        ),
        st.integers(SMALL - 2, SMALL + 2).map(lambda n: b"data: " + b"x" * n + b"\n\n"),
    ),
    max_size=10,
).map(b"".join)


def fields_of(event: SseEvent) -> tuple[object, ...]:
    data = None if event.data is None else b"".join(event.data)
    return event.event, data, event.id, event.retry, event.lacks


def events(chunks: list[bytes]) -> list[tuple[object, ...]]:
    """Return the events of these chunks, including an incomplete last one."""
    framer = SseFramer()
    found = [fields_of(event) for chunk in chunks for event in framer.feed(chunk)]
    torn = framer.close()
    return found + ([fields_of(torn)] if torn else [])


@given(st.sampled_from([b"", b"\xef\xbb\xbf"]), EVENTS, st.lists(st.integers(0, 1 << 16), max_size=20))
def test_any_chunking_gives_the_same_events(bom: bytes, stream: bytes, cuts: list[int]) -> None:
    stream = bom + stream
    byte_by_byte = [stream[n : n + 1] for n in range(len(stream))]
    assert events(pieces(stream, cuts)) == events([stream]) == events(byte_by_byte)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: {}\n\n", [(None, b"{}", None, None, "")]),
        (b"data:{}\r\rdata: {}\r\n\r\n", [(None, b"{}", None, None, "")] * 2),
        (b"data: a\ndata:  b\ndata\n\n", [(None, b"a\n b\n", None, None, "")]),
        (b"event: ping\nid: 7\nretry: 30\n\n", [("ping", None, "7", 30, "")]),
        (b"id\nretry: x\n\n", [(None, None, "", None, "")]),
        (b"id: a\x00b\n\n", []),
        (b": comment\n\n\n\n", []),
        (b"\xef\xbb\xbfdata: {}\n\n", [(None, b"{}", None, None, "")]),
        (b"data: {}", [(None, b"{}", None, None, "newline")]),
        (b"data: {}\n", [(None, b"{}", None, None, "blank line")]),
        (b"data: {}\r\n", [(None, b"{}", None, None, "blank line")]),
        (b": c\nid: 1\ndata", [(None, b"", "1", None, "newline")]),
        (
            b"data: {}\n\nevent: a",
            [(None, b"{}", None, None, ""), ("a", None, None, None, "newline")],
        ),
        ("data: \u2028\u0085\n\n".encode(), [(None, "\u2028\u0085".encode(), None, None, "")]),
    ],
)
def test_events_follow_the_standard(stream: bytes, expected: list[tuple[object, ...]]) -> None:
    assert events([stream]) == expected


@pytest.mark.parametrize("blank", [b"\n\n", b"\r\r", b"\r\n\r\n", b"\n\r", b"\r\n\r"])
def test_an_event_is_returned_by_the_chunk_that_ends_it(blank: bytes) -> None:
    framer = SseFramer()
    assert framer.feed(b"data: {}") == []
    assert [fields_of(event) for event in framer.feed(blank)] == [(None, b"{}", None, None, "")]
    assert framer.close() is None


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    "lines",
    [
        (b"data: {}",),
        (b"event: message", b"id: 1", b"data:{}", b": comment", b"retry: 5", b"other: x"),
        (b"data: a", b"data: b"),
        (b"id: 1\x00", b"data"),
        (b"data: a\rdata: b",),
        (b"data: a\ndata: b",),
        (b"data: a", b"", b"data: b"),
        (b": comment",),
        (b"id: 7",),
        (b"",),
    ],
)
def test_an_event_in_one_chunk_is_that_of_its_bytes_one_by_one(lines: tuple[bytes, ...], end: bytes) -> None:
    chunk = end.join(lines) + end + end
    first = b"data: first\n\n"
    assert events([first, chunk, chunk]) == events([bytes([byte]) for byte in first + chunk + chunk])


@pytest.mark.parametrize(
    ("stream", "is_message"),
    [
        (b"data: {}\n\n", True),
        (b"event: message\ndata: {}\n\n", True),
        (b"event: endpoint\ndata: /messages\n\n", False),
        (b"id: 1\ndata:\n\n", False),
        (b"retry: 1\n\n", False),
    ],
)
def test_an_event_with_data_and_no_other_name_is_a_message(stream: bytes, is_message: bool) -> None:
    (event,) = SseFramer().feed(stream)
    assert event.is_message is is_message
