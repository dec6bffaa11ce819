"""The sender reports what a collector made of telemetry, over HTTP and gRPC."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import starmap
from pathlib import Path

import grpc
import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from mcpspy.analysis.export.otlp import BUCKETS, SessionTelemetry
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Entry
from mcpspy.errors import CannotStart
from mcpspy.io.telemetry.options import GRPC, HTTP, LOGS, METRICS, TRACES, TelemetryOptions
from mcpspy.io.telemetry.sender import LONGEST, Attributes, Item, OtlpSender, Outcome, SendResult, signal_of
from tests.analysis.export.sessions import HEADER, call, client, failure, note, result
from tests.io.forward.conftest import make_pki
from tests.otlp_receiver import Answer, Receiver, plain

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
THEIRS = b',"_meta":{"traceparent":"00-%b-%b-01","tracestate":"a=b"}' % (TRACE.encode(), PARENT.encode())

BOTH = pytest.mark.parametrize("protocol", [HTTP, GRPC])


def items(*entries: Entry) -> dict[str, list[tuple[Item, Attributes]]]:
    """Return the telemetry of a session, by signal."""
    telemetry = SessionTelemetry(replace(HEADER, transport="http", upstream="http://h:1/mcp"))
    found: list[Item] = [item for entry in entries for item in telemetry.add(entry)]
    found += [*telemetry.end(), *telemetry.metrics()]
    by_signal: dict[str, list[tuple[Item, Attributes]]] = {TRACES: [], METRICS: [], LOGS: []}
    for item in found:
        by_signal[signal_of(item)].append((item, telemetry.resource(item.side)))
    return by_signal


def sender(receiver: Receiver, protocol: str, timeout: float = 5.0, **more: object) -> OtlpSender:
    url = receiver.url if protocol == HTTP else receiver.grpc_url
    return OtlpSender(TelemetryOptions(url, protocol)._replace(**more), timeout)  # type: ignore[arg-type]


@BOTH
def test_spans_logs_and_metrics_arrive_with_their_resource(
    receiver: Receiver, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=night")
    made = items(call(0.1, more=THEIRS), failure(0.25), note(0.3, "stderr", text="boom"))
    sending = sender(receiver, protocol, headers=(("X-Token", "s3"),))

    assert {sending.send(each) for each in made.values()} == {SendResult(Outcome.SENT)}
    sent, received, root = sorted(receiver.spans, key=lambda span: -span.kind)
    assert [span.name for span in (sent, received, root)] == ["tools/call forecast"] * 2 + ["session weather"]
    assert sent.parent_span_id == root.span_id
    assert (received.trace_id.hex(), received.parent_span_id.hex(), received.trace_state) == (
        TRACE,
        PARENT,
        "a=b",
    )
    assert (sent.kind, received.kind, root.kind) == (3, 2, 1)
    assert sent.end_time_unix_nano - sent.start_time_unix_nano == 150_000_000
    assert (sent.status.code, sent.status.message) == (2, "no")
    assert plain(sent.attributes)["server.port"] == 1
    ((resource, record),) = receiver.items[LOGS]
    assert (record.body.string_value, record.trace_id, record.span_id) == (
        "boom",
        root.trace_id,
        root.span_id,
    )
    assert record.observed_time_unix_nano == record.time_unix_nano
    assert resource["service.name"] == "weather"
    assert resource["deployment.environment.name"] == "night"
    metrics = {metric.name: metric.histogram for _, metric in receiver.items[METRICS]}
    assert {*metrics} == {
        f"mcp.{side}.{what}.duration" for side in ("client", "server") for what in ("operation", "session")
    }
    (point,) = metrics["mcp.client.operation.duration"].data_points
    assert plain(point.attributes) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "forecast",
        "error.type": "-32602",
        "rpc.response.status_code": "-32602",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "server.address": "h",
        "server.port": 1,
    }
    assert (point.count, [*point.explicit_bounds]) == (1, [*BUCKETS])
    assert point.bucket_counts[4] == 1, "0.1 < 0.15 <= 0.2"
    assert metrics["mcp.client.operation.duration"].aggregation_temporality == 2
    assert {headers.get("X-Token") or headers.get("x-token") for headers in receiver.headers} == {"s3"}


def outcome(status: int, code: grpc.StatusCode) -> Callable[[str], Answer]:
    return lambda protocol: Answer(status, body=b"no") if protocol == HTTP else Answer(code=code, body=b"no")


@BOTH
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (outcome(401, grpc.StatusCode.UNAUTHENTICATED), [Outcome.FAILED] * 3),
        (outcome(400, grpc.StatusCode.INVALID_ARGUMENT), [Outcome.REJECTED] * 3),
        (
            outcome(404, grpc.StatusCode.UNIMPLEMENTED),
            [Outcome.FAILED, Outcome.UNSUPPORTED, Outcome.UNSUPPORTED],
        ),
        (outcome(301, grpc.StatusCode.PERMISSION_DENIED), [Outcome.FAILED] * 3),
    ],
)
def test_a_refusal_has_its_outcome_and_its_reason(
    receiver: Receiver, protocol: str, answer: Callable[[str], Answer], expected: list[Outcome]
) -> None:
    receiver.answer = lambda _, __: answer(protocol)
    made = items(call(0.1), result(0.2), note(0.3, "stderr", text="boom"))
    sending = sender(receiver, protocol)
    results = [sending.send(made[signal]) for signal in (TRACES, METRICS, LOGS)]

    assert [each.outcome for each in results] == expected
    given = answer(protocol)
    name = f"HTTP {given.status}" if given.code is None else given.code.name
    assert {each.why for each in results} == {f"{name}: no"}


@BOTH
def test_a_collector_that_is_not_there_or_does_not_answer_is_a_failure_with_a_short_reason(
    receiver: Receiver, protocol: str
) -> None:
    made = items(call(0.1), result(0.2))[TRACES]
    receiver.answer = lambda _, __: Answer(seconds=1.0)
    slow = sender(receiver, protocol, timeout=0.2).send(made)
    there = sender(receiver, protocol, timeout=0.2)
    receiver.close()
    gone = there.send(made)

    assert slow.outcome is gone.outcome is Outcome.FAILED
    assert slow.why == (
        "no response in 0.2 s" if protocol == HTTP else "DEADLINE_EXCEEDED: Deadline Exceeded"
    )
    assert "Connection refused" in gone.why
    assert len(gone.why) < 50


@BOTH
def test_the_polls_of_a_task_arrive_as_events(
    receiver: Receiver, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpspy.analysis.export.otlp_spans.MAX_EVENTS", 1)
    poll = b'{"jsonrpc":"2.0","id":%d,"method":"tasks/get","params":{"taskId":"t"}}'
    made = items(
        *(call(0.1), result(0.2, 1, b'"task":{"taskId":"t","status":"working"}')),
        *(client(0.3, poll % 2), result(0.4, 2, b'"taskId":"t","status":"working"'), client(0.5, poll % 3)),
    )
    sender(receiver, protocol).send(made[TRACES])

    (span,) = (each for each in receiver.spans if each.name == "tools/call forecast")
    assert plain(span.attributes)["error.type"] == "task_not_finished"
    assert span.dropped_events_count == 1
    assert [(event.name, plain(event.attributes)["mcpspy.task.status"]) for event in span.events] == [
        ("tasks/get", "working")
    ]


def test_rejected_spans_are_counted_and_other_bodies_ignored(receiver: Receiver) -> None:
    partial = ExportTracePartialSuccess(rejected_spans=2, error_message="too old")
    body = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    made, sending = items(call(0.1), result(0.2))[TRACES], sender(receiver, HTTP)
    receiver.answer = lambda _, __: Answer(body=body)
    assert sending.send(made) == SendResult(Outcome.SENT, "too old", 2)
    receiver.answer = lambda _, __: Answer(body=b"\xffthanks")
    assert sending.send(made) == SendResult(Outcome.SENT)


def test_long_and_invalid_text_of_peers_is_sent_in_a_form_that_the_protocol_allows(
    receiver: Receiver,
) -> None:
    long = b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"\\ud800%b"}}' % (b"x" * (2 * LONGEST))
    made = items(call(0.1), replace(failure(0.2), data=long), note(0.3, "stderr", text="y" * 2 * LONGEST))
    results = starmap(lambda _, each: sender(receiver, HTTP).send(each), made.items())

    assert {each.outcome for each in results} == {Outcome.SENT}
    assert receiver.spans[0].status.message.startswith("\\ud800xxx")
    assert len(receiver.spans[0].status.message) < LONGEST + 10
    assert len(receiver.items[LOGS][0][1].body.string_value) == LONGEST + 1


@BOTH
def test_a_collector_with_a_private_ca_is_trusted_if_its_ca_is_named(protocol: str, tmp_path: Path) -> None:
    pki = make_pki(tmp_path)
    with closing(Receiver(tls=(pki.certificate, pki.key))) as receiver:
        made = items(call(0.1), result(0.2))[TRACES]
        refused = sender(receiver, protocol, timeout=2.0).send(made)
        sent = sender(receiver, protocol, cacert=str(pki.authority)).send(made)
        assert len(receiver.spans) == len(made)

    assert refused.outcome is Outcome.FAILED
    assert "certificate" in refused.why.lower()
    assert sent == SendResult(Outcome.SENT)


@BOTH
def test_a_missing_certificate_file_is_one_line(receiver: Receiver, protocol: str) -> None:
    with pytest.raises(CannotStart, match="--cacert /absent: No such file"):
        sender(receiver, protocol, cacert="/absent")


def test_sending_the_same_session_again_sends_the_same_bytes(receiver: Receiver) -> None:
    for _ in range(2):
        assert sender(receiver, HTTP).send(items(call(0.1, more=THEIRS), result(0.2))[TRACES]).why == ""
    first, second = receiver.spans[:3], receiver.spans[3:]

    assert first == second
    assert {resource["service.instance.id"] for resource, _ in receiver.items[TRACES]} == {HEADER.id}
    assert items()[METRICS][0][0].side == CLIENT


@BOTH
def test_a_request_has_only_the_last_of_two_reports_of_a_series(receiver: Receiver, protocol: str) -> None:
    telemetry = SessionTelemetry(HEADER)
    reports: list[tuple[Item, Attributes]] = []
    for number in (1, 2):
        for entry in (call(number, number), result(number, number)):
            list(telemetry.add(entry))
        reports += ((each, telemetry.resource(each.side)) for each in telemetry.metrics())
    with closing(sender(receiver, protocol)) as sending:
        assert sending.send(reports).outcome is Outcome.SENT

    counts = [
        [point.count for point in metric.histogram.data_points] for _, metric in receiver.items[METRICS]
    ]
    assert counts == [[2], [2]]
