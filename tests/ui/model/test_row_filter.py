"""The rows of the list: by view, toggles and filter, in portions, and in live sessions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcpspy.analysis.lint import EntryPosition, Finding, Severity
from mcpspy.analysis.rows import row as row_of
from mcpspy.core.query.parser import parse
from mcpspy.ui.model.row_filter import FilteredView, SortOrder, ViewOptions
from tests.core.session.test_http_exchanges import ASKED, STREAMS, end, event, head
from tests.ui.model.test_session_model import CALL, FAILED, PROGRESS, File

ASK = b'"client","msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%b"}}}'
OK = b'"server","msg":{"jsonrpc":"2.0","id":%d,"result":{}}}'
HELLO = b'"server","msg":{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}}'
STDERR = b'{"t":0.6,"note":"stderr","text":"a word"}'
HTTP = b'{"t":0.6,"note":"http","http":1,"status":200,"method":"POST","path":"/mcp"}'
LOST = b'{"t":0.6,"note":"lost","entries":1,"why":"full"}'
CRASH = b'{"t":0.9,"note":"exit","code":1}'
EXIT = b'{"t":0.9,"note":"exit","code":0}'
RULED = b'{"t":0.6,"note":"rule","action":"hold","ticket":1,"from":"client","id":"2"}'
ERROR = b'{"t":0.6,"note":"error","text":"a bug"}'
CANCEL = b'"client","msg":{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}}'


def all_of(view: FilteredView) -> list[int]:
    """Return the shown rows once all are filtered."""
    view.advance(lambda: True)
    return list(view.rows)


def found(row: int) -> Finding:
    """Return a finding on a row."""
    return Finding("x-001", Severity.WARNING, "why", "", EntryPosition(1), row, 0.5, "server")


@pytest.fixture
def file() -> File:
    file = File()
    file.add(CALL, PROGRESS, FAILED, HELLO, STDERR, HTTP, LOST, b"{broken", OK % 9)
    return file


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        (ViewOptions(), [0, 3, 4, 6, 7, 8]),
        (ViewOptions(exchanges=False), [0, 1, 2, 3, 4, 6, 7, 8]),
        (ViewOptions(exchanges=False, http=True), list(range(9))),
        (ViewOptions(notifications=False), [0, 4, 6, 7, 8]),
        (ViewOptions(events=False), [0, 3, 6, 7, 8]),
        (ViewOptions(query=parse("tool:x")), [0]),
        (ViewOptions(exchanges=False, query=parse("tool:x")), [0, 2]),
        (ViewOptions(query=parse("status:-32602")), [0]),
        (ViewOptions(exchanges=False, query=parse("status:-32602")), [2]),
        (ViewOptions(query=parse("nothing-like-it")), []),
        (ViewOptions(query=parse('text:"no such thing"')), [0]),
        (ViewOptions(query=parse("text:word")), [4]),
    ],
)
def test_options_select_rows(file: File, options: ViewOptions, rows: list[int]) -> None:
    assert all_of(FilteredView(file.log, options)) == rows


def test_an_unsolicited_response_has_its_own_row(file: File) -> None:
    assert 8 in all_of(FilteredView(file.log))


def test_only_marked_rows_are_shown_on_request(file: File) -> None:
    view = FilteredView(file.log, ViewOptions(only_marked=True))
    view.marked = {3, 6}
    assert all_of(view) == [3, 6]


@pytest.mark.parametrize(
    "options",
    [
        ViewOptions(query=parse("nothing-like-it")),
        ViewOptions(exchanges=False, query=parse("nothing-like-it")),
        ViewOptions(only_marked=True),
        ViewOptions(exchanges=False, only_marked=True),
        ViewOptions(exchanges=False, notifications=False, events=False, query=parse("nothing-like-it")),
    ],
)
def test_a_held_row_is_always_shown(file: File, options: ViewOptions) -> None:
    before = FilteredView(file.log, options)
    before.held = {0, 3}
    assert all_of(before) == [0, 3]

    after = FilteredView(file.log, options)
    assert all_of(after) == []
    after.held = {0, 3}
    after.reconsider({0, 3})
    assert list(after.rows) == [0, 3]

    for view in (before, after):
        view.held = {3}
        view.reconsider({0})
        assert list(view.rows) == [3]


def test_a_held_request_stays_when_its_answer_no_longer_matches_the_filter() -> None:
    file = File()
    view = FilteredView(file.add(ASK % (1, b"a"), ASK % (2, b"b")), ViewOptions(query=parse("is:pending")))
    view.held = {0}
    assert all_of(view) == [0, 1]
    file.add(OK % 1, OK % 2)
    assert all_of(view) == [0]


def test_progress_and_cancellation_have_rows_only_if_they_have_issues() -> None:
    flawed = PROGRESS.replace(b'"jsonrpc":"2.0",', b"")
    unknown = PROGRESS.replace(b":7", b":8")
    file = File()
    log = file.add(CALL, PROGRESS, flawed, CANCEL, unknown, PROGRESS)
    assert all_of(FilteredView(log)) == [0, 2, 4]  # Row 2 lacks "jsonrpc"; row 4 has an unknown token.
    assert all_of(FilteredView(log, ViewOptions(notifications=False))) == [0]
    assert all_of(FilteredView(log, ViewOptions(exchanges=False))) == list(range(6))

    view = FilteredView(log)
    view.advance(lambda: True)
    for row in (3, 5):
        log.findings.add(row, found(row))
        view.reconsider([row])
    assert list(view.rows) == [0, 2, 3, 4, 5]
    assert all_of(FilteredView(log)) == [0, 2, 3, 4, 5]


TASK = b'"server","msg":{"jsonrpc":"2.0","id":%d,"result":{%b"taskId":"a","status":"%b"%b}}'
POLL = b'"client","msg":{"jsonrpc":"2.0","id":%d,"method":"tasks/get","params":{"taskId":"a"}}}'


@pytest.mark.parametrize("text", ["", "is:request", "-nothing-like-it"])
@pytest.mark.parametrize("is_live", [False, True])
def test_polls_of_a_task_are_folded_under_their_call(text: str, is_live: bool) -> None:
    file = File()
    view = FilteredView(file.log, ViewOptions(query=parse(text)))
    for line in (
        ASK % (1, b"a"),
        TASK % (1, b'"task":{', b"working", b"}}"),
        POLL % 2,
        TASK % (2, b"", b"working", b',"statusMessage":"3 of 7"}'),
        POLL % 3,
        TASK % (3, b"", b"failed", b"}"),
    ):
        file.add(line)
        if is_live:
            view.advance(lambda: True)
    assert all_of(view) == [0]
    assert all_of(FilteredView(file.log, ViewOptions(exchanges=False))) == list(range(6))


def test_the_end_of_a_task_moves_its_call_into_a_filter_of_a_live_session() -> None:
    file = File()
    file.add(ASK % (1, b"a"), TASK % (1, b'"task":{', b"working", b"}}"))
    failed, working = (
        FilteredView(file.log, ViewOptions(query=parse(f"is:{name}"))) for name in ("error", "working")
    )
    assert (all_of(failed), all_of(working)) == ([], [0])

    file.add(POLL % 2, TASK % (2, b"", b"failed", b"}"))
    assert (all_of(failed), all_of(working)) == ([0], [])


def test_a_finding_on_a_response_updates_the_row_of_its_request(file: File) -> None:
    view = FilteredView(file.log, ViewOptions(query=parse("is:finding", linted=True)))
    assert all_of(view) == []
    version = view.version
    file.log.findings.add(2, found(2))
    view.reconsider([2])
    assert list(view.rows) == [0]
    assert view.version != version


def test_rows_that_were_not_filtered_yet_are_not_reconsidered(file: File) -> None:
    view = FilteredView(file.log)
    view.reconsider([0, 3])
    assert list(view.rows) == []
    assert all_of(view) == [0, 3, 4, 6, 7, 8]
    view.reconsider([0, 1, 3])
    assert list(view.rows) == [0, 3, 4, 6, 7, 8]


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        (ViewOptions(), [2]),
        (ViewOptions(events=False), [2]),
        (ViewOptions(exchanges=False), [0, 1, 2]),
        (ViewOptions(exchanges=False, events=False), [2]),
        (ViewOptions(exchanges=False, events=False, http=True), [2, 3]),
    ],
)
def test_rule_notes_are_hidden_beside_exchanges_and_lost_entries_and_errors_are_always_shown(
    options: ViewOptions, rows: list[int]
) -> None:
    file = File()
    assert all_of(FilteredView(file.add(RULED, RULED, ERROR, HTTP), options)) == rows


@pytest.mark.parametrize(
    "fields",
    [
        {"exchanges": True},
        {"notifications": False},
        {"events": False},
        {"http": False},
        {"query": parse("tool:x")},
        {"only_marked": True},
        {"reverse": True},
        {"order": SortOrder.SIZE},
    ],
)
def test_options_that_hide_nothing_are_recognised(fields: dict[str, Any]) -> None:
    everything = ViewOptions(exchanges=False, http=True)
    assert everything.is_all
    assert not replace(everything, **fields).is_all


def test_the_sort_orders_cycle() -> None:
    assert [order.following for order in SortOrder] == [SortOrder.LATENCY, SortOrder.SIZE, SortOrder.TIME]


def test_filtering_reports_whether_the_rows_changed() -> None:
    file = File()
    view = FilteredView(file.add(ASK % (1, b"a")), ViewOptions(query=parse("is:pending")))
    assert view.advance(lambda: True)
    assert not view.advance(lambda: True)
    file.add(STDERR)
    assert not view.advance(lambda: True)
    version = view.version
    file.add(OK % 1, ASK % (2, b"b"))
    assert view.advance(lambda: True)  # One row vanished and one appeared: the count is the same.
    assert (list(view.rows), view.version != version) == ([3], True)


def test_a_filter_that_reads_the_file_uses_smaller_portions() -> None:
    file = File()
    file.add(*[STDERR] * 600)
    for text, portions in (("kind:stderr", [512, 600]), ("text:word", [51, 102])):
        view = FilteredView(file.log, ViewOptions(query=parse(text)))
        processed = []
        for _ in portions:
            view.advance(lambda: False)
            processed.append(view.processed)
        assert (processed, len(view)) == (portions, portions[-1])


def test_a_time_relative_to_the_end_is_filtered_again_once_the_end_is_known() -> None:
    file = File()
    options = ViewOptions(query=parse("since:-0.2"))
    view = FilteredView(
        file.add(b'{"t":0.5,"note":"stderr","text":"a"}', b'{"t":0.6,"note":"stderr","text":"b"}'), options
    )
    assert all_of(view) == [0, 1]
    file.add(EXIT)
    generation = view.generation
    assert view.advance(lambda: True)
    assert (view.generation, view.is_behind) == (generation + 1, True)
    assert all_of(view) == [2]
    assert not view.advance(lambda: True)
    assert view.generation == generation + 1


def test_rows_are_filtered_in_portions_as_time_allows(file: File) -> None:
    for number in range(1000):
        file.add(ASK % (number + 100, b"echo"), OK % (number + 100))
    view = FilteredView(file.log)
    steps = 0
    while view.is_behind:
        view.advance(lambda: False)
        steps += 1
    assert steps > 2
    assert len(view) == 1006


def test_a_response_changes_whether_its_request_matches() -> None:
    file = File()
    view = FilteredView(file.add(ASK % (1, b"a"), ASK % (2, b"b")), ViewOptions(query=parse("is:pending")))
    assert all_of(view) == [0, 1]
    file.add(OK % 1)
    assert all_of(view) == [1]
    done = FilteredView(file.log, ViewOptions(query=parse("status:ok")))
    assert all_of(done) == [0]
    file.add(OK % 2)
    assert all_of(done) == [0, 1]


def test_unanswered_requests_match_after_the_end() -> None:
    file = File()
    view = FilteredView(file.add(ASK % (1, b"a")), ViewOptions(query=parse("status:noanswer")))
    assert all_of(view) == []
    file.add(EXIT)
    assert all_of(view) == [0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from([ASK % (1, b"a"), ASK % (2, b"b"), OK % 1, OK % 2, FAILED, HELLO, STDERR, CRASH]),
        max_size=14,
    ),
    st.integers(0, 14),
    st.sampled_from(
        ["", "status:ok", "is:pending", "-status:ok", "status:err", "is:issue", "tool:a", "is:problem"]
    ),
    st.booleans(),
)
def test_live_rows_equal_those_of_the_finished_session(
    lines: list[bytes], cut: int, text: str, exchanges: bool
) -> None:
    options = ViewOptions(exchanges=exchanges, query=parse(text), problems=text == "is:problem")
    file = File()
    live = FilteredView(file.log, options)
    for some in (lines[:cut], lines[cut:]):
        file.add(*some)
        live.advance(lambda: True)
    file.log.end()
    finished = FilteredView(file.log, options)
    assert all_of(live) == all_of(finished)
    assert +live.problems == finished.problems
    assert live.unfiltered == len(all_of(FilteredView(file.log, ViewOptions(exchanges=exchanges))))


def test_only_changed_options_filter_again(file: File) -> None:
    view = FilteredView(file.log)
    all_of(view)
    view.want(ViewOptions())
    assert (view.generation, view.is_behind) == (1, False)
    view.want(ViewOptions(exchanges=False))
    assert (view.generation, view.is_behind, len(view)) == (2, True, 0)
    assert all_of(view) == [0, 1, 2, 3, 4, 6, 7, 8]


def test_a_replaced_recording_is_filtered_again(file: File) -> None:
    view = FilteredView(file.log)
    all_of(view)
    file.log.begin_again(file.log.header)
    assert view.is_behind
    assert view.advance(lambda: True)
    assert not view.advance(lambda: True)
    assert all_of(view) == []


EVERY_KIND = [ViewOptions(), ViewOptions(exchanges=False, http=True), ViewOptions(order=SortOrder.SIZE)]


@pytest.mark.parametrize("options", EVERY_KIND)
def test_a_replaced_recording_has_no_rows_until_it_is_filtered_again(
    file: File, options: ViewOptions
) -> None:
    view = FilteredView(file.log, options)
    assert all_of(view)
    file.log.begin_again(file.log.header)
    assert (len(view), list(view.rows)) == (0, [])


@pytest.mark.parametrize("options", EVERY_KIND)
def test_a_hidden_row_has_a_position(file: File, options: ViewOptions) -> None:
    view = FilteredView(file.log, options)
    for row in all_of(view):
        assert view.contains(row)
        assert view.rows[view.place_of(row)] == row
    assert not view.contains(99)
    assert view.place_of(99) == (0 if options.is_sorted else len(view) - 1)


def test_a_hidden_row_has_the_position_of_the_next_one(file: File) -> None:
    view = FilteredView(file.log)
    assert all_of(view) == [0, 3, 4, 6, 7, 8]
    assert [view.contains(row) for row in (0, 1, 2, 3, 5, 8)] == [True, False, False, True, False, True]
    assert [view.place_of(row) for row in (0, 1, 2, 3, 5, 6)] == [0, 1, 1, 1, 3, 3]
    assert FilteredView(file.log).place_of(3) == 0  # No row is shown yet.


def test_the_size_of_an_exchange_includes_its_response() -> None:
    file = File()
    file.add(ASK % (1, b"a"), ASK % (2, b"bb"), (OK % 1).replace(b"{}}}", b'{"a":"longer"}}}'), OK % 2)
    assert all_of(FilteredView(file.log, ViewOptions(order=SortOrder.SIZE))) == [0, 1]


def test_requests_without_a_response_come_last_and_ties_keep_wire_order() -> None:
    file = File()
    file.add(ASK % (1, b"a"), ASK % (2, b"b"), ASK % (3, b"c"), b'{"t":0.9,"from":' + OK % 2)
    assert all_of(FilteredView(file.log, ViewOptions(order=SortOrder.LATENCY))) == [1, 0, 2]
    assert all_of(FilteredView(file.log, ViewOptions(order=SortOrder.LATENCY, reverse=True))) == [0, 2, 1]
    assert all_of(FilteredView(file.log, ViewOptions(exchanges=False, http=True, reverse=True))) == [
        3,
        2,
        1,
        0,
    ]


def test_a_sorted_list_is_stale_when_a_row_enters_it_later() -> None:
    file = File()
    log = file.add(ASK % (1, b"a"), ASK % (2, b"b"), EXIT)
    view = FilteredView(log, ViewOptions(order=SortOrder.SIZE, query=parse("is:finding", linted=True)))
    assert (all_of(view), view.is_stale) == ([], False)
    log.findings.add(1, found(1))
    view.reconsider([1])
    assert (list(view.rows), view.is_stale) == ([], True)
    version = view.version
    view.sort()
    assert (list(view.rows), view.is_stale, view.version != version) == ([1], False, True)


def test_rows_are_sorted_by_the_chosen_order() -> None:
    file = File()
    file.add(ASK % (1, b"a"), ASK % (2, b"a longer name"))
    file.add(b'{"t":0.9,"from":' + OK % 1, b'{"t":0.7,"from":' + OK % 2)
    orders: list[tuple[dict[str, Any], list[int]]] = [
        ({"order": SortOrder.SIZE}, [1, 0]),
        ({"order": SortOrder.SIZE, "reverse": True}, [0, 1]),
        ({"order": SortOrder.LATENCY}, [0, 1]),
        ({"reverse": True}, [1, 0]),
        ({}, [0, 1]),
    ]
    for fields, rows in orders:
        assert all_of(FilteredView(file.log, replace(ViewOptions(), **fields))) == rows


def test_a_sorted_list_is_stale_until_new_rows_are_sorted() -> None:
    file = File()
    view = FilteredView(file.add(ASK % (1, b"a")), ViewOptions(order=SortOrder.SIZE))
    assert (all_of(view), view.is_stale) == ([0], False)
    file.add(ASK % (2, b"a longer name"))
    view.advance(lambda: True)
    assert (list(view.rows), view.is_stale) == ([0], True)
    view.sort()
    assert (view.is_stale, list(view.rows)) == (False, [1, 0])


def test_a_get_stream_is_one_row_and_a_repetition_without_events_none() -> None:
    file = File()
    view = FilteredView(file.log)
    file.add(*STREAMS[:6])
    assert all_of(view) == [0, 1, 3, 5]
    change = file.log.get(5)
    assert change is not None
    assert row_of(change).subject == "GET stream: no events, open"
    file.add(*STREAMS[6:])
    streams = [found for found in all_of(view) if file.log.note(found) == "http"]
    assert streams == [0, len(STREAMS) - 2]
    first = file.log.get(0)
    assert first is not None
    assert row_of(first).subject.endswith("ended by the server; reopened 7 times, each empty")
    assert row_of(first).latency == "12m00s"
    view.want(ViewOptions(http=True))
    assert len(all_of(view)) == len(STREAMS)
    view.want(ViewOptions(events=False))
    assert not [found for found in all_of(view) if file.log.note(found) == "http"]


def test_a_filter_finds_the_text_of_a_refusal() -> None:
    file = File()
    body = "<title>Sign in</title>" + "x " * 200 + "ticket 4711"
    file.add(
        *(event(3, 0.5, ASKED, "client"), head(3, 1.0, method="POST", status=401)),
        end(3, 1.1, body=body, size=len(body)),
        *(event(4, 1.5, {"jsonrpc": "2.0", "method": "notifications/initialized"}, "client"),),
        *(head(4, 2.0, method="POST", status=404), end(4, 2.1, body='{"error":"gone"}', size=16)),
    )
    assert all_of(FilteredView(file.log, ViewOptions(query=parse('text:"sign in"')))) == [0]
    assert all_of(FilteredView(file.log, ViewOptions(query=parse("text:4711"), http=True))) == [2]
    assert all_of(FilteredView(file.log, ViewOptions(query=parse("text:gone"), http=True))) == [4, 5]
