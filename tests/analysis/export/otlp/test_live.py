"""Telemetry of a session entry by entry is the same as that of the whole session, and its memory is bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from mcpspy.analysis.export.otlp import spans_of
from mcpspy.analysis.export.otlp.live import MOST_NAMES, OTHER, LogData, SessionTelemetry
from mcpspy.analysis.export.otlp.spans import SessionSpans, SpanData
from mcpspy.io.recording.reader import Recording
from tests.analysis.export.sessions import EVERY, HEADER, call, failure, note, recorded, result


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

    assert not telemetry._open
    assert not telemetry._spans._posted
    assert not telemetry._spans._closed
