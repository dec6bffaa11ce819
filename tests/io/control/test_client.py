"""The blocking client of a live session."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.control import client as module
from mcpspy.io.control.client import CommandRefused, ControlClient

if TYPE_CHECKING:
    from pathlib import Path

    from mcpspy.io.control.server_poll import ThreadedServer
    from tests.io.control.conftest import ControlTarget


def test_an_order_is_answered_or_refused(opened: ThreadedServer, live: ControlTarget) -> None:
    with ControlClient(opened.path, "send") as session:
        assert session.hello["session"] == "0badcafe"
        assert session.order("list", x=10**30, y="\ud800") == {"did": "list"}
        with pytest.raises(CommandRefused, match=r"^not this$"):
            session.order("refuse")
    assert live.orders == [("send", {"n": 2, "order": "list", "x": 10**30, "y": "\ud800"})]


def test_events_that_come_before_an_answer_are_kept(opened: ThreadedServer) -> None:
    with ControlClient(opened.path) as session:
        session.order("tell", text="one")
        session.order("tell", text="two")
        assert [event["text"] for event in session.events(0.05)] == ["one", "two"]
        assert list(session.events(0)) == []


def test_an_answer_that_never_comes_is_not_waited_for(
    silent: str, monkeypatch: pytest.MonkeyPatch, runtime: Path
) -> None:
    monkeypatch.setattr(module, "RESPONSE_TIMEOUT", 0.05)
    session, other = socket.socketpair()
    other.sendall(b'{"mcpspy":1}\n')
    monkeypatch.setattr(module, "connect", lambda _path, _seconds: session)
    with ControlClient(silent) as asking, pytest.raises(CannotStart, match=r"did not respond in 0\.05 s"):
        asking.order("list")
    other.close()


def test_the_end_is_the_last_event_even_if_the_session_does_not_send_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, other = socket.socketpair()
    other.sendall(b'{"mcpspy":1}\n{"event":"held"}\n')
    other.close()
    monkeypatch.setattr(module, "connect", lambda _path, _seconds: session)
    with ControlClient("x.sock") as connected_client:
        assert [event["event"] for event in connected_client.events()] == ["held", "end"]
        with pytest.raises(CannotStart, match="the session has ended"):
            connected_client.order("list")


def test_the_error_for_a_session_that_is_killed_before_it_answers_has_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, other = socket.socketpair()
    other.sendall(b'{"mcpspy":1}\n')
    monkeypatch.setattr(module, "connect", lambda _path, _seconds: session)
    with ControlClient("x.sock") as asking:
        session.sendall(b"unread")  # So that the system resets the connection.
        other.close()
        with pytest.raises(CannotStart, match="the session has ended: "):
            asking.order("list")
        assert list(asking.events()) == [{"event": "end"}]
