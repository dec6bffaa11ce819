"""Pending requests and their deadlines."""

from __future__ import annotations

import pytest

from mcpspy.core.intercept import requests as module
from mcpspy.core.intercept.actions import AddNote, rule_note
from mcpspy.core.intercept.requests import AwaitedRequest, Deadlines, PendingRequests, about
from mcpspy.core.protocol.message import Request
from tests.core.intercept.interceptors import call, exchange_named, message, progress, result


def _request(
    number: object = 1, side: str = "client", stream: str | None = None, token: int | None = None
) -> AwaitedRequest:
    data = call(number)
    if token is not None:
        data = data.replace(b'"params": {', b'"params": {"_meta": {"progressToken": %d}, ' % token)
    request = message(data, side, stream=stream)
    assert isinstance(request, Request)
    return AwaitedRequest(request, None, keep=False)


def test_a_response_belongs_to_the_request_with_its_id_in_its_stream() -> None:
    waiting = PendingRequests()
    one, two, three, four = _request(1), _request(1, "server"), _request("1"), _request(1, stream="2")
    for awaited in (one, two, three, four):
        assert waiting.add(awaited) is None

    assert waiting.resolve(None, "server", "1") is one
    assert waiting.resolve(None, "server", "1") is None
    assert waiting.resolve(None, "client", "1") is two
    assert waiting.resolve(None, "server", '"1"') is three
    assert waiting.resolve("2", "server", "1") is four
    assert waiting.resolve(None, "server", None) is None


@pytest.mark.parametrize("id_", ["1", "1.0", "1e0", "10e-1"])
def test_ids_are_paired_by_value(id_: str) -> None:
    waiting = PendingRequests()
    text, number = _request("1", token=9), _request(1.0, token=8)
    waiting.add(text)
    waiting.add(number)

    assert waiting.by_progress_token(None, "server", "8.0") is number
    assert waiting.find(None, "client", id_) is number
    assert waiting.resolve(None, "server", id_) is number
    assert waiting.resolve(None, "server", id_) is None
    waiting.abandon(number)
    number.is_forwarded = True
    number.is_answered = False
    waiting.abandon(number)
    assert waiting.late(None, "server", id_) is number
    assert waiting.resolve(None, "server", '"1"') is text


def test_a_request_that_reuses_an_id_replaces_the_first() -> None:
    waiting = PendingRequests()
    first, second = _request(), _request()
    waiting.add(first)

    assert waiting.add(second) is first
    assert waiting.find(None, "client", "1") is second


def test_progress_is_found_until_the_answer() -> None:
    waiting = PendingRequests()
    awaited = _request(token=9)
    waiting.add(awaited)

    assert waiting.by_progress_token(None, "server", "9") is awaited
    assert waiting.by_progress_token(None, "client", "9") is None
    waiting.resolve(None, "server", "1")
    assert waiting.by_progress_token(None, "server", "9") is None


def test_a_response_is_late_once_and_only_if_the_request_was_forwarded() -> None:
    waiting = PendingRequests()
    gone, never = _request(1), _request(2)
    gone.is_forwarded = True
    for awaited in (gone, never):
        waiting.add(awaited)
        waiting.abandon(awaited)

    assert waiting.resolve(None, "server", "1") is None
    assert waiting.late(None, "server", "1") is gone
    assert waiting.late(None, "server", "1") is None
    assert waiting.late(None, "server", "2") is None
    assert gone.is_abandoned


def test_an_id_that_is_used_again_is_not_late() -> None:
    waiting = PendingRequests()
    first = _request()
    first.is_forwarded = True
    waiting.add(first)
    waiting.abandon(first)
    waiting.add(_request())

    assert waiting.late(None, "server", "1") is None


def test_pending_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 3)
    waiting = PendingRequests()
    for number in range(5):
        waiting.add(_request(number))

    assert [waiting.find(None, "client", str(number)) is not None for number in range(5)] == [False] * 2 + [
        True
    ] * 3


def test_deadlines_are_due_in_the_order_of_their_start() -> None:
    deadlines = Deadlines[str](10)
    for at, thing in enumerate("abc"):
        deadlines.start(thing, at)
    deadlines.start("a", 5)
    assert deadlines.stop("c")
    assert not deadlines.stop("c")

    assert deadlines.next_at == 11
    assert deadlines.due(10.9) == []
    assert deadlines.due(15) == ["b", "a"]
    assert len(deadlines) == 0


def test_no_limit_is_never_due() -> None:
    deadlines = Deadlines[str](None)
    deadlines.start("a", 0)

    assert (deadlines.next_at, deadlines.due(1e9)) == (None, [])


def test_a_note_names_its_message_and_leaves_out_what_is_empty() -> None:
    request = message(call("a"), stream="3")
    assert isinstance(request, Request)
    awaited = AwaitedRequest(request, None, keep=False)
    names = {"stream": "3", "from": "client", "id": '"a"', "method": "tools/call", "subject": "echo"}

    assert about(request, awaited) == awaited.note_fields == names
    assert about(message(result("a"), "server", stream="3"), awaited) == {**names, "from": "server"}
    assert rule_note("drop", about(message(progress(1), "server"), None), exchange_named("lane")) == AddNote(
        "rule",
        {"action": "drop", "from": "server", "method": "notifications/progress", "subject": "1"},
        exchange_named("lane"),
    )
    assert rule_note("drop", about(message(b"{}", "server"), awaited)).fields == {
        "action": "drop",
        "from": "server",
    }
