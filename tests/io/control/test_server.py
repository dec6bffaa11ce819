"""Messages between a session and its viewers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.io.control import server
from mcpspy.io.control.server import Connection, ControlServer

if TYPE_CHECKING:
    from tests.io.control.conftest import ControlTarget


class Viewer:
    """A viewer in memory."""

    def __init__(self, inside: ControlServer) -> None:
        self.message = b""
        self.is_out = False
        self.connection: Connection = inside.accept(self._handle_line, self._leave)

    def _handle_line(self, data: bytes) -> None:
        self.message += data

    def _leave(self) -> None:
        self.is_out = True

    def received(self) -> list[dict[str, Any]]:
        """Return everything sent to it since the last call."""
        message, self.message = self.message, b""
        assert message.endswith(b"\n") or not message
        return [json.loads(line) for line in message.splitlines()]

    def ask(self, **order: Any) -> dict[str, Any]:
        self.received()
        self.connection.feed(json.dumps(order).encode() + b"\n")
        (answer,) = self.received()
        return answer


def test_a_viewer_is_greeted_first(live: ControlTarget) -> None:
    assert Viewer(ControlServer(live)).received() == [{"mcpspy": 1, **live.hello()}]


def test_an_order_has_its_answer(live: ControlTarget) -> None:
    connection = Viewer(ControlServer(live))
    assert connection.ask(n=7, order="list") == {"n": 7, "ok": True, "did": "list"}
    assert live.orders == [("viewer", {"n": 7, "order": "list"})]


def test_a_refused_order_is_reported_in_one_line(live: ControlTarget) -> None:
    assert Viewer(ControlServer(live)).ask(n="x", order="refuse") == {
        "n": "x",
        "ok": False,
        "error": "not this",
    }


@pytest.mark.parametrize(
    "line", [b"{", b"\xff\xfe", b"", b"null", b"[1]", b'{"n":1}', b'{"order":5}', b"[" * 100_000]
)
def test_a_line_that_is_not_an_order_changes_nothing_and_the_next_order_is_executed(
    live: ControlTarget, line: bytes
) -> None:
    connection = Viewer(ControlServer(live))
    connection.received()
    connection.connection.feed(line + b'\n{"order":"list"}\n')
    refused, answered = connection.received()
    assert refused["error"].startswith("not a command: ")
    assert (refused["n"], refused["ok"]) == (None, False)
    assert answered == {"n": None, "ok": True, "did": "list"}
    assert [order for _, order in live.orders] == [{"order": "list"}]


def test_orders_may_come_in_pieces_and_several_at_once(live: ControlTarget) -> None:
    connection = Viewer(ControlServer(live))
    connection.received()
    message = b'{"n":1,"order":"a"}\n{"n":2,"order":"b"}\n'
    for at in range(0, len(message), 3):
        connection.connection.feed(message[at : at + 3])
    assert [answer["n"] for answer in connection.received()] == [1, 2]


def test_each_viewer_has_a_different_name(live: ControlTarget) -> None:
    inside = ControlServer(live)
    first, second, third = (Viewer(inside) for _ in range(3))
    assert first.ask(order="hello", viewer="tui")["viewer"] == "tui"
    assert second.ask(order="hello", viewer="tui")["viewer"] == "tui-2"
    assert first.ask(order="hello", viewer="tui")["viewer"] == "tui"
    assert third.ask(n=1, order="list")["ok"]
    assert live.orders[-1][0] == "viewer-3"
    for bad in ("", "two words", "x" * 21, 5, None):
        assert not third.ask(order="hello", viewer=bad)["ok"]


def test_an_event_goes_to_whom_it_is_for(live: ControlTarget) -> None:
    inside = ControlServer(live)
    tui, send = Viewer(inside), Viewer(inside)
    tui.ask(order="hello", viewer="tui")
    send.ask(order="hello", viewer="send")
    live.tell("tui", {"event": "one"})
    live.tell(None, {"event": "all"})
    inside.end()
    assert [event["event"] for event in tui.received()] == ["one", "all", "end"]
    assert [event["event"] for event in send.received()] == ["all", "end"]


def test_an_event_contains_any_json_of_a_peer(live: ControlTarget) -> None:
    connection = Viewer(ControlServer(live))
    connection.received()
    live.tell(None, {"event": "answer", "message": {"n": 10**30, "text": "\ud800"}})
    assert connection.received() == [{"event": "answer", "message": {"n": 10**30, "text": "\ud800"}}]


def test_the_session_hears_once_that_a_viewer_has_left(live: ControlTarget) -> None:
    inside = ControlServer(live)
    connection = Viewer(inside)
    connection.connection.on_disconnect()
    connection.connection.on_disconnect()
    connection.connection.feed(b'{"order":"list"}\n')
    assert (live.gone, live.orders, inside.connections) == (["viewer"], [], [])


def test_a_new_name_leaves_nothing_behind_under_the_old_one(live: ControlTarget) -> None:
    connection = Viewer(ControlServer(live))
    connection.ask(order="hello", viewer="tui")
    assert live.gone == ["viewer"]


def test_a_line_without_end_is_not_kept_for_ever(
    live: ControlTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_LINE", 100)
    connection = Viewer(ControlServer(live))
    connection.received()
    connection.connection.feed(b'{"order":"list"}\n' + b"x" * 60)
    temporary = connection.is_out
    connection.connection.feed(b"x" * 60)
    assert (temporary, connection.is_out) == (False, True)
    assert connection.received()[-1]["error"] == "the line exceeds 100 bytes"


def test_a_server_that_requires_a_token_sends_nothing_before_it(live: ControlTarget) -> None:
    inside = ControlServer(live, b"secret")
    outsider, friend = Viewer(inside), Viewer(inside)
    live.tell(None, {"event": "all"})
    outsider.connection.feed(b'guess\n{"order":"list"}\n')
    assert outsider.is_out
    assert (outsider.received(), live.orders) == ([], [])
    friend.connection.feed(b'secret\n{"order":"list"}\n')
    assert [set(message) for message in friend.received()] == [{"mcpspy", *live.hello()}, {"n", "ok", "did"}]
