"""Session, index, statistics, lint and `show` agree on the outcome of every request.

The tests compare them at every prefix of a recording, and at its end, with and without an exit note.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.analysis.lint.linter import EXPLAINS_MISSING_RESPONSES, Linter
from mcpspy.analysis.stats import StatsCollector
from mcpspy.analysis.stats.group import GroupKind
from mcpspy.core.protocol.message import Request
from mcpspy.core.query.parser import parse
from mcpspy.core.recording.decode import Entry, Note, read_entry
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.exchange import State
from mcpspy.core.session.index import Index
from mcpspy.core.session.session import Session
from mcpspy.core.session.streaming import StreamingSession
from mcpspy.ui.cli.main import main
from tests.analysis.stats.talking import Talk
from tests.core.session.test_index import ENTRY, RECORDINGS, line_of, same

NEVER_ANSWERED, AFTER_STDIN = "LIFE201", "LIFE405"

HEADER = (
    b'{"mcpspy":1,"id":"ab12cd34","started":"2026-01-01T00:00:00.000Z","transport":"stdio","command":["s"]}'
)

END = st.builds(
    Note,
    st.floats(0, 100),
    st.sampled_from(["exit", "eof"]),
    st.just({"from": "client", "code": 0}),
)

Outcomes = Counter[tuple[str, str, State]]
"""Requester, method and state → number of requests."""


def outcomes(session: Session) -> Outcomes:
    """Return the outcomes that count: not those of open subscriptions, polls of tasks and injected requests."""
    return Counter(
        (each.request.side, each.request.method, each.state)
        for each in session.exchanges
        if each.is_counted and not (each.is_open and each.is_subscription)
    )


def counted(lines: list[bytes], *, is_over: bool) -> tuple[StatsCollector, Outcomes]:
    stats = StatsCollector()
    stats.add_lines(lines)
    stats.finish(is_over=is_over)
    found: Outcomes = Counter()
    for group in stats.groups.all:
        if group.kind is GroupKind.REQUEST:
            for state, count in group.states.items():
                found[group.side, group.method, state] += count
    return stats, found


def agree(lines: list[bytes], session: Session, index: Index, *, is_over: bool) -> None:
    """Compare index and statistics with the session at one moment."""
    same(session, index)
    stats, found = counted(lines, is_over=is_over)
    assert found == outcomes(session)
    assert [(call.id, call.at) for call in stats.waiting] == [
        (each.request.id, each.request.at) for each in sorted(session.pending, key=lambda e: e.request.at)
    ]
    assert index.pending == session.counts.pending
    assert (stats.exit, stats.last_at) == (session.exit, session.last_at)
    issues = StatsCollector(query=parse("is:issue"))
    issues.add_lines(lines)
    issues.finish(is_over=is_over)
    assert sum(each.count for each in issues.groups.all if each.kind is GroupKind.REQUEST) == sum(
        bool(each.flaws or each.request.flaws or (each.answer is not None and each.answer.flaws))
        or any(change.flaw for change in session.changes if change.what is each.answer is not None)
        for each in session.exchanges
    )


def hold(lines: list[bytes]) -> None:
    """Compare all of them at every prefix and at the end."""
    session, index = Session(), Index()
    passing, linter = StreamingSession(), Linter()
    findings, offset = [], 0
    for count, line in enumerate(lines, 1):
        session.add(read_entry(line))
        offset = index.add_lines([line], offset)
        for change in passing.add(read_entry(line)):
            findings += linter.add(change)
        agree(lines[:count], session, index, is_over=False)
    for fold in (session, index, passing):
        fold.end()
    agree(lines, session, index, is_over=True)
    assert not session.pending
    unanswered = {change.number for change in session.unanswered}
    # Messages that mcpspy sent, or did not forward, are not violations of the peers.
    peers = {
        change.number
        for change in session.unanswered
        if isinstance(change.what, Request) and not change.what.frame.is_ours
    }
    findings += linter.end()
    found: dict[str, set[int]] = {}
    for each in findings:
        found.setdefault(each.code, set()).add(each.number)
    # Another finding may report the cause: the crash of the server, or a request after the client closed stdin.
    if not set(EXPLAINS_MISSING_RESPONSES) & set(found):
        assert found.get(NEVER_ANSWERED, set()) == peers - found.get(AFTER_STDIN, set())
    rows = (row for row in range(len(index)) if index.state(row) is State.UNANSWERED)
    assert {
        row
        for row in rows
        if index.kind(row) is RowKind.REQUEST and index.request(row) == row and index.is_counted(row)
    } == unanswered
    assert index.unanswered == len(unanswered)


@settings(max_examples=60, deadline=None)
@given(st.lists(ENTRY | END, max_size=16))
def test_they_agree_on_any_entries(entries: list[Entry]) -> None:
    hold([line_of(entry) for entry in entries])


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_they_agree_on_real_sessions_whole_and_cut(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")[1:-1]
    hold(lines[:120])
    for end in range(0, len(lines), max(len(lines) // 10, 1)):
        session, index = Session().add_all(map(read_entry, lines[:end])), Index()
        index.add_lines(lines[:end], 0)
        agree(lines[:end], session, index, is_over=False)


CALL = {"name": "slow"}

ENDINGS = {
    "ended": Talk().hello().ask(7, 1.0, "tools/call", CALL).note(2.0, "exit", code=0),
    "died": Talk().hello().ask(7, 1.0, "tools/call", CALL),
    "after the exit": Talk().hello().note(1.0, "exit", code=0).ask(7, 2.0, "tools/call", CALL),
    "two exits": Talk()
    .hello()
    .note(1.0, "exit", code=0)
    .ask(7, 2.0, "tools/call", CALL)
    .note(3.0, "exit", code=1),
    "the client's": Talk().hello().ask(7, 1.0, "ping", side="server").note(2.0, "exit", code=0),
    "refused": Talk()
    .hello()
    .ask(7, 1.0, "ping", http=7)
    .note(1.5, "http", http=7, status=500)
    .note(2.0, "http-end", http=7),
    "cancelled": Talk().hello().ask(7, 1.0, "ping").cancel(7, 2.0).note(3.0, "exit", code=0),
    "subscribed": Talk().hello().ask(7, 1.0, "subscriptions/listen").note(3.0, "exit", code=0),
}
UNANSWERED = ("ended", "died", "after the exit", "two exits", "the client's")


@pytest.mark.parametrize("name", ENDINGS)
def test_all_agree_on_every_way_to_end_without_a_response(
    name: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    lines, is_unanswered = ENDINGS[name].lines, name in UNANSWERED
    hold(lines)
    path = tmp_path / "recorded.jsonl"
    path.write_bytes(b"\n".join([HEADER, *lines, b""]))

    assert main(["show", str(path)]) == 0
    shown = capfdbinary.readouterr().out.decode().splitlines()
    assert any(" · 1 unanswered · " in line for line in shown) == is_unanswered
    assert any(line.startswith("no answer: ") and ", id 7, " in line for line in shown) == is_unanswered
    assert main(["show", str(path), "--json"]) == 0
    said = [orjson.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    (status,) = [each["status"] for each in said if each["kind"] == "request" and each["id"] == 7]
    assert (status == "no answer") == is_unanswered
    assert main(["stats", str(path), "--format", "json"]) == 0
    numbers = orjson.loads(capfdbinary.readouterr().out)["requests"]
    assert sum(side["states"]["no answer"] for side in numbers.values()) == is_unanswered
    assert main(["lint", str(path), "--select", NEVER_ANSWERED]) in {0, 1, 4}
    assert (NEVER_ANSWERED.encode() in capfdbinary.readouterr().out) == is_unanswered


ASKED = b'{"t":1.5,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}}'
RESULT = b'{"t":2.5,"from":"server","msg":{"jsonrpc":"2.0","id":1,"result":{}}}'


@pytest.mark.parametrize(
    "line",
    [
        RESULT[:-1] + b',"msg":{"jsonrpc":"2.0","id":1,"result":{"isError":true}}}',
        RESULT.replace(b'"id"', b'"method":"","id"'),
        RESULT.replace(b',"msg"', b', "msg"').replace(b"{}", b'{"a":1,"msg":{}}'),
        RESULT.replace(b'"from"', b'"by":"mcpspy","from"'),
        RESULT.replace(b'"id":1', b'"id":-0'),
        RESULT.replace(b"{}", b'{"isError":"yes"}'),
        RESULT.replace(b"{}", b'{"isError":true}'),
    ],
    ids=["two payloads", "an empty method", "a space", "by mcpspy", "minus zero", "not a boolean", "plain"],
)
def test_all_read_each_line_alike(line: bytes) -> None:
    hold([*Talk().hello().lines, ASKED, line, RESULT.replace(b'"from"', b'"to":"mcpspy","from"'), RESULT])


def test_the_endings_above_cover_all_states_without_a_response() -> None:
    states = {each.state for talk in ENDINGS.values() for each in _ended(talk).exchanges}
    assert states >= {State.OK, State.UNANSWERED, State.REFUSED, State.CANCELLED, State.CLOSED}


def _ended(talk: Talk) -> Session:
    session = Session().add_all(map(read_entry, talk.lines))
    session.end()
    return session
