"""OpenTelemetry: a session as OTLP/JSON, and the telemetry of a session that is being recorded.

That is spans, log records of stderr, and metrics, from its entries, one at a time. Reading the same entries again makes
the same spans, with the same ids. Keeps open requests and counts, no messages.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mcpspy.analysis.export.base import RecordedSession, dumps
from mcpspy.analysis.export.otlp_spans import (
    EXIT_CODE,
    SessionSpans,
    SpanData,
    Value,
    as_json,
    attributes,
    error_attributes,
    resource,
    scope,
    transport_attributes,
)
from mcpspy.core.protocol.message import Notification
from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER, other
from mcpspy.core.recording.decode import Entry, Header, Note
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.streaming import FinalOutcomes, StreamingSession


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
        what, exchange = change.what, change.opened
        if isinstance(what, Notification):
            found = spans.of_notification(change, what)
        elif exchange is not None and exchange.poll_of is None and not exchange.is_open:
            found = spans.of_exchange(exchange)
        else:
            continue
        is_empty = False
        yield from found
    if not is_empty and not session.is_live:
        yield spans.root()


BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Upper bounds in seconds, which the conventions advise."""

OTHER = "_OTHER"
"""Value of an attribute for all names beyond the limit, as the conventions write it."""

MOST_NAMES = 200
"""Different tools and prompts of one session in its metrics."""
MOST_ERRORS = 50
"""Different error codes of one session in its metrics."""

_LABELS = """mcp.method.name mcp.protocol.version gen_ai.operation.name gen_ai.tool.name gen_ai.prompt.name error.type
    rpc.response.status_code network.transport network.protocol.name server.address server.port""".split()
"""Attributes of a request that its metrics have as well; all others have too many values."""

_LIMITS = {
    "gen_ai.tool.name": MOST_NAMES,
    "gen_ai.prompt.name": MOST_NAMES,
    "error.type": MOST_ERRORS,
    "rpc.response.status_code": MOST_ERRORS,
}


class LogData(NamedTuple):
    side: str
    at: int
    """Nanoseconds since 1970."""
    text: str
    is_error: bool
    """True for an error of mcpspy, false for a line of the server's stderr."""
    trace: str
    span: str


class HistogramData(NamedTuple):
    """Durations since the start of a session."""

    side: str
    metric: str
    attributes: dict[str, Value]
    start: int
    """Nanoseconds since 1970."""
    counts: tuple[int, ...]
    """One for each bucket, and one for values beyond the last bound."""
    total: float
    least: float
    most: float


class LimitedNames(set[str]):
    """Names that were seen, up to a number."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def limited(self, name: str) -> str:
        """Return the name, or `OTHER` if there are too many. An empty name means that there is none."""
        if name and name not in self:
            if len(self) >= self._most:
                return OTHER
            self.add(name)
        return name


class SessionTelemetry:
    """The telemetry of one session."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._session = StreamingSession(header)
        self._spans = SessionSpans(header)
        self._outcomes = FinalOutcomes()
        self._names = {name: LimitedNames(most) for name, most in _LIMITS.items()}
        self._histograms: dict[tuple[str, str, tuple[tuple[str, Value], ...]], list[float]] = {}
        self.has_new_metrics = False
        """True if `metrics` has something that it did not have the last time."""

    def resource(self, side: str) -> dict[str, Value]:
        """Return the attributes of a side's resource, as far as it has introduced itself."""
        return resource(self._header, self._spans.peer(side), side)

    def add(self, entry: Entry) -> Iterator[SpanData | LogData]:
        """Yield what this entry completed."""
        for change in self._session.add(entry):
            self._spans.look(change)
            what = change.what
            if isinstance(what, Notification):
                yield from self._spans.of_notification(change, what)
            elif isinstance(what, Note) and what.kind in ("stderr", "error"):
                yield self._log(what)
            for exchange in self._outcomes.take(change):
                yield from self._settled(exchange)
        for exchange in self._outcomes.overdue(self._session.last_at):
            yield from self._settled(exchange)
        if isinstance(entry, Note) and entry.kind == "http-end" and isinstance(entry.fields.get("http"), int):
            self._spans.forget(http=entry.fields["http"])

    def end(self) -> Iterator[SpanData | LogData]:
        """Yield the requests that were never answered, and the session."""
        self._session.end()
        for exchange in self._outcomes.end():
            yield from self._settled(exchange)
        ending: dict[str, Value | None] = {
            "mcp.protocol.version": self._spans.revision,
            "error.type": EXIT_CODE if self._spans.exit_code else None,
        }
        for side in (CLIENT, SERVER):
            values = {**ending, **transport_attributes(self._header, side)}
            self._observe(side, f"mcp.{side}.session.duration", values, self._spans.last)
        yield self._spans.root()

    def metrics(self) -> list[HistogramData]:
        """Return the histograms of the session so far."""
        self.has_new_metrics = False
        start = self._spans.clock.nanoseconds(0)
        return [
            HistogramData(side, metric, dict(values), start, tuple(map(int, counts)), total, least, most)
            for (side, metric, values), (total, least, most, *counts) in self._histograms.items()
        ]

    def _log(self, note: Note) -> LogData:
        spans, is_error = self._spans, note.kind == "error"
        at = spans.clock.nanoseconds(note.at)
        return LogData(CLIENT if is_error else SERVER, at, note.text, is_error, spans.trace, spans.root_id)

    def _settled(self, exchange: Exchange) -> Iterator[SpanData]:
        spans = list(self._spans.of_exchange(exchange))
        yield from spans
        request = exchange.request
        if exchange.is_counted and not exchange.is_subscription:
            duration = max(self._spans.end_of(exchange) - request.at - exchange.held, 0.0)
            error, _ = error_attributes(exchange)
            values = {**spans[0].attributes, **error}
            # The receiver observes the same, without its own address.
            seen = {**values, **transport_attributes(self._header, SERVER)}
            self._observe(request.side, "mcp.client.operation.duration", values, duration)
            if not request.frame.is_ours:  # Otherwise mcpspy answered it, and its receiver never saw it.
                self._observe(other(request.side), "mcp.server.operation.duration", seen, duration)
        self._spans.forget(exchange)

    def _observe(self, side: str, metric: str, values: dict[str, Value | None], seconds: float) -> None:
        labels = []
        for name in _LABELS:
            value = values.get(name)
            if name == "mcp.method.name" and value is not None and value not in METHODS:
                value = OTHER
            elif name in _LIMITS and value is not None:
                value = self._names[name].limited(str(value))
            if value is not None:
                labels.append((name, value))
        numbers = self._histograms.setdefault(
            (side, metric, tuple(labels)), [0.0, seconds, seconds, *[0] * (len(BUCKETS) + 1)]
        )
        numbers[0] += seconds
        numbers[1], numbers[2] = min(numbers[1], seconds), max(numbers[2], seconds)
        numbers[3 + bisect_left(BUCKETS, seconds)] += 1
        self.has_new_metrics = True
