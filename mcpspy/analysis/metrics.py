"""Prometheus metrics of sessions: durations of operations and sessions, messages, live sessions.

Names and buckets follow the semantic conventions of OpenTelemetry (semantic-conventions-genai, docs/gen-ai/mcp.md,
status Development), as Prometheus writes them; labels beyond them are `server`, the name of the session, and `sender`.
A peer may send any name, so the values of each label are limited.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from mcpspy.analysis.export.otlp import BUCKETS, OTHER, LimitedNames
from mcpspy.analysis.export.otlp_spans import EXIT_CODE, error_attributes
from mcpspy.core.protocol.message import Failure, Message, Notification, Request, Result
from mcpspy.core.protocol.spec import METHODS, other
from mcpspy.core.recording.decode import Entry, Header, Note
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change
from mcpspy.core.session.streaming import FinalOutcomes, StreamingSession

LABELS = ["server", "sender", "mcp_method_name", "gen_ai_tool_name", "error_type"]

MOST_SERVERS = 200
MOST_TOOLS = 200
"""Different tools of one server."""
MOST_ERRORS = 50
"""Different error codes of one server."""


class PrometheusMetrics:
    """The metrics of all sessions of one process."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # Series that Prometheus does not need.
        self.registry = CollectorRegistry()
        self.operations = Histogram(
            "mcp_client_operation_duration_seconds",
            "Time from a request to its response, without the time for which mcpspy held it",
            LABELS,
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.sessions = Histogram(
            "mcp_client_session_duration_seconds",
            "Time from the start of a session to its end",
            ["server", "network_transport", "error_type"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.errors = Counter(
            "mcpspy_errors",
            "Requests that failed, and errors that settled no request",
            LABELS,
            registry=self.registry,
        )
        self.unanswered = Counter(
            "mcpspy_requests_unanswered",
            "Requests without an outcome when the session ended",
            LABELS,
            registry=self.registry,
        )
        self.given_up = Counter(
            "mcpspy_requests_given_up",
            "Requests without a response that are not unanswered: cancelled, dropped, abandoned, or unknown",
            [*LABELS[:-1], "outcome"],
            registry=self.registry,
        )
        self.injected = Counter(
            "mcpspy_messages_injected",
            "Requests and notifications that viewers sent, which no other metric of requests counts",
            ["server", "sender"],
            registry=self.registry,
        )
        self.messages = Counter(
            "mcpspy_messages", "Messages in both directions", ["server", "sender"], registry=self.registry
        )
        self.live = Gauge(
            "mcpspy_sessions_live", "Sessions that are being recorded", ["server"], registry=self.registry
        )
        self._servers = LimitedNames(MOST_SERVERS)
        self._tools: dict[str, LimitedNames] = {}
        self._errors: dict[str, LimitedNames] = {}

    def text(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        return generate_latest(self.registry)

    def server(self, header: Header) -> str:
        return self._servers.limited(header.name or OTHER)

    def tool(self, server: str, name: str) -> str:
        return self._tools.setdefault(server, LimitedNames(MOST_TOOLS)).limited(name)

    def error(self, server: str, code: str) -> str:
        return self._errors.setdefault(server, LimitedNames(MOST_ERRORS)).limited(code)


class SessionMetrics:
    """Adds the entries of one session to the metrics. Keeps the open requests, and no messages."""

    def __init__(self, metrics: PrometheusMetrics, header: Header) -> None:
        self._metrics = metrics
        self._server = metrics.server(header)
        self._transport = "tcp" if header.upstream is not None else "pipe"
        self._session = StreamingSession(header)
        self._outcomes = FinalOutcomes()
        self._last = 0.0
        self._exit: Note | None = None
        metrics.live.labels(self._server).inc()

    def add(self, entry: Entry) -> None:
        for change in self._session.add(entry):
            what = change.what
            self._last = max(self._last, what.at)
            if isinstance(what, Message):
                self._metrics.messages.labels(self._server, what.side).inc()
                if isinstance(what, Request | Notification) and what.frame.by is not None:
                    self._metrics.injected.labels(self._server, what.side).inc()
            elif isinstance(what, Note) and what.kind == "exit":
                self._exit = what
            self._count_stray(change)
            for exchange in self._outcomes.take(change):
                self._observe(exchange)
        for exchange in self._outcomes.overdue(self._last):
            self._observe(exchange)

    def end(self, *, is_over: bool = True) -> None:
        """Take the session out of the live ones, and observe its end if it is over."""
        self._metrics.live.labels(self._server).dec()
        if not is_over:
            return
        self._session.end()
        for exchange in self._outcomes.end():
            self._observe(exchange)
        code = None if self._exit is None else self._exit.fields.get("code")
        failed = "" if self._exit is None or code in (0, None) else EXIT_CODE
        self._metrics.sessions.labels(self._server, self._transport, failed).observe(self._last)

    def _count_stray(self, change: Change) -> None:
        """Count an error that settles no request. Its sender is that of the request, as of all others."""
        what, exchange = change.what, change.exchange
        if not isinstance(what, Result | Failure) or not change.is_error:
            return
        if exchange is not None and what is exchange.answer:
            return
        kind = (what.code_text or OTHER) if isinstance(what, Failure) else "tool_error"
        code = self._metrics.error(self._server, kind)
        self._metrics.errors.labels(self._server, other(what.side), "", "", code).inc()

    def _observe(self, exchange: Exchange) -> None:
        request, metrics, judged = exchange.request, self._metrics, outcome.of(exchange.state)
        if not exchange.is_counted:
            return
        kind = error_attributes(exchange)[0].get("error.type")
        tool = request.subject or "" if request.method == "tools/call" else ""
        labels = (
            self._server,
            request.side,
            request.method if request.method in METHODS else OTHER,
            metrics.tool(self._server, tool),
            metrics.error(self._server, str(kind or "")),
        )
        if exchange.latency is not None:
            metrics.operations.labels(*labels).observe(exchange.latency)
        if judged.failed:
            metrics.errors.labels(*labels).inc()
        elif judged.unanswered:
            metrics.unanswered.labels(*labels).inc()
        elif exchange.answer is None and not exchange.is_subscription:
            metrics.given_up.labels(*labels[:-1], exchange.state.value).inc()
