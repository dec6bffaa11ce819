"""Selection of the next recorded response."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.mock.loader import InteractionLoader
from mcpspy.core.mock.matching import request_key
from mcpspy.core.mock.recordings import SMALL, Recordings
from mcpspy.core.mock.selector import MatchMode, Selector
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.mock.store import InteractionStore
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame
from tests.core.mock.talking import VERSION, Live, Talk, asking, entries, loaded, log, modern, slow

MISS = -32603


def test_responses_to_one_request_are_given_in_order_and_the_last_repeats() -> None:
    live = Talk().call(1, answer="a", n=1).call(2, answer="x", n=2).call(3, answer="b", n=1).live()
    assert [live.answered(1, n=n) for n in (1, 1, 2, 1, 2)] == ["a", "b", "x", "b", "x"]


def test_an_exhausted_response_is_a_miss_if_so_configured() -> None:
    live = Talk().call(1, answer="a").live(repeats=False)
    assert [live.answered(1), live.answered(2)] == ["a", MISS]
    assert live.session.complaints() == ["every recorded answer is used up: tools/call echo"]


def test_every_client_begins_with_the_first_answer() -> None:
    recordings = Talk().call(1, answer="a").call(2, answer="b").recordings()
    assert [Live(recordings).answered(1), Live(recordings).answered(1)] == ["a", "a"]


def test_mode_exact_requires_equal_arguments() -> None:
    assert Talk().call(1, n=1).live().answered(1, n=2) == MISS


def test_mode_lenient_takes_the_only_call_of_a_tool_with_any_arguments() -> None:
    talk = Talk().call(1, answer="a", n=1).call(2, answer="b", n=1).call(3, "two", n=1).call(4, "two", n=2)
    live = talk.live(match=MatchMode.LENIENT)
    assert [live.answered(1, n=9), live.answered(2, n=1), live.answered(3, n=5)] == ["a", "b", "b"]
    assert live.answered(4, "two", n=3) == MISS
    assert live.answered(5, "two", n=2) == "yes"
    assert live.answered(6, "three") == MISS


def test_mode_lenient_takes_the_most_similar_call_of_a_tool() -> None:
    talk = (
        Talk()
        .call(1, answer="a", city="Oslo", days=1, unit="C")
        .call(2, answer="b", city="Rome", days=2, unit="F")
    )
    live = talk.live(match=MatchMode.LENIENT)
    assert live.answered(1, city="Oslo", days=1, unit="K") == "a"
    assert live.answered(2, city="Rome", days=3, unit="F") == "b"
    assert live.answered(3, city="Bergen", days=9, unit="K") == MISS, "both are equally similar"
    assert live.answered(4, "other", city="Oslo") == MISS


def test_mode_nearest_takes_the_first_of_equally_similar_calls() -> None:
    talk = (
        Talk()
        .call(1, answer="a", city="Oslo")
        .call(2, answer="b", city="Rome")
        .call(3, answer="c", city="Oslo")
    )
    live = talk.live(match=MatchMode.NEAREST)
    assert [live.answered(id, city="Bergen") for id in (1, 2, 3)] == ["a", "c", "c"]  # noqa: A001
    assert live.answered(4, city="Rome") == "b"
    assert live.answered(5, "other", city="Rome") == MISS


def test_mode_tool_takes_the_next_call_of_the_tool() -> None:
    talk = Talk().call(1, "x", "a", n=1).call(2, "y", "b").call(3, "x", "c", n=2)
    live = talk.live(match=MatchMode.TOOL)
    assert [live.answered(n, "x", n=n) for n in (2, 1, 3)] == ["a", "c", "c"]
    assert [live.answered(1, "y", n=9), live.answered(2, "z")] == ["b", MISS]
    exhausted = talk.live(match=MatchMode.TOOL, repeats=False)
    assert [exhausted.answered(n, "y") for n in (1, 2)] == ["b", MISS]
    assert exhausted.session.complaints() == ["every recorded answer is used up: tools/call y"]


def test_a_miss_plays_the_nearest_call_of_the_tool_if_so_configured() -> None:
    live = Talk().call(1, answer="a", n=1).call(2, answer="b", n=2).live(plays_nearest=True)
    assert [live.answered(1, n=3), live.answered(2, "other")] == ["a", MISS]
    assert live.session.complaints()[0].endswith("recorded 1, sent 3; playing the nearest")
    assert len(live.session.selector.misses) == 2


def test_mode_method_takes_the_next_request_of_the_method() -> None:
    live = Talk().call(1, "x", "a").call(2, "y", "b").call(3, "x", "c").live(match=MatchMode.METHOD)
    assert [live.answered(1, "anything", n=n) for n in range(4)] == ["a", "b", "c", "c"]
    assert "error" in live.ask(9, "prompts/get", name="x")[0]


def test_ignored_params_may_differ() -> None:
    recordings = Talk().call(1, now=1, n=1).recordings("/params/arguments/now")
    assert [Live(recordings).answered(1, now=2, n=1), Live(recordings).answered(1, now=1, n=2)] == [
        "yes",
        MISS,
    ]


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


def test_a_chain_of_input_requests_is_followed_by_its_state() -> None:
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
        (said,) = live.ask(3, "tools/call", **about, requestState=state, inputResponses={"q": colour})
        assert said["result"]["said"] == colour
    (lost,) = live.ask(4, "tools/call", **about, requestState="s9", inputResponses={"q": "green"})
    assert lost["error"]["data"]["nearest"][0]["differs"] == ["/params/inputResponses/q"]


def test_the_response_depends_on_the_users_input() -> None:
    talk = Talk()
    for said in ("accept", "decline"):
        params = {"name": "ask", "requestState": "s", "inputResponses": {"q": said}, "_meta": modern()}
        talk.client(id=1, method="tools/call", params=params).server(id=1, result={"said": said})
    live = talk.live()
    for said in ("decline", "accept", "decline"):
        params = {"name": "ask", "requestState": "s", "inputResponses": {"q": said}, "_meta": modern()}
        (answer,) = live.ask(1, "tools/call", **params)
        assert answer["result"]["said"] == said


def test_unused_interactions_are_known_at_the_end() -> None:
    live = Talk().handshake().call(1, n=1).call(2, n=1).call(3, n=2).live()
    live.initialize()
    live.answered(1, n=1)
    assert [interaction.number for interaction in live.session.selector.unused()] == [2, 3]
    live.answered(2, n=1)
    live.answered(3, n=2)
    assert live.session.selector.unused() == []


@pytest.mark.parametrize("match", list(MatchMode))
def test_an_empty_recording_answers_nothing(match: MatchMode) -> None:
    assert Talk().handshake().live(match=match).answered(1) == MISS


def test_a_redacted_value_matches_any_value() -> None:
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
    assert [interaction.number for interaction in live.session.selector.unused()] == [3]


def test_different_values_match_different_placeholders_in_order() -> None:
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


class SlowSelector(Selector):
    """A selector without the fast path."""

    def fast_response(self, data: bytes) -> None:
        return None


def request(method: str = "tools/call", id: Any = 7, **params: Any) -> bytes:  # noqa: A002
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def twice() -> Talk:
    """Return a session with the same call twice, another call, and `logging/setLevel`."""
    talk = Talk().handshake().call(1, answer="a", n=1).call(2, answer="b", n=1).call(3, answer="c", n=2)
    return talk.client(id=4, method="logging/setLevel", params={"level": "info"}).server(id=4, result={})


def said(data: bytes, selector: Selector) -> Any:
    answer = selector.fast_response(data)
    return None if answer is None else json.loads(answer[0])


ECHO = request(name="echo", arguments={"n": 1})


def test_a_plain_request_is_answered_and_its_interaction_is_used() -> None:
    selector = Selector(twice().recordings())
    assert said(ECHO, selector) == {"jsonrpc": "2.0", "id": 7, "result": {"said": "a"}}
    assert [said(ECHO, selector)["result"]["said"] for _ in range(2)] == ["b", "b"]
    assert [interaction.number for interaction in selector.unused()] == [3, 4]


@pytest.mark.parametrize(
    "data",
    [
        request("initialize"),
        request("logging/setLevel", level="info"),
        request(name="echo", arguments={"n": 3}),
        request(name="echo", arguments={"n": 1}, requestState="s"),
        request(id=1.5, name="echo", arguments={"n": 1}),
        request(id="é", name="echo", arguments={"n": 1}),
        ECHO.replace(b'"2.0"', b'"1.0"'),
        b"[" + ECHO + b"]",
        ECHO.replace(b'"id": 7, ', b""),
        b"[" * 100_000,
        b"\xff",
        b"",
    ],
    ids=lambda data: ascii(data[:60]),
)
def test_an_unusual_request_uses_no_interaction_on_the_fast_path(data: bytes) -> None:
    selector = Selector(twice().recordings())
    assert selector.fast_response(data) is None
    assert len(selector.unused()) == 4


@pytest.mark.parametrize("talk", [slow(), asking()], ids=["progress", "a question"])
def test_an_exchange_with_more_messages_takes_the_slow_path(talk: Talk) -> None:
    name = "slow" if len(talk.session.exchanges) == 1 else "ask"
    assert Selector(talk.recordings()).fast_response(request(name=name)) is None


def test_a_large_response_takes_the_slow_path() -> None:
    talk = Talk().call(1, answer="x" * SMALL)
    assert Selector(talk.recordings()).fast_response(request(name="echo")) is None
    assert talk.live().answered(5) == "x" * SMALL


def test_the_fast_path_follows_the_match_options() -> None:
    assert Selector(twice().recordings(), MatchMode.METHOD).fast_response(ECHO) is None
    once = Selector(twice().recordings(), repeats=False)
    assert [said(ECHO, once) is None for _ in range(3)] == [False, False, True]
    recordings = twice().recordings("/params/arguments/n")
    answer = Selector(recordings).fast_response(request(name="echo", arguments={"n": 99}))
    assert answer is not None
    assert json.loads(answer[0])["result"]["said"] == "a"


def test_a_response_waits_if_the_rest_of_the_recordings_could_change_it() -> None:
    talk = twice()
    loader = InteractionLoader(InteractionStore("r.jsonl"), talk.session.header)
    for entry in list(entries(talk.session))[:5]:
        loader.add(entry)
    selector = Selector(Recordings([loader.store]))
    assert said(ECHO, selector) is None, "a notification may still belong to it"
    for entry in list(entries(talk.session))[5:]:
        loader.add(entry)
    assert [said(ECHO, selector)["result"]["said"] for _ in range(2)] == ["a", "b"]
    assert said(ECHO, selector) is None, "there may be a third one"
    later = InteractionStore("later.jsonl")
    assert said(ECHO, Selector(Recordings([loader.store, later]))) is None, "the later one has not been read"
    later.is_whole = True
    assert said(ECHO, Selector(Recordings([loader.store, later])))["result"]["said"] == "a"


def test_a_response_takes_the_recorded_time_at_the_given_speed() -> None:
    live = Talk().call(1).live(speed=1.0)
    assert live.call("x") == []
    assert [each["id"] for each in live.wait(1.0)] == ["x"]


META = st.sampled_from(
    [{}, {"progressToken": 1}, modern(), modern(**{VERSION: "2027-01-01"}), {VERSION: "2025-11-25"}, 5, None]
)
ARGUMENTS = st.sampled_from([{}, {"n": 1}, {"n": 1.0}, {"n": 10**30}, {"n": None}, {"v": "1.2"}, 3])
PARAMS = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", 1])}, optional={"_meta": META, "arguments": ARGUMENTS}
)
ASKED = st.lists(
    st.tuples(st.sampled_from(["tools/call", "ping", "logging/setLevel", "server/discover"]), PARAMS),
    min_size=1,
    max_size=6,
)
WHAT = st.sampled_from(["answered", "answered", "failed", "reported", "logged"])


@given(ASKED, st.lists(WHAT, min_size=6, max_size=6), ASKED, st.booleans(), st.sampled_from(MatchMode))
@settings(max_examples=60, deadline=None)
def test_the_fast_path_and_the_slow_path_give_the_same_responses(
    recorded: list[Any], answers: list[str], asked: list[Any], repeats: bool, match: MatchMode
) -> None:
    talk = Talk().handshake()
    for number, ((method, params), what) in enumerate(zip(recorded, answers, strict=False), 1):
        talk.client(id=number, method=method, params=params)
        if what == "logged":
            talk.server(**log())
        if what == "failed":
            talk.server(id=number, error={"code": -number, "message": "no"})
        else:
            talk.server(id=number, result={"said": number})
        if what == "reported":
            talk.server(**log("error"))
    short = talk.live(repeats=repeats, match=match)
    long = Live(short.session.recordings)
    long.session = MockSession(long.session.recordings, MockOptions(repeats=repeats, match=match), long.now)
    long.session.selector = SlowSelector(long.session.recordings, match, repeats=repeats)
    for number, (method, params) in enumerate([*recorded, *asked]):
        assert short.ask(number, method, **params) == long.ask(number, method, **params)
    one, other = short.session.selector, long.session.selector
    assert one.misses == other.misses
    assert [interaction.order for interaction in one.unused()] == [
        interaction.order for interaction in other.unused()
    ]


PROBE = {"_meta": modern()}


def legacy() -> Talk:
    return Talk().handshake().call(1)


def modern_only() -> Talk:
    return Talk().client(id=1, method="tools/list", params=PROBE).server(id=1, result={"tools": []})


def test_any_client_gets_the_recorded_handshake() -> None:
    said = legacy().live().initialize(sampling={})
    assert said["id"] == "init"
    assert said["result"]["serverInfo"]["name"] == "tested"


def test_another_revision_is_answered_with_a_recorded_one() -> None:
    live = legacy().live()
    assert live.initialize("2024-11-05")["result"]["protocolVersion"] == "2025-11-25"
    both = Talk().handshake("2025-03-26").handshake("2025-11-25").live()
    assert both.initialize("2025-03-26")["result"]["protocolVersion"] == "2025-03-26"
    assert both.initialize("2099-01-01")["result"]["protocolVersion"] == "2025-11-25"


def test_a_probe_of_a_legacy_recording_is_refused_at_once() -> None:
    (said,) = legacy().live(speed=1.0).ask("p", "server/discover", **PROBE)
    assert said["error"]["code"] == -32601


def test_a_handshake_with_a_modern_recording_is_refused_with_the_supported_revisions() -> None:
    error = modern_only().live().initialize()["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}


def test_a_modern_request_in_a_revision_that_was_not_recorded_is_refused_likewise() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    (said,) = modern_only().live().ask(1, "tools/list", _meta=meta)
    assert said["error"]["code"] == -32022
    assert said["error"]["data"]["supported"] == ["2026-07-28"]


def test_a_modern_recording_answers_a_probe_that_was_never_made() -> None:
    (said,) = modern_only().live().ask("p", "server/discover", **PROBE)
    assert said["result"]["supportedVersions"] == ["2026-07-28"]


def test_a_recorded_probe_is_answered_as_it_was() -> None:
    talk = Talk().client(id=1, method="server/discover", params=PROBE)
    talk.server(id=1, result={"supportedVersions": ["2026-07-28"], "capabilities": {"x": 1}})
    (said,) = talk.live().ask("p", "server/discover", _meta=modern(traceparent="00"))
    assert said["result"]["capabilities"] == {"x": 1}


def test_a_handshake_that_was_refused_is_refused_again() -> None:
    talk = Talk().client(id=1, method="initialize", params={})
    talk.server(id=1, error={"code": -32603, "message": "not today"})
    assert talk.live().initialize()["error"]["message"] == "not today"


def test_a_legacy_recording_without_a_handshake_gets_one() -> None:
    assert Talk("weather").call(1).live().initialize()["result"]["serverInfo"]["name"] == "weather"


def read_request(method: str, **params: object) -> Request:
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    (message,) = read_frame(Frame(0.0, "client", data))
    assert isinstance(message, Request)
    return message


def is_settled(recordings: Recordings, message: Request) -> bool:
    return Selector(recordings).is_settled(message, request_key(message))


PROBES = read_request("server/discover", **PROBE)


def test_a_handshake_is_settled_early_only_if_the_rest_cannot_change_the_response() -> None:
    begun = Recordings([loaded(legacy().session).store])
    assert is_settled(begun, read_request("initialize", protocolVersion="2025-11-25"))
    assert not is_settled(begun, read_request("initialize", protocolVersion="2025-03-26"))
    assert not is_settled(begun, read_request("initialize"))
    assert is_settled(begun, PROBES), "a client that shook hands over stdio never probes"
    probed = Talk().client(id=1, method="server/discover", params=PROBE).server(id=1, result={})
    assert not is_settled(Recordings([loaded(probed.session).store]), PROBES), "more of it may follow"
    assert is_settled(Recordings([loaded(probed.call(2).session).store]), PROBES)
    assert not is_settled(Recordings([loaded(modern_only().session).store]), PROBES)
    for version in ("2025-11-25", "2025-03-26"):
        assert is_settled(legacy().recordings(), read_request("initialize", protocolVersion=version))


@pytest.mark.parametrize("match", MatchMode)
@pytest.mark.parametrize("levels", [190, 250, 400, 9_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('["]",', "]"), ('[{"a":', "}]")])
def test_a_deeply_nested_request_is_answered_or_a_miss(
    match: MatchMode, levels: int, opening: str, closing: str
) -> None:
    def call(number: int, leaf: int) -> bytes:
        nested = opening * levels + str(leaf) + closing * levels
        params = f'{{"name":"echo","arguments":{{"x":{nested}}}}}'
        return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}'.encode()

    talk = Talk()
    for number in (1, 2):
        talk.frame("client", call(number, number)).server(id=number, result={"said": number})
    live = talk.live(match=match)
    (answer,) = live.send(call(7, 1))
    assert answer["result"]["said"] == 1
    (other,) = live.send(call(8, 3))
    assert "result" in other or other["error"]["code"] == -32603
