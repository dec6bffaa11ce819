"""OpenTelemetry spans as OTLP/JSON: one span per exchange, and per notification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from mcpspy.analysis.export.base import RecordedSession, dumps
from mcpspy.analysis.export.otlp.spans import SessionSpans, resource, scope
from mcpspy.core.protocol.spec import CLIENT, SERVER

BATCH = 512
"""Spans per request, as in OpenTelemetry's own exporters: some collectors accept 4 MB at most."""


def export(sessions: Iterable[RecordedSession]) -> Iterator[str]:
    """Yield one ExportTraceServiceRequest (opentelemetry-proto, collector/trace/v1)."""
    yield '{"resourceSpans":['
    before = ""
    for session in sessions:
        for begin, spans in _sides(session):
            yield f"{before}\n{begin}"
            yield from (f"{',' if number else ''}\n{span}" for number, span in enumerate(spans))
            yield "]}]}"
            before = ","
    yield "\n]}\n"


def batches(sessions: Iterable[RecordedSession], most: int = BATCH) -> Iterator[tuple[int, bytes]]:
    """Yield requests with at most `most` spans, each with its number of spans."""
    for session in sessions:
        for begin, spans in _sides(session):
            rest = iter(spans)
            while batch := list(islice(rest, most)):
                body = f'{{"resourceSpans":[{begin}{",".join(batch)}]}}]}}]}}'
                yield len(batch), body.encode()


def _sides(session: RecordedSession) -> Iterator[tuple[str, list[str]]]:
    """Yield JSON of each side's resource and spans; spans wait as text, since any message may name a side."""
    spans = SessionSpans(session)
    written: dict[str, list[str]] = {CLIENT: [], SERVER: []}
    for side, span in spans:
        written[side].append(dumps(span))
    for side in (CLIENT, SERVER):
        if written[side]:
            service = dumps(resource(session.header, spans.peer(side), side))
            yield f'{{"resource":{service},"scopeSpans":[{{"scope":{dumps(scope())},"spans":[', written[side]
