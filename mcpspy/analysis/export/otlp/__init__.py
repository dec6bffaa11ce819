"""OpenTelemetry spans: of a session as OTLP/JSON, and of a session that is being recorded (`live`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcpspy.analysis.export.base import RecordedSession, dumps
from mcpspy.analysis.export.otlp.spans import SessionSpans, SpanData, as_json, attributes, resource, scope
from mcpspy.core.protocol.message import Notification
from mcpspy.core.protocol.spec import CLIENT, SERVER


def export(sessions: Iterable[RecordedSession]) -> Iterator[str]:
    """Yield one ExportTraceServiceRequest (opentelemetry-proto, collector/trace/v1)."""
    yield '{"resourceSpans":['
    before = ""
    for session in sessions:
        # They wait as text, since any message may name a side.
        written: dict[str, list[str]] = {CLIENT: [], SERVER: []}
        spans = SessionSpans(session.header)
        for span in spans_of(session, spans):
            written[span.side].append(dumps(as_json(span)))
        for side in (CLIENT, SERVER):
            if written[side]:
                of_side = dumps({"attributes": attributes(resource(session.header, spans.peer(side), side))})
                yield f'{before}\n{{"resource":{of_side},"scopeSpans":[{{"scope":{dumps(scope())},"spans":['
                yield from (f"{',' if number else ''}\n{each}" for number, each in enumerate(written[side]))
                yield "]}]}"
                before = ","
    yield "\n]}\n"


def spans_of(session: RecordedSession, spans: SessionSpans) -> Iterator[SpanData]:
    """Yield the selected spans of a session, then its root if it is over and anything was selected."""
    changes = list(session.changes)
    for change in changes:
        spans.look(change)
    is_empty = True
    for change in filter(session.keep, changes):
        what, exchange = change.what, change.exchange
        if isinstance(what, Notification):
            found = spans.of_notification(change, what)
        elif exchange is not None and what is exchange.request and not exchange.is_open:
            found = spans.of_exchange(exchange)
        else:
            continue
        is_empty = False
        yield from found
    if not is_empty and not session.is_live:
        yield spans.root()
