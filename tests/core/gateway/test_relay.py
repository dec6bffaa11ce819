"""The session of one client of a live server: streams, cancellations, and what is not forwarded."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.gateway.relay import RelaySession


def written(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def call(session: RelaySession, id: Any = 1) -> None:  # noqa: A002
    session.receive(written(id=id, method="tools/call", params={"_meta": {"progressToken": f"t{id}"}}), 0.0)


def carriers(session: RelaySession, **members: Any) -> list[bytes | None]:
    """Return the requests whose streams carry a message of the server."""
    session.receive_from_server(written(**members), 0.0)
    return [message.request for message in session.take(0.0)]


def test_progress_is_on_the_stream_of_its_call_and_a_change_on_none() -> None:
    session = RelaySession()
    call(session, 1)
    call(session, 2)
    progress = {"method": "notifications/progress", "params": {"progressToken": "t1", "progress": 1}}
    assert carriers(session, **progress) == [b"1"]
    assert carriers(session, id=9, method="elicitation/create", params={}) == [b"2"]
    assert carriers(session, method="notifications/tools/list_changed") == [None]
    assert carriers(session, id=1, result={}) == [b"1"]
    assert not session.complaints()


def test_the_revision_is_that_of_the_response_to_initialize() -> None:
    session = RelaySession()
    session.receive(written(id=0, method="initialize", params={}), 0.0)
    assert (session.waits, session.revision) == (True, None)
    carriers(session, id=0, result={"protocolVersion": "2025-06-18"})
    assert (session.waits, session.revision) == (False, "2025-06-18")


def test_a_late_response_to_a_cancelled_request_is_dropped_without_a_report() -> None:
    session = RelaySession()
    call(session)
    session.receive(written(method="notifications/cancelled", params={"requestId": 1}), 0.0)
    assert session.cancelled == [b"1"]
    assert carriers(session, id=1, error={"code": 0, "message": "Request cancelled"}) == []
    assert session.complaints() == []


def test_messages_that_are_not_forwarded_are_reported() -> None:
    session = RelaySession()
    session.receive_from_server(b"listening on stdio", 0.0)
    session.receive_from_server(b"", 0.0)
    session.receive_from_server(written(id=4, result={}), 0.0)
    session.receive(written(id=5, result={}), 0.0)
    first, second, third = session.complaints()
    assert "not a message" in first
    assert first.endswith("listening on stdio")
    assert second == "the server's response to unknown request id 4 is not forwarded"
    assert third == "a response to unknown request id 5 is not forwarded"
