"""One direction: whatever is said, in whatever chunks, the recording holds it byte for byte."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.lane import Lane, TextLane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.conftest import Entry

STREAMS = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from(
            [
                b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
                b'{"jsonrpc":"2.0","id":1,"result":{}}\r\n',
                b"[{}]\n",
                b"{oops}\n",
                b"}\n{",
                b"\n",
                b"\r\n",
                b"\x00",
                b"\xff\xfe\n",
                b'{"\xff":1}\n',
                "{\u2028\u00e9}\n".encode(),
                b"{" + b"x" * 5000 + b"}\n",
            ]
        ),
    ),
    max_size=12,
).map(b"".join)
CUTS = st.lists(st.integers(0, 1 << 16), max_size=15)


def joined(lines: bytes | Iterable[bytes | bytearray]) -> bytes:
    """Return what a lane gives, which may be in one piece, as bytes."""
    return lines if isinstance(lines, bytes) else b"".join(lines)


def recorded(lane: Lane | TextLane, stream: bytes, cuts: list[int]) -> bytes:
    """Return the file that this stream gives, fed in chunks."""
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    file = b""
    for a, b in pairwise(places):
        file += joined(lane.feed(0.5, stream[a:b]))
    return file + joined(lane.close(1.0))


@given(STREAMS, CUTS)
def test_the_recording_rebuilds_any_stream_in_any_chunking(
    read_entries: Callable[[bytes], list[Entry]], stream: bytes, cuts: list[int]
) -> None:
    entries = read_entries(recorded(Lane("client"), stream, cuts))
    assert b"".join(entry.payload for entry in entries) == stream
    assert {entry.side for entry in entries} <= {"client"}
    assert len(entries) == len(stream.split(b"\n")) - stream.endswith(b"\n") - (not stream)


@given(STREAMS, CUTS)
def test_the_recording_rebuilds_any_stderr_in_any_chunking(
    read_entries: Callable[[bytes], list[Entry]], stream: bytes, cuts: list[int]
) -> None:
    entries = read_entries(recorded(TextLane("stderr"), stream, cuts))
    assert b"".join(entry.payload for entry in entries) == stream
    assert all(entry.fields["note"] == "stderr" for entry in entries)


@given(STREAMS, CUTS)
def test_every_line_is_json_if_the_message_in_it_is(
    read_entries: Callable[[bytes], list[Entry]], stream: bytes, cuts: list[int]
) -> None:
    for entry in read_entries(recorded(Lane("server"), stream, cuts)):
        if entry.kind == "msg":
            try:
                message = json.loads(entry.payload)
            except ValueError:
                continue
            assert entry.fields["msg"] == message
        else:
            assert entry.fields


@given(STREAMS, CUTS)
def test_chunking_does_not_change_what_is_recorded(stream: bytes, cuts: list[int]) -> None:
    chunked = recorded(Lane("client"), stream, cuts).replace(b'"t":1.000000', b'"t":0.500000')
    assert chunked == recorded(Lane("client"), stream, []).replace(b'"t":1.000000', b'"t":0.500000')


def test_a_message_is_recorded_when_its_lf_comes_and_not_before() -> None:
    lane = Lane("client")
    assert joined(lane.feed(0.0, b'{"id":1')) == b""
    assert joined(lane.feed(0.25, b"}\n{")) == b'{"t":0.250000,"from":"client","msg":{"id":1}}\n'
    assert (
        joined(lane.close(1.0))
        == b'{"t":1.000000,"from":"client","eol":"","why":"not a JSON object or array","raw":"{"}\n'
    )


@pytest.mark.parametrize("lane", [Lane("server"), TextLane("stderr")])
def test_nothing_said_is_nothing_recorded(lane: Lane | TextLane) -> None:
    assert joined(lane.close(0.0)) == b""
    assert joined(lane.feed(0.0, b"x\n")) != b""
    assert joined(lane.close(0.0)) == b""
