"""OTLP/JSON, decoded by OpenTelemetry's own message classes."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
"""Members that OTLP/JSON writes as hex digits, unlike the JSON of Protocol Buffers, and their length in bytes."""


def decoded(text: str | bytes) -> ExportTraceServiceRequest:
    """Return the request; fail for a member that the message classes do not define."""
    return json_format.ParseDict(_with_base64(json.loads(text)), ExportTraceServiceRequest())


def spans(text: str | bytes) -> list[tuple[str, Span]]:
    """Return all spans, each with the name of its service."""
    return [
        (attributes(each.resource.attributes)["service.name"], span)
        for each in decoded(text).resource_spans
        for scope in each.scope_spans
        for span in scope.spans
    ]


def attributes(pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    pair: KeyValue
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        assert kind is not None
        assert pair.key not in found
        found[pair.key] = getattr(pair.value, kind)
    return found


def _with_base64(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_base64(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _id(key, item) if key in IDS else _with_base64(item) for key, item in value.items()}


def _id(key: str, digits: str) -> str:
    data = bytes.fromhex(digits)
    assert len(data) == IDS[key]
    assert any(data), "of zeros alone it would be none"
    return b64encode(data).decode()
