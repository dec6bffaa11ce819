"""Trace context of spans."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from mcpspy.analysis.export.otlp_spans import SpanContext, default_trace_id, span_id, trace_context
from mcpspy.core.protocol.message import Request, read_frame
from tests.analysis.export.sessions import HEADER, client

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def received(meta: object) -> SpanContext | None:
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"_meta": meta}}).encode()
    (message,) = read_frame(client(0.1, data))
    assert isinstance(message, Request)
    return trace_context(message)


def test_the_trace_context_of_a_peer_is_kept() -> None:
    session_of = {"traceparent": f"00-{TRACE}-{PARENT}-00", "tracestate": "a=b"}

    assert received(session_of) == SpanContext(TRACE, PARENT, 0x300, "a=b")
    assert received({**session_of, "tracestate": 7}) == SpanContext(TRACE, PARENT, 0x300, "")
    assert received({"traceparent": f"cc-{TRACE}-{PARENT}-01-later"}) == SpanContext(TRACE, PARENT, 0x301)


@pytest.mark.parametrize(
    "traceparent",
    [
        None,
        7,
        "",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-01-more",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        "[redacted:0123abcd]",
    ],
)
def test_an_invalid_trace_context_is_ignored(traceparent: object) -> None:
    assert received({"traceparent": traceparent}) is None


def test_trace_ids_depend_on_the_recording_id_and_span_ids_are_unique() -> None:
    other = replace(HEADER, id="00000000")
    ids = {span_id(HEADER, what, n) for what in ("exchange", "change") for n in range(100)}

    assert len(ids) == 200
    assert default_trace_id(HEADER) == default_trace_id(replace(HEADER, name="other"))
    assert default_trace_id(HEADER) != default_trace_id(other)
    assert (len(default_trace_id(HEADER)), len(span_id(HEADER, "exchange", 1))) == (32, 16)
