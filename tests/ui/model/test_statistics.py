"""Tests of the groups that calls are counted in, and of the filter of each group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpspy.analysis.stats import StatsCollector, tables
from mcpspy.core.query.parser import parse
from mcpspy.core.recording.decode import Damaged, Header, read_entry, read_header
from mcpspy.core.session.outcome import OUTCOMES
from mcpspy.ui.model import statistics as module
from mcpspy.ui.model.filter_items import RowItem
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.model.statistics import SUBJECT_FIELDS, StatsGroup, StatsModel
from mcpspy.ui.report import stats as stats_report
from mcpspy.ui.report.stats_table import CountedSession, count_session
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
        if index.kind(row).name.lower() != group.kind or index.side(row) != group.side:
            return False
        method = index.texts[index.method[row]]
        subject = index.texts[index.subject[row]]
        return not group.method or (
            method == group.method
            and (group.is_notification or method not in SUBJECT_FIELDS or subject == group.subject)
        )

    return [row for row in range(len(index)) if belongs(row)]


def test_a_dropped_request_is_not_pending_and_may_still_fail() -> None:
    lines = Lines()
    lines.call(1, 0.0, name="forecast")
    numbers = counted(lines.log)
    group = groups(numbers)["tools/call forecast"]
    assert (group.count, group.pending, group.errors) == (1, 1, 0)
    lines.add(b'{"t":0.5,"note":"rule","action":"drop","from":"client","id":"1","method":"tools/call"}')
    numbers.advance(lambda: True)
    assert (group.count, group.pending, group.errors) == (1, 0, 0)
    lines.answer(1, 5.0, error=True)
    numbers.advance(lambda: True)
    assert (group.count, group.pending, group.errors) == (1, 0, 1), "mcpspy answered it after its timeout"


def test_a_group_has_counts_latencies_and_bytes() -> None:
    lines = Lines()
    for number, took in enumerate((0.3, 0.1, 0.2)):
        lines.call(number, float(number), number + took, name="forecast", error=number == 1)
    lines.call(7, 8.0, name="forecast")
    group = groups(counted(lines.log))["tools/call forecast"]

    assert (group.count, group.errors, group.pending) == (4, 1, 1)
    assert [group.p50, group.p95, group.p99, group.most] == pytest.approx([0.2, 0.3, 0.3, 0.3])
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


@pytest.mark.parametrize("path", every_recording(), ids=lambda path: path.stem)
def test_the_panel_has_the_numbers_of_mcpspy_stats_at_any_moment_of_a_session(path: Path) -> None:
    data = path.read_bytes()
    header, *rest = data.split(b"\n")[:-1]
    lines = Lines(read_header(header))
    numbers = StatsModel(lines.log)
    for number, line in enumerate(rest, 1):
        lines.add(line)
        numbers.advance(lambda: True)
        assert not numbers.is_behind
        if number % 7 == 0:
            assert table(numbers) == printed(header, rest[:number], is_live=True), number
    lines.end()
    numbers.advance(lambda: True)

    # As `mcpspy stats --format json` reads the file.
    at_once = report_of(count_session(path, "", StatsCollector(read_header(header)), is_live=False))
    assert table(numbers) == at_once
    assert table(counted(recorded(data).log)) == at_once


def printed(header: bytes, lines: list[bytes], *, is_live: bool) -> dict[str, Any]:
    """Return the numbers of these lines."""
    stats = StatsCollector(read_header(header))
    stats.add_lines(lines)
    stats.finish(is_over=not is_live)
    return report_of(CountedSession("", stats, is_live, ("",)))


def report_of(counted: CountedSession) -> dict[str, Any]:
    """Return the numbers of the panel as `mcpspy stats --format json` prints them."""
    report = stats_report.members(counted)
    totals = {side: shown(total) for side, total in report["requests"].items() if total["count"]}
    groups = {
        (group["from"], group["kind"], group["method"], group["about"]): shown(group)
        for group in report["groups"]
    }
    return {"totals": totals, "groups": groups, "peak": report["in_flight"]["most"]}


def shown(group: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a group of the JSON that the panel shows."""
    states, latency = group.get("states", {}), group.get("latency") or {}
    return {
        "count": group["count"],
        "errors": group.get("errors", 0),
        "unanswered": sum(states.get(state, 0) for state, judged in OUTCOMES.items() if judged.unanswered),
        "pending": sum(states.get(state, 0) for state, judged in OUTCOMES.items() if judged.is_open),
        "sent": group["sent"],
        "back": group.get("back", 0),
        "answers": latency.get("count", 0),
        **{name: latency.get(name, 0.0) for name in ("p50", "p95", "p99", "max")},
    }


def table(numbers: StatsModel) -> dict[str, Any]:
    """Return all numbers of the panel."""
    names = ("count", "errors", "unanswered", "pending", "sent", "back", "answers")

    def members(group: StatsGroup) -> dict[str, Any]:
        latencies = {"p50": group.p50, "p95": group.p95, "p99": group.p99, "max": group.most}
        rounded = {name: round(latency, 6) for name, latency in latencies.items()}
        return {name: getattr(group, name) for name in names} | rounded

    rows = numbers.ordered("what", reverse=False)
    return {
        "totals": {group.side: members(group) for group in rows if not group.method},
        "groups": {
            (group.side, str(group.kind), group.method, group.subject): members(group)
            for group in rows
            if group.method
        },
        "peak": numbers.peak or 0,
    }


def test_no_request_is_pending_once_the_session_is_over() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    numbers = counted(lines.log)
    assert groups(numbers)["tools/call echo"].pending == 1

    lines.end()
    numbers.advance(lambda: True)
    group = groups(numbers)["tools/call echo"]
    assert (group.count, group.pending, group.errors, group.unanswered) == (1, 0, 0, 1)


def test_a_cancelled_call_that_is_answered_late_is_counted_once() -> None:
    lines = Lines()
    numbers = StatsModel(lines.log)
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    lines.call(1, 0.1)
    numbers.advance(lambda: True)
    lines.say(0.2, "client", cancel)
    numbers.advance(lambda: True)
    group = groups(numbers)["tools/call echo"]
    assert (group.count, group.pending, group.answers) == (1, 0, 0)

    lines.answer(1, 0.5)
    numbers.advance(lambda: True)
    assert (group.count, group.pending, group.answers) == (1, 0, 1)
    assert group.most == pytest.approx(0.4)


def test_notifications_are_counted_by_method() -> None:
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

    lines.say(0.4, "client", b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    numbers.advance(lambda: True)

    assert (numbers.notifications("notifications/progress"), numbers.notifications()) == (2, 3)
    assert groups(numbers)["notifications/progress"].count == 2


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
    monkeypatch.setattr(tables, "MOST", 3)
    lines = Lines()
    for number in range(10):
        lines.call(number, number / 10, number / 10 + 0.05, name=f"tool{number}")
    shown = counted(lines.log).ordered("count", reverse=True)

    assert [(group.what, group.count) for group in shown[:2]] == [
        ("all requests", 10),
        ("tools/call (others)", 7),
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


class Merged:
    """Two recordings whose lines are merged into one model."""

    def __init__(self, paths: list[Path]) -> None:
        self.data = [path.read_bytes() for path in paths]
        self.headers = [read_header(data.split(b"\n", 1)[0]) for data in self.data]
        self.log = SessionModel(
            self.headers[0], self._read, lambda entry, _: entry, [path.stem for path in paths]
        )

    def merge(self) -> None:
        """Add a few lines of each recording in turn."""
        offsets = [data.index(b"\n") + 1 for data in self.data]
        while any(offset < len(data) for offset, data in zip(offsets, self.data, strict=True)):
            for part, data in enumerate(self.data):
                self.log.begin_part(part)
                lines = data[offsets[part] :].split(b"\n")[:-1][: 3 + part]
                for line in lines:
                    self.log.add(read_entry(line), offsets[part], len(line))
                    offsets[part] += len(line) + 1
        self.log.end()

    def origin(self, part: int) -> tuple[int, Header]:
        return part, self.headers[part]

    def _read(self, part: int, offset: int, length: int) -> bytes:
        return self.data[part][offset : offset + length]


def test_each_session_of_a_run_is_counted_for_itself_and_their_groups_are_summed() -> None:
    paths = [
        path for path in every_recording() if path.stem in ("everything-sdk-auto", "peer-inspector-modern")
    ]
    assert len(paths) == 2
    merged = Merged(paths)
    merged.merge()
    numbers = StatsModel(merged.log, merged.origin)
    while numbers.is_behind:
        numbers.advance(lambda: False)

    alone = [table(counted(recorded(data).log)) for data in merged.data]
    both = table(numbers)
    for name in ("count", "errors", "unanswered", "sent", "back", "answers"):
        assert both["totals"]["client"][name] == sum(one["totals"]["client"][name] for one in alone)
    assert set(both["groups"]) == {key for one in alone for key in one["groups"]}
    assert both["peak"] == 0


def test_lines_are_counted_in_portions_and_a_batch_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, calls = Lines(), []
    for number in range(1, 41):
        lines.call(3 * number, number / 10, name="one")
        calls += [b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % (3 * number + more) for more in (1, 2)]
        lines.say(number / 10, "client", b"[" + b",".join(calls[-2:]) + b"]")
    for most_rows, most_bytes in ((1, 1 << 20), (2, 1 << 20), (256, 1), (256, 300)):
        monkeypatch.setattr(module, "MAX_ROWS", most_rows)
        monkeypatch.setattr(module, "MAX_BYTES", most_bytes)
        found = groups(counted(lines.log))
        assert (found["tools/call one"].count, found["ping"].count) == (40, 80)


def test_an_incomplete_last_line_is_not_counted() -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.2)
    torn = b'{"t":0.3,"from":"client","msg":{"jsonrpc":"2.0","id":2,"method":"ping"}}'
    lines.log.add(Damaged(torn, "incomplete line"), len(lines.data), len(torn))
    lines.data += torn
    lines.end()

    assert list(groups(counted(lines.log))) == ["tools/call echo"]
