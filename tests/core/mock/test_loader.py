"""Causes of server messages: grouping of a session into interactions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.mock.interaction import CANCEL, EOF, Interaction
from mcpspy.core.mock.loader import FORGETS_EVERY, MAX_ANSWERED, InteractionLoader
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.mock.store import InteractionStore
from mcpspy.core.recording.decode import read_entry
from tests.core.mock.talking import Json, Live, Talk, entries, interactions, loaded, modern, progress

LOG: dict[str, Any] = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}
CHANGED: dict[str, Any] = {"method": "notifications/tools/list_changed"}


def told(interaction: Interaction) -> list[tuple[str, float]]:
    """Return the methods of an interaction's steps, and their delays after the last gate."""
    return [(getattr(step.message, "method", "answer"), step.after) for step in interaction.steps]


def test_progress_belongs_only_to_the_request_with_its_token() -> None:
    progress: dict[str, Any] = {
        "method": "notifications/progress",
        "params": {"progressToken": "t", "progress": 1},
    }
    talk = Talk().client(id=1, method="slow", params={"_meta": {"progressToken": "t"}})
    talk.client(id=2, method="other").server(**progress).server(id=2, result={}).server(id=1, result={})
    slow, other = interactions(talk.session)
    assert told(slow) == [("notifications/progress", 2.0), ("answer", 4.0)]
    assert told(other) == [("answer", 2.0)]


def test_messages_after_the_clients_response_wait_for_it() -> None:
    talk = Talk().client(id=1, method="ask").server(id=1, method="roots/list")
    talk.client(id=1, result={"roots": []}).server(**LOG).server(id=1, result={})
    (interaction,) = interactions(talk.session)
    assert [step.gates for step in interaction.steps] == [(), (0,), (0,)]
    assert told(interaction) == [("roots/list", 1.0), ("notifications/message", 1.0), ("answer", 2.0)]


def test_an_error_after_a_cancellation_waits_for_it_and_a_late_result_does_not() -> None:
    cancel: dict[str, Any] = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    error = {"code": 0, "message": "Request cancelled"}
    refused = Talk().client(id=1, method="a").client(**cancel).server(id=1, error=error)
    late = Talk().client(id=1, method="a").client(**cancel).server(id=1, result={})
    never = Talk().client(id=1, method="a").client(**cancel)
    assert [step.gates for interaction in interactions(refused.session) for step in interaction.steps] == [
        (CANCEL,)
    ]
    assert [step.gates for interaction in interactions(late.session) for step in interaction.steps] == [()]
    assert [(interaction.cancelled, interaction.steps) for interaction in interactions(never.session)] == [
        (True, [])
    ]


def test_a_subscription_that_ended_with_the_connection_waits_for_its_end() -> None:
    talk = Talk().client(id="l", method="subscriptions/listen").note("eof", **{"from": "client"})
    talk.server(id="l", error={"code": -32000, "message": "Connection closed"})
    (interaction,) = interactions(talk.session)
    assert [step.gates for step in interaction.steps] == [(EOF,)]


def test_responses_after_the_client_closed_its_end_do_not_wait() -> None:
    talk = Talk().client(id=1, method="a").note("eof", **{"from": "client"}).server(id=1, result={})
    assert [step.gates for interaction in interactions(talk.session) for step in interaction.steps] == [()]


def test_an_http_error_without_a_message_is_an_answer() -> None:
    talk = Talk().client("s", 1, id=1, method="a")
    talk.note("http", http=1, stream="s", status=404).note("http-end", http=1, stream="s", hung_up=None)
    (interaction,) = interactions(talk.session)
    assert interaction.answer is not None
    assert b"HTTP 404" in interaction.answer.data


def test_a_client_that_hung_up_waits_for_nothing() -> None:
    talk = Talk().client("s", 1, id=1, method="a", params={"_meta": modern()})
    talk.note("http-end", http=1, stream="s", hung_up="client").client("s", id=2, method="b").server(
        "s", **LOG
    )
    hung_up, other = interactions(talk.session)
    assert (hung_up.cancelled, hung_up.steps) == (True, [])
    assert told(other) == [("notifications/message", 1.0)]


def settled(talk: Talk) -> list[int]:
    """Return the rows that the unread rest cannot change."""
    store = loaded(talk.session).store
    return [row for row in range(len(store)) if store.is_settled(row)]


def test_an_interaction_ends_after_its_response_and_the_clients_next_message() -> None:
    talk = Talk().client(id=1, method="a")
    assert settled(talk) == []
    assert settled(talk.server(id=1, result={})) == []
    assert settled(talk.client(method="notifications/x")) == [0]
    assert settled(talk.client(id="l", method="subscriptions/listen").client(id=3, method="b")) == [0, 1]
    assert settled(talk.client(id=4, method="c")) == [0, 1]
    assert settled(talk.server(id=3, result={})) == [0, 1], "a note may follow, of what was done to it"
    assert settled(talk.note("stderr")) == [0, 1, 3]


def test_an_interaction_does_not_end_while_a_server_request_is_pending() -> None:
    talk = Talk().client(id=1, method="a").server(id=7, method="ping").server(id=1, result={}).call(2)
    assert settled(talk.call(3)) == [1]
    assert settled(talk.client(id=7, result={})) == [1, 2]
    assert settled(talk.server(**LOG).client(id=4, method="b")) == [0, 1, 2]


def test_an_interaction_does_not_end_while_its_task_runs() -> None:
    talk = Talk().client(id=1, method="a").server(id=1, result={"task": {"taskId": "t"}})
    assert settled(talk.call(2).call(3)) == [1]


def test_over_http_only_a_message_in_the_same_session_ends_an_interaction() -> None:
    talk = Talk().client("s", 1, id=1, method="a").server("s", 1, id=1, result={})
    assert settled(talk.client("t", 2, id=2, method="b").server("t", 2, id=2, result={})) == []
    assert settled(talk.client("s", 3, id=3, method="c")) == [0]
    meta = {"_meta": modern()}
    single = Talk().client("1", 1, id=1, method="a", params=meta).server("1", 1, id=1, result={})
    assert settled(single) == []
    assert settled(single.client("2", 2, id=2, method="b", params=meta)) == [0]


def test_unsolicited_responses_and_garbage_are_skipped() -> None:
    talk = (
        Talk().call(1).server(id=1, result={"again": 1}).server(id=9, result={}).frame("server", b"DEBUG: x")
    )
    (interaction,) = interactions(talk.session)
    assert told(interaction) == [("answer", 1.0)]


def test_only_the_interaction_of_an_answered_request_stays_in_memory() -> None:
    loader = loaded(Talk().handshake().call(1).call(2).session)
    assert not any(loader.causes._open.values())
    assert not loader._owed
    calls = [line for number in range(2 * MAX_ANSWERED) for line in _call(number)]
    for begin in range(0, len(calls), 64):
        loader.add_lines(calls[begin : begin + 64], 0)
    assert len(loader._pairing._answered) <= MAX_ANSWERED + FORGETS_EVERY


def _call(number: int) -> list[bytes]:
    request, answer = request_entry(number), answers(number, "yes")
    return [json.dumps({"t": 9.0, **each}, separators=(",", ":")).encode() for each in (request, answer)]


def test_a_message_while_no_request_is_pending_follows_the_last_client_message() -> None:
    talk = Talk().call(1).server(**CHANGED).client(method="notifications/initialized").server(**CHANGED)
    call, notice = interactions(talk.session)
    assert told(call) == [("answer", 1.0), ("notifications/tools/list_changed", 2.0)]
    assert told(notice) == [("notifications/tools/list_changed", 1.0)]


def test_a_message_belongs_to_the_request_that_is_still_pending() -> None:
    talk = Talk().client(id=1, method="slow").call(2).server(**LOG).server(id=1, result={})
    slow, call = interactions(talk.session)
    assert told(slow) == [("notifications/message", 3.0), ("answer", 4.0)]
    assert told(call) == [("answer", 1.0)]


def test_a_subscribed_notification_follows_the_request_that_caused_it() -> None:
    meta: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/subscriptionId": "l"}}
    talk = Talk().client(id="l", method="subscriptions/listen")
    talk.server(method="notifications/subscriptions/acknowledged", params=meta)
    talk.client(id=1, method="tools/call").server(method="notifications/resources/updated", params=meta)
    talk.server(id=1, result={})
    listen, call = interactions(talk.session)
    assert told(listen) == [("notifications/subscriptions/acknowledged", 1.0)]
    assert told(call) == [("notifications/resources/updated", 1.0), ("answer", 2.0)]
    assert call.steps[0].listens == listen.number


def test_over_http_a_message_belongs_to_the_exchange_that_carried_it() -> None:
    talk = Talk().client("s", 1, id=1, method="a").client("s", 2, id=2, method="b")
    talk.server("s", 1, **LOG).server("s", 2, id=2, result={}).server("s", 1, id=1, result={})
    one, other = interactions(talk.session)
    assert told(one) == [("notifications/message", 2.0), ("answer", 4.0)]
    assert told(other) == [("answer", 2.0)]


def test_a_message_before_the_response_belongs_to_the_pending_request() -> None:
    talk = Talk().client(id=1, method="a").server(**LOG).server(id=1, result={})
    (interaction,) = interactions(talk.session)
    assert told(interaction) == [("notifications/message", 1.0), ("answer", 2.0)]


def test_a_first_message_from_the_server_opens_the_session() -> None:
    opening, call = interactions(Talk().server(**LOG).call(1).session)
    assert opening.cause is None
    assert told(opening) == [("notifications/message", 1.0)]
    assert told(call) == [("answer", 1.0)]


OURS = {"by": "mcpspy"}
KEPT = {"to": "mcpspy"}


def entry(side: str, message: Json, **head: Any) -> Json:
    return {"from": side, **head, "msg": {"jsonrpc": "2.0", **message}}


def request_entry(id: Any, text: str = "a", **head: Any) -> Json:  # noqa: A002
    params = {"name": "echo", "arguments": {"text": text}}
    return entry("client", {"id": id, "method": "tools/call", "params": params}, **head)


def answers(id: Any, said: str, **head: Any) -> Json:  # noqa: A002
    return entry("server", {"id": id, "result": {"said": said}}, **head)


def done(action: str, **fields: Any) -> Json:
    return {"note": "rule", "action": action, "from": "server", "id": "1", **fields}


def changed(said: str, action: str = "replace", **fields: Any) -> Json:
    return done(action, sent=json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"said": said}}), **fields)


def loader(*said: Json, lines: bool = True) -> InteractionLoader:
    """Load entries that are one second apart, as lines of a file or from no file."""
    texts = [
        json.dumps({"t": float(at), **each}, separators=(",", ":")).encode() for at, each in enumerate(said)
    ]
    whole = b"".join(text + b"\n" for text in texts)
    read = InteractionLoader(
        InteractionStore("r.jsonl", (), lambda place, length: whole[place : place + length])
    )
    if lines:
        read.add_lines(texts, 0)
    else:
        for text in texts:
            InteractionLoader.add(read, read_entry(text))
    return read


def live(*said: Json, lines: bool = True, **options: Any) -> Live:
    read = loader(*said, lines=lines)
    read.finish()
    return Live(Recordings([read.store]), **options)


def test_responses_to_injected_requests_are_not_played() -> None:
    client = live(
        *(request_entry(1), answers(1, "one")),
        *(request_entry("m-1", **OURS), done("inject", viewer="send", **{"from": "client"})),
        entry("server", progress(1, 1), **KEPT),
        answers("m-1", "ours", **KEPT),
        *(request_entry("m-2", "only mcpspy", **OURS), answers("m-2", "ours", **KEPT)),
        *(request_entry(2), answers(2, "two")),
    )
    assert [client.answered(id, text="a") for id in "xyz"] == ["one", "two", "two"]  # noqa: A001
    assert client.answered("w", text="only mcpspy") == -32603
    numbers = [interaction.number for interaction in client.session.recordings.interactions]
    assert numbers == [0, 3], "as `mcpspy show` counts them"


@pytest.mark.parametrize("lines", [True, False], ids=["in a file", "in none"])
def test_an_edited_response_is_played_as_the_host_received_it(lines: bool) -> None:
    client = live(
        request_entry(1),
        answers(1, "was"),
        changed("once"),
        changed("became"),
        request_entry(2),
        answers(2, "was"),
        lines=lines,
    )
    assert [client.answered(id, text="a") for id in "xy"] == ["became", "was"]  # noqa: A001
    reported = request_entry(1)
    reported["msg"]["params"]["_meta"] = {"progressToken": 1}
    client = live(
        reported, entry("server", progress(1, 1)), answers(1, "was"), changed("became"), lines=lines
    )
    assert client.answered("x", text="a") == "became"


def test_a_corrupted_response_is_played_uncorrupted() -> None:
    client = live(request_entry(1), answers(1, "was"), changed("torn", "corrupt", how="half-line"))
    assert client.answered("x", text="a") == "was"


@pytest.mark.parametrize(
    "fate",
    [
        [answers(1, "was", **KEPT), done("drop")],
        [answers(1, "was"), done("hold", ticket=7), done("release", ticket=7, why="dropped")],
    ],
    ids=["by a rule", "by a viewer"],
)
def test_a_dropped_response_is_not_played(fate: list[Json]) -> None:
    client = live(request_entry(1), *fate, request_entry(2, "b"), answers(2, "yes"))
    assert client.call("x", text="a") == []
    (said,) = client.session.complaints()
    assert said.startswith("tools/call echo: the recording has no response")
    assert client.answered("y", text="b") == "yes"


def test_a_response_dropped_after_a_log_message_is_not_played_either() -> None:
    log = entry("server", {"method": "notifications/message", "params": {"level": "info", "data": "x"}})
    held = (log, answers(1, "was"), done("hold", ticket=7), done("release", ticket=7, why="dropped"))
    client = live(request_entry(1), *held)
    assert [said["method"] for said in client.call("x", text="a")] == ["notifications/message"]
    assert len(client.session.complaints()) == 1


def test_a_notification_dropped_before_the_response_is_not_played() -> None:
    log = entry("server", {"method": "notifications/message", "params": {"level": "info", "data": "x"}})
    held = (log, done("hold", ticket=7), answers(1, "yes"), done("release", ticket=7, why="dropped"))
    assert [said.get("id") for said in live(request_entry(1), *held).call("x", text="a")] == ["x"]
    kept = (
        log,
        done("hold", ticket=7),
        answers(1, "yes"),
        done("release", ticket=7, why="timeout", seconds=2),
    )
    assert [said.get("id") for said in live(request_entry(1), *kept).call("x", text="a")] == [None, "x"]


@pytest.mark.parametrize(
    "delay",
    [
        [done("delay", seconds=3)],
        [done("hold", ticket=7), done("release", ticket=7, why="timeout", seconds=3)],
        [done("hold", ticket=7), changed("yes", "release", ticket=7, why="edited", seconds=3)],
    ],
    ids=["by a rule", "by a viewer", "by one who edits"],
)
def test_a_delayed_response_is_played_with_its_delay(delay: list[Json]) -> None:
    client = live(request_entry(1), answers(1, "yes"), *delay, speed=1.0)
    assert client.call("x", text="a") == []
    assert client.wait(3.5) == []
    assert [said["result"]["said"] for said in client.wait(0.5)] == ["yes"]


def test_an_injected_response_is_played_instead_of_the_suppressed_one() -> None:
    failed = entry("server", {"id": 1, "error": {"code": -32001, "message": "hung"}}, **OURS)
    cancelled = entry("client", {"method": "notifications/cancelled", "params": {"requestId": 1}}, **OURS)
    late = answers(1, "late", **KEPT)
    for said in ([cancelled, failed, late], [failed, cancelled, late]):
        assert live(request_entry(1, **KEPT), *said).answered("x", text="a") == -32001


def test_messages_injected_by_a_viewer_are_not_played() -> None:
    roots = {"id": "m-1", "method": "roots/list"}
    client = live(
        *(
            request_entry(1),
            entry("server", roots, **OURS),
            entry("client", {"id": "m-1", "result": {}}, **KEPT),
        ),
        *(entry("server", {"method": "notifications/tools/list_changed"}, **OURS), answers(1, "yes")),
    )
    client.initialize(roots={})
    assert [said.get("id") for said in client.call("x", text="a")] == ["x"]


def test_a_response_that_may_still_change_is_not_played() -> None:
    first = [request_entry(1), request_entry(2, "b"), answers(1, "was")]
    fates = (
        [changed("became"), answers(2, "yes")],
        [done("hold", ticket=7), answers(2, "yes"), done("release", ticket=7)],
    )
    for fate in fates:
        for count in range(len(fate) + 1):
            client = Live(Recordings([loader(*first, *fate[:count]).store]))
            client.session = MockSession(client.session.recordings, MockOptions(), client.now)
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
def test_an_invalid_note_changes_nothing(odd: Json) -> None:
    assert live(request_entry(1), answers(1, "was"), odd).answered("x", text="a") == "was"


@pytest.mark.parametrize("lines", [True, False], ids=["in a file", "in none"])
def test_a_change_that_is_not_valid_text_is_played_with_replacements(lines: bool) -> None:
    client = live(
        request_entry(1),
        answers(1, "was"),
        done("replace", sent='{"id":1,"result":{"said":"\ud800"}}'),
        lines=lines,
    )
    assert client.answered("x", text="a") == "?"


def batch(side: str, *messages: Json) -> Json:
    return {"from": side, "msg": [{"jsonrpc": "2.0", **message} for message in messages]}


def result(id: Any, said: str) -> Json:  # noqa: A002
    return {"id": id, "result": {"said": said}}


def test_a_redirected_request_that_is_sent_again_is_one_interaction() -> None:
    carried: Json = {"stream": "s", "http": 1}
    again: Json = {"stream": "s", "http": 2}
    client = live(
        request_entry(1, **carried),
        {"note": "http", "status": 307, "response": {"location": "/mcp/"}, **carried},
        {"note": "http-end", "hung_up": None, **carried},
        request_entry(1, **again),
        entry("server", {"method": "notifications/tools/list_changed"}, **again),
        answers(1, "moved", **again),
        {"note": "http-end", "hung_up": None, **again},
        request_entry(2),
        answers(2, "later"),
    )
    assert [said.get("method", "answer") for said in client.call("x", text="a")] == [
        "notifications/tools/list_changed",
        "answer",
    ]
    assert client.answered("y", text="a") == "later"
    assert [interaction.number for interaction in client.session.recordings.interactions] == [0, 1]


def test_an_error_with_the_id_of_an_answered_request_answers_no_other_one() -> None:
    failed = {"id": 1, "error": {"code": -32000, "message": "again"}}
    client = live(
        request_entry(1, "b", stream="s", http=1),
        answers(1, "one", stream="s", http=1),
        request_entry(2, stream="s", http=2),
        entry("server", failed, stream="s", http=2),
        answers(2, "two", stream="s", http=2),
    )
    assert client.answered("x", text="a") == "two"


def test_a_response_that_a_rule_answered_instead_is_not_played() -> None:
    failed = entry("server", {"id": 1, "error": {"code": -32001, "message": "no"}}, **OURS)
    client = live(request_entry(1), answers(1, "was", **KEPT), done("error"), failed)
    assert client.answered("x", text="a") == -32001


def test_a_notification_after_a_dropped_call_follows_the_call_before_it() -> None:
    changed_tools = entry("server", {"method": "notifications/tools/list_changed"})
    dropped = {"note": "rule", "action": "drop", "from": "client", "id": "2", "method": "tools/call"}
    late = request_entry(2, "b", **KEPT)
    client = live(request_entry(1), late, dropped, changed_tools, answers(1, "yes"))
    assert [said.get("method", "answer") for said in client.call("x", text="a")][-1] == "answer"


def test_a_server_request_that_mcpspy_answered_needs_no_answer_in_the_mock() -> None:
    asked = entry("server", {"id": 7, "method": "roots/list"})
    timed_out = entry("client", {"id": 7, "error": {"code": -32001, "message": "timed out"}}, **OURS)
    late = entry("client", {"id": 7, "result": {"roots": []}}, **KEPT)
    client = live(request_entry(1), asked, timed_out, late, answers(1, "alone"))
    client.initialize(roots={})
    assert [said.get("method", "answer") for said in client.call("x", text="a")] == ["roots/list", "answer"]


def test_a_note_on_a_batch_changes_the_message_with_its_id() -> None:
    both = batch("server", result(1, "was"), result(2, "other"))
    client = live(request_entry(1), request_entry(2, "b"), both, changed("became"))
    assert client.answered("x", text="a") == "became"
    assert client.answered("y", text="b") == "other"


def test_a_dropped_part_of_a_batch_is_not_played() -> None:
    both = batch("server", result(1, "was"), result(2, "other"))
    client = live(request_entry(1), request_entry(2, "b"), both, done("drop"))
    assert client.call("x", text="a") == []
    assert client.answered("y", text="b") == "other"


def test_a_repaired_response_is_played_as_the_host_received_it() -> None:
    client = live(request_entry(1), answers(1, "was"), changed("became", "repair"))
    assert client.answered("x", text="a") == "became"


def test_an_interaction_ends_after_its_task() -> None:
    talk = Talk().client(id=1, method="a").server(id=1, result={"task": {"taskId": "t", "status": "working"}})
    assert settled(talk.call(2).call(3)) == [1]
    status: Json = {"method": "notifications/tasks/status", "params": {"taskId": "t", "status": "completed"}}
    assert settled(talk.server(**status).call(4)) == [0, 1, 2]


def test_noise_on_stdout_is_played_at_its_place_only_if_requested() -> None:
    talk = Talk().frame("server", b"Server 1.0 starts").handshake()
    talk.client(id=1, method="tools/call", params={"name": "a"}).frame("server", b'debug: \xff "a"')
    talk.server(id=1, result={"said": "yes"}).frame("server", b"done")
    heard = {}
    for has_noise in (False, True):
        loader = InteractionLoader(InteractionStore("r.jsonl"), talk.session.header, has_noise=has_noise)
        for entry in entries(talk.session):
            loader.add(entry)
        loader.finish()
        session = MockSession(Recordings([loader.store]), MockOptions(), 0.0)
        lines = [outgoing.data for outgoing in session.take(0.0)]
        session.receive(b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a"}}', 0.0)
        heard[has_noise] = lines + [outgoing.data for outgoing in session.take(0.0)]
    answer = b'{"jsonrpc":"2.0","id":5,"result":{"said": "yes"}}'
    assert heard == {False: [answer], True: [b"Server 1.0 starts", b'debug: \xff "a"', answer, b"done"]}
