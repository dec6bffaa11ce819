"""The recordings of the repository: clean, complete, and true to their descriptions."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.protocol.message import Failure, Notification, Request, Result
from mcpspy.core.session.exchange import Exchange, State
from recordings import make

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.conftest import Read

    Recordings = Callable[[str], Read]

LEGACY, MODERN = "2025-11-25", "2026-07-28"

EVERYTHING, FILESYSTEM = "mcp-servers/everything 2.0.0", "secure-filesystem-server 0.2.0"
MEMORY, PEER = "memory-server 0.6.3", "sdk-peer 1.0.0"
SDK, TS, INSPECTOR = "sdk-client 1.0.0", "ts-client 1.0.0", "inspector-cli 2.12.0"

WHO: dict[str, tuple[str, str | None, str | None]] = {
    "everything-sdk-legacy": (SDK, EVERYTHING, LEGACY),
    "everything-sdk-auto": (SDK, EVERYTHING, LEGACY),
    "everything-sdk-modern": (SDK, None, MODERN),
    "everything-inspector-task": (INSPECTOR, EVERYTHING, LEGACY),
    "everything-ts-auto": (TS, None, None),
    "everything-ts-auto-2": (TS, EVERYTHING, LEGACY),
    "filesystem-sdk-legacy": (SDK, FILESYSTEM, LEGACY),
    "memory-sdk-auto": (SDK, MEMORY, LEGACY),
    "memory-inspector-auto": (INSPECTOR, MEMORY, LEGACY),
    "peer-sdk-legacy": (SDK, PEER, LEGACY),
    "peer-sdk-auto": (SDK, PEER, MODERN),
    "peer-sdk-modern": (SDK, PEER, MODERN),
    "peer-inspector-modern": (INSPECTOR, PEER, MODERN),
    "peer-ts-auto": (TS, PEER, MODERN),
    "peer-ts-auto-2": (TS, PEER, MODERN),
}
"""Client, server and revision of each recording. None where a probe was refused or a server sent none."""

EVERY_FILE = pytest.mark.parametrize("name", WHO)
MODERN_PEER = pytest.mark.parametrize("name", ["peer-sdk-auto", "peer-sdk-modern"])


def test_the_folder_the_table_the_readme_and_these_tests_name_the_same_files() -> None:
    files = {name for recipe in make.RECIPES for name in recipe.files}
    assert files == {path.name for path in make.HERE.glob("*.jsonl")}
    assert files == {f"{name}.jsonl" for name in WHO}
    assert make.table() in make.README.read_text(encoding="utf-8"), "run recordings/make.py"


@EVERY_FILE
def test_a_recording_contains_no_trace_of_the_machine_that_made_it(name: str, recording: Recordings) -> None:
    read = recording(name)
    text = read.path.read_text(encoding="utf-8")
    assert list(make.traces(text, make.Machine())) == []
    assert len(text.encode()) < make.LIMIT
    assert (read.header.cwd or "").removeprefix("/private") == str(make.DEMO)
    assert read.header.name == name.removesuffix("-2")


@pytest.mark.parametrize(
    "text",
    [
        '"cwd":"/home/somebody/src"',
        '"command":["/usr/bin/node"]',
        r'"text":"line 1\n/Users/somebody/notes"',
        '"uri":"file:///srv/notes"',
        '"text":"/tmp/peer-x1/a.txt"',
        r'"text":"{\"PATH\": \"x\"}"',
        '"text":"HOME=x"',
        '"text":"on laptop-7"',
        '"text":"my-very-secret-token"',
    ],
)
def test_traces_of_a_machine_are_found(text: str) -> None:
    machine = make.Machine(frozenset({"laptop-7"}), frozenset({"very-secret"}))
    assert list(make.traces(f'{{"t":0.1,"from":"server","msg":{{{text},"k":1}}}}', machine)) != []


@pytest.mark.parametrize(
    "uri", ["https://example.org/login", "demo://resource/dynamic", "file:///home/ada/demo", "roots/list"]
)
def test_uris_that_peers_send_on_any_machine_are_not_traces(uri: str) -> None:
    assert list(make.traces(f'{{"t":0.1,"from":"server","msg":{{"uri":"{uri}"}}}}', make.Machine())) == []


@EVERY_FILE
def test_every_line_is_strict_json_and_every_request_has_its_outcome(
    name: str, recording: Recordings
) -> None:
    read = recording(name)
    for line in read.path.read_bytes().splitlines():
        json.loads(line, parse_constant=pytest.fail)
    assert read.complaints() == []
    for exchange in read.session.exchanges:
        unanswered = exchange.state in (State.CANCELLED, State.CLOSED)
        assert (exchange.answer is None) == unanswered, exchange.request
    assert read.session.exit is not None
    assert read.session.exit is read.entries[-1]


@EVERY_FILE
def test_a_recording_names_its_peers(name: str, recording: Recordings) -> None:
    session = recording(name).session
    client, server, revision = WHO[name]
    assert str(session.client) == client
    assert str(session.server) == str(server)
    assert session.revision == revision


@pytest.mark.parametrize("name", ["everything-sdk-legacy", "everything-sdk-auto"])
def test_the_server_sends_requests_under_ids_that_the_client_uses_too(
    name: str, recording: Recordings
) -> None:
    session = recording(name).session
    asked = [exchange for exchange in session.exchanges if exchange.request.side == "server"]
    assert sorted(exchange.request.method for exchange in asked) == [
        "elicitation/create",
        "elicitation/create",
        "roots/list",
        "sampling/createMessage",
    ]
    for exchange in asked:
        assert exchange.state is State.OK
        assert exchange.answer is not None
        assert exchange.answer.side == "client"
    theirs = {exchange.request.id for exchange in session.exchanges if exchange.request.side == "client"}
    assert len(theirs & {exchange.request.id for exchange in asked}) >= 3
    assert result(the(recording(name).exchanges("roots/list"))) == {
        "roots": [{"uri": "file:///home/ada/demo", "name": "demo"}]
    }
    form, link = recording(name).exchanges("elicitation/create")
    assert result(form)["content"]["name"] == "Ada Lovelace"
    assert link.request.params["mode"] == "url"


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("everything-sdk-legacy", "trigger-long-running-operation"),
        ("everything-sdk-modern", "trigger-long-running-operation"),
        ("peer-sdk-legacy", "slow"),
        ("peer-sdk-auto", "slow"),
    ],
)
def test_progress_belongs_to_its_call(name: str, tool: str, recording: Recordings) -> None:
    call = the(recording(name).exchanges("tools/call", tool))
    assert call.state is State.OK
    assert [note.params["progress"] for note in call.progress] == [1, 2, 3]


@pytest.mark.parametrize("name", ["everything-sdk-legacy", "everything-sdk-auto"])
def test_the_ways_to_fail_are_distinguished(name: str, recording: Recordings) -> None:
    read = recording(name)
    assert code(the(read.exchanges("resources/read", "demo://resource/none"))) == -32602
    accepted, refused = read.exchanges("tools/call", "trigger-url-elicitation")
    assert accepted.state is State.OK
    assert code(refused) == -32042
    assert the(read.exchanges("tools/call", "no-such-tool")).state is State.TOOL_ERROR


@pytest.mark.parametrize("name", ["everything-sdk-auto", "memory-sdk-auto", "memory-inspector-auto"])
def test_a_probe_that_is_refused_is_followed_by_a_handshake(name: str, recording: Recordings) -> None:
    probe, handshake, *_ = recording(name).session.exchanges
    assert (probe.request.method, code(probe)) == ("server/discover", -32601)
    assert (handshake.request.method, handshake.state) == ("initialize", State.OK)


def test_a_server_that_knows_no_2026_07_28_answers_a_client_that_speaks_it(recording: Recordings) -> None:
    read = recording("everything-sdk-modern")
    assert read.session.is_modern
    assert read.exchanges("initialize") == []
    answers = [exchange.answer for exchange in read.session.exchanges]
    results = [answer for answer in answers if isinstance(answer, Result)]
    assert len(results) > 20
    assert not any("resultType" in answer.result for answer in results)


def test_a_task_is_begun_polled_and_fetched(recording: Recordings) -> None:
    read = recording("everything-inspector-task")
    begun = the(read.exchanges("tools/call", "simulate-research-query"))
    task = result(begun)["task"]["taskId"]
    polls = read.exchanges("tasks/get", task)
    assert {result(poll)["status"] for poll in polls} >= {"working", "completed"}
    assert "# Research Report" in result(the(read.exchanges("tasks/result", task)))["content"][0]["text"]
    assert read.session.exit is not None
    assert read.session.exit.fields["signal"] == "SIGTERM"


def test_a_client_that_starts_the_command_twice_leaves_a_probe_and_a_session(recording: Recordings) -> None:
    asked = {
        name: [exchange.request.method for exchange in recording(name).session.exchanges]
        for name in WHO
        if "-ts-" in name
    }
    assert asked == {
        "everything-ts-auto": ["server/discover"],
        "everything-ts-auto-2": ["initialize", "tools/list", "tools/call"],
        "peer-ts-auto": ["server/discover"],
        "peer-ts-auto-2": ["tools/list", "tools/call"],
    }


def test_files_are_written_read_and_refused(recording: Recordings) -> None:
    read = recording("filesystem-sdk-legacy")
    first, outside, incomplete = read.exchanges("tools/call", "read_text_file")
    assert result(first)["content"][0]["text"] == "one\ntwo"
    assert {outside.state, incomplete.state} == {State.TOOL_ERROR}
    assert "+zwei" in result(the(read.exchanges("tools/call", "edit_file")))["content"][0]["text"]


def test_a_graph_is_built_and_cut(recording: Recordings) -> None:
    before, after = recording("memory-sdk-auto").exchanges("tools/call", "read_graph")
    assert len(result(before)["structuredContent"]["entities"]) == 2
    assert len(result(after)["structuredContent"]["entities"]) == 1


@pytest.mark.parametrize("name", ["peer-sdk-legacy", "peer-sdk-auto", "peer-sdk-modern"])
def test_a_call_that_was_cancelled_is_shown_as_cancelled(name: str, recording: Recordings) -> None:
    hang = the(recording(name).exchanges("tools/call", "hang"))
    assert hang.state in (State.CANCELLED, State.LATE_OK, State.LATE_ERROR)
    assert hang.cancel is not None
    assert hang.cancel.params["reason"] == "caller cancelled"
    assert len(hang.progress) == 1


def test_elicitation_of_2025_is_a_request_by_the_server(recording: Recordings) -> None:
    read = recording("peer-sdk-legacy")
    assert [result(asked) for asked in read.exchanges("elicitation/create")] == [
        {"action": "accept", "content": {"answer": "blue"}},
        {"action": "decline"},
    ]
    assert [result(call)["content"][0]["text"] for call in read.exchanges("tools/call", "ask")] == [
        "blue",
        "no answer: decline",
    ]


@MODERN_PEER
def test_elicitation_of_2026_is_a_chain_of_two_calls(name: str, recording: Recordings) -> None:
    read = recording(name)
    colour, more_colour, decline, more_decline = read.exchanges("tools/call", "ask")
    for question, again in ((colour, more_colour), (decline, more_decline)):
        assert (question.state, again.state) == (State.INPUT_REQUIRED, State.OK)
        assert (question.continued_by, again.continues) == (again, question)
        assert question.request.id != again.request.id
        assert again.request.params["requestState"] == result(question)["requestState"]
    assert result(more_colour)["content"][0]["text"] == "blue"
    assert not [exchange for exchange in read.session.exchanges if exchange.request.side == "server"]


@MODERN_PEER
def test_a_subscription_is_open_until_the_client_closes_it(name: str, recording: Recordings) -> None:
    read = recording(name)
    listen = the(read.exchanges("subscriptions/listen"))
    assert listen.request.id == '"listen-1"'
    assert [note.method for note in listen.progress] == [
        "notifications/subscriptions/acknowledged",
        "notifications/resources/updated",
    ]
    assert listen.cancel is not None
    assert listen.answer is None
    assert listen.state is State.CLOSED


def test_a_subscription_may_also_end_by_an_error_when_stdin_closes(recording: Recordings) -> None:
    listen = the(recording("peer-inspector-modern").exchanges("subscriptions/listen"))
    assert listen.request.id == '"listen:0"'
    assert code(listen) == -32000
    assert [note.method for note in listen.progress] == ["notifications/subscriptions/acknowledged"]


@pytest.mark.parametrize("name", ["peer-sdk-modern", "peer-ts-auto-2"])
def test_a_session_of_2026_may_begin_without_any_handshake(name: str, recording: Recordings) -> None:
    session = recording(name).session
    assert session.exchanges[0].request.method == "tools/list"
    assert "elicitation" in session.client_capabilities or name == "peer-ts-auto-2"
    assert not [
        change
        for change in session.changes
        if isinstance(change.what, Notification | Request)
        and re.match("initialize|server/discover|notifications/initialized", change.what.method)
    ]


def test_text_that_is_not_ascii_arrives_unchanged(recording: Recordings) -> None:
    for name in ("everything-sdk-legacy", "peer-sdk-legacy", "peer-sdk-modern"):
        echo = recording(name).exchanges("tools/call", "echo")[0]
        assert "Grüße, 世界 🎈" in result(echo)["content"][0]["text"]


def the(found: list[Exchange]) -> Exchange:
    """Return the only item."""
    (exchange,) = found
    return exchange


def result(exchange: Exchange) -> Any:
    """Return the result of a request."""
    assert isinstance(exchange.answer, Result)
    return exchange.answer.result


def code(exchange: Exchange) -> int | None:
    """Return the error code of a request."""
    assert isinstance(exchange.answer, Failure)
    return exchange.answer.code
