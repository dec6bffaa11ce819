"""Which recorded answer is next."""

from __future__ import annotations

import pytest

from mcpspy.core.mock.selector import Match
from tests.core.mock.talking import Live, Talk, modern

MISS = -32603


def test_answers_of_one_request_come_in_their_order_and_the_last_is_repeated() -> None:
    live = Talk().call(1, answer="a", n=1).call(2, answer="x", n=2).call(3, answer="b", n=1).live()
    assert [live.answered(1, n=n) for n in (1, 1, 2, 1, 2)] == ["a", "b", "x", "b", "x"]


def test_a_used_up_answer_is_a_miss_if_that_was_asked_for() -> None:
    live = Talk().call(1, answer="a").live(repeats=False)
    assert [live.answered(1), live.answered(2)] == ["a", MISS]
    assert live.conversation.complaints() == ["every recorded answer is used up: tools/call echo"]


def test_every_client_begins_with_the_first_answer() -> None:
    library = Talk().call(1, answer="a").call(2, answer="b").library()
    assert [Live(library).answered(1), Live(library).answered(1)] == ["a", "a"]


def test_exact_takes_no_other_arguments() -> None:
    assert Talk().call(1, n=1).live().answered(1, n=2) == MISS


def test_lenient_takes_the_only_one_of_a_tool_whatever_its_arguments() -> None:
    talk = Talk().call(1, answer="a", n=1).call(2, answer="b", n=1).call(3, "two", n=1).call(4, "two", n=2)
    live = talk.live(match=Match.LENIENT)
    assert [live.answered(1, n=9), live.answered(2, n=1), live.answered(3, n=5)] == ["a", "b", "b"]
    assert live.answered(4, "two", n=3) == MISS
    assert live.answered(5, "two", n=2) == "yes"
    assert live.answered(6, "three") == MISS


def test_method_takes_the_next_of_the_method() -> None:
    live = Talk().call(1, "x", "a").call(2, "y", "b").call(3, "x", "c").live(match=Match.METHOD)
    assert [live.answered(1, "anything", n=n) for n in range(4)] == ["a", "b", "c", "c"]
    assert "error" in live.ask(9, "prompts/get", name="x")[0]


def test_what_is_ignored_may_differ() -> None:
    library = Talk().call(1, now=1, n=1).library("/params/arguments/now")
    assert [Live(library).answered(1, now=2, n=1), Live(library).answered(1, now=1, n=2)] == ["yes", MISS]


def test_pages_follow_their_cursors() -> None:
    talk = Talk()
    for id, cursor, after in ((1, None, "p2"), (2, "p2", None)):  # noqa: A001
        params = {"cursor": cursor} if cursor else {}
        talk.client(id=id, method="tools/list", params=params)
        talk.server(id=id, result={"tools": [], **({"nextCursor": after} if after else {})})
    live = talk.live()
    (first,) = live.ask(1, "tools/list")
    assert first["result"]["nextCursor"] == "p2"
    (second,) = live.ask(2, "tools/list", cursor="p2")
    assert "nextCursor" not in second["result"]
    (lost,) = live.ask(3, "tools/list", cursor="p9")
    assert lost["error"]["data"]["nearest"][0]["differs"] == ["/params/cursor"]


def test_a_chain_of_questions_is_followed_by_its_state() -> None:
    talk = Talk()
    for number, colour in enumerate(("blue", "red")):
        state, about = f"s{number}", {"name": "ask", "_meta": modern()}
        question = {"resultType": "input_required", "inputRequests": {"q": {}}, "requestState": state}
        talk.client(id=1, method="tools/call", params=about).server(id=1, result=question)
        again = {**about, "requestState": state, "inputResponses": {"q": colour}}
        talk.client(id=2, method="tools/call", params=again)
        talk.server(id=2, result={"resultType": "complete", "said": colour})
    live = talk.live()
    about = {"name": "ask", "_meta": modern(progressToken=7)}
    (first,), (second,) = (live.ask(id, "tools/call", **about) for id in (1, 2))  # noqa: A001
    assert [first["result"]["requestState"], second["result"]["requestState"]] == ["s0", "s1"]
    for state, colour in (("s1", "red"), ("s0", "blue")):
        (said,) = live.ask(3, "tools/call", **about, requestState=state, inputResponses={"q": "whatever"})
        assert said["result"]["said"] == colour
    (lost,) = live.ask(4, "tools/call", **about, requestState="s9", inputResponses={})
    assert lost["error"]["data"]["nearest"][0]["differs"] == ["/params/requestState"]


def test_of_one_question_the_answer_to_what_the_user_said_is_given() -> None:
    talk = Talk()
    for said in ("accept", "decline"):
        params = {"name": "ask", "requestState": "s", "inputResponses": {"q": said}, "_meta": modern()}
        talk.client(id=1, method="tools/call", params=params).server(id=1, result={"said": said})
    live = talk.live()
    for said in ("decline", "accept", "decline"):
        params = {"name": "ask", "requestState": "s", "inputResponses": {"q": said}, "_meta": modern()}
        (answer,) = live.ask(1, "tools/call", **params)
        assert answer["result"]["said"] == said


def test_what_was_never_asked_for_is_known_at_the_end() -> None:
    live = Talk().handshake().call(1, n=1).call(2, n=1).call(3, n=2).live()
    live.initialize()
    live.answered(1, n=1)
    assert [scene.number for scene in live.conversation.choice.unused()] == [2, 3]
    live.answered(2, n=1)
    live.answered(3, n=2)
    assert live.conversation.choice.unused() == []


@pytest.mark.parametrize("match", list(Match))
def test_a_recording_of_nothing_answers_nothing(match: Match) -> None:
    assert Talk().handshake().live(match=match).answered(1) == MISS


def test_a_placeholder_of_redaction_stands_for_what_it_may_have_been() -> None:
    talk = Talk().handshake().call(1, "login", "in", key="[redacted:3f9c01ab]", user="ada")
    talk.call(2, "login", "in again", key="[redacted:3f9c01ab]", user="ada").call(
        3, "login", "bob", user="bob"
    )
    live = talk.live()
    live.initialize()
    assert live.answered(1, "login", key="s3cret", user="ada") == "in"
    assert live.answered(2, "login", key="s3cret", user="ada") == "in again"
    assert live.answered(3, "login", key="s3cret", user="eve") == MISS
    assert live.answered(4, "logout", key="s3cret", user="ada") == MISS
    assert [scene.number for scene in live.conversation.choice.unused()] == [3]


def test_different_values_stand_for_different_placeholders_in_their_order() -> None:
    live = (
        Talk()
        .handshake()
        .call(1, k="[redacted:00000001]", answer="one")
        .call(2, k="[redacted:00000002]", answer="two")
        .live()
    )
    live.initialize()
    said = [live.answered(number, k=value) for number, value in enumerate("abab")]
    assert said == ["one", "two", "one", "two"]
