"""Tests of the groups that calls are counted in, and of the filter of each group."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.core.query.parser import parse
from mcpspy.ui.filter_items import RowItem
from mcpspy.ui.session_model import SessionModel
from mcpspy.ui.tui.panels import stats as module
from mcpspy.ui.tui.panels.stats import BY_SUBJECT, StatsGroup, StatsModel
from tests.ui.tui.panels.panels import HEADER, Lines, every_recording, recorded

NASTY = ["plain", "plainer", 'quo"ted', "back\\slash", "a b (c) | d", "über*?", "", "file:///a?b=c", "-minus"]


def counted(log: SessionModel) -> StatsModel:
    numbers = StatsModel(log)
    while numbers.is_behind:
        numbers.advance(lambda: False)
    return numbers


def groups(numbers: StatsModel) -> dict[str, StatsGroup]:
    return {group.what: group for group in numbers.ordered("what", reverse=False) if group.method}


def found(log: SessionModel, text: str) -> list[int]:
    query, item, rows = parse(text), RowItem(log, exchanges=True), []
    for row in range(len(log)):
        item.row = row
        if query.matches(item):
            rows.append(row)
    return rows


def members(log: SessionModel, group: StatsGroup) -> list[int]:
    """Return the rows of a group, computed from its definition."""
    index = log.index

    def belongs(row: int) -> bool:
        if index.kind(row) is not group.kind or index.side(row) != group.side:
            return False
        method = index.texts[index.method[row]]
        subject = index.texts[index.subject[row]]
        return not group.method or (
            method == group.method and (method not in BY_SUBJECT or subject == group.subject)
        )

    return [row for row in range(len(index)) if belongs(row)]


def test_a_dropped_request_is_not_pending_and_may_still_fail() -> None:
    lines = Lines()
    lines.call(1, 0.0, name="forecast")
    numbers = counted(lines.log)
    group = groups(numbers)["tools/call forecast"]
    assert (group.pending, group.errors) == (1, 0)
    lines.add(b'{"t":0.5,"note":"rule","action":"drop","from":"client","id":"1","method":"tools/call"}')
    numbers.advance(lambda: True)
    assert (group.pending, group.errors) == (0, 0)
    lines.answer(1, 5.0, error=True)
    numbers.advance(lambda: True)
    assert (group.pending, group.errors) == (0, 1), "mcpspy answered it after its timeout"


def test_a_group_has_counts_latencies_and_bytes() -> None:
    lines = Lines()
    for number, took in enumerate((0.3, 0.1, 0.2)):
        lines.call(number, float(number), number + took, name="forecast", error=number == 1)
    lines.call(7, 8.0, name="forecast")
    group = groups(counted(lines.log))["tools/call forecast"]

    assert (group.count, group.errors, group.pending) == (4, 1, 1)
    assert [group.p50, group.p95, group.most] == pytest.approx([0.2, 0.3, 0.3])
    sizes = lines.log.index.size
    assert (group.sent, group.back) == (sum(sizes[row] for row in (0, 2, 4, 6)), sum(sizes[1:6:2]))


def test_the_total_of_a_side_is_over_all_its_requests() -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.2, name="a")
    lines.call(2, 0.3, 0.7, name="b")
    lines.say(0.8, "server", b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    client, server = counted(lines.log).ordered("count", reverse=True)[:2]

    assert (client.side, client.count) == ("client", 2)
    assert client.most == pytest.approx(0.4)
    assert (server.side, server.count, server.pending) == ("server", 1, 1)


def test_statistics_built_line_by_line_equal_those_built_at_once() -> None:
    for path in every_recording():
        whole = recorded(path.read_bytes())
        header, *rest = path.read_bytes().split(b"\n")[:-1]
        lines = Lines(whole.log.header)
        numbers = StatsModel(lines.log)
        for line in rest:
            lines.add(line)
            numbers.advance(lambda: True)
        lines.end()
        numbers.advance(lambda: True)
        assert header
        assert not numbers.is_behind
        assert table(numbers) == table(counted(whole.log)), path.name


def table(numbers: StatsModel) -> list[tuple[object, ...]]:
    names = (
        "side",
        "kind",
        "what",
        "count",
        "errors",
        "pending",
        "p50",
        "p95",
        "most",
        "sent",
        "back",
        "progress",
    )
    rows = numbers.ordered("what", reverse=False)
    return [tuple(getattr(group, name) for name in names) for group in rows]


def test_no_request_is_pending_once_the_session_is_over() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    numbers = counted(lines.log)
    assert groups(numbers)["tools/call echo"].pending == 1

    lines.end()
    numbers.advance(lambda: True)
    group = groups(numbers)["tools/call echo"]
    assert (group.pending, group.errors) == (0, 0)


def test_a_cancelled_call_that_is_answered_late_is_counted_once() -> None:
    lines = Lines()
    numbers = StatsModel(lines.log)
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    lines.call(1, 0.1)
    numbers.advance(lambda: True)
    lines.say(0.2, "client", cancel)
    numbers.advance(lambda: True)
    group = groups(numbers)["tools/call echo"]
    assert (group.count, group.pending, len(group.answers)) == (1, 0, 0)

    lines.answer(1, 0.5)
    numbers.advance(lambda: True)
    assert (group.pending, len(group.answers)) == (0, 1)
    assert group.most == pytest.approx(0.4)


def test_progress_is_counted_with_its_call() -> None:
    lines = Lines()
    lines.say(
        0.1,
        "client",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}',
    )
    for at in (0.2, 0.3):
        lines.say(
            at,
            "server",
            b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}',
        )
    numbers = counted(lines.log)

    assert (numbers.progress, numbers.notifications, groups(numbers)["tools/call x"].progress) == (2, 2, 2)


@pytest.mark.parametrize("path", every_recording(), ids=lambda path: path.stem)
def test_the_filter_of_a_group_shows_its_rows_and_no_others(path: Path) -> None:
    log = recorded(path.read_bytes()).log
    numbers = counted(log)

    for group in numbers.ordered("what", reverse=False):
        assert found(log, numbers.filter(group)) == members(log, group), numbers.filter(group)


def test_a_filter_matches_names_with_any_characters() -> None:
    lines, number = Lines(), 0
    for method, field in (("tools/call", b"name"), ("prompts/get", b"name"), ("resources/read", b"uri")):
        for name in NASTY:
            number += 1
            data = name.replace("\\", "\\\\").replace('"', '\\"').encode()
            for side in ("client", "server"):
                lines.say(
                    number / 100,
                    side,
                    b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":{"%b":"%b"}}'
                    % (number, method.encode(), field, data),
                )
    lines.say(
        9.0, "client", b'{"jsonrpc":"2.0","id":999,"method":"resources/subscribe","params":{"uri":"plain"}}'
    )
    numbers = counted(lines.log)

    assert len(groups(numbers)) == 3 * len(NASTY) + 1
    for group in numbers.ordered("what", reverse=False):
        assert found(lines.log, numbers.filter(group)) == members(lines.log, group), numbers.filter(group)


def test_the_filter_of_an_unprintable_name_uses_its_printable_part() -> None:
    lines = Lines()
    lines.call(1, 0.1, name="a\\u001b]0;title")
    (group,) = groups(counted(lines.log)).values()
    text = StatsModel(lines.log).filter(group)

    assert text == 'is:request tool:"]0;title"'
    assert found(lines.log, text) == [0]
    lines.call(2, 0.2, name="\\u001b\\u0007")
    texts = [StatsModel(lines.log).filter(group) for group in groups(counted(lines.log)).values()]
    assert sorted(texts) == ["is:request", text]


def test_the_number_of_groups_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    lines = Lines()
    for number in range(10):
        lines.call(number, number / 10, number / 10 + 0.05, name=f"tool{number}")
    shown = counted(lines.log).ordered("count", reverse=True)

    assert [(group.what, group.count) for group in shown[:2]] == [
        ("all requests", 10),
        ("(other requests)", 7),
    ]
    assert len(shown) == 5


@pytest.mark.parametrize("column", ["count", "p95", "sent", "what"])
def test_groups_are_in_the_order_of_a_column(column: str) -> None:
    lines = Lines()
    for number, name in enumerate(("b", "a", "b", "ccc")):
        lines.call(number, float(number), number + 0.1 * (number + 1), name=name)
    numbers = counted(lines.log)

    for reverse in (True, False):
        values = [getattr(group, column) for group in numbers.ordered(column, reverse=reverse)[1:]]
        assert values == sorted(values, reverse=reverse)


def test_a_restarted_session_clears_the_statistics() -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.2)
    numbers = counted(lines.log)
    lines.log.begin_again(HEADER)
    lines.call(1, 0.1, name="other")
    numbers.advance(lambda: True)

    assert list(groups(numbers)) == ["tools/call other"]
