"""The machine of a restarted session, without processes: messages in, commands out."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.restart.commands import Command, RestartNote, Start, Stop, ToHost, ToServer
from mcpspy.core.restart.machine import RestartMachine, ServerPhase

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
}
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
CHANGED = {"files": ["weather.py"]}

CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {"subscribe": True}, "logging": {}}


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def request(id_: Any, method: str, **params: Any) -> bytes:
    return dumped({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})


def notification(method: str, **params: Any) -> bytes:
    return dumped({"jsonrpc": "2.0", "method": method, "params": params})


def result(id_: Any, **value: Any) -> bytes:
    return dumped({"jsonrpc": "2.0", "id": id_, "result": value})


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


class Session:
    """A machine, and what its commands sent; the server answers what mcpspy requests."""

    def __init__(self) -> None:
        self.machine = RestartMachine("own-")
        self.to_server: list[dict[str, Any]] = []
        self.to_host: list[dict[str, Any]] = []
        self.reports: list[dict[str, Any]] = []
        self.done: list[str] = []
        self.capabilities = CAPABILITIES
        self.lists: dict[str, list[dict[str, Any]]] = {"tools": [tool("echo")], "resources": []}
        self.refuses: set[str] = set()
        self.answers = True
        """False if the server answers no request of mcpspy."""

    def run(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case ToServer(data, is_own):
                    message = json.loads(data)
                    self.to_server.append(message)
                    if is_own and "id" in message and self.answers:
                        self.answer(message)
                case ToHost(data):
                    self.to_host.append(json.loads(data))
                case RestartNote():
                    if command.fields["did"] != "stopping":
                        self.reports.append(command.fields)
                case Start():
                    self.done.append("start")
                case Stop():
                    self.done.append("stop")

    def answer(self, message: dict[str, Any]) -> None:
        method, id_ = message["method"], message["id"]
        if method in self.refuses:
            data = dumped({"jsonrpc": "2.0", "id": id_, "error": {"code": -32603, "message": "refused"}})
        elif method in ("initialize", "server/discover"):
            data = result(id_, protocolVersion="2025-11-25", capabilities=self.capabilities)
        elif method.endswith("/list"):
            member = "resourceTemplates" if "templates" in method else method.split("/")[0]
            data = result(id_, **{member: self.lists.get(member, [])})
        else:
            data = result(id_)
        assert not self.server(data)

    def server(self, data: bytes) -> bool:
        """Take a message of the server; return whether the client gets it."""
        found = self.machine.server(data)
        if found.is_forwarded:
            self.to_host.append(json.loads(self.machine.for_host(data)))
        if found.replacement is not None:
            self.to_host.append(json.loads(found.replacement))
        self.run(found.commands)
        return found.is_forwarded

    def client(self, data: bytes) -> None:
        if self.machine.is_stale(data):
            return
        self.run(self.machine.client(self.machine.renamed(data) or data))

    def restart(self) -> None:
        """Restart the server, which ends at once."""
        self.run(self.machine.restart(CHANGED))
        self.end()
        self.run(self.machine.started())

    def end(self, error: str = "") -> None:
        self.run(self.machine.ended("it ended with exit code 1", error))

    def forget(self) -> None:
        self.to_server.clear()
        self.to_host.clear()
        self.reports.clear()

    @property
    def methods(self) -> list[str]:
        return [message.get("method", "response") for message in self.to_server]

    @property
    def announced(self) -> list[str]:
        return [message["method"] for message in self.to_host if "list_changed" in message.get("method", "")]


def begun(**capabilities: Any) -> Session:
    """Return a session of 2025-11-25 after its handshake."""
    session = Session()
    session.capabilities = capabilities or CAPABILITIES
    session.run(session.machine.started())
    session.client(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}))
    session.server(result(0, protocolVersion="2025-11-25", capabilities=session.capabilities))
    session.client(notification("notifications/initialized"))
    return session


def begun_modern() -> Session:
    """Return a session of 2026-07-28 whose client has an open subscription with the id "listen-1"."""
    session = Session()
    session.run(session.machine.started())
    session.client(request(1, "tools/list", _meta=META))
    session.server(result(1, tools=[tool("echo")]))
    wanted = {"toolsListChanged": True, "resourcesListChanged": True}
    session.client(request("listen-1", "subscriptions/listen", notifications=wanted, _meta=META))
    agreed = {"toolsListChanged": True}
    session.server(
        notification(
            "notifications/subscriptions/acknowledged", notifications=agreed, _meta={SUBSCRIPTION: "listen-1"}
        )
    )
    return session


def test_the_new_server_gets_the_handshake_of_the_client_and_the_client_notices_nothing() -> None:
    session = begun()
    session.forget()
    session.restart()
    first, second, *lists = session.to_server
    assert (first["method"], first["params"]["protocolVersion"]) == ("initialize", "2025-11-25")
    assert first["id"].startswith("own-")
    assert second == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert [each["method"] for each in lists] == ["tools/list", "resources/list", "resources/templates/list"]
    assert session.to_host == []
    assert [report["did"] for report in session.reports] == ["started", "listed"]
    assert session.reports[0]["files"] == ["weather.py"]


def test_a_client_that_does_not_wait_for_the_response_to_initialize_is_initialized_after_it() -> None:
    session = Session()
    session.run(session.machine.started())
    session.client(request(0, "initialize", protocolVersion="2025-11-25"))
    session.client(notification("notifications/initialized"))
    assert session.server(result(0, protocolVersion="2025-11-25", capabilities=CAPABILITIES))

    session.lists["tools"].append(tool("added"))
    session.to_server.clear()
    session.restart()

    assert [each["method"] for each in session.to_server][:2] == ["initialize", "notifications/initialized"]
    assert session.to_host[-1]["method"] == "notifications/tools/list_changed"


def test_a_server_that_is_restarted_before_it_answers_initialize_gets_what_followed_it_again() -> None:
    session = Session()
    session.run(session.machine.started())
    session.client(request(0, "initialize", protocolVersion="2025-11-25"))
    session.client(notification("notifications/initialized"))
    session.to_server.clear()

    session.restart()

    assert session.methods == ["initialize", "notifications/initialized"]


def test_the_end_of_the_old_server_is_noted_before_it_gets_it() -> None:
    note, stop = begun().machine.restart(CHANGED)
    assert isinstance(note, RestartNote)
    assert note.fields == {"did": "stopping", **CHANGED}
    assert isinstance(stop, Stop)


def test_a_message_during_a_restart_waits_for_the_handshake() -> None:
    session = begun()
    session.run(session.machine.restart(CHANGED))
    session.client(request(5, "tools/call", name="echo"))
    session.end()
    session.forget()
    session.run(session.machine.started())
    assert session.methods[:2] == ["initialize", "notifications/initialized"]
    assert session.methods[-1] == "tools/call"
    assert session.machine.waiting == 0


def test_an_open_request_gets_an_error_with_the_reason_once_the_old_server_has_ended() -> None:
    session = begun()
    session.client(request(5, "tools/call", name="slow"))
    session.run(session.machine.restart(CHANGED))
    session.forget()
    session.end()
    (error,) = session.to_host
    assert error["id"] == 5
    assert (
        error["error"]["message"]
        == "mcpspy: the server was restarted before it answered (weather.py changed)"
    )


def test_the_old_server_may_answer_until_it_ends_but_its_refusals_are_dropped() -> None:
    session = begun()
    for id_ in (5, 6):
        session.client(request(id_, "tools/call", name="slow"))
    session.run(session.machine.restart(CHANGED))
    assert session.server(result(5, content=[]))
    closed = {"jsonrpc": "2.0", "id": 6, "error": {"code": -32000, "message": "Connection closed"}}
    assert not session.server(dumped(closed))
    session.forget()
    session.end()
    assert [message["id"] for message in session.to_host] == [6]


def test_a_cancelled_request_gets_no_error() -> None:
    session = begun()
    session.client(request(5, "tools/call", name="slow"))
    session.client(notification("notifications/cancelled", requestId=5))
    session.forget()
    session.restart()
    assert session.to_host == []


def test_subscriptions_and_the_log_level_are_restored() -> None:
    session = begun()
    for id_, (method, params) in enumerate(
        [
            ("resources/subscribe", {"uri": "file:///a"}),
            ("resources/subscribe", {"uri": "file:///b"}),
            ("resources/unsubscribe", {"uri": "file:///a"}),
            ("logging/setLevel", {"level": "debug"}),
        ],
        10,
    ):
        session.client(request(id_, method, **params))
        session.server(result(id_))
    session.forget()
    session.restart()
    restored = [
        (message["method"], message["params"])
        for message in session.to_server
        if message["method"] in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel")
    ]
    assert restored == [
        ("resources/subscribe", {"uri": "file:///b"}),
        ("logging/setLevel", {"level": "debug"}),
    ]


def test_a_refused_subscription_is_reported() -> None:
    session = begun()
    session.client(request(10, "resources/subscribe", uri="file:///a"))
    session.server(result(10))
    session.refuses = {"resources/subscribe"}
    session.restart()
    (lost,) = session.reports[-1]["lost"]
    assert lost.startswith("resources/subscribe file:///a: error -32603")


def test_the_client_is_notified_of_the_lists_that_changed_and_of_no_others() -> None:
    session = begun()
    session.lists["tools"] = [tool("echo"), tool("new")]
    session.restart()
    assert session.announced == ["notifications/tools/list_changed"]
    assert session.reports[-1]["notified"] == ["tools"]
    session.forget()
    session.lists["tools"].reverse()
    session.restart()
    assert session.announced == []


def test_a_list_is_compared_with_what_the_last_running_server_listed() -> None:
    session = begun()
    session.restart()
    session.run(session.machine.restart(CHANGED))
    session.end()
    session.end("SyntaxError")
    session.forget()
    session.run(session.machine.restart(CHANGED))
    session.lists["tools"] = []
    session.run(session.machine.started())
    assert session.announced == ["notifications/tools/list_changed"]


def test_the_first_handshake_declares_the_notifications_that_mcpspy_sends() -> None:
    session = begun(tools={"listChanged": False}, completions={})
    declared = session.to_host[0]["result"]["capabilities"]
    assert declared == {"tools": {"listChanged": True}, "completions": {}}


def test_a_kind_that_the_first_server_did_not_have_is_withheld() -> None:
    session = begun(tools={})
    session.capabilities = {"tools": {}, "prompts": {}}
    session.lists["prompts"] = [{"name": "p"}]
    session.restart()
    assert session.announced == []
    assert session.reports[-1]["withheld"] == ["prompts"]


def test_a_client_that_joins_later_sees_the_handshake_of_the_new_server_and_is_notified_of_its_lists() -> (
    None
):
    session = begun(tools={})
    assert session.machine.show_handshake() is None
    session.capabilities = {"tools": {}, "prompts": {}}
    session.restart()
    shown = json.loads(session.machine.show_handshake() or b"")
    declared = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}
    assert shown["result"]["capabilities"] == declared
    session.lists["prompts"] = [{"name": "p"}]
    session.restart()
    assert session.announced == ["notifications/prompts/list_changed"]


def test_a_list_that_the_server_changes_itself_is_read_again() -> None:
    session = begun()
    session.lists["tools"] = [tool("other")]
    session.forget()
    assert session.server(notification("notifications/tools/list_changed"))
    assert session.methods == ["tools/list"]
    session.forget()
    session.restart()
    assert session.announced == []


def test_a_server_that_does_not_start_answers_requests_with_its_last_words_until_the_next_change() -> None:
    session = begun()
    session.run(session.machine.restart(CHANGED))
    session.client(request(5, "tools/call"))
    session.end()
    session.run(session.machine.started())
    session.forget()
    session.end("SyntaxError: invalid syntax")
    session.client(request(6, "tools/call"))
    session.client(notification("notifications/roots/list_changed"))
    assert [message["id"] for message in session.to_host] == [5, 6]
    for message in session.to_host:
        assert message["error"]["message"] == (
            "mcpspy: no server: it ended with exit code 1; on stderr: SyntaxError: invalid syntax. "
            "It is started again when a watched file changes"
        )
    assert session.machine.phase is ServerPhase.DOWN
    session.run(session.machine.restart(CHANGED))
    assert session.done[-1] == "start"


def test_a_server_that_refuses_the_handshake_is_ended() -> None:
    session = begun()
    session.refuses = {"initialize"}
    session.run(session.machine.restart(CHANGED))
    session.end()
    session.run(session.machine.started())
    assert session.done[-1] == "stop"
    session.end()
    assert session.reports[-1]["text"].startswith("it refused initialize: error -32603")
    assert session.machine.phase is ServerPhase.DOWN


def test_a_change_while_the_server_ends_does_not_restart_it_twice() -> None:
    session = begun()
    session.run(session.machine.restart(CHANGED))
    session.run(session.machine.restart({"files": ["other.py"]}))
    session.end()
    session.run(session.machine.started())
    assert session.done == ["stop", "start"]
    assert session.reports[0]["files"] == ["weather.py", "other.py"]


def test_a_change_during_the_handshake_restarts_the_server_again() -> None:
    session = begun()
    session.answers = False
    session.run(session.machine.restart(CHANGED))
    session.end()
    session.run(session.machine.started())
    session.client(request(5, "tools/call"))
    session.run(session.machine.restart(CHANGED))
    assert session.done == ["stop", "start", "stop"]
    session.answers = True
    session.end()
    session.forget()
    session.run(session.machine.started())
    assert session.methods[-1] == "tools/call"


def test_the_initialize_of_the_client_is_sent_again_if_the_old_server_did_not_answer_it() -> None:
    session = Session()
    session.run(session.machine.started())
    session.client(request(0, "initialize", protocolVersion="2025-11-25"))
    session.run(session.machine.restart(CHANGED))
    session.end()
    session.forget()
    session.run(session.machine.started())
    assert [message["id"] for message in session.to_server] == [0]
    assert session.reports == [{"did": "started", **CHANGED, "repeated": ["0"]}, {"did": "listed"}]
    assert session.to_host == []


def test_the_initialize_of_the_client_is_refused_if_the_server_died() -> None:
    session = Session()
    session.run(session.machine.started())
    session.client(request(0, "initialize", protocolVersion="2025-11-25"))
    session.end("ModuleNotFoundError: weather")
    (error,) = session.to_host
    assert error["id"] == 0
    assert "ModuleNotFoundError: weather" in error["error"]["message"]


def test_an_answer_to_a_request_of_the_old_server_does_not_reach_the_new_one() -> None:
    session = begun()
    session.server(request(0, "roots/list"))
    session.server(request(1, "roots/list"))
    session.forget()
    session.run(session.machine.restart(CHANGED))
    session.client(result(1, roots=[]))
    session.end()
    session.run(session.machine.started())
    assert "response" not in session.methods
    cancelled, *_ = session.to_host
    assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", 0)
    session.forget()
    session.client(result(0, roots=[]))
    assert session.to_server == []


def test_an_answer_that_was_held_while_the_server_was_restarted_is_dropped() -> None:
    session = begun()
    session.server(request(0, "roots/list"))
    session.restart()
    session.forget()
    session.run(session.machine.client(result(0, roots=[])))
    assert session.to_server == []


def test_a_request_of_the_new_server_with_the_id_of_a_stale_one_gets_another_id() -> None:
    session = begun()
    session.server(request(0, "roots/list"))
    session.restart()
    session.forget()
    session.server(request(0, "roots/list"))
    (asked,) = session.to_host
    assert asked["id"] != 0
    session.client(result(0, roots=["old"]))
    session.client(result(asked["id"], roots=["new"]))
    assert session.to_server == [{"jsonrpc": "2.0", "id": 0, "result": {"roots": ["new"]}}]
    session.forget()
    session.server(request(0, "roots/list"))
    assert session.to_host[0]["id"] == 0


def test_progress_for_a_request_of_the_old_server_is_dropped() -> None:
    session = begun()
    session.server(request(0, "sampling/createMessage", _meta={"progressToken": 7}))
    session.restart()
    session.forget()
    session.client(notification("notifications/progress", progressToken=7, progress=1))
    session.client(notification("notifications/progress", progressToken=8, progress=1))
    assert [message["params"]["progressToken"] for message in session.to_server] == [8]


def test_no_message_of_the_client_can_get_the_id_of_mcpspy() -> None:
    session = begun()
    ids = [message["id"] for message in session.to_server if "id" in message]
    assert all(str(id_).startswith("own-") for id_ in ids if id_ != 0)
    assert not session.server(result("own-999"))


def test_a_server_of_2026_gets_server_discover_and_the_open_subscription_with_its_id() -> None:
    session = begun_modern()
    session.forget()
    session.restart()
    discover, listen, *lists = session.to_server
    assert (discover["method"], discover["params"]["_meta"]) == ("server/discover", META)
    assert (listen["method"], listen["id"]) == ("subscriptions/listen", "listen-1")
    assert [each["method"] for each in lists] == ["tools/list", "resources/list", "resources/templates/list"]
    assert session.reports[0]["repeated"] == ['"listen-1"']


def test_the_second_acknowledgement_of_a_subscription_is_dropped() -> None:
    session = begun_modern()
    session.restart()
    data = notification(
        "notifications/subscriptions/acknowledged", notifications={}, _meta={SUBSCRIPTION: "listen-1"}
    )
    assert not session.server(data)


def test_changes_of_2026_are_sent_on_the_subscriptions_that_agreed_to_them() -> None:
    session = begun_modern()
    session.lists = {"tools": [tool("new")], "resources": [{"uri": "file:///a"}]}
    session.forget()
    session.restart()
    (sent,) = session.to_host
    assert sent["method"] == "notifications/tools/list_changed"
    assert sent["params"]["_meta"] == {SUBSCRIPTION: "listen-1"}
    assert session.reports[-1]["withheld"] == ["resources"]


def test_the_end_of_a_subscription_by_the_old_server_is_not_the_end_for_the_client() -> None:
    session = begun_modern()
    session.run(session.machine.restart(CHANGED))
    closed = {"jsonrpc": "2.0", "id": "listen-1", "error": {"code": -32000, "message": "Connection closed"}}
    assert not session.server(dumped(closed))
    assert not session.server(notification("notifications/cancelled", requestId="listen-1"))
    session.end()
    session.forget()
    session.run(session.machine.started())
    assert "subscriptions/listen" in session.methods


def test_a_subscription_that_the_client_has_cancelled_is_not_sent_again() -> None:
    session = begun_modern()
    session.client(notification("notifications/cancelled", requestId="listen-1"))
    session.forget()
    session.restart()
    assert "subscriptions/listen" not in session.methods


def test_a_probe_for_2026_does_not_make_a_server_with_a_handshake_modern() -> None:
    session = Session()
    session.run(session.machine.started())
    session.client(request("probe", "server/discover", _meta=META))
    refused = {"jsonrpc": "2.0", "id": "probe", "error": {"code": -32601, "message": "?"}}
    session.server(dumped(refused))
    session.client(request(0, "initialize", protocolVersion="2025-11-25"))
    session.server(result(0, protocolVersion="2025-11-25", capabilities={}))
    session.client(notification("notifications/initialized"))
    session.forget()
    session.restart()
    assert session.methods[0] == "initialize"


def test_a_list_of_several_pages_is_read_to_its_end() -> None:
    session = begun()
    session.answers = False
    session.forget()
    session.server(notification("notifications/tools/list_changed"))
    (first,) = session.to_server
    session.server(result(first["id"], tools=[tool("a")], nextCursor="2"))
    second = session.to_server[-1]
    assert second["params"] == {"cursor": "2"}
    session.server(result(second["id"], tools=[tool("b")]))
    session.answers = True
    session.lists["tools"] = [tool("b"), tool("a")]
    session.forget()
    session.restart()
    assert session.announced == []


def test_a_list_that_changes_while_it_is_read_is_read_again() -> None:
    session = begun()
    session.answers = False
    session.forget()
    changed = notification("notifications/tools/list_changed")
    session.server(changed)
    session.server(changed)
    (first,) = session.to_server
    session.server(result(first["id"], tools=[tool("a")]))
    assert session.methods == ["tools/list", "tools/list"]
    session.server(result(session.to_server[-1]["id"], tools=[tool("b")]))
    session.answers, session.lists["tools"] = True, [tool("b")]
    session.forget()
    session.restart()
    assert session.announced == []


def test_a_batch_is_forwarded_as_it_is() -> None:
    session = begun()
    session.client(b"[" + request(5, "ping") + b"," + request(6, "ping") + b"]")
    session.server(b"[" + result(5) + b"," + result(6) + b"]")
    session.forget()
    session.restart()
    assert session.to_host == []


def test_noise_and_unknown_responses_are_forwarded() -> None:
    session = begun()
    assert session.machine.server(b"DEBUG: ready").is_forwarded
    assert session.server(result(77))
