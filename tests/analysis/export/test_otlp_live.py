"""Telemetry of a session entry by entry is the same as that of the whole session, and its memory is bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from mcpspy.analysis.export.otlp import MOST_NAMES, OTHER, LogData, SessionTelemetry, spans_of
from mcpspy.analysis.export.otlp_spans import SessionSpans, SpanData
from mcpspy.core.recording.decode import Entry, Frame
from mcpspy.core.session.streaming import LATEST
from mcpspy.io.recording.reader import Recording
from tests.analysis.export.sessions import EVERY, HEADER, call, client, failure, note, recorded, result


def key(span: SpanData) -> str:
    return span.id


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_live_spans_are_those_of_the_whole_session(path: Path) -> None:
    recording, session = Recording(path), recorded(path)
    telemetry = SessionTelemetry(recording.header)
    found = [item for entry in recording for item in telemetry.add(entry)]
    found += telemetry.end()
    spans = sorted((item for item in found if isinstance(item, SpanData)), key=key)
    whole = sorted(spans_of(session, SessionSpans(session.header)), key=key)

    assert [span.id for span in spans] == [span.id for span in whole]
    # The whole session knows the revision also of what was sent before it was agreed.
    assert [
        span._replace(attributes={**span.attributes, "mcp.protocol.version": "", "mcp.session.id": ""})
        for span in spans
    ] == [
        span._replace(attributes={**span.attributes, "mcp.protocol.version": "", "mcp.session.id": ""})
        for span in whole
    ]
    stderr = sum(getattr(entry, "kind", "") in ("stderr", "error") for entry in recording)
    assert sum(isinstance(item, LogData) for item in found) == stderr


def live(*entries: Entry, is_over: bool = True) -> list[SpanData]:
    """Return the spans of requests, in the order in which they were sent."""
    telemetry = SessionTelemetry(HEADER)
    found = [item for entry in entries for item in telemetry.add(entry)]
    found += telemetry.end() if is_over else ()
    return [item for item in found if isinstance(item, SpanData) and "jsonrpc.request.id" in item.attributes]


def polled(at: float, number: int, method: bytes = b"tasks/get") -> Entry:
    return client(at, b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":{"taskId":"t"}}' % (number, method))


def test_the_span_of_a_task_waits_for_its_result() -> None:
    working, done = (b'"task":{"taskId":"t","status":"working"}', b'"taskId":"t","status":"completed"')
    entries = (
        *(call(0, 1), result(1, 1, working), polled(2, 2), result(3, 2, done)),
        *(polled(4, 3, b"tasks/result"), result(5, 3, b'"isError":true,"content":[]')),
    )
    (span,) = live(*entries, is_over=False)

    assert span.attributes["error.type"] == "tool_error"
    assert (span.end - span.start) / 1e9 == 3, "to its terminal state"
    assert [(event.name, event.attributes.get("mcpspy.task.status")) for event in span.events] == [
        ("tasks/get", "completed"),
        ("tasks/result", None),
    ]
    assert live(*entries[:4], is_over=False) == []
    (without,) = live(*entries[:4], note(3 + LATEST + 1, "stderr", text=""), is_over=False)
    assert without.error is None


def test_a_question_has_a_span_when_it_was_answered_or_the_session_ended() -> None:
    question = b'"resultType":"input_required","inputRequests":{"q":{}},"requestState":"s"'
    asked = (call(0, 1), result(1, 1, question))
    again = call(2, 2, more=b',"inputResponses":{"q":{}},"requestState":"s"')

    assert live(*asked, is_over=False) == []
    assert [span.error for span in live(*asked, again, is_over=False)] == [None]
    (ended,) = live(*asked)
    assert ended.attributes["error.type"] == "not_continued"


def test_a_request_that_mcpspy_answered_is_an_operation_of_its_sender_only() -> None:
    telemetry = SessionTelemetry(HEADER)
    asked = call(0, 1)
    list(telemetry.add(Frame(asked.at, asked.side, asked.data, to="mcpspy")))
    refused = failure(2, 1)
    list(telemetry.add(Frame(refused.at, refused.side, refused.data, by="rule")))

    (histogram,) = telemetry.metrics()
    assert (histogram.metric, histogram.total) == ("mcp.client.operation.duration", 2)
    assert histogram.attributes["error.type"] == "-32602"


def test_metrics_have_the_outcome_and_limited_names() -> None:
    telemetry = SessionTelemetry(HEADER)
    for number in range(MOST_NAMES + 5):
        for entry in (call(number, number, b"tool%d" % number), result(number + 0.04, number)):
            list(telemetry.add(entry))
    made = [each for each in telemetry.metrics() if each.metric == "mcp.client.operation.duration"]
    assert len(made) == MOST_NAMES + 1
    assert sum(made[-1].counts) == 5
    assert made[-1].attributes["gen_ai.tool.name"] == OTHER
    assert made[0].counts[2] == 1, "0.02 < 0.04 <= 0.05"
    assert [made[0].least, made[0].most] == pytest.approx([0.04, 0.04])
    has_new = telemetry.has_new_metrics
    assert not has_new
    assert made[0].start == 1795248783745 * 10**6


def test_methods_that_no_revision_defines_are_one_label() -> None:
    telemetry = SessionTelemetry(HEADER)
    for number, method in enumerate((b"own/a", b"own/b", b"ping")):
        sent = call(number, number)
        data = b'{"jsonrpc":"2.0","id":%d,"method":"%b"}' % (number, method)
        for entry in (replace(sent, data=data), result(number + 0.04, number)):
            list(telemetry.add(entry))
    made = [each for each in telemetry.metrics() if each.metric == "mcp.client.operation.duration"]
    assert [(each.attributes["mcp.method.name"], sum(each.counts)) for each in made] == [
        (OTHER, 2),
        ("ping", 1),
    ]


def test_a_request_that_is_never_answered_counts_at_the_end() -> None:
    telemetry = SessionTelemetry(HEADER)
    for entry in (call(1.0), call(2.0, 2), failure(2.5, 2), note(4.0, "exit", code=1)):
        list(telemetry.add(entry))
    names = [span.name for span in telemetry.end() if isinstance(span, SpanData)]
    made = {(each.metric, str(each.attributes.get("error.type"))): each for each in telemetry.metrics()}

    assert names == ["tools/call forecast", "session weather"]
    assert made["mcp.client.operation.duration", "no_answer"].total == pytest.approx(3.0)
    assert made["mcp.server.operation.duration", "-32602"].total == pytest.approx(0.5)
    assert made["mcp.client.session.duration", "exit_code"].total == pytest.approx(4.0)
    assert made["mcp.server.session.duration", "exit_code"].side == "server"


def test_a_long_session_keeps_neither_messages_nor_exchanges() -> None:
    telemetry = SessionTelemetry(replace(HEADER, transport="http", upstream="http://h/mcp"))
    for number in range(20_000):
        for entry in (
            call(number, number, http=number),
            result(number + 0.5, number, http=number),
            note(number + 0.6, "http-end", http=number, stream="1", hung_up=None),
        ):
            list(telemetry.add(entry))

    assert not telemetry._outcomes._open
    assert not telemetry._spans._posted
    assert not telemetry._spans._closed
