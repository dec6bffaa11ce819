"""Sends telemetry by the exporters of the OpenTelemetry SDK: OTLP over HTTP or gRPC.

The SDK repeats an attempt for ten seconds, and then only logs what was wrong. The sender reports it, so that the caller
can repeat the attempt later, or leave out what the collector rejects.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import time
from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

from mcpspy import __version__
from mcpspy.analysis.export.otlp import BUCKETS, HistogramData, LogData
from mcpspy.analysis.export.otlp_spans import MAX_EVENTS, REMOTE, SpanData, Value
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart
from mcpspy.io.client.http_exchange import excerpt
from mcpspy.io.extras import install_command
from mcpspy.io.telemetry.options import HTTP, LOGS, METRICS, TRACES, TelemetryOptions

try:
    import certifi
    import grpc
    import requests
    from opentelemetry import trace
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogs
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Histogram,
        HistogramDataPoint,
        Metric,
        MetricsData,
        ResourceMetrics,
        ScopeMetrics,
    )
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.util import BoundedList
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace.status import Status, StatusCode
except ImportError:
    raise CannotStart("export: the OpenTelemetry SDK is not installed", install_command("otel")) from None

BATCH = 512
"""Items per request, as in OpenTelemetry's own exporters: some collectors accept 4 MB at most."""

LONGEST = 8192
"""Characters of a text that a peer chose, such as an error message or a line of stderr."""

SCOPE = InstrumentationScope("mcpspy", __version__)

Attributes = dict[str, Value]

Item = SpanData | LogData | HistogramData

_NOT_THERE = (404, 405, 501, grpc.StatusCode.UNIMPLEMENTED)
_BAD_DATA = (400, 413, 422, grpc.StatusCode.INVALID_ARGUMENT)

_ERRNO = re.compile(r"\[Errno -?\d+\] ([^'\")]+)")


class Outcome(Enum):
    SENT = 1
    FAILED = 2
    """The collector cannot be reached, is overloaded, or refuses everything: it may accept the same later."""
    REJECTED = 3
    """The collector does not accept this data."""
    UNSUPPORTED = 4
    """The collector does not accept this signal."""


class SendResult(NamedTuple):
    outcome: Outcome
    why: str = ""
    rejected: int = 0
    """Number of items that the collector dropped, although it accepted the request. Known over HTTP only."""


def signal_of(item: Item) -> str:
    return TRACES if isinstance(item, SpanData) else LOGS if isinstance(item, LogData) else METRICS


class OtlpSender:
    """The exporters of a collector, one per signal. Not for several threads at once."""

    def __init__(self, options: TelemetryOptions, timeout: float | None = None) -> None:
        """`timeout` is that of one attempt; None selects the one of the SDK, 10 s. Raises CannotStart."""
        self.options = options
        self._timeout = (
            timeout if timeout is not None else float(os.environ.get("OTEL_EXPORTER_OTLP_TIMEOUT", "10"))
        )
        self._log = _LastRecord()
        self._status: int | None = None
        self._body = b""
        self._error: Exception | None = None
        self._base = Resource.create({})
        self._resources: dict[tuple[tuple[str, Any], ...], Resource] = {}
        try:
            self._exporters: dict[str, Any] = self._http() if options.protocol == HTTP else self._grpc()
        except OSError as error:
            raise CannotStart(sanitize(f"--cacert {options.cacert}: {error.strerror or error}")) from None
        for name in ("grpc.exporter", "grpc._log_exporter", "http._log_exporter"):
            # They drop records that repeat the last one, and with them the reason of a failure.
            logger = logging.getLogger(f"opentelemetry.exporter.otlp.proto.{name}")
            for each in [*logger.filters]:
                logger.removeFilter(each)
        logger = logging.getLogger("opentelemetry")
        logger.handlers, logger.propagate = [self._log], False

    def _http(self) -> dict[str, Any]:
        session = _Session(self)
        if self.options.cacert is not None:
            session.mount("https://", _TrustingAdapter(self.options.cacert))
        made = {TRACES: HttpSpans, METRICS: HttpMetrics, LOGS: HttpLogs}
        headers = dict(self.options.headers) or None
        return {
            signal: exporter(
                endpoint=self.options.url(signal), headers=headers, timeout=self._timeout, session=session
            )
            for signal, exporter in made.items()
        }

    def _grpc(self) -> dict[str, Any]:
        credentials = None
        if self.options.cacert is not None:
            with open(certifi.where(), "rb") as known, open(self.options.cacert, "rb") as more:
                credentials = grpc.ssl_channel_credentials(known.read() + b"\n" + more.read())
        headers = tuple((name.lower(), value) for name, value in self.options.headers) or None
        made = {TRACES: GrpcSpans, METRICS: GrpcMetrics, LOGS: GrpcLogs}
        return {
            signal: exporter(
                endpoint=self.options.endpoint,
                headers=headers,
                timeout=self._timeout,
                credentials=credentials,
            )
            for signal, exporter in made.items()
        }

    def send(self, items: Sequence[tuple[Item, Attributes]]) -> SendResult:
        """Send items of one signal, each with its resource."""
        signal = signal_of(items[0][0])
        self.received(None)
        self._log.last = None
        accepted = self._exporters[signal].export(self._encoded(signal, items)).name == "SUCCESS"
        status = self._status if self.options.protocol == HTTP else self._log.status
        # The SDK takes a redirection as a success.
        if accepted and (not isinstance(status, int) or status < 300):
            return self._partly(len(items))
        why = self._why(status)
        if status in _BAD_DATA or "larger than max" in why:
            return SendResult(Outcome.REJECTED, why)
        if status in _NOT_THERE and signal != TRACES:
            return SendResult(Outcome.UNSUPPORTED, why)
        return SendResult(Outcome.FAILED, why)

    def close(self) -> None:
        """Stop the exporters; an attempt in another thread ends without another repetition."""
        for exporter in self._exporters.values():
            exporter.shutdown()

    def received(self, response: requests.Response | Exception | None) -> None:
        """Take the outcome of a request over HTTP."""
        self._status, self._body, self._error = None, b"", None
        if isinstance(response, requests.Response):
            self._status, self._body = response.status_code, response.content
        else:
            self._error = response

    def _partly(self, count: int) -> SendResult:
        try:
            # The responses of all signals have the same form.
            partial = ExportTraceServiceResponse.FromString(self._body).partial_success
        except Exception:  # Some collectors answer with text; only the status matters then.
            return SendResult(Outcome.SENT)
        return SendResult(Outcome.SENT, sanitize(partial.error_message), min(partial.rejected_spans, count))

    def _why(self, status: int | grpc.StatusCode | None) -> str:
        """Return the reason of a failure, in a few words."""
        if isinstance(status, int):
            text = excerpt(self._body)
            return sanitize(f"HTTP {status}{f': {text}' if text else ''}")
        if isinstance(self._error, requests.Timeout):
            return f"no response in {self._timeout:g} s"
        text = str(self._error or ("" if self._log.last is None else self._log.last.getMessage()))
        if isinstance(status, grpc.StatusCode):
            details = text.rpartition("error details: ")[2].rpartition("last error: ")[2]
            # gRPC ends the reason of a failed handshake with the status of the file system.
            return sanitize(f"{status.name}: {details.removesuffix(': OK').rpartition(': ')[2]}")
        found = _ERRNO.search(text)
        return sanitize(text if found is None else found[1])

    def _encoded(self, signal: str, items: Sequence[tuple[Item, Attributes]]) -> Any:
        if signal == METRICS:
            return self._metrics(items)
        return [
            _span(item, self._resource(of))
            if isinstance(item, SpanData)
            else _log_record(item, self._resource(of))
            for item, of in items
            if not isinstance(item, HistogramData)
        ]

    def _metrics(self, items: Sequence[tuple[Item, Attributes]]) -> MetricsData:
        now = time.time_ns()
        found: dict[Resource, dict[str, dict[object, HistogramDataPoint]]] = {}
        for item, of in items:
            if isinstance(item, HistogramData):
                points = found.setdefault(self._resource(of), {}).setdefault(item.metric, {})
                # A request has one point of a series: a later report includes the earlier one.
                points[tuple(item.attributes.items())] = _point(item, now)
        return MetricsData([_resource_metrics(resource, metrics) for resource, metrics in found.items()])

    def _resource(self, of: Attributes) -> Resource:
        """Return the resource, with the attributes of OTEL_RESOURCE_ATTRIBUTES."""
        key = tuple(of.items())
        if key not in self._resources:
            if len(self._resources) > 256:
                self._resources.clear()
            self._resources[key] = self._base.merge(Resource(_attributes(of)))
        return self._resources[key]


class _LastRecord(logging.Handler):
    """Keeps the last record of the SDK."""

    last: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record

    @property
    def status(self) -> grpc.StatusCode | None:
        """Return the status that gRPC reported."""
        of = () if self.last is None or not isinstance(self.last.args, tuple) else self.last.args
        return next((each for each in of if isinstance(each, grpc.StatusCode)), None)


class _Session(requests.Session):
    """Reports each response, or the reason why there is none: the SDK only logs it."""

    def __init__(self, sender: OtlpSender) -> None:
        super().__init__()
        self._sender = sender

    def send(self, request: requests.PreparedRequest, **more: Any) -> requests.Response:
        try:
            response = super().send(request, **more)
        except requests.RequestException as error:
            self._sender.received(error)
            raise
        self._sender.received(response)
        return response


class _TrustingAdapter(requests.adapters.HTTPAdapter):
    """Trusts the certificates of a file as well."""

    def __init__(self, cacert: str) -> None:
        self._context = ssl.create_default_context()
        self._context.load_verify_locations(cacert)
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **more: Any) -> None:
        super().init_poolmanager(*arguments, **more, ssl_context=self._context)


def _span(span: SpanData, resource: Resource) -> ReadableSpan:
    context = span.context
    trace_id, is_remote = int(context.trace, 16), bool(context.flags & REMOTE)
    flags = trace.TraceFlags(context.flags & 0xFF)
    state = trace.TraceState.from_header([context.state]) if context.state else None
    return ReadableSpan(
        _text(span.name),
        trace.SpanContext(trace_id, int(span.id, 16), False, flags, state),
        trace.SpanContext(trace_id, int(context.parent, 16), is_remote, flags) if context.parent else None,
        resource,
        _attributes(span.attributes),
        events=_events(span),
        links=[
            trace.Link(trace.SpanContext(int(of, 16), int(number, 16), False, flags))
            for of, number in span.links
        ],
        kind={1: trace.SpanKind.INTERNAL, 2: trace.SpanKind.SERVER, 3: trace.SpanKind.CLIENT}[span.kind],
        status=Status(
            StatusCode.UNSET if span.error is None else StatusCode.ERROR, _text(span.error or "") or None
        ),
        start_time=span.start,
        end_time=span.end,
        instrumentation_scope=SCOPE,
    )


def _events(span: SpanData) -> BoundedList[Event]:
    events = BoundedList[Event].from_seq(
        MAX_EVENTS, [Event(_text(each.name), _attributes(each.attributes), each.at) for each in span.events]
    )
    events.dropped += span.left_out
    return events


def _log_record(log: LogData, resource: Resource) -> ReadableLogRecord:
    of = trace.SpanContext(
        int(log.trace, 16), int(log.span, 16), False, trace.TraceFlags(trace.TraceFlags.SAMPLED)
    )
    record = LogRecord(
        timestamp=log.at,
        observed_timestamp=log.at,
        context=trace.set_span_in_context(trace.NonRecordingSpan(of)),
        severity_number=SeverityNumber.ERROR if log.is_error else SeverityNumber.UNSPECIFIED,
        body=_text(log.text),
        attributes={} if log.is_error else {"log.iostream": "stderr"},
    )
    return ReadableLogRecord(record, resource, SCOPE)


def _resource_metrics(
    resource: Resource, metrics: dict[str, dict[object, HistogramDataPoint]]
) -> ResourceMetrics:
    made = []
    for name, points in metrics.items():
        histogram = Histogram([*points.values()], AggregationTemporality.CUMULATIVE)
        made.append(Metric(name, None, "s", histogram))
    return ResourceMetrics(resource, [ScopeMetrics(SCOPE, made, "")], "")


def _point(histogram: HistogramData, now: int) -> HistogramDataPoint:
    return HistogramDataPoint(
        _attributes(histogram.attributes),
        histogram.start,
        now,
        sum(histogram.counts),
        histogram.total,
        histogram.counts,
        BUCKETS,
        histogram.least,
        histogram.most,
    )


def _attributes(values: Attributes) -> dict[str, Any]:
    return {key: _text(value) if isinstance(value, str) else value for key, value in values.items()}


def _text(text: str) -> str:
    """Return a text that UTF-8 can encode, not longer than LONGEST."""
    return (
        (text if len(text) <= LONGEST else f"{text[:LONGEST]}…").encode("utf-8", "backslashreplace").decode()
    )
