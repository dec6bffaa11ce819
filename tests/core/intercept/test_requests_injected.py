"""Injected requests."""

from __future__ import annotations

from typing import Any

from mcpspy.core.intercept.actions import Inject, Notify
from mcpspy.core.intercept.commands import SendCommand
from mcpspy.core.intercept.requests import InjectedRequests, PendingInjection
from mcpspy.core.protocol.message import Request, loads
from tests.core.intercept.interceptors import message

MODERN = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":3,"own":1,'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}}}'
)


def say(method: str = "ping", params: Any = None, side: str = "client") -> SendCommand:
    return SendCommand(side, method, params, None, True)


def test_its_id_is_a_generated_string_and_its_response_is_found_once() -> None:
    injections = InjectedRequests("mcpspy-x-")
    injected, data = injections.create(say(), "tui", 5, 1.0)

    assert data == b'{"jsonrpc":"2.0","id":"mcpspy-x-1","method":"ping"}'
    assert (injected.id, injected.viewer, injected.n, injected.at) == ('"mcpspy-x-1"', "tui", 5, 1.0)
    assert injections.resolve("client", '"mcpspy-x-1"') is None  # The request was sent to the server.
    assert injections.resolve("server", None) is None
    assert injections.resolve("server", '"mcpspy-x-1"') == injected
    assert injections.resolve("server", '"mcpspy-x-1"') is None
    assert len(injections) == 0


def test_a_request_of_2026_07_28_introduces_itself_as_the_client_does() -> None:
    injections = InjectedRequests("p-")
    request = message(MODERN)
    assert isinstance(request, Request)
    injections.observe(request)
    _, data = injections.create(say("tools/call", {"name": "echo", "_meta": {"mine": 1}}), "tui", 1, 0.0)

    assert loads(data)["params"] == {
        "name": "echo",
        "_meta": {
            "mine": 1,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        },
    }
    _, data = injections.create(say("roots/list", side="server"), "tui", 1, 0.0)
    assert "params" not in loads(data)


def test_a_request_that_is_sent_again_gets_a_new_progress_token() -> None:
    injections = InjectedRequests("p-")
    given = {"_meta": {"progressToken": 3}}
    injected, data = injections.create(say("tools/call", given), "tui", 1, 0.0)

    assert loads(data)["params"]["_meta"] == {"progressToken": "p-1"}
    assert given == {"_meta": {"progressToken": 3}}
    assert injections.by_progress_token("server", '"p-1"') == injected
    assert injections.by_progress_token("client", '"p-1"') is None
    assert injections.by_progress_token("server", "3") is None


def test_a_text_is_sent_byte_for_byte_except_for_the_id_and_the_progress_token() -> None:
    injections = InjectedRequests("p-")
    injections.observe(message(MODERN))  # type: ignore[arg-type]

    def sent(text: bytes) -> bytes:
        command = say("x")._replace(data=text)
        return injections.create(command, "tui", 1, 0.0)[1].replace(b'"p-%d"' % len(injections), b"NEW")

    raw = b' {"z" : 1E5,"b":1e400, "b" :[1.0,"\\u00e9 \xc3\xa9"] , "method":"x","params":{"a":1,"a":2}%b}'
    assert sent(raw % b"") == raw.replace(b"{", b'{"id":NEW,', 1) % b""
    assert sent(raw % b',"id" : 7, "\\u0069d":{"id":1}') == raw % b',"id" :NEW, "\\u0069d":NEW'
    token = b'{"method":"x","id":0,"params":{"_meta": {"progressToken":%b, "other":1.0}}}'
    assert sent(token % b"3").replace(b'"id":NEW', b'"id":0') == token % b"NEW"
    assert sent(b'{"method":"x","params":[3]}') == b'{"id":NEW,"method":"x","params":[3]}'
    notification = say("x")._replace(data=raw % b"", is_request=False)
    assert injections.send(notification, "tui", 1, 0.0).steps[0] == Inject("client", raw % b"")


def test_a_notification_is_sent_as_given() -> None:
    injections = InjectedRequests("p-")
    for params, text in ({"a": 1}, b'{"a":1}'), ({}, b"{}"):
        command = say("x", params)._replace(is_request=False)

        reply = injections.send(command, "tui", 1, 0.0)

        assert reply.answer == {}
        assert reply.steps[0] == Inject("client", b'{"jsonrpc":"2.0","method":"x","params":%b}' % text)
    assert len(injections) == 0


def test_one_that_could_not_be_delivered_waits_no_more() -> None:
    injections = InjectedRequests("p-")
    injected, _ = injections.create(say(), "tui", 1, 0.0)

    assert injections.waiting == [injected]
    assert injections.remove('"p-2"') is None
    assert injections.remove('"p-1"') == injected
    assert injections.waiting == []


def test_only_the_sending_viewer_gets_the_response() -> None:
    injected = PendingInjection('"m-1"', "client", "ping", "tui", 3, 1.0)

    assert injected.answer(1.25, {"error": "no"}) == Notify(
        "tui", {"event": "answer", "n": 3, "id": '"m-1"', "error": "no", "seconds": 0.25}
    )
