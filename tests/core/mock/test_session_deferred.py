"""A client of a recording that is still being read."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.mock.loader import Script, entries
from mcpspy.core.mock.recordings import Library
from mcpspy.core.mock.selector import Match
from mcpspy.core.mock.session import Options, Patient
from mcpspy.core.mock.store import Shelf
from mcpspy.core.recording.decode import Entry
from tests.core.mock.talking import VERSION, Json, Talk, log, modern, progress


class Reading:
    """A client of recordings that are read entry by entry, the last of them first."""

    def __init__(self, *talks: Talk, **options: Any) -> None:
        self.scripts = [
            Script(Shelf(f"{number}.jsonl"), talk.session.header) for number, talk in enumerate(talks)
        ]
        self._unread: list[tuple[Script, list[Entry]]] = [
            (script, list(entries(talk.session))) for script, talk in zip(self.scripts, talks, strict=True)
        ]
        self.library = Library([script.shelf for script in self.scripts])
        self.conversation = Patient(self.library, Options(**options), 0.0)

    def read(self, count: int, which: int = -1) -> list[Json]:
        """Read so many entries of the last recording that is not whole, or of another; return what comes of it."""
        for _ in range(count):
            if self._unread:
                script, left = self._unread[which]
                if left:
                    script.add(left.pop(0))
                if not left:
                    script.end()
                    self._unread.pop(which)
            self.conversation.go_on(0.0)
        return self.heard()

    def read_all(self) -> list[Json]:
        return self.read(1 + sum(len(left) for _, left in self._unread))

    def say(self, **members: Any) -> list[Json]:
        self.conversation.receive(json.dumps({"jsonrpc": "2.0", **members}).encode(), 0.0)
        return self.heard()

    def call(self, id: Any, tool: str = "echo", **arguments: Any) -> list[Any]:  # noqa: A002
        """Call a tool; return the ids and what is said of what comes at once."""
        return told(self.say(id=id, method="tools/call", params={"name": tool, "arguments": arguments}))

    def heard(self) -> list[Json]:
        return [json.loads(outgoing.data) for outgoing in self.conversation.take(0.0)]


def told(said: list[Json]) -> list[Any]:
    return [(each.get("id"), each["result"]["said"] if "result" in each else "error") for each in said]


def three() -> Talk:
    return Talk().call(1, answer="a", n=1).call(2, answer="b", n=2).call(3, answer="c", n=1)


def test_what_is_answered_and_over_is_answered_before_the_rest_is_read() -> None:
    reading = Reading(three())
    assert reading.call("x", n=1) == []
    assert reading.conversation.waits
    assert reading.conversation.owes
    assert told(reading.read(2)) == [], "a notification may still belong to it"
    assert told(reading.read(1)) == [("x", "a")]
    assert not reading.conversation.waits


def test_what_comes_after_what_waits_waits_behind_it() -> None:
    reading = Reading(three())
    reading.read(3)
    assert reading.call("x", n=2) == []
    assert reading.call("y", n=1) == [], "though it is there already"
    assert told(reading.read(2)) == [("x", "b"), ("y", "a")]


def test_the_next_place_in_a_queue_is_waited_for_and_a_repetition_to_the_end() -> None:
    reading = Reading(three())
    reading.read(4)
    assert [reading.call("x", n=1), reading.call("y", n=1), reading.call("z", n=1)] == [[("x", "a")], [], []]
    assert told(reading.read_all()) == [("y", "c"), ("z", "c")]
    assert [scene.number for scene in reading.conversation.choice.unused()] == [1]


def test_only_at_the_end_is_it_sure_that_something_was_not_recorded() -> None:
    reading = Reading(three())
    reading.read(5)
    assert [reading.call("x", "other"), reading.say(id="p", method="ping")] == [[], []]
    assert [each["id"] for each in reading.read_all()] == ["x", "p"]
    assert reading.conversation.choice.misses == ["not recorded: tools/call other"]


def test_what_no_recording_has_a_say_in_does_not_wait() -> None:
    reading = Reading(Talk().handshake().client(id=1, method="a").server(id=7, method="ping").call(2))
    reading.read(2)
    reading.call("x")
    reading.conversation.receive(b"garbage", 0.0)
    assert [each["error"]["code"] for each in reading.heard()] == [-32700]
    assert reading.say(id=9, result={}) == []


def test_a_notification_waits_for_what_followed_it() -> None:
    talk = Talk().handshake().server(method="notifications/tools/list_changed").call(1)
    reading = Reading(talk)
    reading.read(3)
    assert reading.say(method="notifications/initialized") == []
    assert [each["method"] for each in reading.read(2)] == ["notifications/tools/list_changed"]


def test_a_request_that_waits_and_is_cancelled_is_not_answered() -> None:
    told_so, hung_up = Reading(three()), Reading(three())
    told_so.call("x", n=1)
    told_so.say(method="notifications/cancelled", params={"requestId": "x"})
    hung_up.call("x", n=1)
    hung_up.conversation.cancel('"x"', 0.0)
    assert not hung_up.conversation.waits
    assert [told_so.read_all(), hung_up.read_all()] == [[], []]
    assert told(told_so.say(id="y", method="tools/call", params={"name": "echo", "arguments": {"n": 2}}))


def test_a_client_that_closed_its_end_gets_what_it_waits_for_and_then_the_end() -> None:
    talk = Talk().client(id="l", method="subscriptions/listen", params={"_meta": modern()}).call(1)
    talk.note("eof", **{"from": "client"}).server(id="l", error={"code": -32000, "message": "closed"})
    reading = Reading(talk)
    reading.say(id="live", method="subscriptions/listen", params={"_meta": modern()})
    reading.conversation.close(0.0)
    assert reading.conversation.owes
    (said,) = reading.read_all()
    assert (said["id"], said["error"]["code"]) == ("live", -32000)
    assert not reading.conversation.owes


def test_the_last_recording_is_sure_before_the_first_is_read() -> None:
    reading = Reading(
        Talk().call(1, answer="old", n=1).call(2, "first"), Talk().call(1, answer="new", n=1).call(2, n=9)
    )
    reading.read(3)
    assert reading.call("x", n=1) == [("x", "new")]
    assert reading.call("y", "first") == []
    assert told(reading.read(3)) == [], "the last is whole, the first has just begun"
    assert told(reading.read_all()) == [("y", "yes")]
    assert reading.library.conflicts == ["tools/call echo: answered as in 1.jsonl, not as in 0.jsonl"]


def test_how_the_first_recording_begins_is_not_sure_before_the_last_is_read() -> None:
    reading = Reading(three(), Talk().call(1, "other").call(2, answer="new", n=1))
    reading.read(3, which=0)
    reading.read(2)
    assert reading.call("x", n=1) == []
    assert told(reading.read_all()) == [("x", "new")]


def test_a_revision_that_was_not_heard_of_yet_is_not_refused_yet() -> None:
    talk = Talk()
    for id, version in ((1, "2026-07-28"), (2, "2026-07-28"), (3, "2027-01-01")):  # noqa: A001
        talk.client(id=id, method="tools/list", params={"_meta": modern(**{VERSION: version})})
        talk.server(id=id, result={"said": version})
    reading = Reading(talk, match=Match.METHOD)
    reading.read(3)
    params = {"_meta": modern(**{VERSION: "2027-01-01"})}
    assert reading.say(id="x", method="tools/list", params=params) == []
    assert told(reading.read_all()) == [("x", "2026-07-28")]


def test_an_answer_to_a_question_that_was_not_heard_yet_is_waited_for() -> None:
    talk = Talk()
    for said in ("accept", "decline"):
        params = {"name": "ask", "requestState": "s", "inputResponses": {"q": said}, "_meta": modern()}
        talk.client(id=1, method="tools/call", params=params).server(id=1, result={"said": said})
        talk.client(method="notifications/x")
    reading = Reading(talk)
    reading.read(3)
    assert reading.say(id="x", method="tools/call", params=params) == []
    assert told(reading.read_all()) == [("x", "decline")]


def test_other_arguments_are_taken_when_it_is_sure_that_there_are_none() -> None:
    reading = Reading(three(), match=Match.LENIENT)
    reading.read(5)
    assert reading.call("x", n=1) == [("x", "a")]
    assert reading.call("y", n=7) == []
    assert told(reading.read_all()) == [("y", "error")]
    late = Reading(
        Talk().call(1, n=1).client(method="notifications/x").call(2, answer="b", n=7), match=Match.LENIENT
    )
    late.read(3)
    assert late.call("x", n=7) == [], "though it is the only one so far"
    assert told(late.read_all()) == [("x", "b")]


def test_the_next_of_a_method_is_taken_when_it_is_there() -> None:
    reading = Reading(three(), match=Match.METHOD)
    reading.read(3)
    assert reading.call("x", "whatever") == [("x", "a")]
    assert reading.call("y", "whatever") == []
    assert told(reading.read(2)) == [("y", "b")]
    two = Reading(three(), three(), match=Match.METHOD)
    two.read(8)
    assert two.call("x") == [], "those of the first come first"
    assert told(two.read_all()) == [("x", "a")]


def test_two_requests_in_a_batch_do_not_take_one_place() -> None:
    reading = Reading(Talk().handshake("2025-03-26").call(1, answer="a").call(2, answer="b").call(3, "x"))
    reading.read(5)
    params = {"name": "echo", "arguments": {}}
    batch = [{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params} for id in (1, 2)]  # noqa: A001
    reading.conversation.revision = "2025-03-26"
    reading.conversation.receive(json.dumps(batch).encode(), 0.0)
    assert reading.conversation.waits
    assert told(reading.read_all()) == [(1, "a"), (2, "b")]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_who_is_answered_while_it_is_read_is_answered_as_if_all_of_it_had_been(data: st.DataObject) -> None:
    talk = Talk().handshake()
    said: list[Json] = []
    for number in range(1, data.draw(st.integers(1, 8), label="requests") + 1):
        about = {"name": data.draw(st.sampled_from("ab")), "_meta": {"progressToken": number}}
        asked: Json = {"id": number, "method": "tools/call", "params": about}
        said.append(asked)
        talk.client(**asked)
        for what in data.draw(st.lists(st.sampled_from(["progress", "log", "changed"]), max_size=2)):
            told = {"progress": progress(number, 1), "log": log(), "changed": {"method": "notifications/x"}}
            talk.server(**told[what])
        if data.draw(st.booleans(), label="answered"):
            talk.server(id=number, result={"said": number})
    order = data.draw(st.permutations(said))
    match = data.draw(st.sampled_from(Match))
    whole, part = Reading(talk, match=match), Reading(talk, match=match)
    expected = whole.read_all()
    heard: list[Json] = []
    for asked in order:
        expected += whole.say(**asked)
        heard += part.read(data.draw(st.integers(0, 4)))
        heard += part.say(**asked)
    assert heard + part.read_all() == expected
    assert part.conversation.complaints() == whole.conversation.complaints()
