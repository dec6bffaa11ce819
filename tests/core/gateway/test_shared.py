"""Clients that share one server: each gets its own messages back."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.gateway.shared import SharedServer

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

A, B = 1, 2


def written(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def sent(server: SharedServer, client: int, **members: Any) -> list[Any]:
    """Return the messages for the server that result from one of a client."""
    to_server, _ = server.from_client(client, written(**members))
    return [json.loads(each) for each in to_server]


def got(server: SharedServer, **members: Any) -> list[tuple[int, Any]]:
    """Return the messages for clients that result from one of the server."""
    return [(client, json.loads(data)) for client, data in server.from_server(written(**members))]


def call(server: SharedServer, client: int, id: Any = 1, **meta: Any) -> Any:  # noqa: A002
    (message,) = sent(server, client, id=id, method="tools/call", params={"name": "t", "_meta": meta})
    return message


def test_equal_ids_of_two_clients_differ_for_the_server_and_return_unchanged() -> None:
    server = SharedServer()
    first, second = call(server, A, "x"), call(server, B, "x")
    assert first["id"] != second["id"]
    assert got(server, id=second["id"], result={}) == [(B, {"jsonrpc": "2.0", "id": "x", "result": {}})]
    assert got(server, id=first["id"], result={}) == [(A, {"jsonrpc": "2.0", "id": "x", "result": {}})]
    assert got(server, id=first["id"], result={}) == []


def test_a_client_is_notified_only_of_changes_of_lists_that_its_handshake_had() -> None:
    shown: list[bytes] = []
    server = SharedServer(lambda: shown[0] if shown else None)
    (first,) = sent(server, A, id=0, method="initialize", params={})
    got(server, id=first["id"], result={"capabilities": {"tools": {}}})
    shown.append(written(id=0, result={"capabilities": {"tools": {}, "prompts": {}}}))
    _, (data,) = server.from_client(B, written(id="b", method="initialize", params={}))
    assert json.loads(data) == {**json.loads(shown[0]), "id": "b"}
    changed = [got(server, method=f"notifications/{kind}/list_changed") for kind in ("tools", "prompts")]
    assert [[client for client, _ in found] for found in changed] == [[A, B], [B]]


def test_progress_reaches_the_client_of_the_call_with_its_own_token() -> None:
    server = SharedServer()
    call(server, A, 1, progressToken=7)
    second = call(server, B, 1, progressToken="p")
    token = second["params"]["_meta"]["progressToken"]
    found = got(server, method="notifications/progress", params={"progressToken": token, "progress": 1})
    assert [(client, message["params"]["progressToken"]) for client, message in found] == [(B, "p")]
    assert got(server, method="notifications/progress", params={"progressToken": 99, "progress": 1}) == []


def test_a_cancellation_names_the_request_that_the_server_knows() -> None:
    server = SharedServer()
    first = call(server, A, 5)
    second = call(server, B, 5)
    (message,) = sent(server, B, method="notifications/cancelled", params={"requestId": 5})
    assert message["params"]["requestId"] == second["id"] != first["id"]
    assert sent(server, B, method="notifications/cancelled", params={"requestId": 5}) == []


def test_the_server_is_initialized_once_and_every_client_gets_the_result() -> None:
    server = SharedServer()
    (first,) = sent(server, A, id=0, method="initialize", params={})
    assert sent(server, B, id="b", method="initialize", params={}) == []
    result = {"protocolVersion": "2025-11-25"}
    found = got(server, id=first["id"], result=result)
    assert [(client, message["id"], message["result"]) for client, message in found] == [
        (A, 0, result),
        (B, "b", result),
    ]
    assert len(sent(server, A, method="notifications/initialized")) == 1
    assert sent(server, B, method="notifications/initialized") == []
    to_server, to_client = server.from_client(3, written(id=9, method="initialize", params={}))
    assert to_server == []
    assert [json.loads(each)["id"] for each in to_client] == [9]


def test_a_request_of_the_server_goes_to_the_client_of_the_newest_call_and_only_its_response_returns() -> (
    None
):
    server = SharedServer()
    call(server, A)
    call(server, B)
    assert [client for client, _ in got(server, id="q", method="roots/list")] == [B]
    assert sent(server, A, id="q", result={"roots": []}) == []
    assert sent(server, B, id="q", result={"roots": []}) == [
        {"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}
    ]


def test_a_notification_goes_to_the_only_caller_or_to_all() -> None:
    server = SharedServer()
    for client in (A, B):
        sent(server, client, method="notifications/roots/list_changed")
    log = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}
    assert [client for client, _ in got(server, **log)] == [A, B]
    call(server, A)
    assert [client for client, _ in got(server, **log)] == [A]
    assert {client for client, _ in got(server, method="notifications/tools/list_changed")} == {A, B}


def test_a_subscription_has_the_id_that_its_client_chose() -> None:
    server = SharedServer()
    (first,) = sent(server, A, id="s", method="subscriptions/listen", params={"_meta": {}})
    for spelled in (first["id"], str(first["id"])):
        ((client, message),) = got(
            server, method="notifications/tools/list_changed", params={"_meta": {SUBSCRIPTION: spelled}}
        )
        assert (client, message["params"]["_meta"][SUBSCRIPTION]) == (A, "s")


def test_open_requests_of_a_client_that_leaves_are_cancelled_or_answered() -> None:
    server = SharedServer()
    first = call(server, A)
    got(server, id="q", method="roots/list")
    left = [json.loads(each) for each in server.leave(A)]
    assert left[0]["params"] == {"requestId": first["id"]}
    assert (left[1]["id"], left[1]["error"]["code"]) == ("q", -32000)
    assert got(server, id=first["id"], result={}) == []
    assert got(server, method="notifications/tools/list_changed") == []
