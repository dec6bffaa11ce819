"""What mcpspy did and said while a session was recorded, when that session is played."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.mock.loader import Script
from mcpspy.core.mock.loader_fast import QuickScript
from mcpspy.core.mock.recordings import Library
from mcpspy.core.mock.session import Options, Patient
from mcpspy.core.mock.store import Shelf
from mcpspy.core.recording.decode import read_entry
from tests.core.mock.talking import Json, Live, progress

OURS = {"by": "mcpspy"}
KEPT = {"to": "mcpspy"}


def entry(side: str, message: Json, **head: Any) -> Json:
    return {"from": side, **head, "msg": {"jsonrpc": "2.0", **message}}


def asks(id: Any, text: str = "a", **head: Any) -> Json:  # noqa: A002
    params = {"name": "echo", "arguments": {"text": text}}
    return entry("client", {"id": id, "method": "tools/call", "params": params}, **head)


def answers(id: Any, said: str, **head: Any) -> Json:  # noqa: A002
    return entry("server", {"id": id, "result": {"said": said}}, **head)


def done(action: str, **fields: Any) -> Json:
    return {"note": "rule", "action": action, "from": "server", "id": "1", **fields}


def changed(said: str, action: str = "replace", **fields: Any) -> Json:
    return done(action, sent=json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"said": said}}), **fields)


def script(*said: Json, lines: bool = True) -> Script:
    """Read a recording, its entries a second apart: line by line, or as what is in no file."""
    texts = [
        json.dumps({"t": float(at), **each}, separators=(",", ":")).encode() for at, each in enumerate(said)
    ]
    whole = b"".join(text + b"\n" for text in texts)
    read = QuickScript(Shelf("r.jsonl", (), lambda place, length: whole[place : place + length]))
    if lines:
        read.add_lines(texts, 0)
    else:
        for text in texts:
            Script.add(read, read_entry(text))
    return read


def live(*said: Json, lines: bool = True, **options: Any) -> Live:
    read = script(*said, lines=lines)
    read.end()
    return Live(Library([read.shelf]), **options)


def test_what_we_asked_in_the_hosts_name_answers_nobody() -> None:
    client = live(
        *(asks(1), answers(1, "one")),
        *(asks("m-1", **OURS), done("inject", viewer="send", **{"from": "client"})),
        entry("server", progress(1, 1), **KEPT),
        answers("m-1", "ours", **KEPT),
        *(asks("m-2", "only we", **OURS), answers("m-2", "ours", **KEPT)),
        *(asks(2), answers(2, "two")),
    )
    assert [client.answered(id, text="a") for id in "xyz"] == ["one", "two", "two"]  # noqa: A001
    assert client.answered("w", text="only we") == -32603
    numbers = [scene.number for scene in client.conversation.library.scenes]
    assert numbers == [0, 3], "as `mcpspy show` counts them"


@pytest.mark.parametrize("lines", [True, False], ids=["in a file", "in none"])
def test_a_changed_answer_is_played_as_the_host_heard_it(lines: bool) -> None:
    client = live(
        asks(1),
        answers(1, "was"),
        changed("once"),
        changed("became"),
        asks(2),
        answers(2, "was"),
        lines=lines,
    )
    assert [client.answered(id, text="a") for id in "xy"] == ["became", "was"]  # noqa: A001
    reported = asks(1)
    reported["msg"]["params"]["_meta"] = {"progressToken": 1}
    client = live(
        reported, entry("server", progress(1, 1)), answers(1, "was"), changed("became"), lines=lines
    )
    assert client.answered("x", text="a") == "became"


def test_what_was_corrupted_is_played_whole() -> None:
    client = live(asks(1), answers(1, "was"), changed("torn", "corrupt", how="half-line"))
    assert client.answered("x", text="a") == "was"


@pytest.mark.parametrize(
    "fate",
    [
        [answers(1, "was", **KEPT), done("drop")],
        [answers(1, "was"), done("hold", ticket=7), done("release", ticket=7, why="dropped")],
    ],
    ids=["by a rule", "by a viewer"],
)
def test_an_answer_that_was_dropped_is_not_given(fate: list[Json]) -> None:
    client = live(asks(1), *fate, asks(2, "b"), answers(2, "yes"))
    assert client.call("x", text="a") == []
    (said,) = client.conversation.complaints()
    assert said.startswith("tools/call echo: was never answered")
    assert client.answered("y", text="b") == "yes"


def test_an_answer_that_was_dropped_after_a_log_is_not_given_either() -> None:
    log = entry("server", {"method": "notifications/message", "params": {"level": "info", "data": "x"}})
    held = (log, answers(1, "was"), done("hold", ticket=7), done("release", ticket=7, why="dropped"))
    client = live(asks(1), *held)
    assert [said["method"] for said in client.call("x", text="a")] == ["notifications/message"]
    assert len(client.conversation.complaints()) == 1


def test_what_was_dropped_on_the_way_to_an_answer_is_left_out() -> None:
    log = entry("server", {"method": "notifications/message", "params": {"level": "info", "data": "x"}})
    held = (log, done("hold", ticket=7), answers(1, "yes"), done("release", ticket=7, why="dropped"))
    assert [said.get("id") for said in live(asks(1), *held).call("x", text="a")] == ["x"]
    kept = (
        log,
        done("hold", ticket=7),
        answers(1, "yes"),
        done("release", ticket=7, why="timeout", seconds=2),
    )
    assert [said.get("id") for said in live(asks(1), *kept).call("x", text="a")] == [None, "x"]


@pytest.mark.parametrize(
    "delay",
    [
        [done("delay", seconds=3)],
        [done("hold", ticket=7), done("release", ticket=7, why="timeout", seconds=3)],
        [done("hold", ticket=7), changed("yes", "release", ticket=7, why="edited", seconds=3)],
    ],
    ids=["by a rule", "by a viewer", "by one who edits"],
)
def test_what_was_delayed_comes_when_it_came(delay: list[Json]) -> None:
    client = live(asks(1), answers(1, "yes"), *delay, speed=1.0)
    assert client.call("x", text="a") == []
    assert client.wait(3.5) == []
    assert [said["result"]["said"] for said in client.wait(0.5)] == ["yes"]


def test_our_answer_is_played_and_not_the_one_we_kept() -> None:
    failed = entry("server", {"id": 1, "error": {"code": -32001, "message": "hung"}}, **OURS)
    cancelled = entry("client", {"method": "notifications/cancelled", "params": {"requestId": 1}}, **OURS)
    late = answers(1, "late", **KEPT)
    for said in ([cancelled, failed, late], [failed, cancelled, late]):
        assert live(asks(1, **KEPT), *said).answered("x", text="a") == -32001


def test_what_a_viewer_said_to_the_host_is_not_said_again() -> None:
    roots = {"id": "m-1", "method": "roots/list"}
    client = live(
        *(asks(1), entry("server", roots, **OURS), entry("client", {"id": "m-1", "result": {}}, **KEPT)),
        *(entry("server", {"method": "notifications/tools/list_changed"}, **OURS), answers(1, "yes")),
    )
    client.initialize(roots={})
    assert [said.get("id") for said in client.call("x", text="a")] == ["x"]


def test_what_may_still_be_changed_is_not_sure() -> None:
    first = [asks(1), asks(2, "b"), answers(1, "was")]
    fates = (
        [changed("became"), answers(2, "yes")],
        [done("hold", ticket=7), answers(2, "yes"), done("release", ticket=7)],
    )
    for fate in fates:
        for count in range(len(fate) + 1):
            client = Live(Library([script(*first, *fate[:count]).shelf]))
            client.conversation = Patient(client.conversation.library, Options(), client.now)
            assert bool(client.call("x", text="a")) == (count == len(fate)), count


@pytest.mark.parametrize(
    "odd",
    [
        done("hold", ticket=[1]),
        done("release", ticket={}),
        done("release", ticket=9, why="dropped"),
        done("delay", seconds="long"),
        done("delay", seconds=-5),
        done("replace", sent=5),
        done("replace", sent="what is that?"),
        done("replace", failed="why not"),
        {"note": "rule"},
    ],
    ids=lambda note: json.dumps(note)[15:60],
)
def test_a_note_that_makes_no_sense_changes_nothing(odd: Json) -> None:
    assert live(asks(1), answers(1, "was"), odd).answered("x", text="a") == "was"


@pytest.mark.parametrize("lines", [True, False], ids=["in a file", "in none"])
def test_a_change_that_is_no_text_is_played_as_far_as_it_is(lines: bool) -> None:
    client = live(
        asks(1), answers(1, "was"), done("replace", sent='{"id":1,"result":{"said":"\ud800"}}'), lines=lines
    )
    assert client.answered("x", text="a") == "?"
