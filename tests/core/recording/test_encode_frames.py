"""One direction: the recording contains all bytes unchanged, however they are chunked."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.recording.decode import Frame, read_entry
from mcpspy.core.recording.encode import FrameEncoder, TextEncoder
from mcpspy.core.recording.encode_body import BodyEncoder, SseEncoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcpspy.core.recording.encode import Value
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
    """Return the output of an encoder as bytes; it may be one piece or several."""
    return lines if isinstance(lines, bytes) else b"".join(lines)


def recorded(encoder: FrameEncoder | TextEncoder, stream: bytes, cuts: list[int]) -> bytes:
    """Return the recording of a stream that is fed in chunks."""
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    file = b""
    for a, b in pairwise(places):
        file += joined(encoder.feed(0.5, stream[a:b]))
    return file + joined(encoder.close(1.0))


@given(STREAMS, CUTS)
def test_the_recording_rebuilds_any_stream_in_any_chunking(
    read_entries: Callable[[bytes], list[Entry]], stream: bytes, cuts: list[int]
) -> None:
    entries = read_entries(recorded(FrameEncoder("client"), stream, cuts))
    assert b"".join(entry.payload for entry in entries) == stream
    assert {entry.side for entry in entries} <= {"client"}
    assert len(entries) == len(stream.split(b"\n")) - stream.endswith(b"\n") - (not stream)


@given(STREAMS, CUTS)
def test_the_recording_rebuilds_any_stderr_in_any_chunking(
    read_entries: Callable[[bytes], list[Entry]], stream: bytes, cuts: list[int]
) -> None:
    entries = read_entries(recorded(TextEncoder("stderr"), stream, cuts))
    assert b"".join(entry.payload for entry in entries) == stream
    assert all(entry.fields["note"] == "stderr" for entry in entries)


@given(STREAMS, CUTS)
def test_every_line_is_json_if_the_message_in_it_is(
    read_entries: Callable[[bytes], list[Entry]], stream: bytes, cuts: list[int]
) -> None:
    for entry in read_entries(recorded(FrameEncoder("server"), stream, cuts)):
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
    chunked = recorded(FrameEncoder("client"), stream, cuts).replace(b'"t":1.000000', b'"t":0.500000')
    assert chunked == recorded(FrameEncoder("client"), stream, []).replace(b'"t":1.000000', b'"t":0.500000')


def test_a_message_is_recorded_when_its_lf_arrives_and_not_before() -> None:
    encoder = FrameEncoder("client")
    assert joined(encoder.feed(0.0, b'{"id":1')) == b""
    assert joined(encoder.feed(0.25, b"}\n{")) == b'{"t":0.250000,"from":"client","msg":{"id":1}}\n'
    assert (
        joined(encoder.close(1.0))
        == b'{"t":1.000000,"from":"client","eol":"","why":"not a JSON object or array","raw":"{"}\n'
    )


@pytest.mark.parametrize(
    "stream", [b'{"a":{"b":1}}\n', b'{"a":\xff}\n', b'{"a":1}\n{"b":{}}\n', b'{"a":"\xc3\xa9"}\n', b"oops}\n"]
)
def test_a_chunk_that_looks_like_one_message_need_not_be_one(stream: bytes) -> None:
    for cut in range(len(stream)):
        assert recorded(FrameEncoder("client"), stream, [cut]) == recorded(
            FrameEncoder("client"), stream, [*range(len(stream))]
        )


@pytest.mark.parametrize("encoder", [FrameEncoder("server"), TextEncoder("stderr")])
def test_no_input_is_not_recorded(encoder: FrameEncoder | TextEncoder) -> None:
    assert joined(encoder.close(0.0)) == b""
    assert joined(encoder.feed(0.0, b"x\n")) != b""
    assert joined(encoder.close(0.0)) == b""


HTTP: dict[str, Value] = {"stream": "7", "http": 12}


@pytest.mark.parametrize("pieces", [[b'{"id":1}'], [b'{"i', b"", b'd":1}']])
def test_a_body_is_one_message_with_its_stream_and_exchange(pieces: list[bytes]) -> None:
    encoder = BodyEncoder("client", HTTP)
    for piece in pieces:
        encoder.feed(piece)
    assert (
        joined(encoder.close(0.5))
        == b'{"t":0.500000,"from":"client","stream":"7","http":12,"msg":{"id":1}}\n'
    )
    assert joined(encoder.close(1.0)) == b""


@pytest.mark.parametrize("pieces", [[], [b""], [b"", b""]])
def test_an_empty_body_is_not_a_message(pieces: list[bytes]) -> None:
    encoder = BodyEncoder("server", HTTP)
    for piece in pieces:
        encoder.feed(piece)
    assert joined(encoder.close(0.0)) == b""
    assert joined(encoder.close(0.0, lacks="rest of body")) == b""


@given(st.binary(min_size=1), CUTS)
def test_any_body_is_one_line_that_rebuilds_it(body: bytes, cuts: list[int]) -> None:
    encoder = BodyEncoder("server", HTTP)
    places = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    for a, b in pairwise(places):
        encoder.feed(body[a:b])
    line = joined(encoder.close(0.5))
    assert line.count(b"\n") == 1
    frame = read_entry(line[:-1])
    assert isinstance(frame, Frame)
    end = b"\n" if b',"eol":"\\n",' in line else b"\r\n" if b',"eol":"\\r\\n",' in line else b""
    assert frame.data + end == body
    assert (frame.side, frame.stream, frame.http) == ("server", "7", 12)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b'{"id":1}\n', b'"eol":"\\n","msg":{"id":1}}'),
        (b'{"id":1}\r\n', b'"eol":"\\r\\n","msg":{"id":1}}'),
        (b'{"id":1}\r', b'"msg":{"id":1}\r}'),
        (b'{"id":1}\n\n', b'"eol":"\\n","why":"several lines","raw":"{\\"id\\":1}\\n"}'),
        (b"{\n}\n", b'"eol":"\\n","why":"several lines","raw":"{\\n}"}'),
        (b"\n", b'"eol":"\\n","why":"blank line","raw":""}'),
        (b"\xff\n", b'"eol":"\\n","why":"not UTF-8","b64":"/w=="}'),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_the_line_end_of_a_body_is_recorded_beside_the_message(body: bytes, kept: bytes, size: int) -> None:
    encoder = BodyEncoder("client", {})
    for at in range(0, len(body), size):
        encoder.feed(body[at : at + size])
    assert joined(encoder.close(0.5)) == b'{"t":0.500000,"from":"client",' + kept + b"\n"


@pytest.mark.parametrize("body", [b'{"id":', b'{"id":1}', b"\xff"])
def test_an_incomplete_body_is_marked_with_its_size_and_what_it_lacks(body: bytes) -> None:
    encoder = BodyEncoder("server", HTTP)
    encoder.feed(body)
    frame = read_entry(joined(encoder.close(0.5, lacks="last chunk"))[:-1])
    assert isinstance(frame, Frame)
    assert (frame.data, frame.eol, frame.lacks, frame.size) == (body, "", "last chunk", len(body))


@pytest.mark.parametrize(
    ("end", "lacks"),
    [(b"", "newline"), (b"\n", "blank line"), (b"\r\n", "blank line"), (b"\r", "blank line")],
)
def test_an_incomplete_event_is_marked_with_the_size_of_its_data_and_what_it_lacks(
    end: bytes, lacks: str
) -> None:
    encoder = SseEncoder("server", HTTP)
    encoder.feed(0.5, b'event: message\ndata: {"id":1}' + end)
    frame = read_entry(joined(encoder.close(0.5))[:-1])
    assert isinstance(frame, Frame)
    assert (frame.data, frame.eol, frame.lacks, frame.size) == (b'{"id":1}', "", lacks, 8)


def test_a_complete_message_lacks_nothing() -> None:
    encoder = BodyEncoder("server", HTTP)
    encoder.feed(b'{"id":1}')
    frame = read_entry(joined(encoder.close(0.5))[:-1])
    assert isinstance(frame, Frame)
    assert (frame.lacks, frame.size) == (None, None)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_events_are_messages_or_notes_however_they_are_cut(end: bytes, size: int) -> None:
    stream = (
        b"\xef\xbb\xbf: hello||event: endpoint|data: /m?a=1||id: 1|retry: 50|data:||"
        b'id: 2|event: message|data: {"id":1}||data: {"a":|data: 1}||: ping||data: {"torn":1}|'
    ).replace(b"|", end)
    encoder = SseEncoder("server", HTTP)
    file = b""
    for at in range(0, len(stream), size):
        file += joined(encoder.feed(0.5, stream[at : at + size])[1])
    file += joined(encoder.close(0.5))
    entries = [json.loads(line) for line in file.splitlines()]
    assert [entry.pop("t") for entry in entries] == [0.5] * 5
    endpoint, priming, message, folded, torn = [
        {key: value for key, value in entry.items() if key not in HTTP} for entry in entries
    ]
    assert all(HTTP.items() <= entry.items() for entry in entries)
    named = {} if end == b"\n" else {"event_end": end.decode() * 2}
    assert endpoint == {"note": "sse", "event": "endpoint", "data": "/m?a=1", **named}
    assert priming == {"note": "sse", "id": "1", "retry": 50, "data": ""}
    assert message == {"from": "server", "event": "message", "id": "2", "msg": {"id": 1}}
    assert folded == {"from": "server", "why": "several lines", "raw": '{"a":\n1}'}
    assert torn == {"from": "server", "lacks": "blank line", "size": 10, "eol": "", "msg": {"torn": 1}}


def test_the_ends_of_events_are_recorded_when_they_change() -> None:
    encoder = SseEncoder("server", HTTP)
    file = b"".join(
        joined(encoder.feed(0.5, b'data: {"id":%d}' % number + end)[1])
        for number, end in enumerate(
            [b"\r\n\r\n", b"\r\n\r\n", b"\r\n\r\n", b"\n\n", b"\n\n", b"\n\r\n", b"\r\r"]
        )
    )
    entries = [json.loads(line) for line in file.splitlines()]
    assert [entry["msg"]["id"] for entry in entries] == list(range(7))
    ends = ["\r\n\r\n", None, None, "\n\n", None, "\n\r\n", "\r\r"]
    assert [entry.get("event_end") for entry in entries] == ends


@pytest.mark.parametrize("size", [1, 1000])
def test_data_without_a_space_after_its_colon_is_recorded_as_such(size: int) -> None:
    encoder = SseEncoder("server", HTTP)
    stream = b'data:{"id":0}\n\ndata: {"id":1}\n\nevent:message\ndata:{"id":2}\n\nid:3\ndata:\n\n'
    file = b"".join(
        joined(encoder.feed(0.5, stream[at : at + size])[1]) for at in range(0, len(stream), size)
    )
    entries = [json.loads(line) for line in file.splitlines()]
    assert [entry.get("data_space") for entry in entries] == [False, None, False, None]
    frames = [read_entry(line) for line in file.splitlines()[:3]]
    assert [frame.has_data_space for frame in frames if isinstance(frame, Frame)] == [False, True, False]


def test_an_event_is_recorded_by_the_bytes_that_end_it_and_not_before() -> None:
    encoder = SseEncoder("server", HTTP)
    file = b'{"t":0.500000,"from":"server","stream":"7","http":12,"msg":{"id":1}}\n'
    for data, is_inside, events, written in [
        (b": ping", False, 0, b""),
        (b"\n\n", False, 0, b""),
        (b"dat", True, 0, b""),
        (b'a: {"id":1}\n', True, 0, b""),
        (b"\n", False, 1, file),
    ]:
        ended, lines = encoder.feed(0.5, data)
        assert (len(ended), joined(lines), encoder.is_inside_event) == (events, written, is_inside)
    assert joined(encoder.close(1.0)) == b""


@pytest.mark.parametrize(("size", "key"), [(1 << 21, "b64"), (1000, "raw")])
def test_a_large_text_of_control_characters_does_not_become_six_times_as_large(size: int, key: str) -> None:
    encoder = BodyEncoder("server", HTTP)
    encoder.feed(b"\x01" * size)
    line = b"".join(encoder.close(0.5))
    assert key in json.loads(line)
    assert size < 1 << 20 or len(line) < 1.4 * size


SHAPES = [
    b"data: %b\n\n",
    b"event: message\ndata: %b\n\n",
    b"event: message\r\ndata: %b\r\n\r\n",
    b"event: other\ndata: %b\n\n",
    b"id: 1\ndata: %b\n\n",
    b"data:%b\n\n",
    b"data: a\ndata: %b\n\n",
    b": %b\n\n",
    b"data: %b\r\r",
    b"data: %b",
    b"event: message\n",
    b"\n",
    b"\r\n",
]
MESSAGES = [b"{}", b'{"a":1}', b"", b"x", b" {}", b"{}\n\ndata: {}", b"{}\rid: 5", b'{"%s":1}' % (b"x" * 90)]


@given(st.lists(st.tuples(st.sampled_from(SHAPES), st.sampled_from(MESSAGES)), max_size=12))
def test_a_chunk_like_the_one_before_has_the_same_line_as_any_other(
    chunks: list[tuple[bytes, bytes]],
) -> None:
    quick, plain = (SseEncoder("server", {"stream": "1", "http": 1}, 60) for _ in range(2))
    lines: list[bytes] = []
    for shape, message in chunks:
        chunk = shape.replace(b"%b", message)
        known = quick.known_line(1.0, chunk)
        lines.append(known if known is not None else b"".join(quick.feed(1.0, chunk)[1]))
        assert lines[-1] == b"".join(plain.feed(1.0, chunk)[1])
    assert b"".join(quick.close(2.0)) == b"".join(plain.close(2.0))


def test_the_third_of_equal_events_is_known_and_one_with_another_field_is_not() -> None:
    encoder = SseEncoder("server", {"stream": "1", "http": 1})
    chunk = b"event: message\r\ndata: {}\r\n\r\n"
    known = []
    for data in (chunk, chunk, chunk, b"id: 1\r\n" + chunk, chunk.replace(b"{}", b'{"a":1}')):
        line = encoder.known_line(1.0, data)
        known.append(line is not None)
        if line is None:
            encoder.feed(1.0, data)
    assert known == [False, False, True, False, True]


# Lines above the limit.


def sized(entry: dict[str, Any]) -> tuple[object, ...]:
    return entry["note"], entry["from"], entry["size"], entry["sha256"], entry.get("pipe"), entry.get("torn")


@given(STREAMS, CUTS, st.integers(1, 5100))
def test_a_line_is_recorded_or_counted_by_its_length_alone(
    stream: bytes, cuts: list[int], limit: int
) -> None:
    *lines, torn = stream.split(b"\n")
    for encoder, unlimited in (
        (FrameEncoder("client", limit), FrameEncoder("client")),
        (TextEncoder("stderr", limit), TextEncoder("stderr")),
    ):
        *entries, rest = recorded(encoder, stream, cuts).split(b"\n")
        assert rest == b""
        *kept, _ = recorded(unlimited, stream, []).split(b"\n")
        assert len(entries) == len(kept)
        sent = [*((line, None) for line in lines), *([(torn, True)] if torn else [])]
        for entry, whole, (line, is_torn) in zip(entries, kept, sent, strict=True):
            if len(line) <= limit:
                assert entry == whole
            else:
                side, pipe = ("client", None) if isinstance(encoder, FrameEncoder) else ("server", "stderr")
                digest = hashlib.sha256(line).hexdigest()
                assert sized(json.loads(entry)) == ("oversized", side, len(line), digest, pipe, is_torn)


def test_no_more_than_the_limit_of_a_line_is_kept() -> None:
    encoder = FrameEncoder("client", 1000)
    for _ in range(1000):
        encoder.feed(0.0, b"x" * 100)
        assert encoder.is_inside_line
        assert sum(map(len, encoder._framer.pieces)) <= 1000
    assert json.loads(joined(encoder.feed(0.0, b"\n{}\n")).splitlines()[0])["size"] == 100_000
