"""The eras of a host and a server: when a session is translated, and what each of them gets.

Both peers are lists of messages here; `tests/io/bridge/test_translation.py` has the bridge around the machine.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.era.commands import (
    ALWAYS,
    AUTO,
    NEVER,
    RESPONSE_TIMEOUT,
    Command,
    Fail,
    Later,
    SendToHost,
    SendToServer,
    TranslationNote,
)
from mcpspy.core.era.machine import Era, EraMachine

META = "io.modelcontextprotocol/"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
ME = {
    f"{META}protocolVersion": MODERN,
    f"{META}clientInfo": {"name": "host", "version": "1"},
    f"{META}clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
}
HOST = {
    "capabilities": {"elicitation": {}, "roots": {"listChanged": True}, "tasks": {}},
    "clientInfo": {"name": "host", "version": "1"},
}
OFFERED = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "logging": {},
    "tasks": {"list": {}},
}
REFUSAL = {"code": -32000, "message": "Bad Request: Server not initialized"}


class World:
    """A machine, and what it has sent to both sides."""

    def __init__(self, policy: str = AUTO, *, has_handshake: bool = False) -> None:
        self.machine = EraMachine("own-", policy, has_handshake=has_handshake)
        self.to_server: list[Any] = []
        self.to_host: list[Any] = []
        self.failed: list[tuple[str, str]] = []
        self.notes: list[TranslationNote] = []
        self.later: list[float] = []
        self.limited: list[str] = []
        """Requests of mcpspy with a timeout, by method."""

    def run(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case SendToServer(data, _, timeout):
                    self.to_server.append(json.loads(data))
                    if timeout is not None:
                        assert timeout == RESPONSE_TIMEOUT
                        self.limited.append(self.to_server[-1]["method"])
                case SendToHost(data):
                    self.to_host.append(json.loads(data))
                case Fail(id_, why):
                    self.failed.append((id_, why))
                case Later(seconds):
                    self.later.append(seconds)
                case TranslationNote():
                    self.notes.append(command)

    def host(self, method: str, params: Any = None, **members: Any) -> None:
        self.said(method=method, **({} if params is None else {"params": params}), **members)

    def said(self, **members: Any) -> None:
        self.run(self.machine.client(json.dumps({"jsonrpc": "2.0", **members}).encode(), "exchange"))

    def server(self, carrier: str | None = None, **members: Any) -> None:
        self.run(self.machine.server(json.dumps({"jsonrpc": "2.0", **members}).encode(), carrier))

    def times_out(self, message: Any) -> None:
        self.run(self.machine.timed_out(json.dumps(message["id"]), "too late"))

    def sent(self) -> Any:
        """Return the only message that the server got since the last call."""
        (found,) = self.all_sent()
        return found

    def all_sent(self) -> list[Any]:
        found, self.to_server = self.to_server, []
        return found

    def got(self) -> Any:
        """Return the only message that the host got since the last call."""
        (found,) = self.all_got()
        return found

    def all_got(self) -> list[Any]:
        found, self.to_host = self.to_host, []
        return found


def newer(revision: str = LEGACY, **offered: Any) -> World:
    """Return a session of a host with a handshake and a server of 2026-07-28."""
    world = World()
    world.host("initialize", {"protocolVersion": revision, **HOST}, id=0)
    world.server(id=0, error={"code": -32022, "message": "no", "data": {"supported": [MODERN]}})
    probe = world.all_sent()[-1]
    assert probe["method"] == "server/discover"
    capabilities = {**OFFERED, **offered}
    discovered = {"supportedVersions": [MODERN], "capabilities": capabilities, "instructions": "Ask."}
    info = {"_meta": {f"{META}serverInfo": {"name": "new", "version": "2"}}}
    world.server(id=probe["id"], result={**discovered, **info})
    return world


def older(**offered: Any) -> World:
    """Return a session of a host of 2026-07-28 and a server with a handshake."""
    world = World()
    world.host("tools/list", {"_meta": ME}, id=1)
    world.server(id=None, error=REFUSAL)  # Without an id, the bridge sets that of the request.
    world.to_host.clear()
    world.server(id=1, error=REFUSAL)
    world.server(id=world.all_sent()[-1]["id"], error=REFUSAL)
    initialize = world.sent()
    result = {"protocolVersion": "2025-06-18", "capabilities": {**OFFERED, **offered}}
    world.server(id=initialize["id"], result={**result, "serverInfo": {"name": "old", "version": "1"}})
    assert [each["method"] for each in world.all_sent()] == ["notifications/initialized", "tools/list"]
    return world


# The era.


def test_a_session_of_one_era_is_forwarded_as_it_is_and_no_message_is_added() -> None:
    for method in ("initialize", "tools/list"):
        world = World()
        params = {"_meta": ME} if method == "tools/list" else {"protocolVersion": LEGACY}
        lines = [
            json.dumps({"jsonrpc": "2.0", "id": n, "method": m, "params": params}).encode()
            for n, m in enumerate([method, "tools/call"])
        ]
        answers = [
            b'{"jsonrpc":"2.0", "id":%d,"result":{"resultType":"complete","n":1.50}}' % n for n in range(2)
        ]
        for line, answer in zip(lines, answers, strict=True):
            assert world.machine.client(line, "x") == [SendToServer(line, "x")]
            assert world.machine.server(answer) == [SendToHost(answer, is_own=False)]
        assert world.machine.era is Era.SAME


def test_a_refused_initialize_of_a_server_that_has_neither_era_gets_the_refusal() -> None:
    world = World()
    world.host("initialize", {"protocolVersion": LEGACY}, id=0)
    world.server(id=0, error=REFUSAL)
    world.server(id=world.all_sent()[-1]["id"], error={"code": -32601, "message": "no such method"})
    assert world.got() == {"jsonrpc": "2.0", "id": 0, "error": REFUSAL}
    assert world.machine.translation is None


def test_a_host_of_both_eras_gets_the_refusal_of_its_probe_and_falls_back() -> None:
    world = World()
    world.host("server/discover", {"_meta": ME}, id=1)
    world.server(id=1, error=REFUSAL)
    assert world.got()["error"] == REFUSAL
    world.all_sent()
    world.host("initialize", {"protocolVersion": LEGACY}, id=2)
    assert world.sent()["id"] == 2
    world.server(id=2, result={"protocolVersion": LEGACY})
    assert world.machine.era is Era.SAME


def test_a_policy_of_always_answers_the_probe_and_never_translates_nothing() -> None:
    world = World(ALWAYS)
    world.host("server/discover", {"_meta": ME}, id=1)
    world.server(id=1, error=REFUSAL)
    initialize = world.all_sent()[-1]
    world.server(id=initialize["id"], result={"protocolVersion": LEGACY, "capabilities": OFFERED})
    result = world.got()["result"]
    assert (result["supportedVersions"], result["resultType"]) == ([MODERN], "complete")
    assert "tasks" not in result["capabilities"]
    never = World(NEVER)
    never.host("initialize", {"protocolVersion": LEGACY}, id=0)
    never.server(id=0, error=REFUSAL)
    assert (len(never.to_server), never.got()["error"]) == (1, REFUSAL)


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_an_error_that_only_2026_07_28_has_is_not_due_to_the_era(code: int) -> None:
    world = World()
    world.host("tools/call", {"name": "x", "_meta": ME}, id=1)
    world.server(id=1, error={"code": code, "message": "no", "data": {"supported": [MODERN]}})
    assert world.got()["error"]["code"] == code
    assert world.machine.era is Era.SAME


def test_an_error_of_a_server_of_the_hosts_era_is_given_after_the_probe() -> None:
    world = World()
    world.host("tools/call", {"name": "x", "_meta": ME}, id=1)
    world.server(id=1, error={"code": -32602, "message": "unknown tool"})
    world.host("tools/list", {"_meta": ME}, id=2)
    assert world.to_host == []
    probe = world.all_sent()[-1]
    world.server(id=probe["id"], result={"supportedVersions": [MODERN], "capabilities": {}})
    assert world.got()["error"]["message"] == "unknown tool"
    assert world.sent()["id"] == 2
    assert world.machine.era is Era.SAME


@pytest.mark.parametrize(
    ("status", "is_probed"), [(400, True), (404, True), (401, False), (429, False), (500, False)]
)
def test_only_a_status_that_may_be_due_to_the_era_leads_to_a_probe(status: int, is_probed: bool) -> None:
    world = World()
    world.host("initialize", {"protocolVersion": LEGACY}, id=0)
    world.run(world.machine.failed("0", "HTTP", status))
    assert world.machine.is_probing is is_probed
    assert world.failed == ([] if is_probed else [("0", "HTTP")])


def test_a_server_that_does_not_answer_the_probe_is_of_the_hosts_era() -> None:
    world = World()
    world.host("initialize", {"protocolVersion": LEGACY}, id=0)
    world.server(id=0, error=REFUSAL)
    world.host("tools/list", id=1)
    probe = world.all_sent()[-1]
    world.times_out(probe)
    assert world.got() == {"jsonrpc": "2.0", "id": 0, "error": REFUSAL}
    cancellation, waiting = world.all_sent()
    assert cancellation["params"] == {"requestId": probe["id"], "reason": "too late"}
    assert waiting["id"] == 1
    world.server(id=probe["id"], result={"supportedVersions": [MODERN]})
    world.run(world.machine.failed(json.dumps(probe["id"]), "closed"))
    world.times_out(probe)
    assert (world.to_server, world.to_host, world.failed) == ([], [], []), "it is late"
    assert world.limited == ["server/discover"]


def test_a_server_that_answers_neither_the_probe_nor_a_handshake_fails_what_waits() -> None:
    world = World()
    world.host("tools/list", {"_meta": ME}, id=1)
    world.server(id=1, error=REFUSAL)
    world.times_out(world.all_sent()[-1])
    initialize = world.all_sent()[-1]
    world.host("tools/call", {"name": "x", "_meta": ME}, id=2)
    world.times_out(initialize)
    assert world.got()["error"] == REFUSAL
    assert world.failed == [("2", "too late")]
    assert world.to_server == [], "initialize must not be cancelled"
    world.server(id=initialize["id"], result={"protocolVersion": LEGACY})
    assert world.to_host == []
    assert world.limited == ["server/discover", "initialize"]


def test_a_log_level_that_the_server_does_not_take_in_time_delays_no_request_further() -> None:
    world = older()
    world.host("tools/call", {"name": "x", "_meta": {**ME, f"{META}logLevel": "info"}}, id=2)
    asked = world.sent()
    assert asked["method"] == world.limited[-1] == "logging/setLevel"
    world.times_out(asked)
    assert world.sent()["id"] == 2


def test_http_sse_is_never_asked_for_its_era() -> None:
    world = World(has_handshake=True)
    world.host("tools/list", {"_meta": ME}, id=1)
    assert world.sent()["method"] == "initialize"
    assert [(note.did, note.host, note.refused) for note in world.notes] == [("probe", MODERN, ())]


def test_a_server_that_refuses_the_handshake_too_fails_what_waits_with_the_reason() -> None:
    world = World()
    world.host("tools/list", {"_meta": ME}, id=1)
    world.server(id=1, error=REFUSAL)
    world.host("tools/call", {"name": "x", "_meta": ME}, id=2)
    world.server(id=world.all_sent()[-1]["id"], error=REFUSAL)
    world.server(id=world.sent()["id"], error={"code": -32603, "message": "closed"})
    assert world.got() == {"jsonrpc": "2.0", "id": 1, "error": REFUSAL}
    assert world.failed == [("2", "refused initialize: error -32603 internal error: closed")]


# A host with a handshake and a server of 2026-07-28.


def test_the_handshake_is_answered_from_the_discovery_in_the_hosts_revision() -> None:
    for revision, agreed in ((LEGACY, LEGACY), ("2024-11-05", "2024-11-05"), ("2099-01-01", LEGACY)):
        world = newer(revision)
        result = world.got()["result"]
        assert result["protocolVersion"] == agreed
        assert (result["serverInfo"], result["instructions"]) == ({"name": "new", "version": "2"}, "Ask.")
        assert "tasks" not in result["capabilities"]
        assert [note.did for note in world.notes] == ["probe", "begin"]


def test_a_request_gets_the_meta_of_2026_07_28_and_keeps_its_own_and_its_id() -> None:
    world = newer()
    world.host("tools/call", {"name": "x", "task": {"ttl": 1}, "_meta": {"progressToken": 7}}, id=5)
    sent = world.sent()
    assert (sent["id"], "task" in sent["params"]) == (5, False)
    meta = sent["params"]["_meta"]
    assert meta["progressToken"] == 7
    assert meta[f"{META}protocolVersion"] == MODERN
    assert meta[f"{META}clientCapabilities"] == {"elicitation": {}, "roots": {}}


def test_results_lose_what_only_2026_07_28_has() -> None:
    world = newer()
    world.all_got()
    world.host("tools/list", {}, id=5)
    tools = [
        {"name": "a", "outputSchema": {"type": "array"}},
        {"name": "b", "outputSchema": {"type": "object"}},
    ]
    cached = {"resultType": "complete", "ttlMs": 5, "cacheScope": "public"}
    world.server(id=5, result={"tools": tools, **cached, "_meta": {f"{META}serverInfo": {}, "mine": 1}})
    assert world.got()["result"] == {"tools": [{"name": "a"}, tools[1]], "_meta": {"mine": 1}}
    world.host("tools/call", {"name": "a"}, id=6)
    world.server(id=6, result={"content": [], "structuredContent": [1], "resultType": "complete"})
    assert world.got()["result"] == {"content": []}


def test_ping_and_the_log_level_are_answered_and_the_level_goes_with_each_request() -> None:
    world = newer()
    world.all_got(), world.all_sent()
    world.host("ping", id=5)
    assert world.got() == {"jsonrpc": "2.0", "id": 5, "result": {}}
    world.host("logging/setLevel", {"level": "loud"}, id=6)
    assert world.got()["error"]["code"] == -32602
    world.host("logging/setLevel", {"level": "info"}, id=7)
    assert world.got()["result"] == {}
    world.host("tools/call", {"name": "x"}, id=8)
    assert world.sent()["params"]["_meta"][f"{META}logLevel"] == "info"


def test_input_required_becomes_requests_to_the_host_and_the_answers_go_with_the_repetition() -> None:
    world = newer("2025-06-18")
    world.all_got(), world.all_sent()
    world.host("tools/call", {"name": "x", "_meta": {"progressToken": 1}}, id=5)
    first = world.sent()
    asked = {
        "a": {"method": "elicitation/create", "params": {"mode": "form", "message": "?"}},
        "b": {"method": "roots/list"},
    }
    world.server(id=5, result={"resultType": "input_required", "inputRequests": asked, "requestState": "s"})
    form, roots = world.all_got()
    assert (form["params"], roots["method"]) == ({"message": "?"}, "roots/list")
    world.said(id=form["id"], result={"action": "accept", "content": {"n": None}})
    assert world.to_server == []
    world.said(id=roots["id"], result={"roots": []})
    again = world.sent()
    assert again["id"] not in (5, form["id"])
    answers = {"a": {"action": "accept", "content": {"n": None}}, "b": {"roots": []}}
    more = {"inputResponses": answers, "requestState": "s"}
    assert again["params"] == {**first["params"], **more}
    world.server(id=again["id"], result={"resultType": "input_required", "requestState": "t"})
    third = world.sent()
    assert (third["params"]["requestState"], "inputResponses" in third["params"]) == ("t", False)
    world.server(id=third["id"], result={"content": [], "resultType": "complete"})
    assert world.got() == {"jsonrpc": "2.0", "id": 5, "result": {"content": []}}


def test_a_question_that_the_host_cannot_be_asked_or_refuses_is_an_error_with_the_reason() -> None:
    world = newer()
    for number, (method, params) in enumerate(
        [("sampling/createMessage", {}), ("x/y", {}), ("elicitation/create", {"mode": "url"})]
    ):
        world.host("tools/call", {"name": "x"}, id=number)
        asked = {"q": {"method": method, "params": params}}
        world.server(id=number, result={"resultType": "input_required", "inputRequests": asked})
    assert [why for _, why in world.failed] == [
        "the server asks for sampling/createMessage, which the host does not declare",
        "the server asks for x/y, which no host has",
        "the server asks the user to open a URL, which the host does not declare",
    ]
    world.all_got()
    world.host("tools/call", {"name": "x"}, id=9)
    asked = {"q": {"method": "elicitation/create", "params": {"message": "?"}}}
    world.server(id=9, result={"resultType": "input_required", "inputRequests": asked})
    world.said(id=world.got()["id"], error={"code": -1, "message": "rejected"})
    assert world.failed[-1] == ("9", "the host did not answer the server's question: error -1: rejected")


def test_a_server_that_asks_forever_is_stopped() -> None:
    world = newer()
    world.host("tools/call", {"name": "x"}, id=5)
    for _ in range(21):
        world.server(
            id=world.all_sent()[-1]["id"], result={"resultType": "input_required", "requestState": "s"}
        )
    assert world.failed == [("5", "the server still asks after 20 answers")]


def test_a_cancellation_closes_the_request_that_the_server_has_and_withdraws_questions() -> None:
    world = newer()
    world.all_got(), world.all_sent()
    world.host("tools/call", {"name": "x"}, id=5)
    world.host("notifications/cancelled", {"requestId": 5})
    assert world.all_sent()[-1]["params"] == {"requestId": 5}
    world.host("tools/call", {"name": "x"}, id=6)
    asked = {"q": {"method": "elicitation/create", "params": {"message": "?"}}}
    world.server(id=6, result={"resultType": "input_required", "inputRequests": asked})
    question = world.got()
    world.host("notifications/cancelled", {"requestId": 6})
    assert world.got()["params"]["requestId"] == question["id"]


def test_one_subscription_follows_another_and_updates_lose_its_id() -> None:
    world = newer()
    world.all_got(), world.all_sent()
    world.host("notifications/initialized")
    first = world.sent()
    assert first["params"]["notifications"] == {"toolsListChanged": True}
    acknowledge(world, first["id"], {"toolsListChanged": True})
    world.host("resources/subscribe", {"uri": "a"}, id=5)
    second = world.sent()
    assert second["params"]["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["a"]}
    assert world.to_host == []
    acknowledge(world, second["id"], {"resourceSubscriptions": ["a"]})
    assert world.sent()["params"]["requestId"] == first["id"]
    assert world.got()["result"] == {}
    for id_ in (first["id"], second["id"]):
        meta = {f"{META}subscriptionId": id_}
        world.server(method="notifications/tools/list_changed", params={"_meta": meta})
    assert world.got() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}
    world.host("resources/subscribe", {"uri": "b"}, id=6)
    acknowledge(world, world.all_sent()[-1]["id"], {"resourceSubscriptions": ["a"]})
    assert "does not send updates" in world.got()["error"]["message"]


def test_a_lost_subscription_is_opened_again_after_a_time_that_grows() -> None:
    world = newer()
    world.all_sent()
    world.host("notifications/initialized")
    for seconds in (1.0, 2.0, 4.0):
        listen = world.all_sent()[-1]
        acknowledge(world, listen["id"], {"toolsListChanged": True})
        world.run(world.machine.failed(json.dumps(listen["id"]), "lost"))
        assert world.later.pop() == seconds
        world.run(world.machine.again())


def acknowledge(world: World, id_: Any, agreed: Any) -> None:
    params = {"_meta": {f"{META}subscriptionId": id_}, "notifications": agreed}
    world.server(method="notifications/subscriptions/acknowledged", params=params)


def test_tasks_of_2025_11_25_are_refused_with_the_reason() -> None:
    world = newer()
    world.all_got()
    world.host("tasks/get", {"taskId": "1"}, id=5)
    assert "tasks of 2025-11-25 cannot be carried" in world.got()["error"]["message"]


# A host of 2026-07-28 and a server with a handshake.


def test_the_handshake_is_made_from_the_meta_and_the_refused_request_is_sent_again() -> None:
    world = older()
    assert [note.refused for note in world.notes] == [("1",), ("1",)]
    world.all_got()
    world.server(id=1, result={"tools": []})
    assert world.got()["result"] == {
        "tools": [],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {f"{META}serverInfo": {"name": "old", "version": "1"}},
    }


def test_requests_lose_the_meta_of_2026_07_28() -> None:
    world = older()
    world.host("tools/call", {"name": "x", "_meta": {**ME, "progressToken": 7}}, id=2)
    assert world.sent()["params"] == {"name": "x", "_meta": {"progressToken": 7}}


def test_a_log_level_is_set_before_the_request_and_logs_without_one_are_dropped() -> None:
    world = older()
    world.all_got()
    world.host("tools/call", {"name": "x", "_meta": {**ME, f"{META}logLevel": "error"}}, id=2)
    world.host("tools/call", {"name": "x", "_meta": ME}, id=3)
    level = world.sent()
    assert (level["method"], level["params"]) == ("logging/setLevel", {"level": "error"})
    world.server(id=level["id"], result={})
    assert [each["id"] for each in world.all_sent()] == [2, 3]
    for carrier, severity in (("2", "error"), ("2", "info"), ("3", "error")):
        world.server(carrier, method="notifications/message", params={"level": severity, "data": carrier})
    assert world.got()["params"] == {"level": "error", "data": "2"}


def test_a_question_answers_the_hosts_request_and_its_repetition_gets_the_response() -> None:
    world = older()
    world.all_got()
    world.host("tools/call", {"name": "x", "_meta": {**ME, "progressToken": "p"}}, id=2)
    world.all_sent()
    asked = {"mode": "form", "message": "?", "elicitationId": "e"}
    world.server("2", id=9, method="elicitation/create", params=asked)
    question = world.got()
    inputs = {"1": {"method": "elicitation/create", "params": {"mode": "form", "message": "?"}}}
    assert (question["id"], question["result"]["inputRequests"]) == (2, inputs)
    world.server(method="notifications/progress", params={"progressToken": "p", "progress": 1})
    assert world.to_host == []  # No request of the host is open.
    answer = {
        "inputResponses": {"1": {"action": "accept"}},
        "requestState": question["result"]["requestState"],
    }
    world.host("tools/call", {"name": "x", "_meta": {**ME, "progressToken": "q"}, **answer}, id=3)
    assert world.sent() == {"jsonrpc": "2.0", "id": 9, "result": {"action": "accept"}}
    world.server(method="notifications/progress", params={"progressToken": "p", "progress": 2})
    assert world.got()["params"] == {"progressToken": "q", "progress": 2}
    world.server(id=2, result={"content": []})
    assert (world.got()["id"], world.to_server) == (3, [])
    world.host("tools/call", {"name": "x", "_meta": ME, **answer}, id=4)
    assert "unknown requestState" in world.got()["error"]["message"]


def test_a_response_that_comes_while_the_host_is_asked_is_given_to_the_repetition() -> None:
    world = older()
    world.all_got()
    world.host("tools/call", {"name": "x", "_meta": ME}, id=2)
    world.server("2", id=9, method="elicitation/create", params={"message": "?"})
    state = world.got()["result"]["requestState"]
    world.server(id=2, error={"code": -32603, "message": "no time"})
    world.host("tools/call", {"name": "x", "_meta": ME, "inputResponses": {}, "requestState": state}, id=3)
    assert world.got() == {"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": "no time"}}


def test_a_question_outside_of_a_request_or_of_no_declared_capability_is_refused() -> None:
    world = older()
    world.all_sent()
    world.server(id=8, method="roots/list")
    assert "can be asked only while it waits" in world.sent()["error"]["message"]
    world.host("tools/call", {"name": "x", "_meta": ME}, id=2)
    world.all_sent()
    world.server("2", id=9, method="sampling/createMessage", params={})
    assert world.sent()["error"]["message"] == "mcpspy bridge: the host does not declare sampling"
    world.server("2", id=10, method="ping")
    assert world.sent()["result"] == {}


def test_a_url_that_the_server_needs_is_a_question_and_the_request_is_sent_again() -> None:
    world = older()
    world.all_got()
    world.host("tools/call", {"name": "x", "_meta": ME}, id=2)
    world.all_sent()
    needed = [{"mode": "url", "message": "m", "url": "https://example.com", "elicitationId": "e"}]
    world.server(id=2, error={"code": -32042, "message": "", "data": {"elicitations": needed}})
    result = world.got()["result"]
    asked = {"mode": "url", "message": "m", "url": "https://example.com"}
    assert result["inputRequests"] == {"1": {"method": "elicitation/create", "params": asked}}
    more = {"inputResponses": {"1": {"action": "accept"}}, "requestState": result["requestState"]}
    world.host("tools/call", {"name": "x", "_meta": ME, **more}, id=3)
    again = world.sent()
    assert (again["method"], again["params"]) == ("tools/call", {"name": "x"})
    world.server(id=again["id"], result={"content": []})
    assert world.got()["id"] == 3


def test_listen_subscribes_to_each_resource_and_is_acknowledged_with_what_was_accepted() -> None:
    world = older()
    world.all_got(), world.all_sent()
    wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["a", "b"]}
    world.host("subscriptions/listen", {"_meta": ME, "notifications": wanted}, id="L")
    subscribed = world.all_sent()
    assert [each["params"]["uri"] for each in subscribed] == ["a", "b"]
    world.server(id=subscribed[0]["id"], result={})
    world.server(id=subscribed[1]["id"], error={"code": -32002, "message": "no"})
    agreed = world.got()["params"]
    assert agreed["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["a"]}
    assert agreed["_meta"] == {f"{META}subscriptionId": "L"}
    for method, params in (
        ("resources/updated", {"uri": "a"}),
        ("resources/updated", {"uri": "b"}),
        ("prompts/list_changed", {}),
    ):
        world.server(method=f"notifications/{method}", params=params)
    assert world.got()["params"] == {"uri": "a", "_meta": {f"{META}subscriptionId": "L"}}
    world.host("notifications/cancelled", {"requestId": "L"})
    assert world.sent()["method"] == "resources/unsubscribe"


def test_a_missing_resource_has_the_code_of_2026_07_28() -> None:
    world = older()
    world.all_got()
    world.host("resources/read", {"uri": "a", "_meta": ME}, id=2)
    world.server(id=2, error={"code": -32002, "message": "no such resource"})
    assert world.got()["error"] == {"code": -32602, "message": "no such resource"}


def test_a_new_session_gets_the_subscriptions_and_the_log_level_again() -> None:
    world = older()
    world.host(
        "subscriptions/listen", {"_meta": ME, "notifications": {"resourceSubscriptions": ["a"]}}, id="L"
    )
    world.server(id=world.all_sent()[-1]["id"], result={})
    world.host("tools/call", {"name": "x", "_meta": {**ME, f"{META}logLevel": "info"}}, id=2)
    world.server(id=world.all_sent()[-1]["id"], result={})
    world.all_sent()
    world.run(world.machine.lost("the connection ended"))
    world.run(world.machine.restored())
    assert [each["method"] for each in world.all_sent()] == ["resources/subscribe", "logging/setLevel"]


def test_a_server_that_answers_without_a_handshake_gets_one_for_what_follows() -> None:
    world = World()
    world.host("tools/list", {"_meta": ME}, id=1)
    world.all_sent()
    world.server(id=1, result={"tools": []})
    assert world.got()["result"]["resultType"] == "complete"
    assert world.sent()["method"] == "initialize"
