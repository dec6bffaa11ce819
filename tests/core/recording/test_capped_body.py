"""Bodies and streams of events of which no more than a limit is kept."""

from __future__ import annotations

import gzip
import hashlib
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.compression import STEP
from mcpspy.core.framing import SseFramer
from mcpspy.core.recording.capped_body import (
    LINES_OF_STEP,
    MAX_LINE_RATIO,
    MIN_LINES,
    SMALL_STEP,
    CappedBody,
    CappedStream,
)
from mcpspy.core.recording.encode import MAX_BODY
from mcpspy.core.recording.encode_body import SseEncoder
from tests.compressed import COMPRESS

HTTP: dict[str, Any] = {"stream": "1", "http": 2}
LIMIT = 5000


def recorded(body: CappedBody, data: bytes, cut: int, *, lacks: str = "") -> dict[str, Any]:
    for at in range(0, len(data), cut):
        for _ in body.feed(data[at : at + cut]):
            assert body.size <= LIMIT
    found: dict[str, Any] = json.loads(b"".join(body.close(0.5, lacks=lacks)))
    return found


@settings(deadline=None)
@given(st.integers(LIMIT - 20, LIMIT + 20), st.integers(1, 9000), st.sampled_from(["gzip", None]))
def test_a_body_is_recorded_up_to_the_limit_and_noted_above_it(
    size: int, cut: int, encoding: str | None
) -> None:
    message = b'{"a":"%b"}' % (b"0" * (size - 8))
    sent = gzip.compress(message, mtime=0) if encoding else message
    body = CappedBody("server", HTTP, encoding, LIMIT)
    entry = recorded(body, sent, cut)
    if size <= LIMIT:
        assert entry == {"t": 0.5, "from": "server", **HTTP, "msg": json.loads(message)}
        return
    digest = hashlib.sha256(sent).hexdigest()
    more = {"encoding": "gzip"} if encoding else {}
    note = {"note": "oversized", **HTTP, **more, "from": "server", "size": len(sent), "sha256": digest}
    assert entry == {"t": 0.5, **note}
    assert body.data() == b""


def test_the_note_of_a_body_that_broke_off_says_so() -> None:
    assert recorded(CappedBody("client", HTTP, None, 10), b"0" * 20, 7, lacks="rest of body")["torn"] is True


def test_a_compressed_body_without_any_output_is_bounded_too() -> None:
    endless_name = b"\x1f\x8b\x08\x08" + bytes(6) + b"a" * 9000
    assert recorded(CappedBody("client", HTTP, "gzip", LIMIT), endless_name, 100)["size"] == len(endless_name)


def stream_of(events: list[bytes]) -> bytes:
    return b"".join(b"id: 7\ndata: " + each.replace(b"\n", b"\ndata: ") + b"\n\n" for each in events)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([b"1", b"0" * 200, b"0" * 300 + b"\n" + b"1" * 300, b"\n" * 900, b"0" * 9000])),
    st.integers(1, 700),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_events_above_the_limit_are_counted_and_hashed_however_they_are_cut(
    messages: list[bytes], cut: int, end: bytes
) -> None:
    data = stream_of(messages).replace(b"\n", end)
    framer = SseFramer(500)
    events = [event for at in range(0, len(data), cut) for event in framer.feed(data[at : at + cut])]
    assert len(events) == len(messages)
    for message, event in zip(messages, events, strict=True):
        assert event.id == "7"
        if event.oversized is None:
            assert len(message) <= 500
            assert b"".join(event.data or ()) == message
        else:
            assert len(message) > 300
            assert event.oversized.size == len(message)
            assert event.oversized.sha256 == hashlib.sha256(message).hexdigest()
            assert not event.is_message


@pytest.mark.parametrize("head", [b"data: ", b": ", b"other: ", b"\xef\xbb\xbfdata:", b"id: "])
def test_a_framer_keeps_little_of_an_event_without_an_end(head: bytes) -> None:
    framer = SseFramer(500)
    framer.feed(head)
    for _ in range(100):
        framer.feed(b"0" * 5000)
        kept = [*framer._line, *(framer._current.data or ())]
        assert sum(map(len, kept)) < 6000
    torn = framer.close()
    assert (torn is not None and torn.oversized is not None) == (b"data:" in head)
    if torn is not None and torn.oversized is not None:
        assert torn.oversized.size == 500_000


def test_comments_between_events_do_not_make_the_next_event_large() -> None:
    framer = SseFramer(500)
    for _ in range(100):
        framer.feed(b": still here\n")
    (event,) = framer.feed(b"data: 1\n\n")
    assert event.is_message


def test_the_note_of_an_event_has_its_fields() -> None:
    encoder = SseEncoder("server", HTTP, 10)
    _, lines = encoder.feed(0.5, b"event: message\nid: 3\ndata: 01234567890\n\n")
    digest = hashlib.sha256(b"01234567890").hexdigest()
    fields = {"event": "message", "id": "3", "from": "server", "size": 11, "sha256": digest}
    assert json.loads(b"".join(lines)) == {"t": 0.5, "note": "oversized", **HTTP, **fields}


def test_a_stream_is_no_longer_decoded_if_its_ratio_is_that_of_an_attack() -> None:
    packed = gzip.compress(stream_of([b"0" * 1000] * 1000), mtime=0)
    stream = CappedStream("server", HTTP, "gzip", LIMIT)
    decoded = sum(
        len(step) for at in range(0, len(packed), 50) for step in stream.steps(packed[at : at + 50])
    )
    assert stream.is_over
    assert decoded <= max(LIMIT, 100 * len(packed))
    (line,) = stream.close(0.5)
    note = json.loads(line)
    assert (note["size"], note["sha256"]) == (len(packed), hashlib.sha256(packed).hexdigest())


@pytest.mark.parametrize("encoding", COMPRESS)
@pytest.mark.parametrize("event", [b"data: {}\n\n", b":\n", b"data:\r", b"\n"])
def test_a_stream_of_small_events_is_no_longer_decoded_and_its_recording_is_small(
    encoding: str, event: bytes
) -> None:
    packed = COMPRESS[encoding](event * ((8 << 20) // len(event)))
    stream, encoder = CappedStream("server", HTTP, encoding, MAX_BODY), SseEncoder("server", HTTP, MAX_BODY)
    size = lines = 0
    for step in stream.steps(packed):
        _, recorded = encoder.feed(0.5, step)
        size += sum(map(len, recorded))
        lines += step.count(b"\n") + step.count(b"\r")
    assert stream.is_over
    assert lines <= max(MIN_LINES, MAX_LINE_RATIO * len(packed))
    assert size < 4 << 20
    (line,) = stream.close(0.5)
    note = json.loads(line)
    assert (note["note"], note["encoding"], note["size"]) == ("oversized", encoding, len(packed))


@pytest.mark.parametrize("encoding", [*COMPRESS, None])
@pytest.mark.parametrize("event", [b"data: {}\n\n", b"data: 1\r\n\r\n", b"data: " + b"0" * 90_000 + b"\n\n"])
def test_a_step_of_a_stream_has_few_bytes_and_few_lines(encoding: str | None, event: bytes) -> None:
    plain = event * (300_000 // len(event))
    packed = plain if encoding is None else COMPRESS[encoding](plain)
    steps = list(CappedStream("server", HTTP, encoding, MAX_BODY).steps(packed))
    assert b"".join(steps) == plain[: sum(map(len, steps))]
    assert max(map(len, steps)) <= STEP
    for step in steps:
        assert len(step) <= SMALL_STEP or step.count(b"\n") + step.count(b"\r") <= LINES_OF_STEP


@pytest.mark.parametrize("encoding", COMPRESS)
def test_a_compressed_body_is_taken_in_many_steps_up_to_the_limit(encoding: str) -> None:
    body = CappedBody("server", HTTP, encoding, 5 << 20)
    sizes = [0, *(body.size for _ in body.feed(COMPRESS[encoding](bytes(20 << 20))))]
    assert max(after - before for before, after in pairwise(sizes)) <= STEP
    assert max(sizes) <= 5 << 20
    assert body.is_over


def test_only_the_steps_of_brotli_are_long_and_only_up_to_the_limit() -> None:
    assert not CappedBody("server", HTTP, "gzip", LIMIT).feed(b"").are_long
    body, stream = CappedBody("server", HTTP, "br", LIMIT), CappedStream("server", HTTP, "br", LIMIT)
    for capped in (body.feed, stream.steps):
        steps = capped(COMPRESS["br"](bytes(1 << 20)))
        assert steps.are_long
        list(steps)
        assert not capped(b"more").are_long


@pytest.mark.parametrize("encoding", ["gzip", None])
def test_a_long_stream_of_ordinary_events_is_decoded_to_its_end(encoding: str | None) -> None:
    plain = stream_of([hashlib.sha256(bytes([number])).hexdigest().encode() for number in range(200)])
    sent = gzip.compress(plain) if encoding else plain
    stream = CappedStream("server", HTTP, encoding, 100)
    assert (
        b"".join(step for at in range(0, len(sent), 50) for step in stream.steps(sent[at : at + 50])) == plain
    )
    assert not stream.is_over
    assert list(stream.close(0.5)) == []
