"""Pending requests and their deadlines."""

from __future__ import annotations

import pytest

from mcpspy.core.intercept import requests as module
from mcpspy.core.intercept.actions import AddNote, rule_note
from mcpspy.core.intercept.requests import AwaitedRequest, Deadlines, Watchdog, about
from mcpspy.core.protocol.message import Notification, Request
from tests.core.intercept.interceptors import call, exchange_named, message, progress, result


def _watchdog() -> Watchdog:
    return Watchdog(10.0, None, keep=False)


def _request(
    number: object = 1, side: str = "client", stream: str | None = None, token: int | None = None
) -> Request:
    data = call(number)
    if token is not None:
        data = data.replace(b'"params": {', b'"params": {"_meta": {"progressToken": %d}, ' % token)
    request = message(data, side, stream=stream)
    assert isinstance(request, Request)
    return request


def _progresses(watchdog: Watchdog, token: float, at: float, side: str = "server") -> bool:
    """Return whether progress with this token, at a time, restarts the timeout of a request."""
    report = message(progress(token), side, at)
    assert isinstance(report, Notification)
    watchdog.observe(report)
    return watchdog.timeouts.next_at == at + 10.0


def test_a_response_belongs_to_the_request_with_its_id_in_its_stream() -> None:
    waiting = _watchdog()
    requests = _request(1), _request(1, "server"), _request("1"), _request(1, stream="2")
    one, two, three, four = (waiting.track(request, None) for request in requests)

    assert waiting.resolve(None, "server", "1") is one
    assert waiting.resolve(None, "server", "1") is None
    assert waiting.resolve(None, "client", "1") is two
    assert waiting.resolve(None, "server", '"1"') is three
    assert waiting.resolve("2", "server", "1") is four
    assert waiting.resolve(None, "server", None) is None


@pytest.mark.parametrize("id_", ["1", "1.0", "1e0", "10e-1"])
def test_ids_are_paired_by_value(id_: str) -> None:
    waiting = _watchdog()
    text, number = (waiting.track(request, None) for request in (_request("1"), _request(1.0)))

    assert waiting.resolve(None, "server", id_) is number
    assert waiting.resolve(None, "server", id_) is None
    waiting.abandon(number)
    assert waiting.late(None, "server", id_) is None
    number.is_forwarded, number.is_answered = True, False
    waiting.abandon(number)
    assert waiting.late(None, "server", id_) is number
    assert waiting.resolve(None, "server", '"1"') is text


def test_a_request_that_reuses_an_id_replaces_the_first() -> None:
    waiting = _watchdog()
    first, second = (waiting.track(_request(), None) for _ in range(2))

    assert list(waiting.timeouts) == [second]
    assert first is not second
    assert waiting.resolve(None, "server", "1") is second


def test_progress_is_found_until_the_answer() -> None:
    waiting = _watchdog()
    waiting.track(_request(token=8), None)

    assert not _progresses(waiting, 8, 1.0, "client")
    assert _progresses(waiting, 8.0, 2.0)
    waiting.resolve(None, "server", "1")
    assert not _progresses(waiting, 8, 3.0)


def test_a_response_is_late_once_and_only_if_the_request_was_forwarded() -> None:
    waiting = _watchdog()
    gone, never = (waiting.track(_request(number), None) for number in (1, 2))
    gone.is_forwarded = True
    for awaited in (gone, never):
        waiting.abandon(awaited)

    assert waiting.resolve(None, "server", "1") is None
    assert waiting.late(None, "server", "1") is gone
    assert waiting.late(None, "server", "1") is None
    assert waiting.late(None, "server", "2") is None
    assert gone.is_abandoned


def test_an_id_that_is_used_again_is_not_late() -> None:
    waiting = _watchdog()
    first = waiting.track(_request(), None)
    first.is_forwarded = True
    waiting.abandon(first)
    waiting.track(_request(), None)

    assert waiting.late(None, "server", "1") is None


def test_pending_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 3)
    waiting = _watchdog()
    for number in range(5):
        waiting.track(_request(number), None)

    found = [waiting.resolve(None, "server", str(number)) is not None for number in range(5)]
    assert found == [False, False, True, True, True]


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
