"""What is said between a session and its visitors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.io.control import server
from mcpspy.io.control.server import Connection, ControlServer

if TYPE_CHECKING:
    from tests.io.control.conftest import Live


class Visitor:
    """A visitor in memory."""

    def __init__(self, inside: ControlServer) -> None:
        self.said = b""
        self.is_out = False
        self.guest: Connection = inside.enter(self._hear, self._leave)

    def _hear(self, data: bytes) -> None:
        self.said += data

    def _leave(self) -> None:
        self.is_out = True

    def heard(self) -> list[dict[str, Any]]:
        """Return what was said to it since the last time."""
        said, self.said = self.said, b""
        assert said.endswith(b"\n") or not said
        return [json.loads(line) for line in said.splitlines()]

    def ask(self, **order: Any) -> dict[str, Any]:
        self.heard()
        self.guest.feed(json.dumps(order).encode() + b"\n")
        (answer,) = self.heard()
        return answer


def test_a_visitor_is_greeted_first(live: Live) -> None:
    assert Visitor(ControlServer(live)).heard() == [{"mcpspy": 1, **live.hello()}]


def test_an_order_has_its_answer(live: Live) -> None:
    visitor = Visitor(ControlServer(live))
    assert visitor.ask(n=7, order="list") == {"n": 7, "ok": True, "did": "list"}
    assert live.orders == [("viewer", {"n": 7, "order": "list"})]


def test_what_is_refused_is_said_in_one_line(live: Live) -> None:
    assert Visitor(ControlServer(live)).ask(n="x", order="refuse") == {
        "n": "x",
        "ok": False,
        "error": "not this",
    }


@pytest.mark.parametrize(
    "line", [b"{", b"\xff\xfe", b"", b"null", b"[1]", b'{"n":1}', b'{"order":5}', b"[" * 100_000]
)
def test_a_line_that_is_no_order_changes_nothing_and_the_next_one_counts(live: Live, line: bytes) -> None:
    visitor = Visitor(ControlServer(live))
    visitor.heard()
    visitor.guest.feed(line + b'\n{"order":"list"}\n')
    refused, answered = visitor.heard()
    assert refused["error"].startswith("no order: ")
    assert (refused["n"], refused["ok"]) == (None, False)
    assert answered == {"n": None, "ok": True, "did": "list"}
    assert [order for _, order in live.orders] == [{"order": "list"}]


def test_orders_may_come_in_pieces_and_several_at_once(live: Live) -> None:
    visitor = Visitor(ControlServer(live))
    visitor.heard()
    said = b'{"n":1,"order":"a"}\n{"n":2,"order":"b"}\n'
    for at in range(0, len(said), 3):
        visitor.guest.feed(said[at : at + 3])
    assert [answer["n"] for answer in visitor.heard()] == [1, 2]


def test_visitors_have_names_of_their_own(live: Live) -> None:
    inside = ControlServer(live)
    first, second, third = (Visitor(inside) for _ in range(3))
    assert first.ask(order="hello", viewer="tui")["viewer"] == "tui"
    assert second.ask(order="hello", viewer="tui")["viewer"] == "tui-2"
    assert first.ask(order="hello", viewer="tui")["viewer"] == "tui"
    assert third.ask(n=1, order="list")["ok"]
    assert live.orders[-1][0] == "viewer-3"
    for bad in ("", "two words", "x" * 21, 5, None):
        assert not third.ask(order="hello", viewer=bad)["ok"]


def test_an_event_goes_to_whom_it_is_for(live: Live) -> None:
    inside = ControlServer(live)
    tui, send = Visitor(inside), Visitor(inside)
    tui.ask(order="hello", viewer="tui")
    send.ask(order="hello", viewer="send")
    live.tell("tui", {"event": "one"})
    live.tell(None, {"event": "all"})
    inside.end()
    assert [event["event"] for event in tui.heard()] == ["one", "all", "end"]
    assert [event["event"] for event in send.heard()] == ["all", "end"]


def test_an_event_holds_whatever_a_peer_has_said(live: Live) -> None:
    visitor = Visitor(ControlServer(live))
    visitor.heard()
    live.tell(None, {"event": "answer", "message": {"n": 10**30, "text": "\ud800"}})
    assert visitor.heard() == [{"event": "answer", "message": {"n": 10**30, "text": "\ud800"}}]


def test_the_session_hears_once_that_a_visitor_has_left(live: Live) -> None:
    inside = ControlServer(live)
    visitor = Visitor(inside)
    visitor.guest.left()
    visitor.guest.left()
    visitor.guest.feed(b'{"order":"list"}\n')
    assert (live.gone, live.orders, inside.guests) == (["viewer"], [], [])


def test_a_new_name_leaves_nothing_behind_under_the_old_one(live: Live) -> None:
    visitor = Visitor(ControlServer(live))
    visitor.ask(order="hello", viewer="tui")
    assert live.gone == ["viewer"]


def test_a_line_without_end_is_not_kept_for_ever(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LONGEST", 100)
    visitor = Visitor(ControlServer(live))
    visitor.heard()
    visitor.guest.feed(b'{"order":"list"}\n' + b"x" * 60)
    before = visitor.is_out
    visitor.guest.feed(b"x" * 60)
    assert (before, visitor.is_out) == (False, True)
    assert visitor.heard()[-1]["error"] == "a line of more than 100 bytes"


def test_where_a_token_is_asked_for_nothing_is_said_before_it(live: Live) -> None:
    inside = ControlServer(live, b"secret")
    stranger, friend = Visitor(inside), Visitor(inside)
    live.tell(None, {"event": "all"})
    stranger.guest.feed(b'guess\n{"order":"list"}\n')
    assert stranger.is_out
    assert (stranger.heard(), live.orders) == ([], [])
    friend.guest.feed(b'secret\n{"order":"list"}\n')
    assert [set(said) for said in friend.heard()] == [{"mcpspy", *live.hello()}, {"n", "ok", "did"}]
