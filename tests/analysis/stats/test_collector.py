"""Every message is counted once, in the same category as in the session model."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpspy.analysis.stats import StatsCollector
from mcpspy.analysis.stats.group import BY_SUBJECT, GroupKind
from mcpspy.core.protocol.message import Failure, Malformed, Message, Notification, Request, Result
from mcpspy.core.query.parser import parse
from mcpspy.core.recording.decode import Entry, read_entry
from mcpspy.core.session.correlation import REPEATED_EVENT
from mcpspy.core.session.exchange import SUBSCRIBE, Exchange, State
from mcpspy.core.session.outcome import of
from mcpspy.core.session.session import Session
from tests.analysis.stats.talking import Talk, group
from tests.core.session.test_index import ENTRY, RECORDINGS, both, line_of
from tests.core.session.test_index import same as same_rows

KINDS = {
    Request: "request",
    Notification: "notification",
    Result: "result",
    Failure: "error",
    Malformed: "malformed",
}


def table(stats: StatsCollector) -> dict[tuple[str, str, str, str | None], tuple[object, ...]]:
    return {
        (each.side, str(each.kind), each.method, each.subject): (
            each.count,
            dict(each.states),
            each.errors,
            each.sent,
            each.back,
            each.took.times(),
        )
        for each in stats.groups.all
    }


def counted(lines: Iterable[bytes], *, plainly: bool = True, query: str | None = None) -> StatsCollector:
    stats = StatsCollector(query=None if query is None else parse(query))
    if plainly:
        stats.add_lines(list(lines))
    else:
        for line in lines:
            stats.add(read_entry(line))
    stats.finish(is_over=True)
    return stats


class Expected:
    """A row of the table, counted from exchanges."""

    def __init__(self) -> None:
        self.states: Counter[State] = Counter()
        self.count = self.errors = self.sent = self.back = 0
        self.took: list[float] = []

    def add(self, exchange: Exchange) -> None:
        request, answer = exchange.request, exchange.answer
        self.count += 1
        if exchange.is_counted:
            self.states[exchange.state] += 1
            self.errors += of(exchange.state).failed
        self.sent += len(request.data)
        if answer is not None:
            self.back += len(answer.data)
            if request.method != SUBSCRIBE and exchange.poll_of is None and exchange.latency is not None:
                self.took.append(max(exchange.latency, 0.0))


def same(lines: list[bytes]) -> None:
    """Compare the numbers with a session, which knows each message."""
    stats = counted(lines)
    session = Session().add_all(map(read_entry, lines))
    session.end()
    messages = [(change.what, change.flaw) for change in session.changes if isinstance(change.what, Message)]
    kinds = Counter("repeated" if flaw == REPEATED_EVENT else KINDS[type(what)] for what, flaw in messages)
    assert {kind: count for kind, count in stats.kinds.items() if count} == dict(kinds)
    for side in ("client", "server"):
        sizes = [len(what.data) for what, _ in messages if what.side == side]
        assert (stats.messages[side], stats.bytes[side]) == (len(sizes), sum(sizes))
    expected: defaultdict[tuple[str, str, str | None], Expected] = defaultdict(Expected)
    for exchange in session.exchanges:
        request = exchange.request
        about = (request.subject or "") if request.method in BY_SUBJECT else None
        expected[request.side, request.method, about].add(exchange)
    by_method: Counter[tuple[str, str]] = Counter()
    for what, flaw in messages:
        if isinstance(what, Notification) and flaw != REPEATED_EVENT:
            by_method[what.side, what.method] += 1
    found = [each for each in stats.groups.all if each.kind is GroupKind.REQUEST]
    assert {(each.side, each.method, each.subject) for each in found} == set(expected)
    for each in found:
        wanted = expected[each.side, each.method, each.subject]
        assert {state: count for state, count in each.states.items() if count} == wanted.states
        assert each.count == wanted.count == wanted.states.total() + each.apart
        assert (each.errors, each.sent, each.back) == (wanted.errors, wanted.sent, wanted.back)
        assert sorted(took for run in each.took._all() for took in run) == sorted(wanted.took)
    assert session.counts.errors == sum(each.errors for each in found) + stats.stray_errors
    others = [each for each in stats.groups.all if each.kind is GroupKind.NOTIFICATION]
    assert {(each.side, each.method): each.count for each in others} == dict(by_method)
    assert (stats.client, stats.server, stats.revision) == (session.client, session.server, session.revision)
    assert (stats.exit, stats.last_at) == (session.exit, session.last_at)
    assert table(counted(lines, plainly=False)) == table(stats)
    assert table(counted(lines, query="")) == table(stats)


@settings(max_examples=80, deadline=None)
@given(st.lists(ENTRY, max_size=30))
def test_any_input_adds_up_to_the_counts_of_the_session(entries: list[Entry]) -> None:
    same([line_of(entry) for entry in entries])


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_real_sessions_add_up(path: Path) -> None:
    same(path.read_bytes().split(b"\n")[1:-1])


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_long_plain_session_adds_up_too(data: st.DataObject) -> None:
    """Most lines of a real session take the fast path; the unusual ones above leave it at once."""
    talk = Talk().hello()
    waiting: list[int] = []
    for number in range(1, data.draw(st.integers(1, 25))):
        method = data.draw(st.sampled_from(["tools/call", "resources/read", "tools/list", "ping", "x/y"]))
        params = data.draw(
            st.sampled_from(
                [
                    None,
                    {},
                    {"name": "a"},
                    {"name": "é", "uri": "u"},
                    {"name": 5},
                    {"cursor": "c"},
                    {"name": None},
                ]
            )
        )
        talk.ask(number, number * 1.0, method, params)
        waiting.append(number)
        if data.draw(st.booleans()):
            answered = data.draw(st.sampled_from(waiting))
            talk.answer(
                answered, number + 0.5, data.draw(st.sampled_from([{}, {"isError": True}, {"task": {}}]))
            )
            waiting.remove(answered)
        if data.draw(st.booleans()):
            talk.say(
                number + 0.6,
                "server",
                {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
            )
    same(talk.lines)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "ask", "result", "result", "tool error", "error", "cancel"])
        | st.sampled_from(["hold", "release", "delay", "inject", "refuse", "lost", "exit"]),
        st.sampled_from(["client", "client", "server"]),
        st.sampled_from([1, 2, 3, "1", 2.0]),
    ),
    max_size=40,
)
"""Kind of a step, the side that sends the request which it is about, and the id of that request."""


def conversation(steps: list[tuple[str, str, Any]]) -> list[bytes]:
    """Return the lines of a session over HTTP in which both sides send, answer, repeat and cancel requests."""
    head: dict[str, Any] = {"stream": "1"}
    talk, at = Talk().hello(**head), 1.0
    for kind, side, number in steps:
        at += 0.5
        peer = "server" if side == "client" else "client"
        about = {"from": side, "id": json.dumps(number), "method": "tools/call", **head}
        match kind:
            case "ask":
                talk.ask(number, at, "tools/call", {"name": "a"}, side, http=int(number), **head)
            case "result" | "tool error":
                talk.answer(number, at, {"isError": kind == "tool error"}, peer, **head)
            case "error":
                talk.answer(number, at, side=peer, code=-32603, **head)
            case "cancel":
                params = {"requestId": number}
                said = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
                talk.say(at, side, said, **head)
            case "hold" | "release" | "delay":
                seconds = {} if kind == "hold" else {"seconds": 0.25}
                talk.note(at, "rule", action=kind, **about, **seconds)
            case "inject":
                talk.ask(number, at, "tools/call", {"name": "a"}, side, by="mcpspy", **head)
            case "refuse":
                talk.note(at, "http", http=int(number), status=503, **head)
                talk.note(at, "http-end", http=int(number), hung_up=None, **head)
            case "lost":
                talk.note(at, "lost", entries=2, why="disk full")
            case "exit":
                talk.note(at, "exit", code=0, signal=None)
    return talk.lines


@settings(max_examples=150, deadline=None)
@given(STEPS)
@example([("ask", "client", 1), ("delay", "client", 1), ("release", "client", 1)])
def test_session_index_and_statistics_agree_on_every_request_of_any_conversation(
    steps: list[tuple[str, str, Any]],
) -> None:
    lines = conversation(steps)
    session, index = both([read_entry(line) for line in lines])
    same_rows(session, index)
    same(lines)
    stats = counted(lines)
    states = Counter(exchange.state for exchange in session.exchanges if exchange.is_counted)
    assert states[State.PENDING] == index.pending == len(session.pending) == len(stats.waiting) == 0
    assert states == sum((Counter(each.states) for each in stats.groups.all), Counter())
    assert states[State.UNANSWERED] == index.unanswered == len(session.unanswered)
    assert stats.flight._from_client == stats.flight._from_server == 0


def test_requests_are_counted_by_their_final_state() -> None:
    talk = Talk().hello()
    talk.call(1, 1.0, 1.1).call(2, 2.0, 2.3, isError=True).ask(3, 3.0, "tools/call", {"name": "echo"})
    talk.answer(3, 3.2, code=-32602).ask(4, 4.0, "tools/call", {"name": "echo"}).cancel(4, 4.5)
    talk.ask(5, 5.0, "tools/call", {"name": "echo"}).cancel(5, 5.5).answer(5, 6.0, code=-1)
    talk.ask(6, 7.0, "tools/call", {"name": "echo"}).note(8.0, "exit", code=0, signal=None)

    echo = group(talk.stats(), "tools/call", "echo")

    assert dict(echo.states) == {
        State.OK: 1,
        State.TOOL_ERROR: 1,
        State.ERROR: 1,
        State.CANCELLED: 1,
        State.LATE_ERROR: 1,
        State.UNANSWERED: 1,
    }
    assert (echo.count, echo.errors, echo.pending, len(echo.took)) == (6, 3, 0, 4)
    assert echo.took.times()[2:] == pytest.approx((0.2, 1.0, 1.0, 1.0))


def test_a_live_session_is_counted_so_far() -> None:
    talk = Talk().hello().call(1, 1.0, 2.0).ask(3, 4.0, "tools/call", {"name": "slow"}).ask(2, 3.0, "ping")

    live, over = talk.stats(is_over=False), talk.stats()

    assert [call.id for call in live.waiting] == ["2", "3"]
    assert group(live, "tools/call", "slow").pending == 1
    assert over.waiting == []
    assert group(over, "tools/call", "slow").states == {State.UNANSWERED: 1}


def test_the_members_of_a_batch_count_each() -> None:
    talk = Talk().hello()
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2)]
    talk.say(1.0, "client", batch)
    talk.say(2.0, "server", [{"jsonrpc": "2.0", "id": number, "result": {}} for number in (2, 1)])

    stats = talk.stats()

    assert group(stats, "ping").states == {State.OK: 2}
    assert stats.kinds["request"] == 3


def test_clients_of_one_proxy_may_use_the_same_ids() -> None:
    talk = Talk()
    for stream in ("1", "2"):
        talk.hello(stream=stream, http=int(stream))
        talk.ask(1, 1.0, "tools/call", {"name": "echo"}, stream=stream, http=10 + int(stream))
    talk.answer(1, 3.0, stream="2", http=12).answer(1, 2.0, stream="1", http=11)

    stats = talk.stats()

    assert group(stats, "tools/call", "echo").took.times()[2:] == (1.0, 2.0, 2.0, 2.0)
    assert (stats.handshakes.count, stats.handshakes.clients) == (2, {"host 1": 2})
    assert group(talk.stats("stream:2"), "tools/call", "echo").took.times().most == 2.0


def test_a_request_that_its_http_exchange_refuses_is_an_error_without_an_answer() -> None:
    talk = Talk().hello(stream="1", http=1).ask(1, 1.0, "ping", stream="1", http=2)
    talk.note(2.0, "http", http=2, status=404).note(3.0, "http-end", http=2, hung_up=None)

    ping = group(talk.stats(), "ping")

    assert (ping.states, ping.errors, ping.back) == ({State.REFUSED: 1}, 1, 0)


def test_a_client_of_2026_cancels_by_hanging_up() -> None:
    meta = {
        "io.modelcontextprotocol/" + key: value
        for key, value in {
            "protocolVersion": "2026-07-28",
            "clientInfo": {"name": "host", "version": "1"},
        }.items()
    }
    talk = Talk()
    for number, at in ((1, 0.0), (2, 1.0)):
        params = {"name": "echo", "_meta": meta}
        talk.ask(number, at, "tools/call", params, stream=str(number), http=number)
    talk.note(3.0, "http-end", http=2, hung_up="client").note(9.0, "stderr", text="")

    stats = talk.stats()

    assert group(stats, "tools/call", "echo").states == {State.UNANSWERED: 1, State.CANCELLED: 1}
    assert stats.flight.area == 9.0 + 2.0


def test_a_call_with_input_required_is_timed_in_parts_and_in_total() -> None:
    """2026-07-28: the server's share are the two requests, not the seven seconds of the user."""
    question = {"resultType": "input_required", "requestState": "s", "inputRequests": {"a": {}}}
    talk = Talk().hello().ask(1, 1.0, "tools/call", {"name": "book"}).answer(1, 2.0, question)
    talk.ask(2, 9.0, "tools/call", {"name": "book", "requestState": "s", "inputResponses": {"a": {}}})
    talk.answer(2, 12.0)

    stats = talk.stats()
    book = group(stats, "tools/call", "book")

    assert book.states == {State.INPUT_REQUIRED: 1, State.OK: 1}
    assert book.took.times()[2:] == (1.0, 3.0, 3.0, 3.0)
    assert (len(book.chains), book.chains.requests, book.chains.served) == (1, 2, 4.0)
    assert book.chains.whole.times().most == 11.0
    assert stats.flight.served == 0.5 + 1.0 + 3.0


def test_a_subscription_is_open_by_design_and_not_in_flight() -> None:
    talk = Talk().hello().ask(1, 1.0, SUBSCRIBE, {}).answer(1, 100.0)

    stats = talk.stats()

    assert len(group(stats, SUBSCRIBE).took) == 0
    assert stats.flight.served == 0.5


def test_an_open_subscription_is_not_pending() -> None:
    stats = Talk().hello().ask(1, 1.0, SUBSCRIBE, {}).ask(2, 1.0, "ping").stats(is_over=False)

    subscribed, total = group(stats, SUBSCRIBE), stats.groups.total("client")
    assert (subscribed.count, subscribed.apart, subscribed.states) == (1, 1, {})
    assert (total.pending, [call.method for call in stats.waiting]) == (1, ["ping"])


def test_a_call_of_a_live_session_whose_task_works_is_pending() -> None:
    talk = Talk().hello().ask(1, 1.0, "tools/call", {"name": "book"})
    talk.answer(1, 2.0, {"task": {"taskId": "a", "status": "working"}})
    talk.ask(2, 3.0, "tasks/get", {"taskId": "a"}).answer(2, 4.0, {"taskId": "a", "status": "working"})

    stats = talk.stats(is_over=False)

    assert group(stats, "tools/call", "book").states == {State.WORKING: 1}
    assert sum(waiting.count for waiting in stats.open_groups().values()) == 1
    assert [call.method for call in stats.waiting] == ["tools/call"]


@pytest.mark.parametrize("query", ["is:unanswered", "status:input", "-status:error"])
def test_a_filter_finds_a_question_that_is_never_answered(query: str) -> None:
    talk = Talk().ask(1, 1.0, "tools/call", {"name": "book"})
    talk.answer(1, 2.0, {"resultType": "input_required", "inputRequests": {}})

    book = group(talk.stats(query), "tools/call", "book")

    assert (book.count, book.unanswered, book.errors) == (1, 1, 0)
    assert len(book.chains) == 0


def test_the_first_answer_is_noted_though_the_server_has_no_name_yet() -> None:
    talk = Talk().ask(0, 0.5, "initialize", {"protocolVersion": "2025-11-25", "clientInfo": {"name": "c"}})
    talk.ask(1, 1.0, "ping").answer(1, 2.0).answer(0, 3.0, {"serverInfo": {"name": "s"}})

    assert talk.stats().handshakes.first_answer == 2.0


def test_an_ended_subscription_does_not_reduce_the_concurrency() -> None:
    talk = Talk().hello().ask(1, 1.0, SUBSCRIBE, {}).answer(1, 2.0)
    for number in (2, 3, 4):
        talk.ask(number, 3.0, "ping")

    assert talk.stats().flight.peak == 3


def test_notifications_take_the_short_cut_unless_a_filter_asks_for_them() -> None:
    lines = Talk().say(1.0, "server", {"jsonrpc": "2.0", "method": "notifications/message"}).lines
    for query, method, count in ((None, "message", 1), ("tool:a", "message", 0), (None, "cancelled", 0)):
        stats = StatsCollector(query=None if query is None else parse(query), top=0)
        stats.add_lines(Talk().hello().lines)
        assert stats.take_plain([line.replace(b"message", method.encode()) for line in lines], 0) == count


def test_a_response_that_mcpspy_consumed_is_not_unsolicited() -> None:
    talk = Talk().hello().ask(1, 1.0, "ping").answer(1, 2.0, code=-1, by="mcpspy").answer(1, 3.0, to="mcpspy")

    assert (talk.stats().strays, talk.answer(1, 4.0).stats().strays) == (0, 1)


def test_a_filter_chooses_what_is_in_the_tables_and_leaves_the_session_as_it_is() -> None:
    talk = Talk().hello().call(1, 1.0, 1.1, "a").call(2, 2.0, 4.0, "b").call(3, 5.0, 5.1, "b", isError=True)
    talk.say(
        6.0, "server", {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "needle"}}
    )
    whole = talk.stats()

    def found(query: str) -> list[tuple[str, str | None, int]]:
        stats = talk.stats(query)
        assert (stats.messages, stats.flight.served) == (whole.messages, whole.flight.served)
        assert stats.handshakes.first == whole.handshakes.first
        return [(each.method, each.subject, each.count) for each in stats.groups.all]

    assert found("tool:b") == [("tools/call", "b", 2)]
    assert found(">1s") == [("tools/call", "b", 1)]
    assert found("status:toolerror") == [("tools/call", "b", 1)]
    assert found("text:needle") == [("notifications/message", None, 1)]
    assert found('text:"isError"') == [("tools/call", "b", 1)]
    assert found("id:1") == [("tools/call", "a", 1)]
    assert found("time>4s kind:request") == [("tools/call", "b", 1)]
    assert talk.stats("tool:a").groups.largest[0].subject == "a"


@pytest.mark.parametrize("action", ["delay", "release"])
def test_the_time_for_which_a_request_is_held_is_not_the_servers(action: str) -> None:
    talk = Talk().ask(1, 10.0, "tools/call", {"name": "a"})
    about = {"from": "client", "id": "1", "method": "tools/call"}
    if action == "release":
        talk.note(10.0, "rule", action="hold", ticket=1, **about)
    talk.note(10.0 if action == "delay" else 40.0, "rule", action=action, seconds=30.0, **about)
    stats = counted(talk.answer(1, 42.0).lines)
    took = stats.groups.total("client").took.times()
    assert (took.most, stats.flight.served, stats.flight.area) == (2.0, 2.0, 2.0)


def test_the_largest_messages_are_kept_with_their_place() -> None:
    talk = Talk().hello().call(1, 1.0, 1.5, text="x" * 500).ask(2, 2.0, "tools/call", {"name": "y" * 300})

    largest = talk.stats(top=2).groups.largest

    assert [(large.kind, large.id) for large in largest] == [("result", "1"), ("request", "2")]
    assert largest[0].size > 500
    assert [talk.stats().place(large.line) for large in largest] == [(0, 6), (0, 7)]
    assert talk.stats(top=0).groups.largest == []


def test_a_place_is_counted_in_its_own_file() -> None:
    stats = StatsCollector()
    for lines in (3, 2):
        stats.begin_part()
        stats.add_lines([b'{"t":0.1,"note":"stderr","text":"x"}'] * lines)

    assert [stats.place(line) for line in range(5)] == [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3)]


def test_malformed_lines_are_counted_as_malformed() -> None:
    talk = (
        Talk()
        .hello()
        .answer(77, 1.0)
        .note(2.0, "lost", entries=4, why="disk full")
        .note(2.0, "stderr", text="x")
    )
    talk.lines += [b"torn", b'{"t":3.0,"from":"server","why":"not JSON","raw":"DEBUG"}']

    stats = talk.stats()

    assert (stats.strays, stats.lost, stats.damaged, stats.kinds["malformed"]) == (1, 4, 1, 1)
    assert stats.notes == {"lost": 1, "stderr": 1}


def test_only_the_times_of_finished_requests_stay_in_memory() -> None:
    talk = Talk().hello()
    stats = StatsCollector()
    stats.add_lines(talk.lines)
    for begin in range(1, 60_000, 5_000):
        stats.add_lines(
            [
                line
                for number in range(begin, begin + 5_000)
                for line in Talk().call(number, number, number).lines
            ]
        )

    pairing = stats._pairing
    assert len(pairing._answered) < 30_000
    assert len(pairing._open) == len(pairing._progress) == len(pairing._posted) == 0
    assert group(stats, "tools/call", "echo").count == 60_000
