"""Changes of a replay while it runs: pauses, steps, skipped, edited and repeated requests."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.replay.player import SKIPPED
from tests.core.replay.playing import Json, Stage, Talk


def three_calls(**options: Any) -> Stage:
    return Stage(Talk().call(5, "one").call(6, "two").call(7, "three").session, **options)


def tools(said: list[Json]) -> list[str]:
    return [message["params"]["name"] for message in said]


def edited(tool: str) -> bytes:
    params = {"name": tool, "arguments": {"more": True}}
    return json.dumps({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params}).encode()


def test_a_paused_replay_sends_as_many_requests_as_it_may() -> None:
    stage = three_calls()
    stage.player.allowed = 0
    assert stage.takes() == []
    assert stage.player.next_at is None
    stage.player.allowed = 1
    assert tools(stage.takes()) == ["one"]
    assert stage.hears(id=1, result={}) == []
    stage.player.allowed = None
    assert tools(stage.takes()) == ["two"]


def test_a_pause_waits_before_the_end_of_the_session() -> None:
    stage = three_calls()
    stage.player.allowed = 3
    stage.takes()
    for number in range(1, 4):
        stage.hears(id=number, result={})
    assert len(stage.player.sent) == 3
    assert not stage.player.is_over
    stage.player.allowed = None
    stage.takes()
    assert stage.player.is_over


def test_a_pause_does_not_stop_the_timeout_of_an_open_request() -> None:
    stage = three_calls(timeout=30.0)
    stage.takes()
    stage.player.allowed = 0
    assert stage.waits() == 30.0


def test_skipped_requests_are_not_sent_and_take_no_step() -> None:
    stage = three_calls()
    stage.player.allowed = 1
    stage.player.skip()
    assert tools(stage.takes()) == ["two"]
    assert stage.player.unsent == {0: SKIPPED}
    assert stage.player.warnings == []
    assert stage.player.next_request == 2


def test_a_request_that_needs_a_value_of_a_skipped_one_is_not_sent() -> None:
    talk = Talk()
    talk.client(id=1, method="tools/list").server(id=1, result={"tools": [], "nextCursor": "a"})
    talk.client(id=2, method="tools/list", params={"cursor": "a"}).server(id=2, result={"tools": []})
    talk.call(3, "one")
    stage = Stage(talk.session)
    stage.player.skip()

    assert tools(stage.takes()) == ["one"]
    assert stage.player.unsent[1] == "the server returned no cursor this time"


def test_the_next_request_is_sent_as_it_was_edited_and_so_is_its_repetition() -> None:
    stage = three_calls()
    assert stage.player.edit(edited("other"))
    (said,) = stage.takes()
    assert (said["id"], said["params"]) == (1, {"name": "other", "arguments": {"more": True}})
    stage.player.allowed = 0
    stage.hears(id=1, result={})
    assert stage.player.again(0, stage.now)
    (said,) = stage.takes()
    assert (said["id"], said["params"]["name"]) == (2, "other")


def test_only_a_request_replaces_a_request() -> None:
    stage = three_calls()
    for text in (
        b"{",
        b'{"jsonrpc":"2.0","method":"notifications/x"}',
        b"[%b,%b]" % (edited("a"), edited("b")),
    ):
        assert not stage.player.edit(text)
    assert tools(stage.takes()) == ["one"]


def test_a_request_sent_again_gets_another_response() -> None:
    stage = three_calls()
    stage.player.allowed = 1
    stage.takes()
    assert not stage.player.again(0, stage.now)  # It is still open.
    stage.hears(id=1, result={"said": "no"})
    assert not stage.player.again(1, stage.now)  # It was not sent.
    assert stage.player.again(0, stage.now)
    assert tools(stage.takes()) == ["one"]
    stage.hears(id=2, result={"said": "yes"})
    answer = stage.player.sent[0].answer
    assert answer is not None
    assert json.loads(answer.data)["result"] == {"said": "yes"}
    assert (stage.player.number_of("2"), stage.player.number_of("3")) == (0, None)


def test_changes_are_listed_until_the_list_is_emptied() -> None:
    stage = three_calls()
    stage.takes()
    assert stage.player.changed == [0]
    stage.player.changed.clear()
    stage.player.allowed = 0
    stage.hears(id=1, result={})
    assert stage.player.changed == [0]
