"""A receiver of OTLP over HTTP and gRPC, from OpenTelemetry's own messages and services.

`python -m tests.otlp_receiver PORT GRPC_PORT FILE [SECONDS]` is a process that appends what arrives to a file before it
acknowledges it, optionally after a pause.
"""

from __future__ import annotations

import json
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as traces_grpc

REQUESTS: dict[str, Any] = {
    "traces": traces.ExportTraceServiceRequest,
    "metrics": metrics.ExportMetricsServiceRequest,
    "logs": logs.ExportLogsServiceRequest,
}
RESPONSES: dict[str, Any] = {
    "traces": traces.ExportTraceServiceResponse,
    "metrics": metrics.ExportMetricsServiceResponse,
    "logs": logs.ExportLogsServiceResponse,
}

Item = tuple[dict[str, Any], Any]
"""The attributes of a resource, and a span, a log record, or a metric."""


class Answer:
    """A response of the receiver, instead of an acknowledgement."""

    def __init__(
        self, status: int = 200, code: grpc.StatusCode | None = None, body: bytes = b"", seconds: float = 0
    ) -> None:
        self.status = status
        self.code = code
        self.body = body
        self.seconds = seconds


class Receiver:
    """Listens on loopback and keeps what arrives; with a certificate and its key, over TLS."""

    def __init__(self, port: int = 0, grpc_port: int = 0, tls: tuple[Path, Path] | None = None) -> None:
        self.items: dict[str, list[Item]] = {signal: [] for signal in REQUESTS}
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[str, list[Item]], Answer | None] = lambda _, __: None
        """Called with the signal and the items of each request; None acknowledges them."""
        self.changed = threading.Condition()
        self._http = _server(self, port)
        self.port = self._http.server_address[1]
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._grpc = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        add: Any
        for signal, add in (
            ("traces", traces_grpc.add_TraceServiceServicer_to_server),
            ("metrics", metrics_grpc.add_MetricsServiceServicer_to_server),
            ("logs", logs_grpc.add_LogsServiceServicer_to_server),
        ):
            add(_Service(self, signal), self._grpc)
        address = f"127.0.0.1:{grpc_port}"
        if tls is None:
            bound = self._grpc.add_insecure_port(address)
        else:
            certificate, key = tls
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate, key)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
            pair = (key.read_bytes(), certificate.read_bytes())
            bound = self._grpc.add_secure_port(address, grpc.ssl_server_credentials([pair]))
        self.grpc_url = f"{scheme}://127.0.0.1:{bound}"
        self._grpc.start()
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def take(self, signal: str, request: Any, headers: dict[str, str]) -> Answer:
        items = list(items_of(signal, request))
        answer = self.answer(signal, items)
        with self.changed:
            self.headers.append(headers)
            if answer is None or (answer.status == 200 and answer.code is None):
                self.items[signal] += items
            self.changed.notify_all()
        answer = answer or Answer()
        time.sleep(answer.seconds)
        return answer

    def until(self, condition: Callable[[], object], bound: float = 20.0) -> None:
        """Wait until a condition on the items holds."""
        with self.changed:
            assert self.changed.wait_for(condition, bound), "the condition did not hold in time"

    @property
    def spans(self) -> list[Any]:
        return [span for _, span in self.items["traces"]]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._grpc.stop(None).wait(5)


def items_of(signal: str, request: Any) -> Iterator[Item]:
    """Yield the items of a request, each with its resource."""
    scopes, items = {
        "traces": ("scope_spans", "spans"),
        "metrics": ("scope_metrics", "metrics"),
        "logs": ("scope_logs", "log_records"),
    }[signal]
    of = {"traces": "resource_spans", "metrics": "resource_metrics", "logs": "resource_logs"}[signal]
    for each in getattr(request, of):
        resource = plain(each.resource.attributes)
        for scope in getattr(each, scopes):
            for item in getattr(scope, items):
                yield resource, item


def plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def _server(receiver: Receiver, port: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            signal = self.path.removeprefix("/v1/")
            answer = Answer(404, body=b"no such\npath")
            if signal in REQUESTS and self.headers["Content-Type"] == "application/x-protobuf":
                try:
                    request = REQUESTS[signal].FromString(body)
                    answer = receiver.take(signal, request, dict(self.headers))
                except DecodeError as error:
                    answer = Answer(400, body=str(error).encode())
            with suppress(ConnectionError):  # The client waits no longer.
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    return server


class _Service:
    def __init__(self, receiver: Receiver, signal: str) -> None:
        self._receiver = receiver
        self._signal = signal

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - a name of the service.
        headers = {each.key: each.value for each in context.invocation_metadata()}
        answer = self._receiver.take(self._signal, request, headers)
        if answer.code is not None:
            context.abort(answer.code, answer.body.decode())
        return RESPONSES[self._signal]()


def summary(signal: str, item: Item) -> dict[str, Any]:
    """Return what the soak test compares: ids and content of spans, text of logs, counts of metrics."""
    resource, each = item
    instance = resource.get("service.instance.id")
    if signal == "traces":
        return {
            "span": each.span_id.hex(),
            "all": each.SerializeToString(deterministic=True).hex(),
            "of": instance,
        }
    if signal == "logs":
        return {"log": each.body.string_value, "of": instance}
    count = sum(point.count for point in each.histogram.data_points)
    return {"metric": each.name, "count": count, "of": instance}


def main(port: int, grpc_port: int, path: str, seconds: float = 0) -> None:
    receiver = Receiver(port, grpc_port)
    lock = threading.Lock()
    with open(path, "a", encoding="utf-8") as file:

        def keep(signal: str, items: list[Item]) -> Answer:
            time.sleep(seconds)
            with lock:
                file.write("".join(f"{json.dumps(summary(signal, item))}\n" for item in items))
                file.flush()
            return Answer()

        receiver.answer = keep
        print(receiver.url, receiver.grpc_url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], *map(float, sys.argv[4:]))
