"""The spans of a session, as OpenTelemetry's own decoder reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from mcpspy.analysis.export.otlp import export
from mcpspy.core.protocol.message import Notification, Request
from mcpspy.core.recording.decode import Entry
from mcpspy.core.session.exchange import State
from tests.analysis.export.otlp_decoded import attributes, decoded, spans
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
    """Return the spans of messages."""
    found = spans("".join(export([session_of(*entries, **more)])))
    return [span for _, span in found if span.kind != Span.SPAN_KIND_INTERNAL]


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_operation_and_notification_of_a_recording_is_a_span(path: Path) -> None:
    session = recorded(path)
    *found, (_, root) = sorted(
        spans("".join(export([session]))), key=lambda each: each[1].kind == Span.SPAN_KIND_INTERNAL
    )
    messages = [
        change.what
        for change in session.changes
        if isinstance(change.what, Request | Notification)
        and (change.opened is None or change.opened.poll_of is None)
    ]

    assert sorted(attributes(span.attributes)["mcp.method.name"] for _, span in found) == sorted(
        message.method for message in messages
    )
    assert {span.kind for _, span in found} == {Span.SPAN_KIND_CLIENT}
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for _, span in found)
    assert len({span.span_id for _, span in found}) == len(found)
    assert {span.trace_id for _, span in found} == {root.trace_id}
    ids = {span.span_id for _, span in found}
    assert {span.parent_span_id for _, span in found} <= {root.span_id, *ids}
    assert (root.parent_span_id, root.name) == (b"", f"session {session.header.name}".rstrip())
    assert root.start_time_unix_nano <= min(span.start_time_unix_nano for _, span in found)
    assert root.end_time_unix_nano >= max(span.end_time_unix_nano for _, span in found)
    failed = sum(exchange.state not in GOOD for exchange in session.exchanges() if exchange.poll_of is None)
    assert sum(span.status.code == Status.STATUS_CODE_ERROR for _, span in found) == failed
    assert "".join(export([session])) == "".join(export([recorded(path)])), "the same each time"


def test_the_polls_of_a_task_are_events_of_its_span_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.analysis.export.otlp_spans.MAX_EVENTS", 2)
    get = b'{"jsonrpc":"2.0","id":%d,"method":"tasks/get","params":{"taskId":"t"}}'
    entries = [call(0), result(1, 1, b'"task":{"taskId":"t","status":"working"}')]
    for number in (2, 3, 4):
        status = b"failed" if number == 4 else b"working"
        task = b'"taskId":"t","status":"%b","statusMessage":"worker died"' % status
        entries += [client(number, get % number), result(number + 0.5, number, task)]
    (span,) = made(*entries)

    assert (span.name, span.end_time_unix_nano - span.start_time_unix_nano) == (
        "tools/call forecast",
        4_500_000_000,
    )
    assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, "worker died")
    assert [(event.name, attributes(event.attributes)) for event in span.events] == [
        ("tasks/get", {"jsonrpc.request.id": "2", "mcpspy.task.status": "working"}),
        ("tasks/get", {"jsonrpc.request.id": "3", "mcpspy.task.status": "working"}),
    ]
    assert [event.time_unix_nano for event in span.events] == [
        span.start_time_unix_nano + 2_000_000_000,
        span.start_time_unix_nano + 3_000_000_000,
    ]
    assert span.dropped_events_count == 1


def test_the_error_of_a_task_has_its_code() -> None:
    failed = b'"taskId":"t","status":"failed","error":{"code":-32001,"message":"disk full"}'
    (span,) = made(
        call(0),
        result(1, 1, b'"resultType":"task","taskId":"t","status":"working"'),
        client(2, b'{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"t"}}'),
        result(3, 2, failed),
    )

    assert attributes(span.attributes)["rpc.response.status_code"] == "-32001"
    assert span.status.message == "disk full"


def test_a_late_response_is_the_outcome_and_an_injected_failure_is_marked() -> None:
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    injected = replace(call(5, 2), by="viewer")
    entries = (call(0), client(1, cancel), result(2, 1, b'"isError":true,"content":[{"text":"boom"}]'))
    spans = [span for span in made(*entries, injected, failure(6, 2)) if span.name.startswith("tools/call")]

    assert [(span.status.code, span.status.message) for span in spans] == [
        (Status.STATUS_CODE_ERROR, "boom"),
        (Status.STATUS_CODE_UNSET, ""),
    ]
    assert attributes(spans[0].attributes)["error.type"] == "tool_error"
    assert attributes(spans[1].attributes)["mcpspy.injected"] is True


def test_a_span_lasts_from_the_request_to_its_answer() -> None:
    (span,) = made(call(0.25), result(0.75))

    assert span.name == "tools/call forecast"
    assert span.start_time_unix_nano == (BEGAN + 250) * 10**6
    assert span.end_time_unix_nano == (BEGAN + 750) * 10**6
    assert span.status.code == Status.STATUS_CODE_UNSET
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


def test_a_call_with_the_trace_of_its_client_is_also_a_span_of_the_server_in_that_trace() -> None:
    (sent, received) = made(call(0.1, more=THEIRS), failure(0.2))

    assert (sent.kind, received.kind) == (Span.SPAN_KIND_CLIENT, Span.SPAN_KIND_SERVER)
    assert (received.trace_id.hex(), received.parent_span_id.hex()) == (TRACE, PARENT)
    assert received.trace_state == "rojo=00f067aa0ba902b7"
    assert received.flags == 0x301
    assert sent.trace_id != received.trace_id
    assert [link.span_id.hex() for link in sent.links] == [PARENT]
    assert [(link.trace_id, link.span_id) for link in received.links] == [(sent.trace_id, sent.span_id)]
    assert received.status.message == sent.status.message == "no"
    services = dict(spans("".join(export([session_of(call(0.1, more=THEIRS), result(0.2))]))))
    assert services["weather"].kind == Span.SPAN_KIND_SERVER


def test_a_trace_that_is_not_sampled_gets_no_span() -> None:
    (sent,) = made(call(0.1, more=THEIRS.replace(b'-01"', b'-00"')), result(0.2))

    assert sent.kind == Span.SPAN_KIND_CLIENT


def test_a_session_whose_server_failed_has_an_error_and_a_live_one_has_no_span() -> None:
    def roots(*entries: Entry, **more: Any) -> list[Span]:
        session = session_of(call(0.1), result(0.2), *entries)._replace(**more)
        found = spans("".join(export([session])))
        return [span for _, span in found if span.kind == Span.SPAN_KIND_INTERNAL]

    (failed,) = roots(note(0.9, "exit", code=3, signal=None))
    (killed,) = roots(note(0.9, "exit", code=None, signal="SIGTERM"))

    assert failed.status.message == "the server exited with 3"
    assert attributes(failed.attributes)["error.type"] == "exit_code"
    assert killed.status.code == Status.STATUS_CODE_UNSET, "hosts end servers by signals"
    assert roots(is_live=True) == []


def test_a_late_error_is_the_error_of_a_cancelled_call() -> None:
    first, *_ = made(call(0.1), CANCEL, failure(0.6))

    assert attributes(first.attributes)["error.type"] == "-32602"
    assert first.end_time_unix_nano == (BEGAN + 600) * 10**6


def test_the_parent_of_progress_is_its_request() -> None:
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
    )
    token = b',"_meta":{"progressToken":1,"traceparent":"00-%b-%b-01"}' % (TRACE.encode(), PARENT.encode())
    request, _, reported = made(call(0.1, more=token), server(0.2, progress), result(0.3))

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
    assert of_batch[-1].parent_span_id == of_batch[0].parent_span_id, "of a batch it may be any"


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
        ("ours", "session weather"),
        ("theirs", "ping"),
    ]
    assert {attributes(span.attributes)["mcp.protocol.version"] for _, span in spans(text)} == {"2025-11-25"}


def test_nothing_and_several_sessions_are_one_request() -> None:
    two = decoded("".join(export([session_of(call(0.1), result(0.2)), session_of(call(0.1), result(0.2))])))

    assert len(two.resource_spans) == 2
    assert json.loads("".join(export([]))) == {"resourceSpans": []}
    assert not decoded("".join(export([session_of()]))).resource_spans
