"""Filtering of messages for one client, and translation of ids."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.mock.delivery import Playback
from mcpspy.core.mock.interaction import Interaction
from mcpspy.core.mock.selector import MatchMode
from tests.core.mock.talking import Talk, asking, interactions, log, modern, names, slow

LOG: dict[str, Any] = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}


def interaction(*, cancelled: bool = False) -> Interaction:
    talk = Talk().client(id=1, method="a").server(**LOG).server(id=1, method="roots/list")
    if cancelled:
        talk.client(method="notifications/cancelled", params={"requestId": 1})
        talk.server(id=1, error={"code": 0, "message": "Request cancelled"})
    else:
        talk.client(id=1, result={}).server(id=1, result={})
    return interactions(talk.session)[0]


def due(playback: Playback, *, skips: bool = False) -> list[tuple[float, int]]:
    return [(at, place) for at, place, _ in playback.due(lambda _: skips)]


@pytest.mark.parametrize(("speed", "scale"), [(0.0, 0.0), (1.0, 1.0), (2.0, 0.5), (0.5, 2.0)])
def test_steps_keep_their_recorded_delay_scaled_by_the_speed(speed: float, scale: float) -> None:
    playback = Playback(interaction(), 100.0, speed)
    assert due(playback) == [(100 + scale, 0), (100 + 2 * scale, 1)]
    playback.open(1, 200.0)
    assert due(playback) == [(200 + scale, 2)]
    assert due(playback) == []


def test_steps_keep_their_order_even_if_the_client_answers_early() -> None:
    playback = Playback(interaction(), 100.0, 1.0)
    playback.open(1, 100.0)
    assert due(playback) == [(101.0, 0), (102.0, 1), (102.0, 2)]


@pytest.mark.parametrize(("speed", "gaps"), [(0.0, [0.0, 0.0, 0.005]), (1.0, [1.0, 2.0, 3.0])])
def test_a_response_at_once_is_a_moment_after_the_progress_before_it(speed: float, gaps: list[float]) -> None:
    (played,) = interactions(slow().session)
    assert [at - 100.0 for at, _ in due(Playback(played, 100.0, speed, gap=0.005))] == pytest.approx(gaps)


def test_a_request_that_is_skipped_counts_as_answered() -> None:
    assert due(Playback(interaction(), 100.0, 1.0), skips=True) == [(101.0, 0), (103.0, 2)]


def test_after_a_cancellation_only_steps_that_waited_for_it_are_sent() -> None:
    playback = Playback(interaction(cancelled=True), 100.0, 1.0)
    due(playback)
    playback.cancel(150.0)
    assert due(playback) == [(151.0, 2)]
    stopped = Playback(interaction(), 100.0, 1.0)
    due(stopped)
    stopped.cancel(150.0)
    assert due(stopped) == []


def test_a_cancellation_skips_messages_that_did_not_wait_for_it() -> None:
    talk = Talk().client(id=1, method="a").server(id=1, method="roots/list").client(id=1, result={})
    talk.server(**LOG).client(method="notifications/cancelled", params={"requestId": 1})
    (cancelled, *_) = interactions(talk.server(id=1, error={"code": 0, "message": "cancelled"}).session)
    playback = Playback(cancelled, 100.0, 1.0)
    assert [place for _, place in due(playback)] == [0]
    playback.cancel(150.0)
    assert [place for _, place in due(playback)] == [2]


def test_each_server_request_has_a_unique_id_and_accepts_it_as_a_string() -> None:
    live = asking().live()
    live.initialize(roots={})
    (one,), (other,) = live.call("a", "ask"), live.call("b", "ask")
    assert one["id"] != other["id"]
    assert names(live.say(id=str(other["id"]), result={"roots": []})) == ["notifications/message", "b"]
    assert names(live.say(id=one["id"], result={"roots": []})) == ["notifications/message", "a"]


def test_a_client_without_the_capability_gets_no_server_requests() -> None:
    live = asking().live()
    live.initialize()
    assert names(live.call("a", "ask")) == ["notifications/message", "a"]


def test_a_request_that_the_server_withdrew_is_withdrawn_under_its_live_id() -> None:
    talk = Talk().client(id=1, method="a").server(id=70, method="ping")
    talk.server(method="notifications/cancelled", params={"requestId": 70}).server(id=1, result={})
    ping, cancelled, answer = talk.live().ask(1, "a")
    assert cancelled["params"]["requestId"] == ping["id"]
    assert answer["id"] == 1


def test_log_messages_have_at_least_the_level_that_the_client_set() -> None:
    talk = Talk().client(id=1, method="a").server(**log("info")).server(**log("error"))
    live = talk.server(id=1, result={}).live()
    assert names(live.ask(1, "a")) == ["notifications/message", "notifications/message", 1]
    assert live.ask(2, "logging/setLevel", level="warning") == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
    first, last = live.ask(3, "a")
    assert (first["params"]["level"], last["id"]) == ("error", 3)


def test_a_modern_request_gets_log_messages_only_at_the_level_that_it_names() -> None:
    talk = Talk().client(id=1, method="a", params={"_meta": modern()}).server(**log("info"))
    live = talk.server(id=1, result={}).live()
    level = "io.modelcontextprotocol/logLevel"
    assert names(live.ask(1, "a", _meta=modern())) == [1]
    assert names(live.ask(2, "a", _meta=modern(**{level: "debug"}))) == ["notifications/message", 2]
    assert names(live.ask(3, "a", _meta=modern(**{level: "error"}))) == [3]


def test_an_open_subscription_gets_notifications_under_its_live_id() -> None:
    meta = {"io.modelcontextprotocol/subscriptionId": "l"}
    talk = Talk().client(
        id="l", method="subscriptions/listen", params={"notifications": {}, "_meta": modern()}
    )
    talk.server(method="notifications/subscriptions/acknowledged", params={"_meta": meta})
    talk.client(id=1, method="touch", params={"_meta": modern()})
    talk.server(method="notifications/resources/updated", params={"uri": "x:", "_meta": meta})
    live = talk.server(id=1, result={}).live()
    assert names(live.ask(1, "touch", _meta=modern())) == [1]
    (acknowledged,) = live.ask("live", "subscriptions/listen", notifications={}, _meta=modern())
    updated, _ = live.ask(2, "touch", _meta=modern())
    for said in (acknowledged, updated):
        assert said["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "live"}
    assert live.say(method="notifications/cancelled", params={"requestId": "live"}) == []
    assert names(live.ask(3, "touch", _meta=modern())) == [3]
    assert not live.session.owes


def test_a_client_that_requests_no_progress_gets_none() -> None:
    assert names(slow().live().ask("a", "tools/call", name="slow")) == ["a"]


def test_a_modern_client_gets_no_server_requests_from_a_legacy_recording() -> None:
    live = asking().live(match=MatchMode.METHOD)
    live.initialize(roots={})
    assert names(live.ask("a", "tools/call", name="ask", _meta=modern())) == ["a"]


def test_a_modern_client_gets_the_server_requests_for_which_its_request_has_the_capability() -> None:
    talk = Talk().client(id=1, method="a", params={"_meta": modern()}).server(id=0, method="roots/list")
    live = talk.client(id=0, result={"roots": []}).server(id=1, result={}).live()
    capable = modern(**{"io.modelcontextprotocol/clientCapabilities": {"roots": {}}})
    assert names(live.ask(1, "a", _meta=modern())) == [1]
    assert names(live.ask(2, "a", _meta=capable)) == ["roots/list"]
