"""Answers of the user: the mock plays the interaction in which the user gave the same answer."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.mock import recordings
from mcpspy.core.mock.answers import InputRound, Similarity, similarity_of
from mcpspy.core.mock.loader import InteractionLoader
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.selector import MatchMode, never_sent
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.mock.store import InteractionStore
from tests.core.mock.talking import Json, Live, Talk, entries, modern, names

ACCEPT: Json = {"action": "accept", "content": {"answer": "blue"}}
OTHER: Json = {"action": "accept", "content": {"answer": "red"}}
DECLINE: Json = {"action": "decline"}
CANCEL: Json = {"action": "cancel"}
ANSWERS: list[Json] = [ACCEPT, DECLINE, CANCEL, OTHER]
FORM: Json = {"method": "elicitation/create", "params": {"message": "Colour?", "requestedSchema": {}}}
MISS = -32603


def legacy(*answers: Json, message: str = "Colour?") -> Talk:
    """Return a call for each answer, in which the server elicits it and returns it."""
    talk = Talk().handshake()
    for number, answer in enumerate(answers, 1):
        talk.client(id=number, method="tools/call", params={"name": "ask"})
        question = {**FORM, "params": {**FORM["params"], "message": message.format(number)}}
        talk.server(id=number + 100, **question)
        if "error" in answer:
            talk.client(id=number + 100, error=answer["error"])
        else:
            talk.client(id=number + 100, result=answer)
        talk.server(id=number, result={"said": answer})
    return talk


def two_rounds(*answers: Json) -> Talk:
    """Return a chain of two questions for each answer to the first; the second one is always accepted."""
    talk = Talk()
    for number, answer in enumerate(answers):
        call: Json = {"name": "ask", "_meta": modern()}
        for place, given_answer in enumerate((None, answer, ACCEPT)):
            if place:
                call = {
                    **call,
                    "requestState": f"sealed {number} {place}",
                    "inputResponses": {"q": given_answer},
                }
            talk.client(id=1, method="tools/call", params=call)
            state = {"inputRequests": {"q": FORM}, "requestState": f"sealed {number} {place + 1}"}
            talk.server(
                id=1, result={"said": answer} if place == 2 else {"resultType": "input_required", **state}
            )
    return talk


def ask(live: Live, *answers: Json, id: int = 1) -> Any:  # noqa: A002
    """Call the tool and give the answers in turn; return the result of the tool, or the error code."""
    said = live.ask(id, "tools/call", name="ask")
    for answer in answers:
        (request,) = said
        assert request["method"] == "elicitation/create"
        said = live.say(
            id=request["id"], **({"error": answer["error"]} if "error" in answer else {"result": answer})
        )
    (last,) = said
    return last["result"]["said"] if "result" in last else last["error"]["code"]


def ask_modern(live: Live, *answers: Json) -> Any:
    call: Json = {"name": "ask", "_meta": modern()}
    (said,) = live.ask(1, "tools/call", **call)
    for answer in answers:
        state = said["result"]["requestState"]
        (said,) = live.ask(1, "tools/call", **call, requestState=state, inputResponses={"q": answer})
    return said["result"]["said"] if "result" in said else said["error"]["code"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_before_2026_the_mock_plays_the_call_with_the_live_answer(order: tuple[int, ...]) -> None:
    live = legacy(ACCEPT, DECLINE, CANCEL).live()
    live.initialize(elicitation={})
    assert [ask(live, ANSWERS[number]) for number in order] == [ANSWERS[number] for number in order]
    assert live.session.complaints() == []
    assert [
        each for each in never_sent([live.session.selector]) if each.key and each.key.subject == "ask"
    ] == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_in_2026_the_mock_plays_the_call_with_the_live_answers(order: tuple[int, ...]) -> None:
    live = two_rounds(ACCEPT, DECLINE, CANCEL).live()
    given_answers = [ANSWERS[number] for number in order]
    assert [ask_modern(live, answer, ACCEPT) for answer in given_answers] == given_answers
    assert live.session.complaints() == []
    assert never_sent([live.session.selector]) == []


@given(
    st.lists(st.sampled_from(list(itertools.product((ACCEPT, DECLINE), repeat=3))), max_size=10),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_recorded_answers_that_no_user_gave_are_known(
    given_answers: list[tuple[Json, ...]], plays_nearest: bool
) -> None:
    """One call asks three times, so the mock switches from one recorded call to another at each answer."""
    talk = Talk().handshake()
    recorded = list(itertools.product((ACCEPT, DECLINE), repeat=3))
    for number, answers in enumerate(recorded, 1):
        talk.client(id=number, method="tools/call", params={"name": "ask"})
        for place, answer in enumerate(answers):
            talk.server(id=100 * number + place, **FORM).client(id=100 * number + place, result=answer)
        talk.server(id=number, result={"said": answers})
    live = talk.live(plays_nearest=plays_nearest)
    live.initialize(elicitation={})

    for number, answers in enumerate(given_answers):
        assert ask(live, *answers, id=number) == list(answers)

    assert live.session.complaints() == []
    unsent = [each.number for each in never_sent([live.session.selector])]
    # A call and its three questions are four requests; the first request is the handshake.
    assert unsent == [4 * number + 1 for number, each in enumerate(recorded) if each not in given_answers]


def test_equal_answers_are_played_in_order() -> None:
    talk = legacy(ACCEPT, DECLINE, ACCEPT)
    talk.session.end()
    live = talk.live()
    live.initialize(elicitation={})
    for answer in (DECLINE, ACCEPT, ACCEPT, ACCEPT):
        assert ask(live, answer) == answer
    exhausted = talk.live(repeats=False)
    exhausted.initialize(elicitation={})
    assert [ask(exhausted, DECLINE), ask(exhausted, DECLINE)] == [DECLINE, MISS]
    assert exhausted.session.complaints() == ["every recorded answer is used up: tools/call ask"]


@pytest.mark.parametrize(("talk", "play"), [(legacy(ACCEPT), ask), (two_rounds(ACCEPT), ask_modern)])
def test_an_answer_that_was_not_recorded_is_a_miss(talk: Talk, play: Any) -> None:
    live = talk.live()
    live.initialize(elicitation={})
    for answer, at in ((DECLINE, "action: recorded"), (OTHER, 'content/answer: recorded "blue", sent "red"')):
        assert play(live, answer) == MISS
        (complaint,) = live.session.complaints()
        assert complaint.startswith("not recorded: tools/call ask with th")
        assert at in complaint
    assert len(live.session.selector.misses) == 2
    assert live.session.next_at is None
    assert not live.session.owes


@pytest.mark.parametrize("match", [MatchMode.LENIENT, MatchMode.NEAREST, MatchMode.TOOL, MatchMode.METHOD])
@pytest.mark.parametrize("is_modern", [False, True])
def test_other_content_matches_only_the_same_action_and_not_in_mode_exact(
    match: MatchMode, *, is_modern: bool
) -> None:
    live = (two_rounds if is_modern else legacy)(DECLINE, ACCEPT).live(match=match)
    live.initialize(elicitation={})
    rounds, play = ((ACCEPT,), ask_modern) if is_modern else ((), ask)
    assert play(live, OTHER, *rounds) == ACCEPT
    assert play(live, CANCEL) == MISS
    assert play(live, DECLINE, *rounds) == DECLINE


@pytest.mark.parametrize(("talk", "play"), [(legacy(ACCEPT), ask), (two_rounds(ACCEPT), ask_modern)])
def test_the_nearest_is_played_and_the_miss_reported_if_so_configured(talk: Talk, play: Any) -> None:
    live = talk.live(plays_nearest=True)
    live.initialize(elicitation={})
    assert play(live, *((DECLINE,) if play is ask else (DECLINE, ACCEPT))) == ACCEPT
    (complaint,) = live.session.complaints()
    assert complaint.endswith("; playing the nearest")
    assert len(live.session.selector.misses) == 1


def test_a_miss_is_compared_with_a_limited_number_of_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "COMPARED", 1)
    live, call = two_rounds(ACCEPT, DECLINE, CANCEL, OTHER).live(), {"name": "ask", "_meta": modern()}
    (said,) = live.ask(1, "tools/call", **call)
    state, answers = said["result"]["requestState"], {"q": {"action": "other"}}
    (said,) = live.ask(1, "tools/call", **call, requestState=state, inputResponses=answers)
    assert len(said["error"]["data"]["nearest"]) == 2


def test_the_first_answer_of_a_chain_decides_its_end() -> None:
    talk, other = two_rounds(ACCEPT, DECLINE), two_rounds(ACCEPT, CANCEL)
    assert ask_modern(talk.live(), DECLINE, ACCEPT) == DECLINE
    assert ask_modern(other.live(), CANCEL, ACCEPT) == CANCEL
    assert ask_modern(other.live(), CANCEL, DECLINE) == MISS


def test_an_answer_that_was_not_recorded_is_forwarded_to_the_real_server_with_its_call() -> None:
    live = legacy(ACCEPT).live(forwards=True)
    live.initialize(elicitation={})
    (request,) = live.ask("a", "tools/call", name="ask")
    assert live.say(id=request["id"], result=DECLINE) == []
    passthrough = live.session.passthrough
    assert passthrough is not None
    (forwarded,) = passthrough.take_outgoing()
    assert b'"tools/call"' in forwarded
    live.session.receive_from_server(b'{"jsonrpc":"2.0","id":"a","result":{"said":"declined"}}', live.now)
    assert [message["result"]["said"] for message in live.received()] == ["declined"]


def test_a_state_that_the_server_gives_to_all_requests_identifies_no_question() -> None:
    talk = Talk()
    for number, answer in enumerate((ACCEPT, DECLINE)):
        call: Json = {"name": "ask", "_meta": modern()}
        question = {"resultType": "input_required", "inputRequests": {"q": FORM}, "requestState": "s"}
        talk.client(id=number, method="tools/call", params=call).server(id=number, result=question)
        call = {**call, "requestState": "s", "inputResponses": {"q": answer}}
        talk.client(id=number, method="tools/call", params=call).server(id=number, result=question)
        talk.client(id=number, method="tools/call", params={**call, "inputResponses": {"sure": answer}})
        talk.server(id=number, result={"said": answer})
    live = talk.live()
    call = {"name": "ask", "_meta": modern(), "requestState": "s"}
    for answer in (DECLINE, ACCEPT):
        (said,) = live.ask(1, "tools/call", **call, inputResponses={"q": answer})
        assert said["result"]["requestState"] == "s"
        (said,) = live.ask(1, "tools/call", **call, inputResponses={"sure": answer})
        assert said["result"]["said"] == answer


def test_generated_values_of_a_question_are_not_compared() -> None:
    one, other = (
        {"": {"method": "elicitation/create", "params": {"mode": "url", "url": url, "elicitationId": url}}}
        for url in ("https://a.example/1", "https://a.example/2")
    )
    talk = Talk()
    for number, (answer, question) in enumerate(((ACCEPT, one), (DECLINE, other))):
        call: Json = {"name": "ask", "_meta": modern()}
        asked = {"resultType": "input_required", "inputRequests": question, "requestState": f"s{number}"}
        talk.client(id=1, method="tools/call", params=call).server(id=1, result=asked)
        call = {**call, "requestState": f"s{number}", "inputResponses": {"": answer}}
        talk.client(id=2, method="tools/call", params=call).server(id=2, result={"said": answer})
    live = talk.live()
    call = {"name": "ask", "_meta": modern(), "requestState": "s0", "inputResponses": {"": DECLINE}}
    (said,) = live.ask(1, "tools/call", **call)
    assert said["result"]["said"] == DECLINE


def test_a_question_with_another_text_may_be_answered_alike() -> None:
    live = legacy(ACCEPT, DECLINE, message="Colour {}?").live()
    live.initialize(elicitation={})
    assert [ask(live, DECLINE), ask(live, ACCEPT), ask(live, CANCEL)] == [DECLINE, ACCEPT, MISS]


def test_an_error_of_the_client_is_an_answer() -> None:
    rejected = {"error": {"code": -1, "message": "User rejected sampling request"}}
    live = legacy(ACCEPT, rejected).live()
    live.initialize(elicitation={})
    assert [ask(live, rejected), ask(live, ACCEPT)] == [rejected, ACCEPT]


def test_the_messages_after_another_answer_are_played_from_the_answer_on() -> None:
    talk = Talk().handshake()
    for number, answer in enumerate((ACCEPT, DECLINE)):
        talk.client(id=number + 1, method="tools/call", params={"name": "ask"})
        for _ in range(number):
            talk.server(method="notifications/tools/list_changed")
        talk.server(id=100, **FORM).client(id=100, result=answer)
        talk.server(method=f"notifications/{answer['action']}").server(id=101, **FORM).client(
            id=101, result=ACCEPT
        )
        talk.server(id=number + 1, result={"said": answer})
    live = talk.live()
    live.initialize(elicitation={})
    (first,) = live.ask("a", "tools/call", name="ask")
    said = live.say(id=first["id"], result=DECLINE)
    assert names(said) == ["notifications/decline", "elicitation/create"]
    assert said[1]["id"] != first["id"]
    (last,) = live.say(id=said[1]["id"], result=ACCEPT)
    assert last == {"jsonrpc": "2.0", "id": "a", "result": {"said": DECLINE}}


def test_a_request_outside_a_call_gets_its_recorded_effects_and_an_unrecorded_answer_is_reported() -> None:
    talk = Talk().handshake().server(id=1, method="roots/list").client(id=1, result={"roots": []})
    live = talk.server(method="notifications/tools/list_changed").live()
    live.initialize(roots={})
    (request,) = live.say(method="notifications/initialized")
    said = live.say(id=request["id"], result={"roots": [{"uri": "file:///a"}]})
    assert names(said) == ["notifications/tools/list_changed"]
    (complaint,) = live.session.complaints()
    assert complaint.startswith(
        "not recorded: this answer to roots/list; nearest: roots/list differs at /result/roots"
    )


def test_an_answer_waits_for_the_unread_rest_of_the_recording() -> None:
    talk = legacy(ACCEPT, DECLINE)
    loader = InteractionLoader(InteractionStore("r.jsonl"), talk.session.header)
    read = list(entries(talk.session))
    for entry in read[:8]:
        loader.add(entry)
    live = Live(Recordings([loader.store]))
    live.session = MockSession(Recordings([loader.store]), MockOptions(), live.now)
    live.initialize(elicitation={})
    (request,) = live.ask("a", "tools/call", name="ask")
    assert live.say(id=request["id"], result=DECLINE) == []
    for entry in read[8:]:
        loader.add(entry)
    loader.finish()
    live.session.resume(live.now)
    assert live.received()[0]["result"]["said"] == DECLINE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(st.tuples(JSON, JSON), min_size=1, max_size=3))
@settings(max_examples=100, deadline=None)
def test_rounds_are_like_themselves_and_unlike_shorter_ones(pairs: list[tuple[Any, Any]]) -> None:
    rounds = [InputRound(*pair) for pair in pairs]
    live = dict(enumerate(rounds))
    assert similarity_of(live, rounds) is Similarity.SAME
    assert similarity_of(live, rounds[:-1]) is Similarity.UNRELATED


@given(
    st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=5), st.lists(st.sampled_from(ANSWERS), max_size=5)
)
@settings(max_examples=60, deadline=None)
def test_whatever_was_recorded_no_answer_gets_the_outcome_of_another(
    recorded: list[Json], given_now: list[Json]
) -> None:
    for live, play in ((legacy(*recorded).live(), ask), (two_rounds(*recorded).live(), ask_modern)):
        live.initialize(elicitation={})
        for answer in given_now:
            if answer in recorded:
                assert play(live, *((answer,) if play is ask else (answer, ACCEPT))) == answer
            else:
                assert play(live, answer) == MISS


def test_of_two_open_questions_the_second_one_may_be_answered_first() -> None:
    """The answer selects another recorded call, in which the first question is open under another place."""
    talk = Talk().handshake()
    for number, answer in enumerate((ACCEPT, DECLINE), 1):
        talk.client(id=number, method="tools/call", params={"name": "ask"})
        for _ in range(number):
            talk.server(method="notifications/tools/list_changed")
        talk.server(id=100, **FORM).server(id=101, **FORM)
        talk.client(id=101, result=answer).client(id=100, result=answer)
        talk.server(id=number, result={"said": answer})
    live = talk.live()
    live.initialize(elicitation={})
    *_, first, second = live.ask(1, "tools/call", name="ask")
    assert live.say(id=second["id"], result=DECLINE) == []
    assert [each["result"]["said"] for each in live.say(id=first["id"], result=DECLINE)] == [DECLINE]
    assert live.session.complaints() == []


def test_a_retry_without_questions_follows_its_state() -> None:
    """A server of 2026-07-28 may ask for another request without a question: with a state only."""
    talk = Talk()
    for number in (1, 2):
        call: Json = {"name": "ask", "_meta": modern()}
        waits = {"resultType": "input_required", "requestState": f"s{number}"}
        talk.client(id=number, method="tools/call", params=call).server(id=number, result=waits)
        call = {**call, "requestState": f"s{number}"}
        talk.client(id=number, method="tools/call", params=call).server(id=number, result={"said": number})
    live = talk.live()
    for number in (1, 2):
        (said,) = live.ask(1, "tools/call", name="ask", _meta=modern())
        (said,) = live.ask(
            2, "tools/call", name="ask", _meta=modern(), requestState=said["result"]["requestState"]
        )
        assert said["result"]["said"] == number


def test_questions_that_are_not_an_object_are_compared_as_they_are() -> None:
    talk = Talk()
    for number, question in enumerate(([FORM], [FORM, FORM])):
        call: Json = {"name": "ask", "_meta": modern()}
        asked = {"resultType": "input_required", "inputRequests": question, "requestState": f"s{number}"}
        talk.client(id=1, method="tools/call", params=call).server(id=1, result=asked)
        call = {**call, "requestState": f"s{number}", "inputResponses": {"0": ACCEPT}}
        talk.client(id=2, method="tools/call", params=call).server(id=2, result={"said": number})
    live = talk.live()
    for number in (0, 1):
        (said,) = live.ask(1, "tools/call", name="ask", _meta=modern())
        (said,) = live.ask(
            2,
            "tools/call",
            name="ask",
            _meta=modern(),
            requestState=said["result"]["requestState"],
            inputResponses={"0": ACCEPT},
        )
        assert said["result"]["said"] == number
