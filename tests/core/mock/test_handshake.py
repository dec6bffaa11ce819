"""A recorded server introduces itself, in every era."""

from __future__ import annotations

import json

from mcpspy.core.mock.handshake import is_enough
from mcpspy.core.mock.recordings import Library
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame
from tests.core.mock.talking import Talk, modern, scripted

PROBE = {"_meta": modern()}


def legacy() -> Talk:
    return Talk().handshake().call(1)


def modern_only() -> Talk:
    return Talk().client(id=1, method="tools/list", params=PROBE).server(id=1, result={"tools": []})


def test_any_client_gets_the_recorded_handshake() -> None:
    said = legacy().live().initialize(sampling={})
    assert said["id"] == "init"
    assert said["result"]["serverInfo"]["name"] == "tested"


def test_another_revision_is_answered_with_a_recorded_one() -> None:
    live = legacy().live()
    assert live.initialize("2024-11-05")["result"]["protocolVersion"] == "2025-11-25"
    both = Talk().handshake("2025-03-26").handshake("2025-11-25").live()
    assert both.initialize("2025-03-26")["result"]["protocolVersion"] == "2025-03-26"
    assert both.initialize("2099-01-01")["result"]["protocolVersion"] == "2025-11-25"


def test_a_probe_of_a_legacy_recording_is_refused_at_once() -> None:
    (said,) = legacy().live(speed=1.0).ask("p", "server/discover", **PROBE)
    assert said["error"]["code"] == -32601


def test_a_handshake_with_a_modern_recording_is_refused_with_what_it_speaks() -> None:
    error = modern_only().live().initialize()["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}


def test_a_modern_request_in_a_revision_that_was_not_recorded_is_refused_likewise() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    (said,) = modern_only().live().ask(1, "tools/list", _meta=meta)
    assert said["error"]["code"] == -32022
    assert said["error"]["data"]["supported"] == ["2026-07-28"]


def test_a_modern_recording_answers_a_probe_that_was_never_made() -> None:
    (said,) = modern_only().live().ask("p", "server/discover", **PROBE)
    assert said["result"]["supportedVersions"] == ["2026-07-28"]


def test_a_recorded_probe_is_answered_as_it_was() -> None:
    talk = Talk().client(id=1, method="server/discover", params=PROBE)
    talk.server(id=1, result={"supportedVersions": ["2026-07-28"], "capabilities": {"x": 1}})
    (said,) = talk.live().ask("p", "server/discover", _meta=modern(traceparent="00"))
    assert said["result"]["capabilities"] == {"x": 1}


def test_a_handshake_that_was_refused_is_refused_again() -> None:
    talk = Talk().client(id=1, method="initialize", params={})
    talk.server(id=1, error={"code": -32603, "message": "not today"})
    assert talk.live().initialize()["error"]["message"] == "not today"


def test_a_legacy_recording_without_a_handshake_gets_one() -> None:
    assert Talk("weather").call(1).live().initialize()["result"]["serverInfo"]["name"] == "weather"


def request(method: str, **params: object) -> Request:
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    (message,) = read_frame(Frame(0.0, "client", data))
    assert isinstance(message, Request)
    return message


PROBES = request("server/discover", **PROBE)


def test_how_a_recording_begins_answers_only_what_all_of_it_would_answer_so() -> None:
    begun = Library([scripted(legacy().session).shelf])
    assert is_enough(begun, request("initialize", protocolVersion="2025-11-25"))
    assert not is_enough(begun, request("initialize", protocolVersion="2025-03-26"))
    assert not is_enough(begun, request("initialize"))
    assert is_enough(begun, PROBES), "a client that shook hands over stdio never probes"
    probed = Talk().client(id=1, method="server/discover", params=PROBE).server(id=1, result={})
    assert not is_enough(Library([scripted(probed.session).shelf]), PROBES), "more of it may follow"
    assert is_enough(Library([scripted(probed.call(2).session).shelf]), PROBES)
    assert not is_enough(Library([scripted(modern_only().session).shelf]), PROBES)
    for version in ("2025-11-25", "2025-03-26"):
        assert is_enough(legacy().library(), request("initialize", protocolVersion=version))
