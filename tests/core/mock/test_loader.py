"""Which message of the client brought about which of the server's."""

from __future__ import annotations

from typing import Any

from mcpspy.core.mock.interaction import CANCEL, EOF, Scene
from tests.core.mock.talking import Talk, modern, scenes, scripted

LOG: dict[str, Any] = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}
CHANGED: dict[str, Any] = {"method": "notifications/tools/list_changed"}


def told(scene: Scene) -> list[tuple[str, float]]:
    """Return what a scene says, and how long after its last gate."""
    return [(getattr(step.message, "method", "answer"), step.after) for step in scene.steps]


def test_progress_belongs_to_the_token_and_nobody_else() -> None:
    progress: dict[str, Any] = {
        "method": "notifications/progress",
        "params": {"progressToken": "t", "progress": 1},
    }
    talk = Talk().client(id=1, method="slow", params={"_meta": {"progressToken": "t"}})
    talk.client(id=2, method="other").server(**progress).server(id=2, result={}).server(id=1, result={})
    slow, other = scenes(talk.session)
    assert told(slow) == [("notifications/progress", 2.0), ("answer", 4.0)]
    assert told(other) == [("answer", 2.0)]


def test_what_follows_the_client_s_answer_waits_for_it() -> None:
    talk = Talk().client(id=1, method="ask").server(id=1, method="roots/list")
    talk.client(id=1, result={"roots": []}).server(**LOG).server(id=1, result={})
    (scene,) = scenes(talk.session)
    assert [step.gates for step in scene.steps] == [(), (0,), (0,)]
    assert told(scene) == [("roots/list", 1.0), ("notifications/message", 1.0), ("answer", 2.0)]


def test_an_error_after_a_cancellation_waits_for_one_and_a_late_result_does_not() -> None:
    cancel: dict[str, Any] = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    error = {"code": 0, "message": "Request cancelled"}
    refused = Talk().client(id=1, method="a").client(**cancel).server(id=1, error=error)
    late = Talk().client(id=1, method="a").client(**cancel).server(id=1, result={})
    never = Talk().client(id=1, method="a").client(**cancel)
    assert [step.gates for scene in scenes(refused.session) for step in scene.steps] == [(CANCEL,)]
    assert [step.gates for scene in scenes(late.session) for step in scene.steps] == [()]
    assert [(scene.cancelled, scene.steps) for scene in scenes(never.session)] == [(True, [])]


def test_a_subscription_that_ended_with_the_connection_waits_for_its_end() -> None:
    talk = Talk().client(id="l", method="subscriptions/listen").note("eof", **{"from": "client"})
    talk.server(id="l", error={"code": -32000, "message": "Connection closed"})
    (scene,) = scenes(talk.session)
    assert [step.gates for step in scene.steps] == [(EOF,)]


def test_answers_to_a_client_that_had_closed_its_end_do_not_wait() -> None:
    talk = Talk().client(id=1, method="a").note("eof", **{"from": "client"}).server(id=1, result={})
    assert [step.gates for scene in scenes(talk.session) for step in scene.steps] == [()]


def test_an_http_error_without_a_message_is_an_answer() -> None:
    talk = Talk().client("s", 1, id=1, method="a")
    talk.note("http", http=1, stream="s", status=404).note("http-end", http=1, stream="s", hung_up=None)
    (scene,) = scenes(talk.session)
    assert scene.answer is not None
    assert b"HTTP 404" in scene.answer.data


def test_a_client_that_hung_up_waits_for_nothing() -> None:
    talk = Talk().client("s", 1, id=1, method="a", params={"_meta": modern()})
    talk.note("http-end", http=1, stream="s", hung_up="client").client("s", id=2, method="b").server(
        "s", **LOG
    )
    hung_up, other = scenes(talk.session)
    assert (hung_up.cancelled, hung_up.steps) == (True, [])
    assert told(other) == [("notifications/message", 1.0)]


def settled(talk: Talk) -> list[int]:
    """Return the rows to which nothing is added any more, as far as is known."""
    shelf = scripted(talk.session).shelf
    return [row for row in range(len(shelf)) if shelf.is_settled(row)]


def test_a_scene_is_over_when_it_is_answered_and_the_client_has_gone_on() -> None:
    talk = Talk().client(id=1, method="a")
    assert settled(talk) == []
    assert settled(talk.server(id=1, result={})) == []
    assert settled(talk.client(method="notifications/x")) == [0]
    assert settled(talk.client(id="l", method="subscriptions/listen").client(id=3, method="b")) == [0, 1]
    assert settled(talk.client(id=4, method="c")) == [0, 1]
    assert settled(talk.server(id=3, result={})) == [0, 1], "a note may follow, of what was done to it"
    assert settled(talk.note("stderr")) == [0, 1, 3]


def test_a_scene_is_not_over_while_the_client_owes_an_answer() -> None:
    talk = Talk().client(id=1, method="a").server(id=7, method="ping").server(id=1, result={}).call(2)
    assert settled(talk.call(3)) == [1]
    assert settled(talk.client(id=7, result={})) == [1, 2]
    assert settled(talk.server(**LOG).client(id=4, method="b")) == [0, 1, 2]


def test_a_scene_is_not_over_while_its_task_goes_on() -> None:
    talk = Talk().client(id=1, method="a").server(id=1, result={"task": {"taskId": "t"}})
    assert settled(talk.call(2).call(3)) == [1]


def test_over_http_the_client_has_to_go_on_in_the_same_session() -> None:
    talk = Talk().client("s", 1, id=1, method="a").server("s", 1, id=1, result={})
    assert settled(talk.client("t", 2, id=2, method="b").server("t", 2, id=2, result={})) == []
    assert settled(talk.client("s", 3, id=3, method="c")) == [0]
    meta = {"_meta": modern()}
    single = Talk().client("1", 1, id=1, method="a", params=meta).server("1", 1, id=1, result={})
    assert settled(single) == []
    assert settled(single.client("2", 2, id=2, method="b", params=meta)) == [0]


def test_answers_that_nobody_asked_for_and_garbage_are_left_out() -> None:
    talk = (
        Talk().call(1).server(id=1, result={"again": 1}).server(id=9, result={}).frame("server", b"DEBUG: x")
    )
    (scene,) = scenes(talk.session)
    assert told(scene) == [("answer", 1.0)]


def test_nothing_is_kept_of_what_was_answered_but_its_scene() -> None:
    script = scripted(Talk().handshake().call(1).call(2).session)
    assert not script._pairing._answered
    assert not script.placement._open
    assert not script._owed
