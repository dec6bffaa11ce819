"""Tests of the timeline model: begin, end and concurrency of exchanges, from the rows alone."""

from __future__ import annotations

from mcpspy.analysis import rows
from mcpspy.analysis.stats import StatsCollector
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import read_header
from mcpspy.ui.model.timeline import TimelineModel
from mcpspy.ui.report.stats_table import count_session
from tests.ui.tui.panels.panels import HEADER, Lines, every_recording, recorded

CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}'

DROP = b'{"t":0.5,"note":"rule","action":"drop","from":"client","id":"%d","method":"tools/call"}'


def processed(lines: Lines) -> TimelineModel:
    timeline = TimelineModel(lines.log)
    timeline.advance(lambda: True)
    return timeline


def test_each_exchange_has_the_concurrency_at_its_beginning() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    lines.call(2, 0.2)
    lines.answer(1, 0.3)
    lines.call(3, 0.4)
    lines.call(4, 0.5)
    lines.answer(4, 0.6)
    lines.answer(3, 0.7)
    lines.answer(2, 0.8)
    lines.call(5, 0.9)
    timeline = processed(lines)

    assert list(timeline.rows) == [0, 1, 3, 4, 8]
    assert list(timeline.depths) == [1, 2, 2, 3, 1]
    assert (timeline.peak, timeline.peak_place) == (3, 3)


def test_an_exchange_lasts_until_its_response() -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.4)
    lines.call(2, 0.5)
    timeline = processed(lines)

    assert (timeline.begins[0], timeline.end_of(0)) == (0.1, 0.4)
    assert timeline.end_of(1) is None


def test_a_cancelled_exchange_ends_with_the_cancellation() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    lines.say(0.2, "client", CANCEL % 1)
    lines.call(2, 0.3)
    timeline = processed(lines)

    assert (timeline.end_of(0), list(timeline.depths)) == (0.2, [1, 1])


def test_a_dropped_exchange_ends_when_it_is_dropped() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    lines.add(DROP % 1)
    lines.call(2, 0.9)
    timeline = processed(lines)

    assert (timeline.end_of(0), list(timeline.depths)) == (0.5, [1, 1])


def test_an_unanswered_exchange_lasts_until_the_session_ends() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    lines.call(2, 0.5, 0.6)
    timeline = processed(lines)
    assert timeline.end_of(0) is None
    lines.end()
    assert timeline.is_behind
    timeline.advance(lambda: True)
    assert timeline.end_of(0) == 0.6


def test_the_timeline_contains_requests_of_both_sides() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    lines.say(0.2, "server", b'{"jsonrpc":"2.0","id":1,"method":"ping"}')

    timeline = processed(lines)
    assert (list(timeline.rows), list(timeline.depths), timeline.peak) == ([0, 1], [1, 1], 1)


def test_a_late_response_moves_the_end_but_no_one_waited_for_it() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    lines.say(0.2, "client", CANCEL % 1)
    lines.call(2, 0.3, 0.4)
    lines.answer(1, 0.5)
    for timeline in (processed(lines), in_steps(lines)):
        assert (timeline.end_of(0), list(timeline.depths)) == (0.5, [1, 1])
        (track,) = timeline.window(range(len(lines.log)), 0.0, 1.0, 1, 1.0)["tracks"]
        assert (track["began"], track["peak"], track["slowest"]) == ([2], [1], [0.4])


def test_a_subscription_and_what_mcpspy_sent_do_not_count_as_concurrency() -> None:
    lines = Lines()
    lines.say(0.1, "client", b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}')
    lines.add(b'{"t":0.2,"from":"client","by":"viewer","msg":{"jsonrpc":"2.0","id":7,"method":"ping"}}')
    lines.call(2, 0.3, 0.4)
    timeline = processed(lines)

    assert (len(timeline), timeline.peak, timeline.peak_place) == (3, 1, 2)
    (track,) = timeline.window(range(len(lines.log)), 0.0, 1.0, 1, 1.0)["tracks"]
    assert (track["began"], track["peak"]) == ([3], [1])


def test_requests_that_were_pending_when_entries_were_lost_are_in_flight_no_longer() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    lines.add(b'{"t":0.2,"note":"lost","entries":3}')
    lines.call(2, 0.3, 0.4)
    lines.answer(1, 0.5)
    timeline = processed(lines)

    assert (timeline.end_of(0), list(timeline.depths)) == (0.5, [1, 1])


def test_a_task_is_one_request_until_it_ends_and_its_polls_are_none() -> None:
    lines = Lines()
    task = b'{"taskId":"t1","status":"%b"}'
    call = b'"method":"tools/call","params":{"name":"x","task":{"ttl":1000}}'
    lines.say(0.1, "client", b'{"jsonrpc":"2.0","id":1,%b}' % call)
    lines.say(0.2, "server", b'{"jsonrpc":"2.0","id":1,"result":{"task":%b}}' % (task % b"working"))
    for number, (at, status) in enumerate(((0.3, b"working"), (0.5, b"failed")), 2):
        get = b'{"jsonrpc":"2.0","id":%d,"method":"tasks/get","params":{"taskId":"t1"}}'
        lines.say(at, "client", get % number)
        lines.say(at + 0.1, "server", b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (number, task % status))
    for timeline in (processed(lines), in_steps(lines)):
        assert (list(timeline.rows), timeline.end_of(0), timeline.peak) == ([0], 0.6, 1)
        window = timeline.window(range(len(lines.log)), 0.0, 1.0, 1, 1.0)
        assert window["tracks"][0]["failed"] == [1]
        assert [bar[1:5] for bar in window["bars"]] == [[0.1, 0.6, 0, rows.BAD]]


def test_the_peak_is_that_of_mcpspy_stats_on_every_recording() -> None:
    for path in every_recording():
        header, *lines = path.read_bytes().split(b"\n")[:-1]
        stats = StatsCollector(read_header(header))
        stats.add_lines(lines)
        timeline, flight = processed(recorded(path.read_bytes())), stats.flight
        assert timeline.peak == max(flight.peak, flight.server_peak), path.name


def test_a_window_counts_the_errors_and_the_unanswered_requests_of_mcpspy_stats() -> None:
    for path in every_recording():
        whole, header = recorded(path.read_bytes()), path.read_bytes().split(b"\n", 1)[0]
        counted = count_session(path, "", StatsCollector(read_header(header)), is_live=False).stats.groups
        totals = [counted.total(side) for side in (CLIENT, SERVER)]
        last = whole.log.index.last_at
        window = processed(whole).window(range(len(whole.log)), 0.0, last, 100, last)
        (track,) = window["tracks"]
        assert sum(track["failed"]) == sum(total.errors for total in totals), path.name
        assert sum(track["unanswered"]) == sum(total.unanswered for total in totals), path.name
        bad = [bar for bar in window["bars"] if bar[4] == rows.BAD]
        assert len(bad) == sum(track["failed"]) + sum(track["unanswered"]), path.name


def in_steps(lines: Lines) -> TimelineModel:
    """Return a timeline that took each row before the next one was read."""
    again = Lines(lines.log.header)
    timeline = TimelineModel(again.log)
    for line in lines.data.split(b"\n")[:-1]:
        again.add(bytes(line))
        timeline.advance(lambda: True)
    return timeline


def test_progress_ends_nothing() -> None:
    lines = Lines()
    request = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}'
    )
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}'
    )
    lines.say(0.1, "client", request)
    lines.say(0.2, "server", progress)
    lines.call(2, 0.3)

    assert list(processed(lines).depths) == [1, 2]


def test_a_timeline_built_line_by_line_equals_one_built_at_once() -> None:
    for path in every_recording():
        whole = recorded(path.read_bytes())
        lines = Lines(whole.log.header)
        timeline = TimelineModel(lines.log)
        for line in path.read_bytes().split(b"\n")[1:-1]:
            lines.add(line)
            timeline.advance(lambda: True)
        lines.end()
        timeline.advance(lambda: True)
        at_once = processed(whole)
        assert list(timeline.depths) == list(at_once.depths)
        ends = [timeline.end_of(place) for place in range(len(timeline))]
        assert ends == [at_once.end_of(place) for place in range(len(at_once))]


def test_a_row_maps_to_its_position_or_the_next() -> None:
    lines = Lines()
    for number in range(3):
        lines.call(number, number / 10, number / 10 + 0.05)
    timeline = processed(lines)

    assert [timeline.place_of(row) for row in range(6)] == [0, 1, 1, 2, 2, 2]


def test_a_restarted_session_clears_the_timeline() -> None:
    lines = Lines()
    lines.call(1, 0.1, 0.2)
    timeline = processed(lines)
    lines.log.begin_again(HEADER)
    timeline.advance(lambda: True)

    assert (len(timeline), timeline.peak, timeline.place_of(5)) == (0, 0, 0)


def test_an_exit_that_left_the_pipes_to_others_ends_no_request() -> None:
    lines = Lines()
    lines.call(1, 0.1)
    lines.call(2, 0.2)
    lines.add(b'{"t":0.3,"note":"exit","code":0,"left":["stdout"]}')
    lines.answer(1, 0.4)
    timeline = processed(lines)
    assert (timeline.end_of(0), timeline.end_of(1)) == (0.4, None)

    lines.add(b'{"t":0.5,"note":"end"}')
    timeline.advance(lambda: True)
    assert (timeline.end_of(0), timeline.end_of(1)) == (0.4, 0.5)
