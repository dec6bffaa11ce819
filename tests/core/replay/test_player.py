"""The player of a plan: messages, their times, and their ids."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.replay.substitution import rule
from tests.core.mock.talking import log, modern, progress
from tests.core.replay.playing import Json, Stage, Talk


def methods(said: list[Json]) -> list[Any]:
    return [message.get("method") for message in said]


def ids(said: list[Json]) -> list[Any]:
    return [message.get("id") for message in said]


def two_calls(**options: Any) -> Stage:
    return Stage(Talk().call(5, "one").call("six", "two").session, **options)


def test_a_message_waits_for_the_same_response_as_the_recorded_one_under_a_live_id() -> None:
    stage = two_calls()

    assert ids(stage.takes()) == [1]
    assert stage.hears(**log()) == []
    assert ids(stage.hears(id=1, result={})) == [2]
    assert not stage.player.is_over
    assert stage.hears(id=2, result={}) == []
    assert stage.player.is_over


def test_concurrent_requests_stay_concurrent_unless_serial() -> None:
    talk = (
        Talk()
        .client(id=1, method="a")
        .client(id=2, method="b")
        .server(id=1, result={})
        .server(id=2, result={})
    )

    assert ids(Stage(talk.session).takes()) == [1, 2]
    stage = Stage(talk.session, serial=True)
    assert ids(stage.takes()) == [1]
    assert ids(stage.hears(id=1, result={})) == [2]


def test_a_cancellation_does_not_wait_in_serial_either() -> None:
    talk = Talk().client(id=1, method="a").client(id=2, method="b")
    talk.client(method="notifications/cancelled", params={"requestId": 1}).server(id=2, result={})
    stage = Stage(talk.session, serial=True)

    said = stage.takes()
    assert methods(said) == ["a", "b", "notifications/cancelled"]
    assert said[2]["params"] == {"requestId": 1}


def test_an_answer_with_its_id_as_a_text_is_an_answer() -> None:
    stage = two_calls()
    stage.takes()

    assert ids(stage.hears(id="1", result={})) == [2]


def test_an_http_error_settles_its_request_whatever_its_id() -> None:
    stage = two_calls()
    stage.takes()
    stage.player.received(
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}', stage.now, "1", 400
    )

    assert ids(stage.takes()) == [2]


def test_a_progress_token_is_the_live_id_and_the_rest_of_the_request_as_it_was() -> None:
    params = {"name": "slow", "arguments": {"x": 1.50}, "_meta": {"progressToken": "tok", "mine": 1}}
    talk = Talk().client(id=7, method="tools/call", params=params).server(id=7, result={})
    (said,) = Stage(talk.session).takes()

    assert said["params"] == {
        "name": "slow",
        "arguments": {"x": 1.5},
        "_meta": {"progressToken": 1, "mine": 1},
    }


def test_a_cancellation_waits_for_progress_and_names_the_live_request() -> None:
    talk = Talk().client(id=7, method="tools/call", params={"_meta": {"progressToken": "t"}})
    talk.server(**progress("t", 1)).client(
        method="notifications/cancelled", params={"requestId": 7, "reason": "x"}
    )
    stage = Stage(talk.session)

    assert ids(stage.takes()) == [1]
    (said,) = stage.hears(**progress(1, 1))
    assert said["params"] == {"requestId": 1, "reason": "x"}


def test_progress_on_an_answered_request_is_not_waited_for() -> None:
    talk = Talk().client(id=7, method="tools/call", params={"_meta": {"progressToken": "t"}})
    talk.server(**progress("t", 1)).client(method="notifications/cancelled", params={"requestId": 7})
    stage = Stage(talk.session)
    stage.takes()

    assert methods(stage.hears(id=1, result={})) == ["notifications/cancelled"]


def test_a_client_that_disconnected_sends_a_cancellation() -> None:
    talk = Talk().client(id=1, method="tools/call", params={"_meta": modern()}, stream="1", http=1)
    talk.note("http-end", http=1, stream="1", hung_up="client")

    assert Stage(talk.session).takes()[1] == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 1},
    }


def asking() -> Talk:
    talk = Talk().handshake().server(id=0, method="roots/list").client(id=0, result={"roots": []})
    return talk.call(1)


def test_a_question_is_answered_and_what_followed_it_waits_for_it() -> None:
    stage = Stage(asking().session)
    stage.takes()
    assert methods(stage.hears(id=1, result={})) == ["notifications/initialized"]

    said = stage.hears(id="theirs", method="roots/list")
    assert said[0] == {"jsonrpc": "2.0", "id": "theirs", "result": {"roots": []}}
    assert methods(said[1:]) == ["tools/call"]


def test_a_missing_server_request_is_waited_for_up_to_its_limit() -> None:
    stage = Stage(asking().session)
    stage.takes()
    stage.hears(id=1, result={})

    assert stage.waits() == pytest.approx(3.0)  # Three times the recorded delay of one second.
    assert methods(stage.takes()) == ["tools/call"]


def test_a_notification_that_arrived_is_not_waited_for() -> None:
    talk = Talk().call(1).server(**log()).call(2)
    stage = Stage(talk.session)
    stage.takes()
    stage.player.received(b'{"jsonrpc":"2.0","method":"notifications/message"}', stage.now)

    assert ids(stage.hears(id=1, result={})) == [2]


def test_a_recorded_pause_is_repeated_at_the_given_speed() -> None:
    stage = two_calls(speed=2.0)
    assert stage.waits() == pytest.approx(0.5)
    assert ids(stage.takes()) == [1]
    stage.now += 10
    assert stage.hears(id=1, result={}) == []
    assert stage.waits() == pytest.approx(0.5)
    assert ids(stage.takes()) == [2]


def test_a_missing_response_is_a_warning_and_the_run_continues() -> None:
    stage = Stage(Talk().call(1).call(2).call(3).session, timeout=4.0)
    stage.takes()
    stage.hears(id=1, result={})

    assert stage.waits() == pytest.approx(4.0)
    assert ids(stage.takes()) == [3]
    assert stage.player.warnings == ["no response to tools/call echo within 4 s"]
    assert stage.player.sent[1].failed is not None
    assert stage.player.stopped is None


def test_a_server_that_stops_responding_ends_the_run() -> None:
    stage = Stage(Talk().call(1).call(2, "b").call(3, "c").call(4, "d").session, timeout=4.0)
    stage.takes()
    stage.hears(id=1, result={})
    for _ in range(2):
        stage.waits()
        stage.takes()

    assert stage.player.is_over
    assert stage.player.stopped is not None
    assert "hangs" in stage.player.stopped
    assert len(stage.player.sent) == 3


def test_a_server_that_never_responded_gets_one_timeout_and_a_garbled_line_is_not_a_response() -> None:
    stage = two_calls(timeout=4.0)
    stage.takes()
    assert not stage.player.received(b"Traceback (most recent call last):", stage.now)
    stage.waits()
    stage.takes()

    assert stage.player.stopped == "no response to tools/call one within 4 s"


def test_a_server_that_exits_leaves_its_requests_unanswered() -> None:
    stage = two_calls()
    stage.takes()
    stage.player.end("the server ended with exit code 3", stage.now)

    assert stage.player.stopped == "the server ended with exit code 3 before it answered tools/call one"
    assert stage.takes() == []


def test_a_handshake_that_fails_is_the_end() -> None:
    stage = Stage(Talk().handshake().call(1).session)
    stage.takes()
    stage.player.refused("1", "HTTP 401 Unauthorized", stage.now)

    assert stage.player.stopped == "initialize: HTTP 401 Unauthorized"


def test_a_refused_call_does_not_end_the_run() -> None:
    stage = two_calls()
    stage.takes()
    stage.player.refused("1", "HTTP 500", stage.now)

    assert ids(stage.takes()) == [2]
    assert stage.player.sent[0].failed == "HTTP 500"


def test_a_refused_message_that_is_not_a_request_is_a_warning() -> None:
    stage = two_calls()
    stage.takes()
    stage.player.refused(None, "notifications/initialized: HTTP 400", stage.now)
    stage.player.refused("99", "HTTP 404", stage.now)

    assert stage.player.warnings == ["notifications/initialized: HTTP 400", "HTTP 404"]
    assert stage.player.stopped is None


def test_a_refusal_after_the_response_changes_nothing() -> None:
    stage = two_calls()
    stage.takes()
    assert ids(stage.hears(id=1, result={})) == [2]
    stage.player.refused("1", "it broke off", stage.now)

    assert (stage.player.sent[0].failed, stage.player.stopped) == (None, None)
    assert stage.player.sent[0].answer is not None


def test_a_malformed_message_is_sent_as_it_was_recorded() -> None:
    stage = Stage(Talk().frame("client", b"{oops}").call(1).session)

    assert stage.player.take(stage.now)[0] == b"{oops}"


def test_an_unreachable_server_ends_the_run_unless_it_responded_before() -> None:
    stage = two_calls()
    stage.takes()
    stage.player.refused("1", "cannot reach it", stage.now, is_gone=True)
    assert stage.player.stopped == "tools/call one: cannot reach it"

    stage = Stage(Talk().call(1).call(2, "b").call(3, "c").session)
    stage.takes()
    stage.hears(id=1, result={})
    stage.player.refused("2", "it broke off", stage.now, is_gone=True)
    assert ids(stage.takes()) == [3]


def chain() -> Talk:
    question = {"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "old"}
    talk = Talk().client(id=1, method="tools/call", params={"name": "ask"}).server(id=1, result=question)
    again = {"name": "ask", "inputResponses": {"a": {"action": "accept"}}, "requestState": "old"}
    return talk.client(id=2, method="tools/call", params=again).server(id=2, result={})


def test_a_question_in_a_result_is_answered_with_the_live_state() -> None:
    stage = Stage(chain().session)
    stage.takes()
    live = {"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "sealed"}
    (said,) = stage.hears(id=1, result=live)

    assert said["params"]["requestState"] == "sealed"
    assert said["params"]["inputResponses"] == {"a": {"action": "accept"}}


def test_a_response_to_a_question_that_is_not_asked_is_not_sent() -> None:
    stage = Stage(chain().session)
    stage.takes()

    assert stage.hears(id=1, result={"requestState": "s"}) == []
    assert stage.player.is_over
    assert stage.player.warnings == [
        "tools/call ask: not sent, because the server asked no question this time"
    ]
    assert len(stage.player.sent) == 1


def test_a_page_without_its_cursor_is_not_requested() -> None:
    talk = Talk().client(id=1, method="tools/list").server(id=1, result={"tools": [], "nextCursor": "p2"})
    talk.client(id=2, method="tools/list", params={"cursor": "p2"}).server(id=2, result={"tools": []})
    stage = Stage(talk.session)
    stage.takes()

    assert stage.hears(id=1, result={"tools": []}) == []
    assert stage.player.warnings == [
        "tools/list p2: not sent, because the server returned no cursor this time"
    ]


def test_a_carried_value_is_the_live_one() -> None:
    talk = Talk().call(1, "open", "s1").call(2, "use", session="s1")
    stage = Stage(talk.session, carry=(rule("/result/said"),))
    stage.takes()
    (said,) = stage.hears(id=1, result={"said": "s2"})

    assert said["params"]["arguments"] == {"session": "s2"}


def test_progress_of_the_client_has_the_live_token() -> None:
    talk = Talk().client(id=1, method="tools/call", params={"name": "ask"})
    talk.server(id=0, method="sampling/createMessage", params={"_meta": {"progressToken": "p"}})
    talk.client(**progress("p", 1)).client(id=0, result={}).server(id=1, result={})
    stage = Stage(talk.session)
    stage.takes()
    said = stage.hears(id=0, method="sampling/createMessage", params={"_meta": {"progressToken": 8}})

    assert [message["params"]["progressToken"] for message in said if "method" in message] == [8]


def test_a_subscription_is_neither_waited_for_nor_timed() -> None:
    talk = Talk().client(id="l", method="subscriptions/listen", params={"_meta": modern()})
    talk.server(method="notifications/subscriptions/acknowledged", params={}).call(2)
    stage = Stage(talk.session, timeout=1.0)
    assert methods(stage.takes()) == ["subscriptions/listen"]

    assert methods(stage.hears(method="notifications/subscriptions/acknowledged", params={})) == [
        "tools/call"
    ]
    stage.hears(id=2, result={})
    assert stage.player.is_over
    assert stage.player.stopped is None


def test_requests_without_a_recorded_response_get_a_moment_at_the_end() -> None:
    stage = Stage(Talk().call(1).client(id=2, method="b").note("exit", code=1, signal=None).session)
    stage.takes()
    assert ids(stage.hears(id=1, result={})) == [2]
    assert not stage.player.is_over

    assert stage.waits() == pytest.approx(1.0)
    stage.takes()
    assert stage.player.is_over


CLIENT = st.sampled_from(["request", "notice", "answer", "cancel"])
SERVER = st.sampled_from(["answer", "error", "question", "notice", "progress"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), CLIENT, SERVER), max_size=12),
    st.lists(SERVER, max_size=8),
    st.booleans(),
    st.sampled_from([0.0, 2.0]),
)
def test_every_run_ends_whatever_was_recorded_and_whatever_the_server_sends(
    recorded: list[tuple[bool, str, str]], live: list[str], serial: bool, speed: float
) -> None:
    talk = Talk()
    for number, (is_client, said, received) in enumerate(recorded):
        if is_client:
            talk.client(**_said(said, number))
        else:
            talk.server(**_received(received, max(0, number - 1)))
    talk.call(99).session.end()
    stage = Stage(talk.session, timeout=2.0, serial=serial, speed=speed)
    begun = stage.now
    for what in live:
        stage.takes()
        stage.hears(**_received(what, 1))
    steps = 0
    while not stage.player.is_over:
        stage.takes()
        if not stage.player.is_over:
            stage.waits()
        steps += 1
        assert steps < 200
    assert stage.now - begun <= 2.0 * (len(recorded) + 2) + (len(recorded) + 2 if speed else 0.0)


def _said(what: str, number: int) -> Json:
    said: dict[str, Json] = {
        "request": {"id": number, "method": "tools/call", "params": {"_meta": {"progressToken": number}}},
        "notice": {"method": "notifications/initialized"},
        "answer": {"id": number, "result": {}},
        "cancel": {"method": "notifications/cancelled", "params": {"requestId": max(0, number - 1)}},
    }
    return said[what]


def _received(what: str, number: int) -> Json:
    return {
        "answer": {"id": number, "result": {}},
        "error": {"id": number, "error": {"code": 1, "message": "no"}},
        "question": {"id": number, "method": "roots/list"},
        "notice": log(),
        "progress": progress(number, 1),
    }[what]


def test_live_secrets_replace_placeholders_and_an_unknown_one_is_a_warning() -> None:
    talk = Talk().handshake().call(1, "login", api_key="[redacted:00000001]", pin="[redacted:00000002]")
    stage = Stage(talk.session, secrets={"api_key": "s3cret"})
    stage.takes()
    (_, asked) = stage.hears(
        id=1, result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    )
    assert asked["params"]["arguments"] == {"api_key": "s3cret", "pin": "[redacted:00000002]"}
    (warning,) = stage.player.warnings
    assert warning.endswith("sent with placeholders of redacted secrets: 00000002")
