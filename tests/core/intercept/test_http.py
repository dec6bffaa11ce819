"""Splitting of a stream into server-sent events."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.framing import SseFramer
from mcpspy.core.intercept.http import SseUnits, format_event

STREAM = b'\xef\xbb\xbf: hello\r\n\r\nid: 1\ndata: {"a":\ndata: 1}\n\n\n\revent: endpoint\rdata: /x\r\rdata: {}\n\ndata: torn'


def test_each_event_has_its_own_bytes_and_nothing_is_lost() -> None:
    events = SseUnits()
    units = events.feed(STREAM)
    torn = events.close()

    assert torn is not None
    assert b"".join(unit.raw for unit in [*units, torn]) == STREAM
    assert [unit.message for unit in units if unit.event is not None] == [b'{"a":\n1}', None, b"{}"]
    assert units[0].event is None
    assert torn.event is not None
    assert torn.event.lacks
    assert events.close() is None


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_chunking_does_not_matter(cuts: list[int]) -> None:
    events, framer = SseUnits(), SseFramer()
    edges = sorted([0, *cuts, len(STREAM)])
    units = [unit for begin, end in pairwise(edges) for unit in events.feed(STREAM[begin:end])]
    torn = events.close()

    assert torn is not None
    assert b"".join(unit.raw for unit in [*units, torn]) == STREAM
    expected = [event.data for event in framer.feed(STREAM)]
    found = [unit.event.data for unit in units if unit.event is not None]
    assert [b"".join(data or ()) for data in found] == [b"".join(data or ()) for data in expected]


@pytest.mark.parametrize("data", [b'{"a":1}', b'{\n"a":\r\n1\r}'])
def test_a_formatted_event_keeps_the_name_and_id_of_the_original_event(data: bytes) -> None:
    (unit,) = SseUnits().feed(b"event: message\nid: 7\nretry: 5\ndata: old\n\n")
    (again,) = SseUnits().feed(format_event(data, unit.event))

    assert again.event is not None
    assert (again.event.event, again.event.id, again.event.retry) == ("message", "7", 5)
    assert again.message == data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert format_event(b"{}") == b"data: {}\n\n"
