"""The short way from a request to its answer tells what the long way tells."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.mock.loader import Script, entries
from mcpspy.core.mock.recordings import SMALL, Library
from mcpspy.core.mock.selector import Choice, Match, ready
from mcpspy.core.mock.session import Conversation, Options
from mcpspy.core.mock.store import Shelf
from tests.core.mock.talking import VERSION, Live, Talk, asking, log, modern, slow


class LongWay(Conversation):
    """A client that is always answered the long way."""

    def _is_answered(self, data: bytes, now: float) -> bool:
        return False


def request(method: str = "tools/call", id: Any = 7, **params: Any) -> bytes:  # noqa: A002
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def twice() -> Talk:
    """The same call with two answers, and another; and what the server keeps in mind."""
    talk = Talk().handshake().call(1, answer="a", n=1).call(2, answer="b", n=1).call(3, answer="c", n=2)
    return talk.client(id=4, method="logging/setLevel", params={"level": "info"}).server(id=4, result={})


def said(data: bytes, choice: Choice) -> Any:
    answer = ready(data, choice, ())
    return None if answer is None else json.loads(answer.data)


ECHO = request(name="echo", arguments={"n": 1})


def test_a_plain_request_is_answered_and_its_place_taken() -> None:
    choice = Choice(twice().library())
    assert said(ECHO, choice) == {"jsonrpc": "2.0", "id": 7, "result": {"said": "a"}}
    assert [said(ECHO, choice)["result"]["said"] for _ in range(2)] == ["b", "b"]
    assert [scene.number for scene in choice.unused()] == [3, 4]


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
def test_what_is_not_plain_takes_nobodys_place(data: bytes) -> None:
    choice = Choice(twice().library())
    assert ready(data, choice, ()) is None
    assert len(choice.unused()) == 4


@pytest.mark.parametrize("talk", [slow(), asking()], ids=["progress", "a question"])
def test_what_comes_with_something_besides_takes_the_long_way(talk: Talk) -> None:
    name = "slow" if len(talk.session.exchanges) == 1 else "ask"
    assert ready(request(name=name), Choice(talk.library()), ()) is None


def test_a_large_answer_is_read_when_it_is_told() -> None:
    talk = Talk().call(1, answer="x" * SMALL)
    assert ready(request(name="echo"), Choice(talk.library()), ()) is None
    assert talk.live().answered(5) == "x" * SMALL


def test_how_it_is_matched_is_obeyed() -> None:
    assert ready(ECHO, Choice(twice().library(), Match.METHOD), ()) is None
    once = Choice(twice().library(), repeats=False)
    assert [said(ECHO, once) is None for _ in range(3)] == [False, False, True]
    library = twice().library("/params/arguments/n")
    answer = ready(request(name="echo", arguments={"n": 99}), Choice(library), library.ignored)
    assert answer is not None
    assert json.loads(answer.data)["result"]["said"] == "a"


def test_what_the_rest_of_the_recordings_could_change_is_not_sure() -> None:
    talk = twice()
    script = Script(Shelf("r.jsonl"), talk.session.header)
    for entry in list(entries(talk.session))[:5]:
        script.add(entry)
    choice = Choice(Library([script.shelf]))
    assert said(ECHO, choice) is None, "a notification may still belong to it"
    for entry in list(entries(talk.session))[5:]:
        script.add(entry)
    assert [said(ECHO, choice)["result"]["said"] for _ in range(2)] == ["a", "b"]
    assert said(ECHO, choice) is None, "there may be a third one"
    later = Shelf("later.jsonl")
    assert said(ECHO, Choice(Library([script.shelf, later]))) is None, "the later one has not been read"
    later.is_whole = True
    assert said(ECHO, Choice(Library([script.shelf, later])))["result"]["said"] == "a"


def test_a_request_takes_its_time_where_time_is_asked_for() -> None:
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


@given(ASKED, st.lists(WHAT, min_size=6, max_size=6), ASKED, st.booleans(), st.sampled_from(Match))
@settings(max_examples=60, deadline=None)
def test_whatever_is_asked_the_long_way_tells_the_same(
    recorded: list[Any], answers: list[str], asked: list[Any], repeats: bool, match: Match
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
    long = Live(short.conversation.library)
    long.conversation = LongWay(long.conversation.library, Options(repeats=repeats, match=match), long.now)
    for number, (method, params) in enumerate([*recorded, *asked]):
        assert short.ask(number, method, **params) == long.ask(number, method, **params)
    one, other = short.conversation.choice, long.conversation.choice
    assert one.misses == other.misses
    assert [scene.order for scene in one.unused()] == [scene.order for scene in other.unused()]
