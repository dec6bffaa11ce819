"""Resource attributes, and values in OTLP/JSON."""

from __future__ import annotations

from google.protobuf import json_format
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from mcpspy.analysis.export.otlp_spans import attributes, resource, scope
from mcpspy.core.protocol.peers import Peer
from tests.analysis.export.otlp_decoded import attributes as read
from tests.analysis.export.sessions import HEADER


def test_every_type_of_value_is_read_back() -> None:
    values = attributes({"s": "é", "i": 1 << 40, "big": 1 << 64, "b": True, "l": ["a", "b"]})
    found = read(json_format.ParseDict({"attributes": values}, Resource()).attributes)
    array = found.pop("l")
    assert values[1] == {"key": "i", "value": {"intValue": str(1 << 40)}}, "64 bits are text in proto3's JSON"

    assert found == {"s": "é", "i": 1 << 40, "big": str(1 << 64), "b": True}
    assert [each.string_value for each in array.values] == ["a", "b"]


def test_the_service_name_is_the_declared_name_of_a_side() -> None:
    def named(peer: Peer | None, side: str) -> dict[str, object]:
        return read(
            json_format.ParseDict(
                {"attributes": attributes({**resource(HEADER, peer, side)})}, Resource()
            ).attributes
        )

    assert named(Peer("host", "2"), "client") == {
        "service.name": "host",
        "service.version": "2",
        "service.instance.id": "ab12cd34",
        "mcpspy.recording.id": "ab12cd34",
        "mcpspy.recording.name": "weather",
    }
    assert named(None, "client")["service.name"] == "client"
    assert named(None, "server")["service.name"] == "weather"
    assert scope()["name"] == "mcpspy"
