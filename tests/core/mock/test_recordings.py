"""Look-up of recorded interactions."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from mcpspy.core.mock.recordings import Recordings
from tests.core.mock.talking import Live, Talk, loaded, modern, recordings_of


def merged(*talks: Talk) -> Recordings:
    return recordings_of([(f"{number}.jsonl", talk.session) for number, talk in enumerate(talks)])


def test_answers_of_one_key_queue_in_recorded_order() -> None:
    talk = Talk().call(1, answer="a").call(2, "other").call(3, answer="b")
    recordings = talk.recordings()
    keys = [interaction.key for interaction in recordings.interactions]
    queues = [recordings.queue(key.digest) for key in keys if key is not None]
    assert [[interaction.number for interaction in queue] for queue in queues if queue is not None] == [
        [0, 2],
        [0, 2],
        [1],
    ]


def test_the_later_of_two_recordings_answers_and_the_conflict_is_reported() -> None:
    recordings = merged(Talk().call(1, answer="old").call(2, "first"), Talk().call(1, answer="new"))
    live = Live(recordings)
    assert live.answered(1) == "new"
    assert live.answered(2, "first") == "yes"
    assert recordings.conflicts == ["tools/call echo: 1.jsonl and 0.jsonl differ; using 1.jsonl"]


def test_recordings_with_equal_responses_do_not_conflict() -> None:
    assert merged(Talk().handshake().call(1), Talk().handshake().call(7)).conflicts == []


def test_the_later_of_two_different_handshakes_is_used() -> None:
    recordings = merged(Talk().handshake(name="a"), Talk().handshake(name="b"))
    assert recordings.conflicts == ["initialize: 1.jsonl and 0.jsonl differ; using 1.jsonl"]
    assert recordings.server is not None
    assert recordings.server.name == "b"


def test_the_revisions_of_a_modern_server_are_those_it_took() -> None:
    refused = Talk().client(id=1, method="server/discover", params={"_meta": modern()})
    refused.server(id=1, error={"code": -32601, "message": "no"})
    assert not refused.call(2).recordings().is_modern
    assert Talk().client(id=1, method="tools/list", params={"_meta": modern()}).recordings().versions == [
        "2026-07-28"
    ]


def test_revisions_that_are_not_a_list_are_ignored() -> None:
    talk = Talk().client(id=1, method="server/discover", params={"_meta": modern()})
    assert talk.server(id=1, result={"supportedVersions": 1}).recordings().versions == []


def test_a_recording_without_server_messages_has_no_server() -> None:
    assert not loaded(Talk().client(id=1, method="ping").session).has_server
    assert loaded(Talk().call(1).session).has_server


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(0, 2) | JUNK,
        "method": st.sampled_from(
            "initialize server/discover tools/call roots/list subscriptions/listen notifications/progress "
            "notifications/cancelled notifications/message notifications/initialized".split()
        )
        | JUNK,
        "params": st.fixed_dictionaries(
            {},
            optional={
                "_meta": st.sampled_from([modern(), modern(progressToken=1), {"progressToken": 0}]) | JUNK,
                "progressToken": st.integers(0, 2),
                "requestId": st.integers(0, 2),
                "requestState": JUNK,
                "inputResponses": JUNK,
                "level": JUNK,
            },
        )
        | JUNK,
        "result": st.fixed_dictionaries(
            {},
            optional={"protocolVersion": JUNK, "supportedVersions": JUNK, "serverInfo": JUNK, "_meta": JUNK},
        )
        | JUNK,
        "error": JUNK,
    },
)
SAID = st.tuples(
    st.sampled_from(["client", "server"]), MEMBERS, st.none() | st.just("s"), st.none() | st.integers(0, 2)
)


@given(st.lists(SAID, max_size=12))
@settings(max_examples=120, deadline=None)
def test_whatever_was_recorded_can_be_served(
    said: list[tuple[str, dict[str, Any], str | None, int | None]],
) -> None:
    talk = Talk()
    for side, members, stream, http in said:
        talk.frame(side, json.dumps({"jsonrpc": "2.0", **members}).encode(), stream, http)
        talk.note("http-end", http=http, stream=stream, hung_up="client")
    live = talk.live(speed=1.0)
    for side, members, _, _ in said:
        if side == "client":
            live.say(**members)
            live.wait(1.0)
    live.session.close(live.now)
    live.wait(100.0)
    assert live.ask("still here", "ping")


class Clients(RuleBasedStateMachine):
    """Several clients of one recording with random requests: each client gets every queue from its start."""

    def __init__(self) -> None:
        super().__init__()
        talk = Talk()
        self.recorded: dict[tuple[str, int], list[str]] = {}
        for number, (tool, kind) in enumerate((("a", 1), ("b", 1), ("a", 1), ("a", 2), ("a", 1), ("b", 1))):
            talk.call(number, tool, answer=f"{tool}{number}", n=kind)
            self.recorded.setdefault((tool, kind), []).append(f"{tool}{number}")
        self.recordings = talk.recordings()
        self.clients: list[tuple[Live, Counter[tuple[str, int]], bool]] = []
        self.ids = itertools.count()

    @rule(repeats=st.booleans())
    def come(self, repeats: bool) -> None:
        self.clients.append((Live(self.recordings, repeats=repeats), Counter(), repeats))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), tool=st.sampled_from("ab"), n=st.integers(1, 3))
    def call(self, data: st.DataObject, tool: str, n: int) -> None:
        client, asked, repeats = data.draw(st.sampled_from(self.clients))
        answers = self.recorded.get((tool, n), [])
        place, asked[tool, n] = asked[tool, n], asked[tool, n] + 1
        said = client.answered(next(self.ids), tool, n=n)
        if place < len(answers):
            assert said == answers[place]
        elif answers and repeats:
            assert said == answers[-1]
        else:
            assert said == -32603

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.clients.remove(data.draw(st.sampled_from(self.clients)))


TestClients = Clients.TestCase
TestClients.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
