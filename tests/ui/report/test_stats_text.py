"""Statistics of one session: every counter is reported and sanitized."""

from __future__ import annotations

import json

from mcpspy.analysis.stats import StatsCollector
from mcpspy.core.recording.decode import read_header
from mcpspy.ui.report.stats import BOUNDS, document, terminal
from mcpspy.ui.report.stats_table import CountedSession, TableStyle
from mcpspy.ui.text.numbers import BarStyle
from tests.analysis.stats.talking import Talk
from tests.core.session.test_http_exchanges import STREAMS, end, head


def printed(
    talk: Talk, query: str | None = None, *, is_live: bool = False, top: int = 10, width: int = 80
) -> list[str]:
    counted = CountedSession("x", talk.stats(query, is_over=not is_live, top=top), is_live, ("x.jsonl",))
    return [line for line, _ in terminal(counted, TableStyle(width, BarStyle(), "time", top))]


def fact(lines: list[str], label: str) -> str:
    return next(line for line in lines if line.startswith(label)).removeprefix(label).strip()


def test_the_facts_are_those_of_the_session() -> None:
    talk = Talk().hello(0.0, 1.0).ask(1, 2.0, "tools/call", {"name": "a"}).ask(2, 2.5, "ping")
    talk.answer(1, 3.0).answer(2, 4.0)
    lines = printed(talk.note(8.0, "exit", code=0, signal=None))

    assert fact(lines, "duration") == "8.00 s"
    assert fact(lines, "messages").startswith("7 · → 4 (")
    assert fact(lines, "requests") == "→ 3: 3 ok"
    assert fact(lines, "initialize") == "1.00s (initialize), response 1.00s after the start, ready 1.00s"
    assert fact(lines, "server") == "busy 38 % of the time ███████▌"
    assert fact(lines, "concurrency").endswith("peak 2, mean 0.44")
    assert max(map(len, lines)) <= 80


def test_waiting_for_the_client_is_not_work_of_the_server() -> None:
    talk = Talk().hello(0.0, 1.0).ask(1, 2.0, "tools/call", {"name": "echo"})
    talk.ask(1, 3.0, "roots/list", side="server").answer(1, 4.0, side="client").answer(1, 10.0)

    lines = printed(talk)

    assert fact(lines, "server").startswith("busy 80 % of the time")
    assert fact(lines, "server").endswith("waiting for the client 10 %")
    assert any(line.startswith("← requests") for line in lines)


def test_of_many_pending_requests_the_first_are_named_and_the_rest_counted() -> None:
    talk = Talk().hello()
    for number in range(1, 6):
        talk.ask(number, 1.0, "tools/call", {"name": f"tool-{number}"})
    lines = printed(talk.note(4.0, "eof"), is_live=True, top=2)

    at = next(number for number, line in enumerate(lines) if line.startswith("pending: "))
    assert lines[at : at + 3] == [
        "pending: tools/call tool-1, id 1, for 3.00s",
        "pending: tools/call tool-2, id 2, for 3.00s",
        "  and 3 more",
    ]


def test_answers_are_counted_by_the_time_they_took() -> None:
    talk = Talk().hello(0.0, 0.001).call(1, 1.0, 1.0008).call(2, 2.0, 2.0).call(3, 3.0, 9003.0)
    lines = printed(talk)
    begin = lines.index("latency of responses to the client")

    bars = {
        line[:10].strip(): line[10:].split()[0]
        for line in lines[begin + 1 : lines.index("largest messages") - 1]
    }
    assert (bars["to 10µs"], bars["to 1ms"], bars["over 5000s"]) == ("1", "2", "1")
    assert sum(map(int, bars.values())) == 4
    assert list(BOUNDS) == sorted(BOUNDS)


def test_every_protocol_issue_is_reported() -> None:
    talk = Talk().hello().answer(77, 1.0).note(2.0, "lost", entries=4, why="full")
    talk.lines += [b"torn", b'{"t":3.0,"from":"server","why":"not JSON","raw":"DEBUG"}']

    assert "1 malformed, 1 unsolicited responses, 1 damaged lines, 4 lost entries" in "\n".join(printed(talk))


def test_the_handshake_of_a_restart_is_apart_from_those_of_the_client() -> None:
    params = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "host", "version": "1"}}
    talk = Talk().hello().ask("again", 1.0, "initialize", params, by="mcpspy").answer("again", 2.0)
    talk.say(3.0, "client", {"jsonrpc": "2.0", "method": "notifications/initialized"}, by="mcpspy")
    lines = printed(talk)

    assert "requests    → 2: 1 ok, 1 apart" in lines
    assert not [line for line in lines if "handshakes" in line or "x2" in line]


def test_a_call_that_hangs_is_named() -> None:
    lines = printed(
        Talk().hello().ask(7, 1.0, "tools/call", {"name": "hang"}).call(8, 60.0, 61.0), is_live=True
    )

    assert lines[-1] == "pending: tools/call hang, id 7, for 1m00s"


def test_a_call_with_input_requests_is_reported_as_a_whole() -> None:
    question = {"resultType": "input_required", "requestState": "s"}
    talk = Talk().hello().ask(1, 1.0, "tools/call", {"name": "book"}).answer(1, 2.0, question)
    talk.ask(2, 9.0, "tools/call", {"name": "book", "requestState": "s"}).answer(2, 12.0)

    assert (
        "tools/call book: 1 calls of 2 requests · p50 11.0s, p95 11.0s, max 11.0s · server share 36 %"
        in printed(talk, width=200)
    )


def test_hidden_rows_are_counted() -> None:
    talk = Talk().hello()
    for number in range(1, 5):
        talk.call(number, 1.0, 2.0, f"tool-{number}")
        talk.say(3.0, "server", {"jsonrpc": "2.0", "method": f"x/{number}"})

    lines = printed(talk, top=1)

    assert "  and 3 more: --top 4" in lines
    assert "  and 4 more: --top 5" in lines
    assert len(lines[lines.index("largest messages") + 1 :]) == 1


def test_no_text_of_a_peer_reaches_the_terminal_as_it_is() -> None:
    nasty = "\x1b]0;owned\x07\u202e\n"
    hello = {
        "protocolVersion": nasty,
        "clientInfo": {"name": nasty, "version": nasty},
        "serverInfo": {"name": nasty},
    }
    talk = Talk().ask(1, 0.0, "initialize", hello).answer(1, 0.1, hello).call(2, 1.0, 2.0, nasty)
    talk.ask(nasty, 3.0, nasty, {}).ask(4, 4.0, "resources/read", {"uri": nasty})
    talk.say(5.0, "server", {"jsonrpc": "2.0", "method": nasty})

    text = "".join(printed(talk, is_live=True, width=300))

    assert text.isprintable()
    assert text.count("owned") >= 8


def test_a_filter_is_named_and_what_it_does_not_find_has_no_row() -> None:
    lines = printed(Talk().hello().call(1, 1.0, 2.0, "a").call(2, 2.0, 3.0, "b"), "tool:a")

    assert fact(lines, "filter").startswith("tool:a")
    assert "  a" in {line[:3] for line in lines}
    assert not any(line.startswith(("  b", "initialize  1", "notifications")) for line in lines)


def test_a_session_of_nothing_has_its_facts() -> None:
    lines = printed(Talk())

    assert fact(lines, "messages") == "0 · → 0 (0) · ← 0 (0)"
    assert fact(lines, "initialize") == "no handshake"
    assert len(lines) == 6


def test_the_get_streams_have_a_line_if_there_are_any() -> None:
    lines = printed(Talk().note(8.0, "exit", code=0, signal=None))
    assert not [line for line in lines if "GET" in line]
    stats = StatsCollector(read_header(b'{"mcpspy":1,"id":"a","started":"2026-01-01T00:00:00.000Z"}'))
    stats.add_lines([*STREAMS, head(30, 950.0, status=405), end(30, 950.1)])
    stats.finish(is_over=True)
    counted = CountedSession("x", stats, False, ("x.jsonl",))
    lines = [line for line, _ in terminal(counted, TableStyle(80, BarStyle(), "time", 10))]
    assert fact(lines, "GET streams") == "9 with 4 events, longest 12m00s, 7 reopened and empty, 1 refused"
    assert json.loads(document(counted))["get_streams"] == {
        "count": 9,
        "events": 4,
        "longest": 720.0,
        "empty": 7,
        "refused": 1,
    }
