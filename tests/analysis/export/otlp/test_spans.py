"""The spans of a session, as OpenTelemetry's own decoder reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from mcpspy.analysis.export.otlp import batches, export
from mcpspy.core.protocol.message import Notification, Request
from mcpspy.core.recording.decode import Entry
from mcpspy.core.session.exchange import State
from tests.analysis.export.otlp.decoded import attributes, decoded, spans
from tests.analysis.export.sessions import (
    EVERY,
    HEADER,
    call,
    client,
    failure,
    note,
    recorded,
    result,
    server,
    session_of,
)

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
THEIRS = b',"_meta":{"traceparent":"00-%b-%b-01","tracestate":"rojo=00f067aa0ba902b7"}' % (
    TRACE.encode(),
    PARENT.encode(),
)
BEGAN = 1795248783745
"""Milliseconds since 1970 of the header's `started`."""


GOOD = (State.OK, State.INPUT_REQUIRED, State.CLOSED)


def made(*entries: Entry, **more: Any) -> list[Span]:
    return [span for _, span in spans("".join(export([session_of(*entries, **more)])))]


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_exchange_and_notification_of_a_recording_is_a_span(path: Path) -> None:
    session = recorded(path)
    found = spans("".join(export([session])))
    messages = [change.what for change in session.changes if isinstance(change.what, Request | Notification)]

    assert sorted(attributes(span.attributes)["mcp.method.name"] for _, span in found) == sorted(
        message.method for message in messages
    )
    assert {span.kind for _, span in found} == {Span.SPAN_KIND_CLIENT}
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for _, span in found)
    assert len({span.span_id for _, span in found}) == len(found)
    assert len({span.trace_id for _, span in found}) == 1
    failed = sum(exchange.state not in GOOD for exchange in session.exchanges())
    assert sum(span.status.code == Status.STATUS_CODE_ERROR for _, span in found) == failed
    assert "".join(export([session])) == "".join(export([recorded(path)])), "the same each time"


def test_a_span_lasts_from_the_request_to_its_answer() -> None:
    (span,) = made(call(0.25), result(0.75))

    assert span.name == "tools/call forecast"
    assert span.start_time_unix_nano == (BEGAN + 250) * 10**6
    assert span.end_time_unix_nano == (BEGAN + 750) * 10**6
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert not span.parent_span_id
    assert span.flags == 1
    assert attributes(span.attributes) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "forecast",
        "jsonrpc.request.id": "1",
        "network.transport": "pipe",
    }


CANCEL = client(0.4, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')


@pytest.mark.parametrize(
    ("more", "kind", "message", "end"),
    [
        ([failure(0.2)], "-32602", "no", 0.2),
        ([result(0.3, members=b'"isError":true')], "tool_error", "", 0.3),
        ([CANCEL], "cancelled", "", 0.4),
        ([note(0.9, "exit", code=1)], "no_answer", "", 0.9),
    ],
)
def test_an_error_has_its_type_and_its_message(
    more: list[Entry], kind: str, message: str, end: float
) -> None:
    span = next(span for span in made(call(0.1), *more) if span.name == "tools/call forecast")
    message_attributes = attributes(span.attributes)

    assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, message)
    assert message_attributes["error.type"] == kind
    assert message_attributes.get("rpc.response.status_code") == (kind if kind.startswith("-") else None)
    assert span.end_time_unix_nano == (BEGAN + round(end * 1000)) * 10**6


def test_a_refused_request_ends_with_its_http_exchange() -> None:
    (span,) = made(
        call(0.1, http=1),
        note(0.2, "http", http=1, stream="1", status=404),
        note(0.3, "http-end", http=1, stream="1", hung_up=None),
        note(0.9, "exit", code=0),
    )

    assert attributes(span.attributes)["error.type"] == "refused"
    assert span.status.message == "HTTP 404"
    assert span.end_time_unix_nano == (BEGAN + 300) * 10**6


def test_a_pending_request_has_no_span() -> None:
    assert made(call(0.1, 1), call(0.2, 2), result(0.3, 2), is_over=False)[0].name == "tools/call forecast"
    assert made(call(0.1, 1), is_over=False) == []


def test_the_parent_is_the_span_that_the_peer_names() -> None:
    (span,) = made(call(0.1, more=THEIRS), result(0.2))

    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert span.trace_state == "rojo=00f067aa0ba902b7"
    assert span.flags == 0x301


def test_the_parent_of_progress_is_its_request() -> None:
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
    )
    token = b',"_meta":{"progressToken":1,"traceparent":"00-%b-%b-01"}' % (TRACE.encode(), PARENT.encode())
    request, reported = made(call(0.1, more=token), server(0.2, progress), result(0.3))

    assert reported.name == "notifications/progress"
    assert reported.parent_span_id == request.span_id
    assert reported.trace_id == request.trace_id
    assert reported.start_time_unix_nano == reported.end_time_unix_nano


def test_the_parent_of_messages_in_a_post_stream_is_its_request() -> None:
    ask = b'{"jsonrpc":"2.0","id":9,"method":"roots/list"}'
    header = replace(HEADER, transport="http", upstream="http://h:1/mcp")
    by_name = {
        span.name: span
        for span in made(call(0.1, http=1), server(0.2, ask, 1), result(0.3, http=1), header=header)
    }
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]'
    of_batch = made(replace(call(0.1, http=1), data=batch), server(0.2, ask, 1), header=header)

    assert by_name["roots/list"].parent_span_id == by_name["tools/call forecast"].span_id
    assert not of_batch[-1].parent_span_id, "of a batch it may be any"


def test_a_continued_call_links_to_the_one_before() -> None:
    asked, answered = b'"resultType":"input_required","requestState":"s"', b',"requestState":"s"'
    first, second = made(call(0.1, 1), result(0.2, 1, asked), call(0.3, 2, more=answered), result(0.4, 2))

    assert first.status.code == Status.STATUS_CODE_UNSET
    assert [link.span_id for link in second.links] == [first.span_id]
    assert second.links[0].trace_id == first.trace_id


def test_both_sides_are_services_and_report_their_own_requests() -> None:
    hello = b'"protocolVersion":"2025-11-25","capabilities":{},"%b":{"name":"%b","version":"1"}'
    text = "".join(
        export(
            [
                session_of(
                    client(
                        0.1,
                        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{%b}}'
                        % (hello % (b"clientInfo", b"ours")),
                    ),
                    result(0.2, 1, hello % (b"serverInfo", b"theirs")),
                    server(0.3, b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
                    call(0.4, 2),
                    result(0.5, 2),
                )
            ]
        )
    )

    assert [(service, span.name) for service, span in spans(text)] == [
        ("ours", "initialize"),
        ("ours", "tools/call forecast"),
        ("theirs", "ping"),
    ]
    assert {attributes(span.attributes)["mcp.protocol.version"] for _, span in spans(text)} == {"2025-11-25"}


def test_batches_are_separate_requests_and_contain_all_spans() -> None:
    sessions = [session_of(*(each for n in range(1, 8) for each in (call(n, n), result(n + 0.5, n))))]
    found = list(batches(sessions, 3))

    assert [count for count, _ in found] == [3, 3, 1]
    assert [len(spans(body)) for _, body in found] == [3, 3, 1]
    assert [span for _, body in found for _, span in spans(body)] == made(
        *(each for n in range(1, 8) for each in (call(n, n), result(n + 0.5, n)))
    )


def test_nothing_and_several_sessions_are_one_request() -> None:
    two = decoded("".join(export([session_of(call(0.1), result(0.2)), session_of(call(0.1), result(0.2))])))

    assert len(two.resource_spans) == 2
    assert json.loads("".join(export([]))) == {"resourceSpans": []}
    assert not decoded("".join(export([session_of()]))).resource_spans
