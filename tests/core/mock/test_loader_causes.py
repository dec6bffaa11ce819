"""After which message of the client comes what does not say so itself."""

from __future__ import annotations

from typing import Any

from mcpspy.core.mock.interaction import Scene
from tests.core.mock.talking import Talk, scenes

LOG: dict[str, Any] = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}
CHANGED: dict[str, Any] = {"method": "notifications/tools/list_changed"}


def told(scene: Scene) -> list[tuple[str, float]]:
    """Return what a scene says, and how long after its last gate."""
    return [(getattr(step.message, "method", "answer"), step.after) for step in scene.steps]


def test_what_comes_while_nobody_waits_follows_the_last_message_of_the_client() -> None:
    talk = Talk().call(1).server(**CHANGED).client(method="notifications/initialized").server(**CHANGED)
    call, notice = scenes(talk.session)
    assert told(call) == [("answer", 1.0), ("notifications/tools/list_changed", 2.0)]
    assert told(notice) == [("notifications/tools/list_changed", 1.0)]


def test_of_two_requests_the_one_that_still_waits_is_meant() -> None:
    talk = Talk().client(id=1, method="slow").call(2).server(**LOG).server(id=1, result={})
    slow, call = scenes(talk.session)
    assert told(slow) == [("notifications/message", 3.0), ("answer", 4.0)]
    assert told(call) == [("answer", 1.0)]


def test_what_is_listened_for_comes_after_what_brought_it_about() -> None:
    meta: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/subscriptionId": "l"}}
    talk = Talk().client(id="l", method="subscriptions/listen")
    talk.server(method="notifications/subscriptions/acknowledged", params=meta)
    talk.client(id=1, method="tools/call").server(method="notifications/resources/updated", params=meta)
    talk.server(id=1, result={})
    listen, call = scenes(talk.session)
    assert told(listen) == [("notifications/subscriptions/acknowledged", 1.0)]
    assert told(call) == [("notifications/resources/updated", 1.0), ("answer", 2.0)]
    assert call.steps[0].listens == listen.number


def test_over_http_the_exchange_that_carried_it_says_what_it_belongs_to() -> None:
    talk = Talk().client("s", 1, id=1, method="a").client("s", 2, id=2, method="b")
    talk.server("s", 1, **LOG).server("s", 2, id=2, result={}).server("s", 1, id=1, result={})
    one, other = scenes(talk.session)
    assert told(one) == [("notifications/message", 2.0), ("answer", 4.0)]
    assert told(other) == [("answer", 2.0)]


def test_what_comes_before_the_answer_belongs_to_the_request_that_waits() -> None:
    talk = Talk().client(id=1, method="a").server(**LOG).server(id=1, result={})
    (scene,) = scenes(talk.session)
    assert told(scene) == [("notifications/message", 1.0), ("answer", 2.0)]


def test_what_the_server_says_first_opens_the_session() -> None:
    opening, call = scenes(Talk().server(**LOG).call(1).session)
    assert opening.cause is None
    assert told(opening) == [("notifications/message", 1.0)]
    assert told(call) == [("answer", 1.0)]
