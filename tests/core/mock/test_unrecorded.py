"""Handshakes and misses that were not recorded."""

from __future__ import annotations

from mcpspy.core.mock import unrecorded
from mcpspy.core.mock.recordings import DIFFERENCES
from tests.core.mock.talking import Talk, modern


def test_a_missing_handshake_is_inferred_from_the_methods_in_the_recording() -> None:
    talk = Talk("weather").call(1).client(id=2, method="resources/subscribe", params={"uri": "x:"})
    talk.client(id=3, method="completion/complete", params={})
    said = talk.live().initialize("2025-06-18")["result"]
    assert said["protocolVersion"] == "2025-06-18"
    assert said["serverInfo"]["name"] == "weather"
    assert said["capabilities"] == {"tools": {}, "resources": {"subscribe": True}, "completions": {}}
    assert talk.live().initialize("1999")["result"]["protocolVersion"] == "2025-11-25"


def test_a_client_with_the_other_handshake_gets_the_recorded_name_of_the_server() -> None:
    talk = Talk().client(id=1, method="server/discover", params={"_meta": modern()})
    info = {"io.modelcontextprotocol/serverInfo": {"name": "weather", "version": "3"}}
    talk.server(id=1, result={"supportedVersions": ["2026-07-28"], "capabilities": {}, "_meta": info})
    assert talk.recordings().server is not None
    assert unrecorded.initialized(talk.recordings())["serverInfo"] == {"name": "weather", "version": "3"}


def test_a_discover_response_is_inferred_for_a_server_that_was_never_probed() -> None:
    recordings = Talk().client(id=1, method="tools/list", params={"_meta": modern()}).recordings()
    said = unrecorded.discovered(recordings)
    assert said["supportedVersions"] == ["2026-07-28"]
    assert said["capabilities"] == {"tools": {}}


def test_a_miss_names_the_three_nearest_requests_and_their_differences() -> None:
    talk = Talk().call(1, n=1, m=1).call(2, n=2, m=1).call(3, n=3, m=3).call(4, "other", n=9, m=1)
    talk.client(id=5, method="prompts/get", params={"name": "echo"}).server(id=5, result={})
    live = talk.live()
    (said,) = live.call(1, n=9, m=1)
    line = "not recorded: tools/call echo; nearest: tools/call echo differs at /params/arguments/n: recorded 1, sent 9"
    assert said["error"]["message"] == f"mcpspy mock: {line}"
    assert said["error"]["data"]["nearest"] == [
        {"method": "tools/call", "about": "echo", "differs": ["/params/arguments/n"]},
        {"method": "tools/call", "about": "echo", "differs": ["/params/arguments/n"]},
        {"method": "tools/call", "about": "echo", "differs": ["/params/arguments/n", "/params/arguments/m"]},
    ]
    assert live.session.complaints() == [line]


def test_a_miss_names_no_other_tool_if_the_tool_was_recorded() -> None:
    live = Talk().call(1, "other", n=9).call(2, n={"deep": [1]}, m=None).live()
    (said,) = live.call(1, n=9, o=2)
    assert said["error"]["message"].endswith(
        'tools/call echo differs at /params/arguments/n: recorded {"deep": [1]}, sent 9 (and at 2 more)'
    )
    assert [near["about"] for near in said["error"]["data"]["nearest"]] == ["echo"]


def test_a_miss_shortens_long_values_and_skips_redacted_ones() -> None:
    live = Talk().call(1, key="[redacted:3f9c01ab]", text="a" * 200).live()
    (said,) = live.call(1, key="s3cret", text="b")
    message = said["error"]["message"]
    assert message.endswith(f'differs at /params/arguments/text: recorded "{"a" * 78}…, sent "b"')
    assert "s3cret" not in message
    (said,) = live.call(2, key="s3cret")
    assert said["error"]["message"].endswith("…, sent nothing")


def test_a_miss_redacts_secrets_of_the_client() -> None:
    (said,) = Talk().call(1, text="a").live().call(1, text="a", api_key="s3cret-4711")
    assert said["error"]["message"].endswith('/params/arguments/api_key: recorded nothing, sent "[redacted]"')


def test_the_only_difference_to_another_tool_is_its_name() -> None:
    (said,) = Talk().call(1, "echo").live().call(1, "ecko")
    assert said["error"]["message"].endswith('differs at /params/name: recorded "echo", sent "ecko"')


def test_the_error_for_a_modern_request_to_a_legacy_recording_names_the_revision() -> None:
    talk = Talk().client(id=1, method="tools/call", params={"name": "echo"}).server(id=1, result={})
    (said,) = talk.live().ask(1, "tools/call", name="echo", _meta=modern())
    assert said["error"]["data"]["nearest"][0]["differs"] == ["/params/_meta"]


def test_the_error_for_an_unrecorded_method_names_the_nearest_request() -> None:
    (said,) = Talk().call(1).live().ask(1, "prompts/get", name="echo")
    near = {"method": "tools/call", "about": "echo", "differs": ["/method"]}
    assert said["error"]["data"] == {"mcpspy": "not recorded", "nearest": [near]}


def test_a_recording_without_requests_has_no_nearest_request() -> None:
    live = Talk().handshake().live()
    (said,) = live.call(1)
    assert said["error"]["data"]["nearest"] == []
    assert live.session.complaints() == ["not recorded: tools/call echo"]


def test_of_many_differences_the_first_are_named() -> None:
    (said,) = Talk().call(1, n=list(range(100))).live().call(1, n=list(range(1, 101)))
    assert len(said["error"]["data"]["nearest"][0]["differs"]) == DIFFERENCES
