"""The state negotiated with an HTTP server, and the headers that follow from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.protocol.message import Result, read_frame
from mcpspy.core.recording.decode import Frame
from mcpspy.io.client.http_state import HttpState

MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def message(**members: Any) -> Any:
    (found,) = read_frame(Frame(0.0, "client", json.dumps({"jsonrpc": "2.0", **members}).encode()))
    return found


INITIALIZE = message(id=1, method="initialize", params={"protocolVersion": "2025-11-25"})
CALL = message(id=2, method="tools/call", params={"name": "t"})
NEW_CALL = message(id=3, method="tools/call", params={"name": "t", **MODERN})
ANSWER = message(id=4, result={})


def own(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower().startswith("mcp-")}


@pytest.fixture
def agreed() -> HttpState:
    state = HttpState({"X-Key": "k"})
    assert state.begins(INITIALIZE)
    assert own(state.headers(INITIALIZE)) == {}
    result = message(id=1, result={"protocolVersion": "2025-06-18"})
    assert isinstance(result, Result)
    state.learn(result, "initialize")
    state.session, state.stream = "s", "1"
    return state


def test_after_a_handshake_everything_names_the_session_and_the_revision(agreed: HttpState) -> None:
    for each in (CALL, ANSWER, None):
        if each is not None:
            assert not agreed.begins(each)
        headers = agreed.headers(each)
        assert own(headers) == {"Mcp-Session-Id": "s", "MCP-Protocol-Version": "2025-06-18"}
        assert headers["X-Key"] == "k"
        assert ("Content-Type" in headers) == (each is not None)


def test_another_handshake_begins_again(agreed: HttpState) -> None:
    assert agreed.begins(INITIALIZE)

    assert (agreed.session, agreed.stream) == (None, None)
    assert own(agreed.headers(INITIALIZE)) == {}


def test_a_request_of_2026_07_28_speaks_for_itself_and_one_without_a_revision_does_not(
    agreed: HttpState,
) -> None:
    agreed.begins(NEW_CALL)
    modern = [agreed.is_modern]
    assert own(agreed.headers(NEW_CALL)) == {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "t",
    }

    agreed.begins(CALL)
    assert [*modern, agreed.is_modern] == [True, False]
    assert own(agreed.headers(CALL)) == {"Mcp-Session-Id": "s"}


def test_a_notification_of_2026_07_28_has_its_method_and_the_last_revision_as_headers(
    agreed: HttpState,
) -> None:
    agreed.begins(NEW_CALL)

    assert own(agreed.headers(message(method="notifications/progress", params={}))) == {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "notifications/progress",
    }


def test_http_with_sse_has_none_of_these_headers(agreed: HttpState) -> None:
    agreed.is_sse = True

    assert own(agreed.headers(CALL)) == {}
    assert agreed.begins(INITIALIZE)
    assert agreed.stream == "1"


def test_a_header_given_by_the_user_replaces_the_default() -> None:
    assert HttpState({"User-Agent": "me"}).headers(None)["User-Agent"] == "me"
