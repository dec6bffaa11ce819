"""What is said of a request that was not recorded."""

from __future__ import annotations

from mcpspy.core.mock.responses import DIFFERENCES
from tests.core.mock.talking import Talk, modern


def test_a_miss_names_the_three_nearest_and_where_they_differ() -> None:
    talk = Talk().call(1, n=1, m=1).call(2, n=2, m=1).call(3, n=3, m=3).call(4, "other", n=9, m=1)
    talk.client(id=5, method="prompts/get", params={"name": "echo"}).server(id=5, result={})
    live = talk.live()
    (said,) = live.call(1, n=9, m=1)
    assert said["error"]["message"] == "mcpspy mock: not recorded: tools/call echo"
    assert said["error"]["data"]["nearest"] == [
        {"method": "tools/call", "about": "echo", "differs": ["/params/arguments/n"]},
        {"method": "tools/call", "about": "echo", "differs": ["/params/arguments/n"]},
        {"method": "tools/call", "about": "echo", "differs": ["/params/arguments/n", "/params/arguments/m"]},
    ]
    (complaint,) = live.conversation.complaints()
    assert (
        "not recorded: tools/call echo; nearest: tools/call echo differs at /params/arguments/n; "
        in complaint
    )


def test_a_modern_request_to_a_legacy_recording_is_told_that_it_is_the_revision() -> None:
    talk = Talk().client(id=1, method="tools/call", params={"name": "echo"}).server(id=1, result={})
    (said,) = talk.live().ask(1, "tools/call", name="echo", _meta=modern())
    assert said["error"]["data"]["nearest"][0]["differs"] == ["/params/_meta"]


def test_a_method_that_was_never_used_is_told_which_were() -> None:
    (said,) = Talk().call(1).live().ask(1, "prompts/get", name="echo")
    near = {"method": "tools/call", "about": "echo", "differs": ["/method"]}
    assert said["error"]["data"] == {"mcpspy": "not recorded", "nearest": [near]}


def test_of_a_recording_without_requests_nothing_is_near() -> None:
    live = Talk().handshake().live()
    (said,) = live.call(1)
    assert said["error"]["data"]["nearest"] == []
    assert live.conversation.complaints() == ["not recorded: tools/call echo"]


def test_of_many_differences_the_first_are_named() -> None:
    (said,) = Talk().call(1, n=list(range(100))).live().call(1, n=list(range(1, 101)))
    assert len(said["error"]["data"]["nearest"][0]["differs"]) == DIFFERENCES
